// Losses of scores where every column is stored thinly (CSR, categories) and there may be very many: a pass touches the
// entries of a row and nothing else. Curvatures are handed out row by row, so that products with the Hessian need no
// exponential. Blocks must be large: each sums into a vector of all columns.
#pragma once

#include "../loss.hpp"
#include "gram.hpp"
#include "oracle.hpp"

namespace certifit {

struct ThinSums {
  double value = 0;
  std::vector<double> gradient;    // n_columns + 1
  std::vector<double> curvatures;  // w_i l''_i of every row
};

// As `oracle`; the rows have no dense columns and shifts are not read.
ThinSums thin_oracle(const Rows& rows, const double* y, const double* weight, const double* offset,
                     const Scaling& scaling, const State& state, Loss loss, double parameter, size_t block_rows,
                     Crew& crew);

// sum_i c_i (x_i, 1)((x_i, 1)'v): the Hessian times a direction v of n_columns + 1.
std::vector<double> thin_product(const Rows& rows, const double* curvatures, const Scaling& scaling,
                                 const double* direction, size_t block_rows, Crew& crew);

// sum_i c_i (x_i, 1)^2: the diagonal of the Hessian.
std::vector<double> thin_diagonal(const Rows& rows, const double* curvatures, const Scaling& scaling, size_t block_rows,
                                  Crew& crew);

}  // namespace certifit
