// Twofold ("double-double") arithmetic: a number is hi + lo with |lo| <= ulp(hi) / 2, some 106 bits.
// V is double or Vec. Every error-free transformation holds for round-to-nearest without overflow;
// the passes scale their columns by powers of two so that overflow cannot come up.
#pragma once

#include "simd.hpp"

namespace certifit {

template <class V>
struct Twofold {
  V hi{};
  V lo{};
};
using Real = Twofold<double>;

template <class V>
inline Twofold<V> two_sum(V a, V b) {  // hi + lo = a + b exactly
  V s = a + b;
  V t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

template <class V>
inline Twofold<V> quick_two_sum(V a, V b) {  // the same for |a| >= |b|
  V s = a + b;
  return {s, b - (s - a)};
}

inline Twofold<double> two_product(double a, double b) {  // hi + lo = a b exactly
  double p = a * b;
#if CERTIFIT_HAS_FMA
  return {p, __builtin_fma(a, b, -p)};
#else
  constexpr double splitter = 134217729.0;  // 2^27 + 1
  double ca = splitter * a, cb = splitter * b;
  double ah = ca - (ca - a), al = a - ah;
  double bh = cb - (cb - b), bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#endif
}

inline Twofold<Vec> two_product(Vec a, Vec b) {
  Vec p = a * b;
#if CERTIFIT_HAS_FMA
  return {p, (Vec)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)p)};
#else
  const Vec splitter = broadcast(134217729.0);
  Vec ca = splitter * a, cb = splitter * b;
  Vec ah = ca - (ca - a), al = a - ah;
  Vec bh = cb - (cb - b), bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#endif
}

// sum += a b, the error of each step kept in lo (normalised only at the end: see `tidy`).
template <class V>
inline void add_product(Twofold<V>& sum, V a, V b) {
  Twofold<V> p = two_product(a, b);
  Twofold<V> s = two_sum(sum.hi, p.hi);
  sum.hi = s.hi;
  sum.lo += s.lo + p.lo;
}

template <class V>
inline Twofold<V> tidy(Twofold<V> a) {
  return two_sum(a.hi, a.lo);
}

template <class V>
inline Twofold<V> operator+(Twofold<V> a, Twofold<V> b) {
  Twofold<V> s = two_sum(a.hi, b.hi);
  Twofold<V> t = two_sum(a.lo, b.lo);
  s = quick_two_sum(s.hi, s.lo + t.hi);
  return quick_two_sum(s.hi, s.lo + t.lo);
}
template <class V>
inline Twofold<V> operator-(Twofold<V> a) {
  return {-a.hi, -a.lo};
}
template <class V>
inline Twofold<V> operator-(Twofold<V> a, Twofold<V> b) {
  return a + (-b);
}
template <class V>
inline Twofold<V> operator*(Twofold<V> a, Twofold<V> b) {
  Twofold<V> p = two_product(a.hi, b.hi);
  p.lo += a.hi * b.lo + a.lo * b.hi;
  return quick_two_sum(p.hi, p.lo);
}
inline Real operator/(Real a, Real b) {  // two corrections of the quotient of the high parts
  double q1 = a.hi / b.hi;
  Real r = a - b * Real{q1, 0.0};
  double q2 = r.hi / b.hi;
  r = r - b * Real{q2, 0.0};
  return quick_two_sum(q1, q2) + Real{r.hi / b.hi, 0.0};
}
inline Real square_root(Real a) {  // one Newton step: x + (a - x^2) / (2 x)
  double x = std::sqrt(a.hi);
  if (!(x > 0)) return {x, 0.0};
  Real residual = a - two_product(x, x);
  return quick_two_sum(x, residual.hi / (2 * x));
}

}  // namespace certifit
