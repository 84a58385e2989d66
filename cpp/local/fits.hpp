// Local least squares: at every query x the fit that weighs the rows by their distance from x.
//   minimise  sum_i w_i(x) (y_i - theta'phi(x_i))^2,   w_i(x) = a_i K(|x_i - x| / tau)
// A query with no row of positive weight takes the nearest rows alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../parallel.hpp"

namespace certifit {

enum class LocalWeight { gaussian, tricube, given };

// n rows of d coordinates, row-major. columns: n x n_columns of a user's basis; without one, powers up to `degree` of
// the coordinates about the query. weight: a_i > 0.
struct LocalRows {
  const double *points, *y, *weight, *columns;
  size_t n, d, n_columns;
  int degree;

  bool has_basis() const { return columns != nullptr; }
  size_t n_terms() const {  // without the constant
    if (has_basis()) return n_columns;
    return degree == 0 ? 0 : degree == 1 ? d : d + d * (d + 1) / 2;
  }
};

// at: m x n_columns of the basis at the queries. weights: m x n values of K, where they are given. omitted: the row
// that each query leaves out, -1 for none; may be null.
struct LocalQueries {
  const double *points, *at, *weights;
  const int64_t* omitted;
  size_t m;
};

// Of every tau and query, tau-major. leverage: phi'(Phi'W Phi)^- phi at the query, of a row of weight 1 and K = 1
// there. norm: sum_i l_i^2 / a_i of the fit l'y. condition: of the centred columns of unit size. coefficients: of 1 and
// every term, about the query.
struct LocalFits {
  std::vector<double> prediction, leverage, norm, condition, coefficients;
  std::vector<int32_t> rank;
};

LocalFits local_fits(const LocalRows& rows, const LocalQueries& queries, LocalWeight kind, std::span<const double> taus,
                     bool with_norm, bool with_coefficients, Crew& crew);

// What a proof asks of coefficients at every query, without a solver: the relative residual of the normal equations,
// and the matrix of the columns, each of unit size, (1 + terms)^2 numbers per query.
struct LocalSystems {
  std::vector<double> residual, matrix;
};
LocalSystems local_systems(const LocalRows& rows, const LocalQueries& queries, LocalWeight kind, double tau,
                           const double* coefficients, Crew& crew);

// LOWESS at sorted x: local lines of the k nearest rows with tricube weights, made robust so many times by bisquare
// weights of the residuals. The robust weights of the last fit are written to `robust`.
std::vector<double> lowess(std::span<const double> x, std::span<const double> y, size_t k, int n_iterations,
                           std::vector<double>& robust, Crew& crew);

}  // namespace certifit
