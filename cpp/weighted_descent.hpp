// One Newton step of a loss of scores with a penalty, on sparse columns: coordinate descent on the quadratic model
//
//   minimise over w, b   g'(w - w0) + g_b (b - b0) + 1/2 sum_i h_i ((b - b0) + x_i'(w - w0))^2 + sum_j penalty_j(w_j)
//
// h_i >= 0 are curvatures of the rows. The intercept is at its best value all the time. Sweeps over all columns, and
// many over those that have a weight, until no coordinate's slope is off by more than `tol` times its own unit.
#pragma once

#include <vector>

#include "coordinate/penalty.hpp"
#include "parallel.hpp"
#include "working_set/columns.hpp"

namespace certifit {

struct WeightedStep {
  std::vector<double> weights;
  double intercept = 0;  // b - b0
  size_t sweeps = 0;
};

// slopes: of the columns and then the intercept. units: of the slopes, one a column.
WeightedStep weighted_lasso_step(const ColumnData& columns, const double* curvatures, const double* slopes,
                                 const double* weights, const std::vector<Penalty>& penalty, const double* units,
                                 bool fit_intercept, double tol, size_t max_sweeps, Crew& crew);

}  // namespace certifit
