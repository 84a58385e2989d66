// Steps of two variables, or of one where there is no intercept, on a working set whose kernel matrix is in memory.
// The pair: the variable that may rise with the least F, and the one that may fall of the largest gain (F_j - F_i)^2 /
// (K_ii + K_jj - 2 K_ij).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lanes.hpp"

namespace certifit::margin {

template <class Real>
class Pairs {
  using L = Lanes<Real>;
  using V = typename L::V;
  using I = typename L::I;
  static constexpr Real far = sizeof(Real) == 4 ? Real(1e30) : Real(1e300);

 public:
  static size_t padded(size_t q) { return (q + 15) / 16 * 16; }

  // q variables, padded to whole vectors. K: q rows of padded(q), whose padding is finite.
  Pairs(size_t q, const Real* K)
      : q(q),
        stride(padded(q)),
        K(K),
        F(stride),
        up(stride, far),
        low(stride, -far),
        diagonal(stride, 1),
        a(q),
        sign(q),
        bound(q) {}

  size_t q, stride;
  const Real* K;
  std::vector<Real> F, up, low, diagonal;  // up, low: 0 where the variable may rise or fall in s a, else +- far
  std::vector<double> a, sign, bound;

  void admit(size_t t) {
    const bool can_grow = a[t] < bound[t], can_shrink = a[t] > 0;
    up[t] = (sign[t] > 0 ? can_grow : can_shrink) ? Real(0) : far;
    low[t] = (sign[t] > 0 ? can_shrink : can_grow) ? Real(0) : -far;
  }

  // Steps until the violation is at most the tolerance; how many.
  size_t run(double tolerance, size_t most, bool has_intercept, Crew& crew) {
    size_t n = 0;
    for (; n < most; ++n) {
      if (n % 1024 == 1023 && !crew.keep_going()) throw Interrupted();
      if (!(has_intercept ? step_of_two(tolerance) : step_of_one(tolerance))) break;
    }
    return n;
  }

 private:
  // How far s a of the variable can rise, or fall.
  double room(size_t t, bool rises) const { return (sign[t] > 0) == rises ? bound[t] - a[t] : a[t]; }

  void move(size_t t, double by, bool is_full) {
    const bool grows = (sign[t] > 0) == (by > 0);
    a[t] = is_full ? (grows ? bound[t] : 0.0) : std::clamp(a[t] + sign[t] * by, 0.0, bound[t]);
    admit(t);
  }

  bool step_of_two(double tolerance) {
    V least = all_lanes(std::numeric_limits<Real>::max()), most = -least;
    I at = L::first, where = L::first;
    for (size_t t = 0; t < stride; t += L::n, at += typename L::Index(L::n)) {
      const V value = load_lanes(&F[t]), rising = value + load_lanes(&up[t]), falling = value + load_lanes(&low[t]);
      const I is_less = rising < least;
      least = is_less ? rising : least;
      where = is_less ? at : where;
      most = falling > most ? falling : most;
    }
    size_t i = 0;
    Real low_end = std::numeric_limits<Real>::max(), high_end = -low_end;
    for (size_t k = 0; k < L::n; ++k) {
      if (least[k] < low_end) low_end = least[k], i = static_cast<size_t>(where[k]);
      high_end = std::max<Real>(high_end, most[k]);
    }
    if (i >= q || !(double(high_end) - double(low_end) > tolerance)) return false;
    const size_t j = partner(i, low_end);
    if (j >= q || !(low[j] == 0)) return false;
    const Real* Ki = &K[i * stride];
    const double least_of_both = least_curvature(i, j), between = double(diagonal[i]) + diagonal[j] - 2.0 * Ki[j];
    const double curvature = std::max(least_of_both, between);
    double by = (double(F[j]) - double(F[i])) / curvature;
    const double room_i = room(i, true), room_j = room(j, false), room_of_both = std::min(room_i, room_j);
    // Without a bound the dual rises for ever along two rows that rounding does not tell apart.
    if (std::isinf(room_of_both) && !(between > least_of_both)) return false;
    const bool is_cut = by >= room_of_both;
    by = std::min(by, room_of_both);
    if (!(by > 0)) return false;
    move(i, by, is_cut && room_i <= room_j);
    move(j, -by, is_cut && room_j <= room_i);
    const V step = all_lanes(static_cast<Real>(by));
    const Real* Kj = &K[j * stride];
    for (size_t t = 0; t < stride; t += L::n)
      store_lanes(&F[t], fused<Real>(step, load_lanes(Ki + t) - load_lanes(Kj + t), load_lanes(&F[t])));
    return true;
  }

  double least_curvature(size_t i, size_t j) const {
    return 8 * double(std::numeric_limits<Real>::epsilon()) * (double(diagonal[i]) + diagonal[j]) +
           std::numeric_limits<double>::min();
  }

  // The variable that may fall of the largest gain together with i.
  size_t partner(size_t i, Real value_i) const {
    const Real* Ki = &K[i * stride];
    const V first = all_lanes(value_i), own = all_lanes(diagonal[i]), zero{};
    const V least = all_lanes(static_cast<Real>(least_curvature(i, i)) + std::numeric_limits<Real>::min());
    V best = all_lanes(Real(-1));
    I at = L::first, where = L::first;
    for (size_t t = 0; t < stride; t += L::n, at += typename L::Index(L::n)) {
      const V apart = load_lanes(&F[t]) + load_lanes(&low[t]) - first;
      V curvature = fused<Real>(all_lanes(Real(-2)), load_lanes(Ki + t), own + load_lanes(&diagonal[t]));
      curvature = curvature > least ? curvature : least;
      const V gain = apart > zero ? apart * (apart / curvature) : zero - Real(1);
      const I is_more = gain > best;
      best = is_more ? gain : best;
      where = is_more ? at : where;
    }
    size_t j = q;
    Real largest = 0;
    for (size_t k = 0; k < L::n; ++k)
      if (best[k] > largest) largest = best[k], j = static_cast<size_t>(where[k]);
    return j;
  }

  // Without an intercept every variable may move alone: the largest gain F^2 / K_tt.
  bool step_of_one(double tolerance) {
    size_t chosen = q;
    double largest = 0.0;
    for (size_t t = 0; t < q; ++t) {
      const double value = F[t];
      if (!((value < -tolerance / 2 && up[t] == 0) || (value > tolerance / 2 && low[t] == 0))) continue;
      const double gain = value * value / std::max<double>(diagonal[t], 1e-300);
      if (gain > largest) largest = gain, chosen = t;
    }
    if (chosen == q) return false;
    double by = -double(F[chosen]) / std::max<double>(diagonal[chosen], 1e-300);
    const double limit = room(chosen, by > 0);
    if (std::isinf(limit) && !(diagonal[chosen] > 0)) return false;  // a row of 0 cannot be moved off its side
    const bool is_cut = std::fabs(by) >= limit;
    if (is_cut) by = std::copysign(limit, by);
    if (by == 0) return false;
    move(chosen, by, is_cut);
    const V step = all_lanes(static_cast<Real>(by));
    const Real* row = &K[chosen * stride];
    for (size_t t = 0; t < stride; t += L::n)
      store_lanes(&F[t], fused<Real>(step, load_lanes(row + t), load_lanes(&F[t])));
    return true;
  }
};

}  // namespace certifit::margin
