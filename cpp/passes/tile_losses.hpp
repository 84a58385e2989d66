// Losses of some rows at their scores, four at a time.
#pragma once

#include <cstdint>

#include "../losses.hpp"

namespace certifit {

// Of the rows trained on, and of the others.
struct LossSums {
  double trained = 0, others = 0;
};

// Slopes and curvatures of n rows times their weights, and the sums of their weighted losses. is_trained: null, all
// are.
template <class LossOf>
LossSums tile_losses(const LossOf& loss_of, size_t n, const double* y, const double* z, const double* weight,
                     const uint8_t* is_trained, double* slope, double* curvature) {
  Vec trained = broadcast(0.0), all = broadcast(0.0);
  const auto at_rows = [&](size_t i, auto bytes) {
    Vec at_y = broadcast(1.0), at_z = broadcast(0.0), w = broadcast(0.0);
    std::memcpy(&at_y, y + i, bytes);
    std::memcpy(&at_z, z + i, bytes);
    std::memcpy(&w, weight + i, bytes);
    const LossAt at = loss_of(at_y, at_z);
    const Vec g = w * at.slope, h = w * at.curvature, value = w * at.value;
    all += value;
    if (is_trained) {
      Vec share = broadcast(0.0);
      for (size_t lane = 0; lane < bytes / sizeof(double); ++lane) share[lane] = is_trained[i + lane] ? 1.0 : 0.0;
      trained += share * value;
    }
    std::memcpy(slope + i, &g, bytes);
    std::memcpy(curvature + i, &h, bytes);
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    at_rows(i, std::integral_constant<size_t, sizeof(Vec)>{});  // a known size is no call
  if (i < n) at_rows(i, (n - i) * sizeof(double));
  const auto sum = [](Vec v) { return (v[0] + v[1]) + (v[2] + v[3]); };
  return is_trained ? LossSums{sum(trained), sum(all - trained)} : LossSums{sum(all), 0.0};
}

}  // namespace certifit
