#include "equations.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "factor.hpp"
#include "twofold.hpp"

namespace certifit {
namespace {

constexpr int largest_exponent = 1000;  // 2^1000 times a number below 2^24 is finite
constexpr int largest_unit = 500;       // of a diagonal: its square is finite

int exponent_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent;
}

Real products_of(const double* a, const double* b, size_t n) {
  const auto [hi, lo] = twofold_dot(a, b, n);
  return {hi, lo};
}

// Sum of |a_j| b_j.
double sizes_times(const double* a, const double* b, size_t n) {
  double sum = 0;
  for (size_t j = 0; j < n; ++j) sum += std::fabs(a[j]) * b[j];
  return sum;
}

void solve_in_place(const double* upper, double* x, size_t n) {
  for (size_t i = 0; i < n; ++i) {  // U' y = b
    x[i] /= upper[i * n + i];
    for (size_t k = i + 1; k < n; ++k) x[k] -= upper[i * n + k] * x[i];
  }
  for (size_t i = n; i-- > 0;) {  // U x = y
    for (size_t k = i + 1; k < n; ++k) x[i] -= upper[i * n + k] * x[k];
    x[i] /= upper[i * n + i];
  }
}

// The largest sum of sizes of a column of a symmetric matrix; NaN where one is.
double norm_of(const std::vector<double>& a, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (size_t j = 0; j < n; ++j) sum += std::fabs(a[i * n + j]);
    if (std::isnan(sum)) return sum;
    most = std::max(most, sum);
  }
  return most;
}

// U of A = U'U in place, the lower triangle cleared; false where a pivot is not above 0 or not finite.
bool factor_in_place(std::vector<double>& a, size_t n) {
  for (size_t k = 0; k < n; ++k) {
    const double pivot = std::sqrt(a[k * n + k]);
    if (!(pivot > 0) || !std::isfinite(pivot)) return false;
    a[k * n + k] = pivot;
    for (size_t j = k + 1; j < n; ++j) {
      a[k * n + j] /= pivot;
      if (!std::isfinite(a[k * n + j])) return false;
    }
    for (size_t i = k + 1; i < n; ++i) {
      a[i * n + k] = 0;
      for (size_t j = i; j < n; ++j) a[i * n + j] -= a[k * n + i] * a[k * n + j];
    }
  }
  return true;
}

constexpr size_t shifts_at_once = 8;  // side by side, for a division waits for the one before it

// T + shift I = L D L' and its solutions for a few shifts. inverse: the largest sum of sizes of a column of each
// inverse, exact but for rounding, as L^-1 has the signs that those of L give it (Higham, 1986).
struct ShiftedPart {
  std::vector<double> pivots, below, solutions, sizes;
  double inverse[shifts_at_once] = {};

  explicit ShiftedPart(size_t n) : pivots(n * shifts_at_once), below(pivots), solutions(pivots), sizes(pivots) {}

  bool solve(const double* diagonal, const double* beside, const double* right, size_t n, const double* shifts) {
    constexpr size_t m = shifts_at_once;
    bool is_positive = true;
    for (size_t i = 0; i < n; ++i) {
      double* const pivot = &pivots[i * m];
      double* const ratio = &below[i * m];
      double* const x = &solutions[i * m];
      double* const size = &sizes[i * m];
      for (size_t k = 0; k < m; ++k) {
        pivot[k] = diagonal[i] + shifts[k];
        x[k] = right[i];
        size[k] = 1;
      }
      if (i > 0)
        for (size_t k = 0; k < m; ++k) {
          ratio[k] = beside[i - 1] / pivots[(i - 1) * m + k];
          pivot[k] -= ratio[k] * beside[i - 1];
          x[k] -= ratio[k] * solutions[(i - 1) * m + k];
          size[k] += std::fabs(ratio[k]) * sizes[(i - 1) * m + k];
        }
      for (size_t k = 0; k < m; ++k) is_positive &= pivot[k] > 0 && pivot[k] <= std::numeric_limits<double>::max();
    }
    for (size_t i = n; i-- > 0;) {
      double* const x = &solutions[i * m];
      double* const size = &sizes[i * m];
      for (size_t k = 0; k < m; ++k) {
        x[k] /= pivots[i * m + k];
        size[k] /= pivots[i * m + k];
      }
      if (i + 1 < n)
        for (size_t k = 0; k < m; ++k) {
          const double ratio = below[(i + 1) * m + k];
          x[k] -= ratio * solutions[(i + 1) * m + k];
          size[k] += std::fabs(ratio) * sizes[(i + 1) * m + k];
        }
      for (size_t k = 0; k < m; ++k) inverse[k] = std::max(inverse[k], size[k]);
    }
    return is_positive;
  }
};

// What a state moves by, (intercept of shifted columns, weights), scaled. Weights times shifts far from 0 cancel with
// the intercept: what is rounded off the weights counts there too.
std::vector<double> step_between(const State& old, const State& now, const Units& units) {
  const size_t d = units.n_columns;
  std::vector<double> high(d), low(d);
  for (size_t j = 0; j < d; ++j) {
    const Real move = two_sum(now.coef[j], -old.coef[j]);
    high[j] = move.hi;
    low[j] = move.lo;
  }
  const int y_power = exponent_of(units.y_scale);
  for (size_t j = 0; j < d; ++j) {
    const int power = y_power - exponent_of(units.scale[j]);
    high[j] = std::ldexp(high[j], power);
    low[j] = std::ldexp(low[j], power);
  }
  const Real level = two_sum(now.intercept, -old.intercept);
  const Real moved =
      Real{level.hi * units.y_scale, level.lo * units.y_scale} + products_of(high.data(), units.shift, d);
  const Real total = moved + products_of(low.data(), units.shift, d);
  high.insert(high.begin(), total.hi + total.lo);
  return high;
}

// A sum without its roundings but the last.
struct LongSum {
  double sum = 0, low = 0;
  void add(double x) {
    const Real s = two_sum(sum, x);
    sum = s.hi;
    low += s.lo;
  }
  double value() const { return std::isfinite(sum) ? sum + low : sum; }
};

// 0 or above; NaN stays.
double above_0(double x) { return x < 0 ? 0.0 : x; }

}  // namespace

std::vector<double> powers_of_two(const double* sizes, size_t n) {
  std::vector<double> out(n, 1.0);
  for (size_t j = 0; j < n; ++j)
    if (std::isfinite(sizes[j]) && sizes[j] > 0)
      out[j] = std::ldexp(1.0, std::clamp(1 - exponent_of(sizes[j]), -largest_exponent, largest_exponent));
  return out;
}

std::vector<double> scaled_coef(const double* coef, const Units& units) {
  std::vector<double> out(units.n_columns);
  const int y_power = exponent_of(units.y_scale);
  for (size_t j = 0; j < out.size(); ++j) {
    out[j] = std::ldexp(coef[j], y_power - exponent_of(units.scale[j]));
    if (out[j] == 0 && coef[j] != 0) out[j] = std::copysign(std::numeric_limits<double>::denorm_min(), coef[j]);
  }
  return out;
}

State state_of_solution(const double* solution, const double* low, bool has_intercept, const Units& units) {
  const size_t d = units.n_columns;
  const double* weights = solution + has_intercept;
  const double* rest = low == nullptr ? nullptr : low + has_intercept;
  State out{std::vector<double>(d)};
  for (size_t j = 0; j < d; ++j)
    out.coef[j] = (rest == nullptr ? weights[j] : weights[j] + rest[j]) * units.scale[j] / units.y_scale;
  if (!has_intercept) return out;
  const Real product = products_of(weights, units.shift, d);  // b = b' + y_shift - sum_j w_j shift_j
  const Real shifted = two_sum(solution[0], units.y_shift);
  const Real total = two_sum(shifted.hi, -product.hi);
  double small = total.lo + shifted.lo - product.lo;
  if (low != nullptr) {
    small += low[0];
    for (size_t j = 0; j < d; ++j) small -= rest[j] * units.shift[j];
  }
  out.intercept = (total.hi + small) / units.y_scale;
  return out;
}

std::vector<double> solution_of_state(const State& state, bool has_intercept, const Units& units) {
  std::vector<double> out = scaled_coef(state.coef.data(), units);
  if (!has_intercept) return out;
  const Real product = products_of(out.data(), units.shift, out.size());
  const Real level = two_sum(state.intercept * units.y_scale, -units.y_shift);
  out.insert(out.begin(), (level.hi + product.hi) + (level.lo + product.lo));
  return out;
}

std::optional<PlainFactor> plain_factor(const double* matrix, const double* norms, size_t n, double least_share) {
  PlainFactor out;
  out.units.assign(n, 1.0);
  for (size_t j = 0; j < n; ++j) {
    const double square = matrix[j * n + j];
    if (norms != nullptr && square < least_share * (norms[j] * norms[j])) return std::nullopt;
    if (!(square > 0 && std::isfinite(square))) continue;
    out.units[j] = 1 / std::sqrt(square);
    if (norms != nullptr)
      out.units[j] = std::ldexp(1.0, std::clamp(-(exponent_of(square) >> 1), -largest_unit, largest_unit));
  }
  out.upper.resize(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) out.upper[i * n + j] = matrix[i * n + j] * out.units[i] * out.units[j];
  const double norm = norm_of(out.upper, n);
  if (!factor_in_place(out.upper, n)) return std::nullopt;
  out.inverse.assign(n * n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    out.inverse[i * n + i] = 1;
    solve_in_place(out.upper.data(), &out.inverse[i * n], n);
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j)
      out.inverse[i * n + j] = out.inverse[j * n + i] = (out.inverse[i * n + j] + out.inverse[j * n + i]) / 2;
  out.condition = n == 0 ? 1.0 : std::sqrt(norm * norm_of(out.inverse, n));
  return out;
}

std::vector<double> plain_solve(const double* upper, const double* units, const double* right, size_t n) {
  std::vector<double> x(n);
  for (size_t j = 0; j < n; ++j) x[j] = right[j] * units[j];
  solve_in_place(upper, x.data(), n);
  for (size_t j = 0; j < n; ++j) x[j] *= units[j];
  return x;
}

std::optional<ShiftedSolutions> shifted_solutions(const double* diagonal, const double* beside, const double* right,
                                                  size_t n, const double* shifts, size_t n_shifts) {
  ShiftedSolutions out{std::vector<double>(n * n_shifts)};
  for (size_t first = 0; first < n_shifts; first += shifts_at_once) {
    const size_t count = std::min(shifts_at_once, n_shifts - first);
    double part_shifts[shifts_at_once];
    for (size_t k = 0; k < shifts_at_once; ++k) part_shifts[k] = shifts[first + std::min(k, count - 1)];
    ShiftedPart part(n);
    if (!part.solve(diagonal, beside, right, n, part_shifts)) return std::nullopt;
    for (size_t k = 0; k < count; ++k) {
      double norm = 0;
      for (size_t i = 0; i < n; ++i) {
        out.solutions[(first + k) * n + i] = part.solutions[i * shifts_at_once + k];
        const double above = i > 0 ? std::fabs(beside[i - 1]) : 0.0, under = i + 1 < n ? std::fabs(beside[i]) : 0.0;
        norm = std::max(norm, above + std::fabs(diagonal[i] + part_shifts[k]) + under);
      }
      out.condition = std::max(out.condition, norm * part.inverse[k]);
    }
  }
  return out;
}

std::vector<double> shifted_gradient(const double* hi, const double* lo, const double* shift, const double* penalty,
                                     const double* weights, size_t n_columns) {
  std::vector<double> out(n_columns + 1);
  const Real level{hi[n_columns], lo[n_columns]};
  out[0] = level.hi;
  for (size_t j = 0; j < n_columns; ++j) {
    Real sum = Real{hi[j], lo[j]} + Real{-shift[j], 0.0} * level;
    if (penalty[j] != 0) sum = sum + two_product(-penalty[j], weights[j]);
    out[j + 1] = sum.hi;
  }
  return out;
}

std::optional<ResidualAt> moved_residual(const ResidualAt& last, const State& old, const State& now, const double* sums,
                                         size_t size, const double* penalty, const Units& units, double small_step,
                                         double small_change) {
  const size_t d = units.n_columns, n = d + 1;
  const std::vector<double> step = step_between(old, now, units), weights = scaled_coef(old.coef.data(), units);
  auto place = [&](size_t i) { return i == 0 ? d : i - 1; };  // of the system's unknown i in the sums
  std::vector<double> length(n);
  double total = 0;
  for (size_t i = 0; i < n; ++i) {
    length[i] = std::sqrt(sums[place(i) * size + place(i)]);
    total += length[i] * std::fabs(step[i]);
  }
  if (!(total <= std::min(small_step * std::sqrt(last.magnitude), small_change * std::sqrt(last.squares))))
    return std::nullopt;
  ResidualAt out;
  out.magnitude = last.magnitude;
  out.gradient.resize(n);
  out.rounding.resize(n);
  // |r - a's|^2 = |r|^2 - 2 s'(sum_i w_i a_i r_i) + s'As; the sum is the gradient without the penalty's pull.
  double along = 0, squared = 0;
  for (size_t i = 0; i < n; ++i) {
    const double* row = sums + place(i) * size;
    double change = row[d] * step[0];
    for (size_t j = 0; j < d; ++j) change += row[j] * step[j + 1];
    const double pull = i == 0 ? 0.0 : penalty[i - 1] * step[i];
    along += (last.gradient[i] + (i == 0 ? 0.0 : penalty[i - 1] * weights[i - 1])) * step[i];
    squared += step[i] * change;
    out.gradient[i] = last.gradient[i] - change - pull;
    out.rounding[i] = last.rounding[i] + matrix_error * length[i] * total + unit_rounding * std::fabs(out.gradient[i]);
  }
  out.squares = std::max(last.squares - 2 * along + squared, 0.0);
  return out;
}

std::vector<double> raw_inverse(const double* inverse, const double* shift, size_t n_columns) {
  const size_t n = n_columns + 1;
  std::vector<double> out(inverse, inverse + n * n);
  for (size_t i = 0; i < n_columns; ++i) {  // B A^-1, then (B A^-1) B', with -shift in the first row of B = I
    const double* row = inverse + (i + 1) * n;
    for (size_t j = 0; j < n; ++j) out[j] -= shift[i] * row[j];
  }
  double corner = out[0];
  for (size_t j = 0; j < n_columns; ++j) {
    corner -= shift[j] * out[j + 1];
    out[(j + 1) * n] = out[j + 1];
  }
  out[0] = corner;
  return out;
}

double error_length(const double* inverse, const double* error, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += error[i] * sizes_times(inverse + i * n, error, n);
  return std::sqrt(sum);
}

std::vector<double> proven_digits(const DigitFacts& facts) {
  const size_t n = facts.n;
  std::vector<double> left(n), out(n, 0.0);
  for (size_t i = 0; i < n; ++i) left[i] = sizes_times(facts.inverse + i * n, facts.slope, n);
  if (facts.has_intercept) left[0] += sizes_times(facts.shift, left.data() + 1, n - 1);
  for (size_t i = 0; i < n; ++i) {
    const double size = std::fabs(facts.estimate[i]), spread = std::sqrt(std::max(facts.raw[i * n + i], 0.0));
    const double tilt = sizes_times(facts.raw + i * n, facts.norms, n) * facts.residual;
    const double error =
        left[i] + unit_rounding * (spread * facts.predictions + tilt + size) + spread * facts.relations;
    if (size > error) out[i] = std::clamp(-std::log10(error / size), 0.0, facts.most);
  }
  return out;
}

CentredProducts centred_products(const double* sums, size_t n_columns, bool has_intercept, double no_spread) {
  const size_t d = n_columns, size = d + 2;
  const double total = sums[d * size + d];
  auto place = [&](size_t j) { return j < d ? j : d + 1; };
  auto mean = [&](size_t j) { return has_intercept ? sums[d * size + place(j)] / total : 0.0; };
  CentredProducts out;
  out.matrix.resize(d * d);
  out.moment.resize(d);
  out.variance.resize(d + 1);
  for (size_t j = 0; j <= d; ++j) {
    const double square = sums[place(j) * size + place(j)] / total, about = square - mean(j) * mean(j);
    out.variance[j] = about > no_spread * square ? about : 0.0;  // less is rounding
  }
  for (size_t i = 0; i < d; ++i) {
    if (out.variance[i] == 0) continue;
    for (size_t j = 0; j < d; ++j)
      if (out.variance[j] != 0) out.matrix[i * d + j] = sums[i * size + j] / total - mean(i) * mean(j);
    // Rounding may leave a product above what Cauchy and Schwarz allow, as for a target that does not vary.
    const double most = std::sqrt(out.variance[i] * out.variance[d]);
    out.moment[i] = std::min(std::max(sums[i * size + d + 1] / total - mean(i) * mean(d), -most), most);
  }
  return out;
}

DualPoint centred_dual(const DualFacts& facts, size_t n_columns) {
  DualPoint out;
  out.q.resize(n_columns);
  out.error.resize(n_columns);
  const double root = std::sqrt(facts.total);
  if (facts.has_intercept) {
    out.level = facts.gradient[0] / facts.total;
    out.level_error = (facts.rounding[0] + facts.unit * root) / facts.total;
  }
  const double size = std::fabs(out.level);
  for (size_t j = 0; j < n_columns; ++j) {
    out.q[j] = facts.gradient[j + 1] / facts.total - out.level * facts.means[j];
    out.error[j] = (facts.rounding[j + 1] + facts.unit * facts.norms[j]) / facts.total +
                   (size * matrix_error + out.level_error) * facts.norms_about[j] / root +
                   (size + out.level_error) * facts.means_error[j];
  }
  return out;
}

double ElasticColumns::maximiser(size_t j, double q) const {
  const double size = std::max(std::fabs(q) - l1[j], 0.0);
  const double far = size > 0 ? std::copysign(size / l2[j], q) : 0.0;
  return std::isnan(q) ? q : std::min(std::max(far, lower[j]), upper[j]);
}

double ElasticColumns::conjugate(size_t j, double q) const {
  const double size = std::max(std::fabs(q) - l1[j], 0.0), w = maximiser(j, q);
  if (!(size > 0)) return std::isnan(q) ? q : 0.0;
  return std::isinf(w) ? w * std::copysign(1.0, w) : size * std::fabs(w) - (l2[j] / 2 * w) * w;
}

ElasticGap elastic_gap(const ElasticColumns& penalty, const double* w, const double* q, const double* error) {
  LongSum brackets, rounding;
  for (size_t j = 0; j < penalty.n_columns; ++j) {
    const double l1 = penalty.l1[j], l2 = penalty.l2[j], size = std::fabs(w[j]);
    if (l1 == 0 && l2 > 0 && std::isinf(penalty.lower[j]) && std::isinf(penalty.upper[j])) {
      // Of squares alone a bracket is (q - l2 w)^2 / (2 l2): an error counts by what is left of q, and not by w.
      const double left = std::fabs(q[j] - l2 * w[j]);
      const double off = error[j] + 4 * unit_rounding * (std::fabs(q[j]) + l2 * size);
      brackets.add(left * (left / (2 * l2)));
      rounding.add(off * ((left + off / 2) / l2));
      continue;
    }
    brackets.add(above_0(l1 * size + (l2 / 2 * w[j]) * w[j] + penalty.conjugate(j, q[j]) - q[j] * w[j]));
    const double up = std::fabs(penalty.maximiser(j, q[j] + error[j]));
    const double down = std::fabs(penalty.maximiser(j, q[j] - error[j]));
    const double reach = size + (up > down || std::isnan(up) ? up : down);
    rounding.add(error[j] * reach + 0x1p-50 * std::fabs(q[j]) * reach);
  }
  return {brackets.value(), rounding.value()};
}

double finite_share(const ElasticColumns& penalty, const double* q, const double* error) {
  double share = 1;
  for (size_t j = 0; j < penalty.n_columns; ++j) {
    const double l1 = penalty.l1[j];
    if (penalty.l2[j] != 0 || !(l1 > 0)) continue;
    if (std::isinf(penalty.upper[j]) && q[j] + error[j] > l1) share = std::min(share, l1 / (q[j] + error[j]));
    if (std::isinf(penalty.lower[j]) && error[j] - q[j] > l1) share = std::min(share, l1 / (error[j] - q[j]));
  }
  return share < 1 ? share * (1 - 0x1p-50) : 1;  // roundings stay inside
}

}  // namespace certifit
