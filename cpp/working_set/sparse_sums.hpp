// Sums over the rows of X in sparse columns, read column by column: rows need not be made of them first.
#pragma once

#include "../passes/residual.hpp"
#include "columns.hpp"

namespace certifit {

struct ColumnSums {
  std::vector<double> sizes;    // largest |x_ij|, NaN where one is NaN
  std::vector<double> sums;     // sum_i weight_i x_ij
  std::vector<double> squares;  // sum_i weight_i x_ij^2
};

ColumnSums column_sums(const ColumnData& x, const double* weight, Crew& crew);

struct ColumnTarget {
  const double* y = nullptr;
  const double* weight = nullptr;  // none: ones
  double y_scale = 1, weight_scale = 1;
};

// `residual` (passes/residual.hpp) of columns that all have one scale. Columns without a weight are read once.
ResidualSums column_residual(const ColumnData& x, double scale, const ColumnTarget& target, const double* weights,
                             double intercept, Crew& crew);

}  // namespace certifit
