#include "factor.hpp"

#include <cstdint>

#include "twofold.hpp"

namespace certifit {
namespace {

// y -= m x for n twofold numbers; hi and lo apart so that the loop becomes vector code.
void subtract_multiple(double* __restrict y_hi, double* __restrict y_lo, Real m, const double* __restrict x_hi,
                       const double* __restrict x_lo, size_t n) {
  size_t j = 0;
  const Vec m_hi = broadcast(-m.hi), m_lo = broadcast(-m.lo);
  for (; j + lanes <= n; j += lanes) {
    Vec x = load(x_hi + j);
    Twofold<Vec> p = two_product(m_hi, x);
    p.lo = multiply_add(m_hi, load(x_lo + j), multiply_add(m_lo, x, p.lo));
    Twofold<Vec> s = two_sum(load(y_hi + j), p.hi);
    s = quick_two_sum(s.hi, s.lo + (load(y_lo + j) + p.lo));
    store(y_hi + j, s.hi);
    store(y_lo + j, s.lo);
  }
  for (; j < n; ++j) {
    Real p = m * Real{x_hi[j], x_lo[j]};
    Real s = Real{y_hi[j], y_lo[j]} - p;
    y_hi[j] = s.hi;
    y_lo[j] = s.lo;
  }
}

void divide(double* hi, double* lo, Real by, size_t n) {
  for (size_t j = 0; j < n; ++j) {
    Real q = Real{hi[j], lo[j]} / by;
    hi[j] = q.hi;
    lo[j] = q.lo;
  }
}

constexpr size_t rows_at_once = 16;
constexpr double growth = 1.0 / 256;  // a floor of 2^-46 (relative) is 2^-50 for what a column hands on

}  // namespace

TwofoldFactor twofold_cholesky(TwofoldMatrix a, std::vector<double> floor, Crew& crew) {
  const size_t n = a.n_columns;
  TwofoldFactor out;
  out.pivots.resize(n);
  for (size_t k = 0; k < n; ++k) {
    Real pivot{a.hi[k * n + k], a.lo[k * n + k]};
    out.pivots[k] = pivot.hi;
    if (!(pivot.hi > floor[k])) continue;
    out.kept.push_back(static_cast<int64_t>(k));
    double* row_hi = &a.hi[k * n];
    double* row_lo = &a.lo[k * n];
    divide(row_hi + k, row_lo + k, square_root(pivot), n - k);
    for (size_t j = k + 1; j < n; ++j) {
      const double held = row_hi[j] / row_hi[k];  // of column k in column j, beside the columns before
      floor[j] = std::max(floor[j], growth * held * held * floor[k]);
    }
    const size_t rest = n - k - 1;
    auto update = [&](size_t i) {
      subtract_multiple(&a.hi[i * n + i], &a.lo[i * n + i], Real{row_hi[i], row_lo[i]}, row_hi + i, row_lo + i, n - i);
    };
    if (rest < 768) {  // too little work for a second thread
      if (!crew.keep_going()) throw Interrupted();
      for (size_t i = k + 1; i < n; ++i) update(i);
    } else {
      crew.for_each_block((rest + rows_at_once - 1) / rows_at_once, [&](size_t block) {
        const size_t begin = k + 1 + block * rows_at_once;
        for (size_t i = begin; i < std::min(begin + rows_at_once, n); ++i) update(i);
      });
    }
  }
  TwofoldMatrix& u = out.upper;
  u.n_rows = out.kept.size();
  u.n_columns = n;
  u.hi.assign(u.n_rows * n, 0.0);
  u.lo.assign(u.n_rows * n, 0.0);
  for (size_t r = 0; r < u.n_rows; ++r) {
    const size_t k = static_cast<size_t>(out.kept[r]);
    std::copy(&a.hi[k * n + k], &a.hi[k * n] + n, &u.hi[r * n + k]);
    std::copy(&a.lo[k * n + k], &a.lo[k * n] + n, &u.lo[r * n + k]);
  }
  return out;
}

TwofoldMatrix twofold_solve(const TwofoldMatrix& u, TwofoldMatrix b, Crew& crew) {
  const size_t n = u.n_rows, m = b.n_columns;
  if (m == 0) return b;  // b has no entry that a pointer could point to
  auto entry = [&](size_t i, size_t j) { return Real{u.hi[i * n + j], u.lo[i * n + j]}; };
  for (size_t i = 0; i < n; ++i) {  // U' Y = B, forwards
    if (!crew.keep_going()) throw Interrupted();
    divide(&b.hi[i * m], &b.lo[i * m], entry(i, i), m);
    for (size_t k = i + 1; k < n; ++k)
      subtract_multiple(&b.hi[k * m], &b.lo[k * m], entry(i, k), &b.hi[i * m], &b.lo[i * m], m);
  }
  for (size_t i = n; i-- > 0;) {  // U X = Y, backwards
    if (!crew.keep_going()) throw Interrupted();
    divide(&b.hi[i * m], &b.lo[i * m], entry(i, i), m);
    for (size_t k = 0; k < i; ++k)
      subtract_multiple(&b.hi[k * m], &b.lo[k * m], entry(k, i), &b.hi[i * m], &b.lo[i * m], m);
  }
  return b;
}

std::pair<double, double> twofold_dot(const double* a, const double* b, size_t n) {
  Real sum;
  for (size_t j = 0; j < n; ++j)
    if (a[j] != 0 && b[j] != 0) sum = sum + two_product(a[j], b[j]);
  return {sum.hi, sum.lo};
}

}  // namespace certifit
