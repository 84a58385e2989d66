// The Gram statistic: S = sum_i w_i z_i z_i',  z_i = (x_i scale - shift, 1, y_i y_scale - y_shift).
// Scales are powers of two, so scaling is exact. `twofold` keeps every sum to some 100 bits.
#pragma once

#include <vector>

#include "../parallel.hpp"
#include "../tile.hpp"

namespace certifit {

struct Scaling {
  const double* scale;  // n_columns
  const double* shift;  // n_columns, in scaled units; all zero for sparse rows
  double y_scale = 1, y_shift = 0;
  double weight_scale = 1;
};

// Rows summed apart: the cell of every row, negative for none. Without numbers all rows are one cell.
struct Cells {
  const int32_t* of_row = nullptr;
  size_t count = 1;
};

struct GramSums {
  std::vector<double> hi, lo;  // cells x D x D, symmetric; lo is empty in plain precision
};

// y and weight may be null. D = n_columns + 1, + 1 with y.
GramSums gram(const Rows& rows, const double* y, const double* weight, const Cells& cells, const Scaling& scaling,
              size_t block_rows, bool twofold, Crew& crew);

}  // namespace certifit
