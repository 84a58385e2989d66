#include "tile_losses.hpp"

namespace certifit {
namespace {

template <class LossOf>
LossSums summed(const LossOf& loss_of, size_t n, const double* y, const double* z, const double* weight,
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

}  // namespace

LossSums tile_losses(const AnyLoss& loss, size_t n, const double* y, const double* z, const double* weight,
                     const uint8_t* is_trained, double* slope, double* curvature) {
  return std::visit([&](const auto& loss_of) { return summed(loss_of, n, y, z, weight, is_trained, slope, curvature); },
                    loss);
}

void weighted_losses(const AnyLoss& loss, size_t n, const double* y, const double* z, const double* weight,
                     double* value, double* slope, double* curvature) {
  std::visit(
      [&](const auto& loss_of) {
        for (size_t i = 0; i < n; i += lanes) {
          const LossAt at = loss_of(load(y + i), load(z + i));
          const Vec w = load(weight + i);
          const Int counted = w > broadcast(0.0);
          store(value + i, choose(counted, at.value * w, Vec{}));
          store(slope + i, choose(counted, at.slope * w, Vec{}));
          store(curvature + i, choose(counted, at.curvature * w, Vec{}));
        }
      },
      loss);
}

}  // namespace certifit
