// Lasso and elastic net on Gram matrices, with bounds and unpenalised columns:
//
//   minimise over w   1/2 w'Gw - c'w + yy/2 + sum_j h_j(w_j)
//   h_j(w) = l1_j |w| + l2_j/2 w^2   on lower_j <= w <= upper_j,   lower_j <= 0 <= upper_j
//   l1_j = alpha ratio f_j,   l2_j = alpha (1 - ratio) f_j
//
// G = X'X / W, c = X'y / W, yy = y'y / W. The correlations with the residual are q = c - Gw.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "active_factor.hpp"
#include "parallel.hpp"

namespace certifit {

class GramSystem {
 public:
  GramSystem(size_t n_columns, const double* gram, const double* moment, double square);

  size_t n_columns;
  const double* gram;    // G, row-major and symmetric
  const double* moment;  // c
  double square;         // yy
  std::vector<double> diagonal;
  std::vector<char> is_dead;  // columns of which only rounding is left: their weight stays 0

  const double* column(size_t j) const { return gram + j * n_columns; }
};

struct ColumnPenalty {
  double l1, l2, lower, upper;

  bool is_free() const { return l1 == 0 && l2 == 0; }
  double value(double w) const { return l1 * std::fabs(w) + 0.5 * l2 * w * w; }
  double coordinate_minimum(double z, double square) const;  // of square/2 w^2 - z w + h(w)
};

struct PenaltyPath {
  size_t n_columns, n_strengths;
  const double* strengths;  // alpha
  double ratio;
  const double *factors, *lower, *upper;

  std::vector<ColumnPenalty> at(double strength) const;
};

// q = c - Gw, summed anew.
void correlations(const GramSystem& system, const double* weights, double* q);

struct Certified {
  double objective, gap;  // the gap is divided by the objective
};

// Duality gap from the Gram matrix alone. Holds for any weights within the bounds.
class GapCertifier {
 public:
  GapCertifier(const GramSystem& system, Crew& crew) : system_(system), crew_(crew) {}
  Certified certify(const std::vector<ColumnPenalty>& penalty, const double* weights, const double* q);

 private:
  void project(const std::vector<ColumnPenalty>& penalty, const double* weights, const double* q);
  void factor_projected();
  double gap_at(double scale, const std::vector<ColumnPenalty>& penalty, const double* weights, double squares) const;

  const GramSystem& system_;
  Crew& crew_;
  ActiveFactor factor_;
  std::vector<size_t> factored_, kept_, projected_;  // columns the dual point must be orthogonal to
  std::vector<char> is_projected_;
  std::vector<double> dual_;  // X'u of the projected residual
  double shift_ = 0;          // |r - u|^2 of the projection
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

}  // namespace certifit
