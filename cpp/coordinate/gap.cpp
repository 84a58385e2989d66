// The gap. For any u with v = X'u (all sums divided by W) weak duality gives, column by column,
//
//   gap = 1/2 |r - u|^2 + sum_j [ h_j(w_j) + h_j*(v_j) - v_j w_j ],   every term >= 0,
//
// with the conjugate h*(v) = max over lower <= w <= upper of v w - h(w). Nothing large cancels near the optimum.
// u = s (r - X_U t): U are unpenalised columns, whose conjugate is finite only at v = 0, and G_UU t = q_U;
// s <= 1 brings |v_j| down to l1_j where the conjugate is infinite beyond it. For l2 > 0 the conjugate is the best
// choice of the dual variables that the l2 rows of the augmented lasso have, so the gap is never above that one's.
#include "gap.hpp"

#include <algorithm>

#include "row_sums.hpp"

namespace certifit {
namespace {

constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();

// Where the conjugate is infinite beyond l1, v is within up to rounding after scaling.
double fenchel_young(const Penalty& h, double w, double v) {
  if (h.is_hard(v) && std::fabs(v) > h.l1) {
    if (std::fabs(v) > h.l1 * (1 + rounding)) return infinity;
    v = std::copysign(h.l1, v);
  }
  return h.inequality(w, v);
}

}  // namespace

Certified GapCertifier::certify(const std::vector<Penalty>& penalty, const double* w, const double* q) {
  const size_t d = system_.n_columns;
  double penalties = 0;
  for (size_t j = 0; j < d; ++j) penalties += penalty[j].value(w[j]);
  const double squares = residual_squares(system_, w, q);
  const double objective = 0.5 * squares + penalties;

  project(penalty, w, q);
  double needed = 1, wanted = 1;  // scales: where the conjugate is finite; where every |v_j - l2 w_j| is within l1
  for (size_t j = 0; j < d; ++j) {
    const Penalty& h = penalty[j];
    const double v = dual_[j], e = v - h.l2 * w[j];
    if (h.l1 == 0) continue;
    const double end = e > 0 ? h.upper : h.lower;
    if (std::fabs(e) > h.l1 && end != 0 && w[j] != end) wanted = std::min(wanted, h.l1 / std::fabs(e));
    if (std::fabs(v) > h.l1 && h.l2 == 0 && std::isinf(v > 0 ? h.upper : h.lower))
      needed = std::min(needed, h.l1 / std::fabs(v));
  }
  double gap = gap_at(needed, penalty, w, squares);
  if (wanted < needed) gap = std::min(gap, gap_at(wanted, penalty, w, squares));

  return {objective, gap == 0 ? 0 : gap / std::max(objective, system_.least)};
}

double GapCertifier::gap_at(double scale, const std::vector<Penalty>& penalty, const double* w, double squares) const {
  const double miss = 1 - scale;
  double gap = 0.5 * (miss * miss * std::max(0.0, squares - shift_) + shift_);
  for (size_t j = 0; j < system_.n_columns; ++j) gap += fenchel_young(penalty[j], w[j], scale * dual_[j]);
  return gap;
}

// An unpenalised column has a finite conjugate at v_j != 0 only if a bound stands on that side. Inside its bounds
// v_j = 0 is the best choice; further columns join until no infinite conjugate is left.
void GapCertifier::project(const std::vector<Penalty>& penalty, const double* w, const double* q) {
  const size_t d = system_.n_columns;
  dual_.assign(q, q + d);
  is_projected_.assign(d, 0);
  projected_.clear();
  shift_ = 0;
  for (size_t j = 0; j < d; ++j)
    if (system_.is_dead[j]) dual_[j] = 0;  // x_j = 0
  auto must_vanish = [&](size_t j) {
    const Penalty& h = penalty[j];
    if (!h.is_free() || is_projected_[j] || system_.is_dead[j]) return false;
    if (h.lower < w[j] && w[j] < h.upper) return true;
    return dual_[j] != 0 && std::isinf(dual_[j] > 0 ? h.upper : h.lower);
  };
  for (;;) {
    const size_t before = projected_.size();
    for (size_t j = 0; j < d; ++j)
      if (must_vanish(j)) projected_.push_back(j), is_projected_[j] = 1;
    if (projected_.size() == before) return;
    factor_projected();
    std::vector<double> t(kept_.size());
    for (size_t i = 0; i < kept_.size(); ++i) t[i] = q[kept_[i]];
    factor_.solve(t.data());
    shift_ = 0;
    dual_.assign(q, q + d);
    for (size_t i = 0; i < kept_.size(); ++i) {
      shift_ += t[i] * q[kept_[i]];  // t'G_UU t
      subtract_row(dual_.data(), system_.column(kept_[i]), t[i], d);
    }
    shift_ = std::max(0.0, shift_);
    for (size_t j = 0; j < d; ++j)
      if (is_projected_[j] || system_.is_dead[j]) dual_[j] = 0;
  }
}

void GapCertifier::factor_projected() {
  if (factored_ == projected_) return;
  factored_ = projected_;
  factor_.clear();
  kept_.clear();
  std::vector<double> products;
  for (size_t j : projected_) {
    if (!crew_.keep_going()) throw Interrupted();
    products.resize(kept_.size());
    for (size_t i = 0; i < kept_.size(); ++i) products[i] = system_.column(j)[kept_[i]];
    if (factor_.append(products.data(), system_.diagonal[j])) kept_.push_back(j);
  }
}

}  // namespace certifit
