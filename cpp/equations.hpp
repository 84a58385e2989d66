// The small steps between the passes of a fit by normal equations, on a vector per column or a matrix of these: the
// factor of few columns, states in the units of the sums, a residual statistic after a small step, and what its proof
// adds up.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace certifit {

constexpr double unit_rounding = 0x1p-53;
constexpr double matrix_error = 128 * unit_rounding;  // relative, of an entry of a float64 Gram matrix

// 2^-e with size 2^-e in [1, 2); 1 where a size is 0 or not finite.
std::vector<double> powers_of_two(const double* sizes, size_t n);

// Powers of two that bring columns and target near 1, and shifts in those units.
struct Units {
  const double* scale;
  const double* shift;
  size_t n_columns;
  double y_scale, y_shift;
};

struct State {
  std::vector<double> coef;
  double intercept = 0;
};

// coef / scale y_scale, rounded once at most; one that is not 0 stays one, however small.
std::vector<double> scaled_coef(const double* coef, const Units& units);

// The state nearest to a solution of the system, solution + low; low may be null. The intercept is a sum of large terms
// that cancel, so it is made in twofold precision. Solution: the intercept of shifted columns first, if there is one.
State state_of_solution(const double* solution, const double* low, bool has_intercept, const Units& units);
std::vector<double> solution_of_state(const State& state, bool has_intercept, const Units& units);

// A = U'U in units that bring the diagonal of A near 1.
struct PlainFactor {
  std::vector<double> upper, inverse;  // of the scaled matrix; row-major
  std::vector<double> units;
  double condition = 0;  // the root of |A|_1 |A^-1|_1, scaled
};

// nullopt: a pivot is not above 0, or squares about the shift are a smaller share of norms^2 than least_share. Units
// are powers of two; without norms, which may be null, those that make the diagonal 1.
std::optional<PlainFactor> plain_factor(const double* matrix, const double* norms, size_t n, double least_share);

// units A^-1 units right: the solution of the unscaled system.
std::vector<double> plain_solve(const double* upper, const double* units, const double* right, size_t n);

// (T + shift_k I) x_k = right for every shift, T symmetric and tridiagonal: `diagonal` and `beside` it.
struct ShiftedSolutions {
  std::vector<double> solutions;  // a row per shift
  double condition = 0;           // the largest of |T + shift I|_1 |(T + shift I)^-1|_1
};

// nullopt: for some shift a pivot is not above 0, or not finite.
std::optional<ShiftedSolutions> shifted_solutions(const double* diagonal, const double* beside, const double* right,
                                                  size_t n, const double* shifts, size_t n_shifts);

// The gradient of a residual statistic in the system's unknowns: sums of (x, 1) about a shift, less a penalty's pull.
std::vector<double> shifted_gradient(const double* hi, const double* lo, const double* shift, const double* penalty,
                                     const double* weights, size_t n_columns);

// A residual statistic: gradient of (intercept, weights), its error, squares, and what roundings scale with.
struct ResidualAt {
  std::vector<double> gradient, rounding;
  double squares = 0, magnitude = 0;
};

// The statistic at a new state, from that at an old one and the Gram sums of (columns, 1, ...), size by size: it is
// quadratic in the state. nullopt where the step is larger than these shares of predictions and of residuals.
std::optional<ResidualAt> moved_residual(const ResidualAt& last, const State& old, const State& now, const double* sums,
                                         size_t size, const double* penalty, const Units& units, double small_step,
                                         double small_change);

// A^-1 for the columns (1, x), from that for (1, x - shift): b = b' - sum_j w_j shift_j.
std::vector<double> raw_inverse(const double* inverse, const double* shift, size_t n_columns);

// sqrt(e' |A^-1| e).
double error_length(const double* inverse, const double* error, size_t n);

// -log10 of a bound on the relative error of every coefficient, 0 to most. slope: at most the gradient's size; norms:
// of the system's columns, 0 for the intercept; residual, predictions: root sums of squares that roundings scale with;
// relations: what a state makes of relations among columns that were taken for exact.
struct DigitFacts {
  const double *estimate, *inverse, *raw, *slope, *norms, *shift;
  size_t n;
  bool has_intercept;
  double residual, predictions, relations, most;
};
std::vector<double> proven_digits(const DigitFacts& facts);

// Sums of (columns, 1, target), centred with an intercept and divided by the sum of weights: products of columns, with
// the target, and squares, the target's last. What does not vary, to rounding, is 0.
struct CentredProducts {
  std::vector<double> matrix, moment, variance;
};
CentredProducts centred_products(const double* sums, size_t n_columns, bool has_intercept, double no_spread);

// A residual statistic as a point of the dual of penalised least squares: q = X'(r - level) / total and how far off it
// may be. unit: of the twofold sums times the root of what roundings scale with.
struct DualFacts {
  const double *gradient, *rounding, *norms, *norms_about, *means, *means_error;
  double unit, total;
  bool has_intercept;
};
struct DualPoint {
  std::vector<double> q, error;
  double level = 0, level_error = 0;
};
DualPoint centred_dual(const DualFacts& facts, size_t n_columns);

// h_j(w) = l1_j |w| + l2_j/2 w^2 on lower_j <= w <= upper_j, 0 between them.
struct ElasticColumns {
  const double *l1, *l2, *lower, *upper;
  size_t n_columns;
  double maximiser(size_t j, double q) const;  // the w that attains h*(q) = sup_w q w - h(w); infinite where none does
  double conjugate(size_t j, double q) const;  // h*(q)
};

// Sums over columns: of h(w) + h*(q) - q w >= 0, and of what the errors of q and roundings may add. h* is convex: an
// error costs at most so much of the furthest maximiser within it.
struct ElasticGap {
  double brackets, rounding;
};
ElasticGap elastic_gap(const ElasticColumns& penalty, const double* w, const double* q, const double* error);

// The largest multiple of q, at most 1, at which every conjugate is finite.
double finite_share(const ElasticColumns& penalty, const double* q, const double* error);

}  // namespace certifit
