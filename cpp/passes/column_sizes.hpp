// A first look at the columns of one block: how large their entries are, and where their middle is.
#pragma once

#include "../parallel.hpp"
#include "../tile.hpp"

namespace certifit {

// Largest |x| of every column, NaN where one is; 1 for the columns of a category.
std::vector<double> column_sizes(const Rows& rows);

// Of few rows, each sum belonging to its column alone.
struct ColumnLook {
  std::vector<double> sizes, sums;  // largest |x_ij|, as above; sum_i w_i x_ij, all 0 without weights
};

// Few rows of many columns, n_rows x n_columns of float64, turned: out is n_columns x n_rows.
ColumnLook turn(const double* x, const double* weights, size_t n_rows, size_t n_columns, double* out, Crew& crew);

// The same of rows that are turned already.
ColumnLook look_at_columns(const double* turned, const double* weights, size_t n_rows, size_t n_columns, Crew& crew);

// Means of the dense columns times their scale; 0 for thin ones and where the mean is not finite. A constant column has
// its very value, so that it becomes exactly zero about it. exact: only where x - mean loses no bit, which is where no
// entry is further from the mean than a quarter of it; 0 elsewhere.
std::vector<double> column_shifts(const Rows& rows, const double* scale, bool exact);

}  // namespace certifit
