// Passes at given weights. All in scaled units: x~ = x scale, y~ = y y_scale, weights to match; a score is
// z_i = intercept + sum_j x~_ij weight_j.
#pragma once

#include "gram.hpp"

namespace certifit {

struct ResidualSums {
  // r_i = y~_i - z_i in twofold precision. The gradient's parts are returned twofold, hi + lo.
  std::vector<double> gradient_hi, gradient_lo;  // sum_i w_i x~_i r_i, n_columns values, then sum_i w_i r_i
  double squares_hi = 0, squares_lo = 0;         // sum_i w_i r_i^2
  double magnitude = 0;  // sum_i w_i (sum_j |x~_ij weight_j| + |y~_i|)^2: what rounding scales with
};

ResidualSums residual(const Rows& rows, const double* y, const double* weight, const Scaling& scaling,
                      const double* weights, double intercept, size_t block_rows, Crew& crew);

// Rows are the columns of few others, X. Weights w = start + (scale X'multipliers - less), one per row of `rows`, and
// scale X w, which is found in the same pass. Dense columns alone.
struct MovedFits {
  std::vector<double> weights, hi, lo;  // hi, lo: then their sum
};

MovedFits moved_fits(const Rows& rows, const double* multipliers, double scale, const double* less, const double* start,
                     size_t block_rows, Crew& crew);

// r_i itself, rounded once from twofold precision. For fewer rows than columns. low: what weights, then of dense
// columns alone, have beyond float64; its share is taken off after the rounding. Null: nothing.
std::vector<double> residual_rows(const Rows& rows, const double* y, const Scaling& scaling, const double* weights,
                                  const double* low, double intercept, Crew& crew);

// z_i = intercept + x_i'weights in float64, unscaled: predictions. The order of the sum is fixed by the row alone.
std::vector<double> scores(const Rows& rows, const double* weights, double intercept, Crew& crew);

}  // namespace certifit
