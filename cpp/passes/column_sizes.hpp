// A first look at the columns of one block: how large their entries are, and where their middle is.
#pragma once

#include "../tile.hpp"

namespace certifit {

// Largest |x| of every column, NaN where one is; 1 for the columns of a category.
std::vector<double> column_sizes(const Rows& rows);

// Means of the dense columns times their scale; 0 for thin ones and where the mean is not finite. A constant column has
// its very value, so that it becomes exactly zero about it. exact: only where x - mean loses no bit, which is where no
// entry is further from the mean than a quarter of it; 0 elsewhere.
std::vector<double> column_shifts(const Rows& rows, const double* scale, bool exact);

}  // namespace certifit
