// Lasso and elastic net for more columns than rows, by working sets on columns:
//   minimise  1/(2 W) sum_i weight_i (y_i - b - x_i'w)^2 + alpha sum_j f_j (ratio |w_j| + (1 - ratio)/2 w_j^2)
//   over w, b with lower_j <= w_j <= upper_j,  W = sum of the weights, lower_j <= 0 <= upper_j, f_j >= 0.
// Each answer comes with the duality gap of this whole problem, from the residual of the weights returned.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "working_set/columns.hpp"

namespace certifit {

struct WideProblem {
  ColumnData x;
  const double* y = nullptr;
  const double* weight = nullptr;  // none: ones
  const double* factor = nullptr;  // none: ones
  const double* lower = nullptr;   // none: -infinity
  const double* upper = nullptr;   // none: infinity
  double ratio = 1;                // in (0, 1]
  bool fit_intercept = true;
};

enum class WideStatus : uint8_t {
  converged,  // gap <= tol max(objective, 1e-14 objective of the null model)
  max_iter,   // the sweeps were used up
  rounding,   // nothing moves any more and the gap is above tol: float64 ends here
};

struct WideSolution {
  std::vector<int64_t> columns;  // of the weights that are not zero, increasing
  std::vector<double> weights;
  double intercept = 0, objective = 0, gap = 0, relative_gap = 0;
  size_t sweeps = 0, columns_read = 0;  // columns_read: products with a column of X outside the working set
  WideStatus status = WideStatus::converged;
};

// One solution an alpha, each started from the one before.
std::vector<WideSolution> wide_lasso_path(const WideProblem& problem, const std::vector<double>& alphas, double tol,
                                          size_t max_iter, Crew& crew);

// The least alpha at which every penalised weight is zero.
double wide_alpha_max(const WideProblem& problem, Crew& crew);

// Objective and gap at given weights. A weight outside its bounds is refused.
WideSolution wide_lasso_gap(const WideProblem& problem, double alpha, const std::vector<int64_t>& columns,
                            const std::vector<double>& weights, double intercept, Crew& crew);

}  // namespace certifit
