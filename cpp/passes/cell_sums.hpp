// Sums of every column by cell: what counts and class moments are made of.
//   weight_c = sum_i w_i,  sums_cj = sum_i w_i z_ij,  squares_cj = sum_i w_i z_ij^2  over the rows i of cell c
// z = x scale - shift_c, or z = 1 where x > threshold, else 0. Scales are powers of two.
#pragma once

#include "gram.hpp"

namespace certifit {

struct CellSumsTask {
  const double* weight = nullptr;  // may be null
  Cells cells;
  const double* scale;  // n_columns
  const double* shift;  // cells x n_columns, in scaled units; not used for columns that are stored thinly
  double weight_scale = 1;
  bool has_squares = false;
  bool is_indicator = false;
  double threshold = 0;
};

struct CellSums {
  std::vector<double> weight;         // cells
  std::vector<double> sums, squares;  // cells x n_columns
  double lowest = 0;                  // the smallest entry where some are negative; not of indicators
  bool is_finite = true;              // indicators: whether every entry is
};

CellSums cell_sums(const Rows& rows, const CellSumsTask& task, size_t block_rows, Crew& crew);

}  // namespace certifit
