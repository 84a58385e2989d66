// The duality gap at weights w with residual r (centred where there is an intercept) and slopes v_j = <z_j, r>.
// Dual points are u = c r. With <r, y> = <r, r> + sum_j w_j v_j every part of the gap is at least 0:
//   gap(c) = (1 - c)^2/2 <r, r> + sum_j [ h_j(w_j) + h_j*(c v_j) - w_j c v_j ]
// and nothing cancels. Columns with w_j = 0 and |v_j| <= l1_j add nothing.
#pragma once

#include "../coordinate/penalty.hpp"

namespace certifit {

// each(use) calls use(penalty, w, v) for every column that may add something. A column without any penalty asks for
// v = 0; |v| <= rounding counts as that and adds c |w v|. The least gap of c = 0 and of the two scales that matter:
// only columns with an infinite conjugate within their l1, and all that a bound does not hold.
template <class Each>
double duality_gap(double squares, double rounding, Each each) {
  auto is_zero = [&](const Penalty& h, double v) { return h.l1 == 0 && h.is_hard(v) && std::fabs(v) <= rounding; };
  double hard = 1, all = 1;
  each([&](const Penalty& h, double w, double v) {
    if (is_zero(h, v)) return;
    if (h.excess(v) > 0 && h.is_hard(v)) hard = std::min(hard, h.l1 / std::fabs(v));
    const double e = v - h.l2 * w;
    if (h.l1 > 0 && h.excess(e) > 0 && w != h.limit(e)) all = std::min(all, h.l1 / std::fabs(e));
  });
  auto at = [&](double c) {
    double gap = 0.5 * (1 - c) * (1 - c) * squares;
    each([&](const Penalty& h, double w, double v) {
      if (is_zero(h, v)) {
        gap += c * std::fabs(w * v);
        return;
      }
      const double scaled = h.is_hard(v) ? std::clamp(c * v, -h.l1, h.l1) : c * v;  // c v is within up to rounding
      gap += h.inequality(w, scaled);
    });
    return gap;
  };
  double gap = at(hard);
  if (all < hard) gap = std::min(gap, at(all));
  return std::min(gap, at(0.0));
}

}  // namespace certifit
