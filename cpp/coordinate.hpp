// Lasso and elastic net on Gram matrices, with bounds and unpenalised columns:
//
//   minimise over w   1/2 w'Gw - c'w + yy/2 + sum_j h_j(w_j)
//   h_j(w) = l1_j |w| + l2_j/2 w^2   on lower_j <= w <= upper_j,   lower_j <= 0 <= upper_j
//   l1_j = alpha ratio f_j,   l2_j = alpha (1 - ratio) f_j
//
// G = X'X / W, c = X'y / W, yy = y'y / W.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinate/penalty.hpp"
#include "coordinate/system.hpp"
#include "parallel.hpp"

namespace certifit {

struct PenaltyPath {
  size_t n_columns, n_strengths;
  const double* strengths;  // alpha
  double ratio;
  const double *factors, *lower, *upper;

  std::vector<Penalty> at(double strength) const;
};

enum class PathStatus : int64_t { converged = 0, max_iter = 1, rounding = 2, not_gram = 3 };

struct PathAnswers {
  std::vector<double> weights, gaps, objectives;  // weights: matrices x strengths x columns
  std::vector<int64_t> iterations, status;
};

PathAnswers gram_lasso_path(const std::vector<GramSystem>& systems, const PenaltyPath& path, double tol,
                            size_t max_iter, Crew& crew);

// The smallest alpha at which every penalised weight is 0, one a matrix; infinite for ratio = 0.
std::vector<double> gram_alpha_max(const std::vector<GramSystem>& systems, const PenaltyPath& path, size_t max_iter,
                                   Crew& crew);

PathAnswers gram_lasso_gaps(const std::vector<GramSystem>& systems, const PenaltyPath& path, const double* weights,
                            Crew& crew);

// A quadratic with slope g and curvature G at `weights`, and penalties of single columns: where it is least with them.
//   minimise over w   g'(w - weights) + 1/2 (w - weights)'G(w - weights) + sum_j h_j(w_j)
// A column without curvature keeps its weight. Goes on to the rounding floor, for at most max_iter rounds; `square` is
// twice the value that this floor is relative to.
struct StepAnswer {
  std::vector<double> weights;
  int64_t iterations;
  PathStatus status;
};

StepAnswer gram_lasso_step(size_t n_columns, const double* gram, const double* slope, const double* weights,
                           double square, const std::vector<Penalty>& penalty, size_t max_iter, Crew& crew);

}  // namespace certifit
