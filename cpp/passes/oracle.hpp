// A loss of scores z_i = offset_i + intercept + (x_i scale - shift)'weights, summed over rows:
// value sum_i w_i l(y_i, z_i), its gradient by (weights, intercept), and its Hessian sum_i w_i l''_i (x_i, 1)(x_i, 1)'.
#pragma once

#include "../loss.hpp"
#include "gram.hpp"

namespace certifit {

struct OracleSums {  // one entry a cell
  std::vector<double> value;
  std::vector<double> gradient;       // cells x (n_columns + 1)
  std::vector<double> hessian;        // cells x (n_columns + 1)^2; empty unless wanted, as the next
  std::vector<double> largest;        // n_columns + 1: the largest |x scale - shift| of all rows, then 1
  double slopes = 0, curvatures = 0;  // sum_i w_i |l'_i| and sum_i w_i l''_i of all rows
};

struct State {
  const double* weights;  // n_columns, in scaled units
  double intercept;
};

// offset and weight may be null.
OracleSums oracle(const Rows& rows, const double* y, const double* weight, const double* offset, const Cells& cells,
                  const Scaling& scaling, const State& state, Loss loss, double parameter, bool with_hessian,
                  size_t block_rows, Crew& crew);

// Slopes and curvatures (>= 0) of the rows given, times their weights: gradient sum_i w_i (x_i, 1) slope_i and Hessian
// sum_i w_i curvature_i (x_i, 1)(x_i, 1)', for losses that are evaluated elsewhere. Without curvatures no Hessian.
OracleSums weighted_sums(const Rows& rows, const double* slopes, const double* curvatures, const double* weight,
                         const Cells& cells, const Scaling& scaling, size_t block_rows, Crew& crew);

}  // namespace certifit
