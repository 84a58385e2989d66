// Scores along directions: scores[i, c] = sum_j (x_ij scale_j - shift_j) directions[j, c]. Scales are powers of two.
#pragma once

#include "gram.hpp"

namespace certifit {

// directions: n_columns x n_directions, row-major; the result is n_rows x n_directions. The order of a sum is fixed by
// its row alone. Columns stored thinly are shifted by a constant a direction, so they stay thin.
std::vector<double> project(const Rows& rows, const Scaling& scaling, const double* directions, size_t n_directions,
                            Crew& crew);

}  // namespace certifit
