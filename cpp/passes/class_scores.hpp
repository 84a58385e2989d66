// Scores of rows under every class, rows x classes. The bits of a row's scores depend on the row alone.
#pragma once

#include <vector>

#include "../parallel.hpp"
#include "../tile.hpp"

namespace certifit {

// intercepts_k + sum_j x_j weights_kj
std::vector<double> linear_scores(const Rows& rows, const double* weights, const double* intercepts, size_t n_classes,
                                  Crew& crew);

// constants_k - |roots_k (x - means_k)|^2 / 2. roots: classes x d for diagonal ones, else classes x d x d, lower
// triangles row by row.
std::vector<double> quadratic_scores(const Rows& rows, const double* means, const double* roots, bool is_diagonal,
                                     const double* constants, size_t n_classes, Crew& crew);

}  // namespace certifit
