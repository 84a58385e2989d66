#include "state.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "../simd.hpp"
#include "gap.hpp"

namespace certifit {
namespace {

constexpr size_t columns_at_once = 32;
constexpr size_t little_work = 100'000;   // multiplications that no second thread is worth
constexpr double slope_rounding = 1e-13;  // of a slope, relative to |z| |y|
constexpr double sum_rounding = 0x1p-48;  // of the residual, relative to the sum of |w_j z_j|
constexpr double least_base = 0x1p-1022;  // of l1 where there is one: at 0 an infinite alpha would be no penalty

// sum_i omega_i (a_i - b_i)^2.
double squared_distance(const double* omega, const double* a, const double* b, size_t n) {
  Vec even{}, odd{};
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const Vec first = load(a + i) - load(b + i), second = load(a + i + lanes) - load(b + i + lanes);
    even = multiply_add(load(omega + i) * first, first, even);
    odd = multiply_add(load(omega + i + lanes) * second, second, odd);
  }
  even = even + odd;
  double sum = (even[0] + even[1]) + (even[2] + even[3]);
  for (; i < n; ++i) sum = multiply_add(omega[i] * (a[i] - b[i]), a[i] - b[i], sum);
  return sum;
}

}  // namespace

WideState::WideState(const WideProblem& problem, Crew& crew)
    : crew_(crew), columns_(problem.x, problem.weight, problem.fit_intercept) {
  const size_t d = columns_.size();
  set_target(problem.y);
  base_.resize(d);
  ridge_.resize(d);
  weights_.assign(d, 0.0);
  slopes_.assign(d, 0.0);
  computed_at_.assign(d, 0);
  set_weights({}, {});
  crew_.for_each_block((d + columns_at_once - 1) / columns_at_once, [&](size_t block) {
    for (size_t j = block * columns_at_once; j < std::min((block + 1) * columns_at_once, d); ++j) {
      columns_.describe(j);
      const double factor = problem.factor ? problem.factor[j] : 1.0;
      base_[j] = factor * problem.ratio * (columns_.scale(j) / unit_);
      if (factor > 0) base_[j] = std::max(base_[j], least_base);
      ridge_[j] = factor * (1 - problem.ratio) * columns_.scale(j);
      slopes_[j] = columns_.norm(j) > 0 ? columns_.pull(j, q_.data(), 0.0) : 0.0;
    }
  });
  columns_read_ = d;
  lower_ = scaled_bounds(problem.lower, -infinity);
  upper_ = scaled_bounds(problem.upper, infinity);
}

std::vector<double> WideState::scaled_bounds(const double* user, double free) const {
  const size_t d = columns_.size();
  if (!user || std::all_of(user, user + d, [&](double bound) { return bound == free; })) return {};
  std::vector<double> out(d);
  for (size_t j = 0; j < d; ++j) out[j] = from_user(j, user[j]);
  return out;
}

// Means are taken about the first value, so that a constant is constant to the last bit.
void WideState::set_target(const double* y) {
  const std::vector<double>& omega = columns_.omega();
  y_.assign(y, y + columns_.n_rows());
  if (columns_.is_centred()) {
    double sum = 0;
    for (size_t i = 0; i < y_.size(); ++i) sum += omega[i] * (y[i] - y[0]);
    y_mean_ = y[0] + sum;
  }
  double largest = 0;
  for (double& value : y_) {
    value -= y_mean_;
    largest = std::max(largest, std::fabs(value));
  }
  unit_ = largest > 0 ? std::exp2(std::ilogb(largest)) : 1.0;
  for (double& value : y_) value /= unit_;
  for (size_t i = 0; i < y_.size(); ++i) null_objective_ += 0.5 * omega[i] * y_[i] * y_[i];
}

void WideState::set_weights(const std::vector<size_t>& ids, const std::vector<double>& weights) {
  for (size_t j : support_) weights_[j] = 0;
  support_.clear();
  residual_ = y_;
  double shift = 0, mean = 0, lengths = 0;
  for (size_t k = 0; k < ids.size(); ++k) {
    if (weights[k] == 0) continue;
    lengths += std::fabs(weights[k]) * columns_.norm(ids[k]);
    support_.push_back(ids[k]);
    weights_[ids[k]] = weights[k];
    columns_.add(ids[k], -weights[k], residual_.data(), shift);
  }
  const size_t n = columns_.n_rows();
  const std::vector<double>& omega = columns_.omega();
  for (double& r : residual_) r += shift;
  if (columns_.is_centred())
    for (size_t i = 0; i < n; ++i) mean += omega[i] * residual_[i];
  off_centre_ = 0;
  squares_ = 0;
  q_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    residual_[i] -= mean;
    q_[i] = omega[i] * residual_[i];
    squares_ += q_[i] * residual_[i];
  }
  rounding_ = slope_rounding * std::sqrt(2 * null_objective_) + sum_rounding * lengths;
  remember();
}

double WideState::intercept() const {
  if (!columns_.is_centred()) return 0;
  double b = y_mean_;
  for (size_t j : support_) b -= to_user(j, weights_[j]) * columns_.mean(j);
  return b;
}

void WideState::set_intercept(double user_intercept) { off_centre_ = (intercept() - user_intercept) / unit_; }

void WideState::remember() {
  if (remembered_.size() < n_remembered) {
    now_ = remembered_.size();
    remembered_.push_back(residual_);
    distance_.push_back(0);
  } else {
    now_ = (now_ + 1) % n_remembered;
    remembered_[now_] = residual_;
    for (size_t j = 0; j < slopes_.size(); ++j)
      if (computed_at_[j] == now_) computed_at_[j] = n_remembered;  // forgotten
  }
  for (size_t k = 0; k < remembered_.size(); ++k) {
    distance_[k] =
        std::sqrt(squared_distance(columns_.omega().data(), residual_.data(), remembered_[k].data(), residual_.size()));
  }
}

void WideState::pull(const std::vector<size_t>& ids) {
  auto block = [&](size_t b) {
    const size_t end = std::min((b + 1) * columns_at_once, ids.size());
    for (size_t k = b * columns_at_once; k < end; ++k) {
      const size_t j = ids[k];
      slopes_[j] = columns_.norm(j) > 0 ? columns_.pull(j, q_.data(), 0.0) : 0.0;
      computed_at_[j] = static_cast<uint8_t>(now_);
    }
  };
  size_t work = 0;
  for (size_t j : ids) work += columns_.stored(j);
  columns_read_ += ids.size();
  const size_t n_blocks = (ids.size() + columns_at_once - 1) / columns_at_once;
  if (work > little_work)
    crew_.for_each_block(n_blocks, block);
  else
    for (size_t b = 0; b < n_blocks; ++b) block(b);
}

// |<z, r>| <= |<z, r'>| + |z| |r - r'| for a remembered residual r'.
bool WideState::may_exceed(size_t j) const {
  if (computed_at_[j] == now_) return false;
  if (computed_at_[j] == n_remembered) return true;
  const Penalty h = penalty(j);
  const double reach = columns_.norm(j) * (distance_[computed_at_[j]] + rounding_);
  return (h.upper > 0 && slopes_[j] + reach > h.l1) || (h.lower < 0 && -slopes_[j] + reach > h.l1);
}

void WideState::pull_where_needed(const std::vector<size_t>& ids) {
  std::vector<size_t> needed;
  for (size_t j : ids)
    if (may_exceed(j)) needed.push_back(j);
  pull(needed);
}

void WideState::pull_all() {
  std::vector<size_t> ids;
  for (size_t j = 0; j < slopes_.size(); ++j)
    if (columns_.norm(j) > 0 && (weights_[j] != 0 ? computed_at_[j] != now_ : may_exceed(j))) ids.push_back(j);
  pull(ids);
}

double WideState::objective() const {
  double sum = 0.5 * squares_ + 0.5 * off_centre_ * off_centre_;
  for (size_t j : support_) sum += penalty(j).value(weights_[j]);
  return sum;
}

double WideState::gap(const std::vector<size_t>& ids) const {
  return 0.5 * off_centre_ * off_centre_ + duality_gap(squares_, rounding_, [&](auto use) {
           for (size_t j : ids) {
             const Penalty h = penalty(j);
             if (weights_[j] != 0 || h.excess(slopes_[j]) > 0) use(h, weights_[j], slopes_[j]);
           }
         });
}

double WideState::gap() const {
  std::vector<size_t> relevant;
  for (size_t j = 0; j < slopes_.size(); ++j)
    if (weights_[j] != 0 || penalty(j).excess(slopes_[j]) > 0) relevant.push_back(j);
  return gap(relevant);
}

}  // namespace certifit
