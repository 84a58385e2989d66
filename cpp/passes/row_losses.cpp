#include "row_losses.hpp"

#include "../losses.hpp"

namespace certifit {

void row_losses(Loss loss, double parameter, size_t n, const double* y, const double* z, const double* weight,
                double* value, double* slope, double* curvature, Crew& crew) {
  constexpr size_t block_rows = 16384;
  crew.for_each_block((n + block_rows - 1) / block_rows, [&](size_t block) {
    const size_t end = std::min(n, (block + 1) * block_rows);
    with_loss(loss, parameter, [&](auto loss_of) {
      const auto at_rows = [&](size_t i, auto bytes) {
        Vec at_y = broadcast(1.0), at_z = broadcast(0.0), w = broadcast(1.0);
        std::memcpy(&at_y, y + i, bytes);
        std::memcpy(&at_z, z + i, bytes);
        std::memcpy(&w, weight + i, bytes);
        const LossAt at = loss_of(at_y, at_z);
        const Vec g = w * at.slope, h = w * at.curvature;
        std::memcpy(value + i, &at.value, bytes);
        std::memcpy(slope + i, &g, bytes);
        std::memcpy(curvature + i, &h, bytes);
      };
      size_t i = block * block_rows;
      for (; i + lanes <= end; i += lanes)
        at_rows(i, std::integral_constant<size_t, sizeof(Vec)>{});  // a known size is no call
      if (i < end) at_rows(i, (end - i) * sizeof(double));
      return true;
    });
  });
}

}  // namespace certifit
