// Losses of rows at their scores, one by one.
#pragma once

#include "../loss.hpp"
#include "../parallel.hpp"

namespace certifit {

// l(y_i, z_i), and its slope and curvature by z times the row's weight; arrays of n numbers.
void row_losses(Loss loss, double parameter, size_t n, const double* y, const double* z, const double* weight,
                double* value, double* slope, double* curvature, Crew& crew);

}  // namespace certifit
