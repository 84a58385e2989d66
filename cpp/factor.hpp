// Twofold Cholesky factor of a symmetric non-negative matrix, columns taken in the order given.
#pragma once

#include <vector>

#include "parallel.hpp"

namespace certifit {

struct TwofoldMatrix {
  size_t n_rows = 0, n_columns = 0;
  std::vector<double> hi, lo;  // row-major
};

struct TwofoldFactor {
  TwofoldMatrix upper;         // U with A = U'U on the kept columns; n_rows = number kept, n_columns = all
  std::vector<int64_t> kept;   // columns whose pivot exceeds its floor; the others depend on those before them
  std::vector<double> pivots;  // what is left of a_jj when column j's turn comes: squared distance to the span
};

// floor[j]: a pivot at or below it counts as zero. A floor is raised where a column holds a large multiple of one
// before it, whose roundings it then holds as often.
TwofoldFactor twofold_cholesky(TwofoldMatrix a, std::vector<double> floor, Crew& crew);

// Solves (U'U) X = B on the kept columns; U is the square upper triangle kept x kept.
TwofoldMatrix twofold_solve(const TwofoldMatrix& upper, TwofoldMatrix b, Crew& crew);

// sum_j a_j b_j as hi + lo; 0 times anything is 0.
std::pair<double, double> twofold_dot(const double* a, const double* b, size_t n);

}  // namespace certifit
