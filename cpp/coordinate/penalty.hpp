// The penalty of one weight and its half of Fenchel's inequality:
//   h(w) = l1 |w| + l2/2 w^2 for lower <= w <= upper (lower <= 0 <= upper), infinite elsewhere
//   h*(v) = max_w v w - h(w),   and   h(w) + h*(v) - w v >= 0, with equality where v is a slope of h at w.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace certifit {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

struct Penalty {
  double l1 = 0, l2 = 0, lower = -infinity, upper = infinity;

  double value(double w) const {
    const double size = std::fabs(w);
    return size == 0 ? 0.0 : size * (l1 + 0.5 * l2 * size);
  }

  double bound(double v) const { return v >= 0 ? upper : -lower; }  // how far w may go the way of v

  double limit(double d) const { return d > 0 ? upper : lower; }  // where a move along d must end

  // v pulls w away from zero.
  double excess(double v) const { return bound(v) > 0 ? std::fabs(v) - l1 : -infinity; }

  bool is_free() const { return l1 == 0 && l2 == 0; }

  // h*(v) is infinite for |v| > l1: a dual point must keep within.
  bool is_hard(double v) const { return l2 == 0 && bound(v) == infinity; }

  // The weight that minimises curvature/2 (w - at)^2 - slope (w - at) + h(w).
  double best(double at, double slope, double curvature) const {
    const double whole = curvature + l2;
    if (at != 0) {  // the step from `at` itself loses no digits to the size of `at`
      const double next = at + (slope - std::copysign(l1, at) - l2 * at) / whole;
      if ((next > 0) == (at > 0)) return std::clamp(next, lower, upper);
    }
    const double u = slope + curvature * at;
    const double size = std::fabs(u) - l1;
    return size <= 0 ? 0.0 : std::clamp(std::copysign(size / whole, u), lower, upper);
  }

  // h(w) + h*(v) - w v as a sum of products that are not negative.
  double inequality(double w, double v) const {
    if (l1 == infinity) return 0.0;  // only w = 0 comes up
    const double size = std::fabs(v), e = bound(v) > 0 ? size - l1 : -1.0;
    const double u = e <= 0 ? 0.0 : std::min(bound(v), l2 > 0 ? e / l2 : infinity);
    const double along = v >= 0 ? w : -w;
    const double gain = u > 0 ? u * (e - 0.5 * l2 * u) : 0.0;  // h*(v)
    if (along < 0) return gain + -along * (l1 + size) + 0.5 * l2 * along * along;
    if (along == 0) return gain;
    const double f = size - l1;
    return std::max(0.0, u > 0 ? (u - along) * (f - 0.5 * l2 * (u + along)) : along * (0.5 * l2 * along - f));
  }
};

}  // namespace certifit
