// Losses of some rows at their scores, four at a time: compiled once for all passes.
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
LossSums tile_losses(const AnyLoss& loss, size_t n, const double* y, const double* z, const double* weight,
                     const uint8_t* is_trained, double* slope, double* curvature);

// Losses, slopes and curvatures of n rows times their weights, n a multiple of four. A row of weight 0 is no row, even
// where its loss is not finite.
void weighted_losses(const AnyLoss& loss, size_t n, const double* y, const double* z, const double* weight,
                     double* value, double* slope, double* curvature);

}  // namespace certifit
