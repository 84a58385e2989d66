#include "../factor.hpp"

#include "../equations.hpp"
#include "rows.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

TwofoldMatrix to_twofold(const char* name, const Matrix& hi, const Matrix& lo) {
  check(hi.shape(0) == lo.shape(0) && hi.shape(1) == lo.shape(1), std::string(name) + ": hi and lo differ in shape");
  const size_t n = hi.shape(0) * hi.shape(1);
  return {hi.shape(0), hi.shape(1), {hi.data(), hi.data() + n}, {lo.data(), lo.data() + n}};
}

nb::object to_pair(TwofoldMatrix&& a) {
  const size_t shape[2] = {a.n_rows, a.n_columns};
  return nb::make_tuple(to_numpy<2>(std::move(a.hi), shape), to_numpy<2>(std::move(a.lo), shape));
}

nb::object cholesky_py(Matrix hi, Matrix lo, Vector floor, int threads) {
  check(hi.shape(0) == hi.shape(1), "the matrix must be square");
  check_size("floor", floor.shape(0), hi.shape(0));
  TwofoldMatrix a = to_twofold("matrix", hi, lo);
  std::vector<double> floors(floor.data(), floor.data() + floor.shape(0));
  TwofoldFactor factor =
      run(threads, [&](Crew& crew) { return twofold_cholesky(std::move(a), std::move(floors), crew); });
  nb::list kept;
  for (int64_t k : factor.kept) kept.append(k);
  return nb::make_tuple(kept, to_numpy(std::move(factor.pivots)), to_pair(std::move(factor.upper)));
}

nb::object solve_py(Matrix upper_hi, Matrix upper_lo, Matrix b_hi, Matrix b_lo, int threads) {
  check(upper_hi.shape(0) == upper_hi.shape(1), "the factor must be square");
  check_size("right-hand side", b_hi.shape(0), upper_hi.shape(0));
  TwofoldMatrix upper = to_twofold("factor", upper_hi, upper_lo), b = to_twofold("right-hand side", b_hi, b_lo);
  return to_pair(run(threads, [&](Crew& crew) { return twofold_solve(upper, std::move(b), crew); }));
}

nb::object dot_py(Vector a, Vector b) {
  check_size("b", b.shape(0), a.shape(0));
  const auto [hi, lo] = twofold_dot(a.data(), b.data(), a.shape(0));
  return nb::make_tuple(hi, lo);
}

std::vector<double> copy_of(const Vector& v) { return {v.data(), v.data() + v.shape(0)}; }

Units checked_units(const Vector& scale, const Vector& shift, double y_scale, double y_shift) {
  check_size("shift", shift.shape(0), scale.shape(0));
  return {scale.data(), shift.data(), scale.shape(0), y_scale, y_shift};
}

nb::object powers_of_two_py(Vector sizes) { return nb::cast(to_numpy(powers_of_two(sizes.data(), sizes.shape(0)))); }

nb::object scaled_coef_py(Vector coef, Vector scale, double y_scale) {
  check_size("coef", coef.shape(0), scale.shape(0));
  return nb::cast(to_numpy(scaled_coef(coef.data(), {scale.data(), nullptr, scale.shape(0), y_scale, 0.0})));
}

nb::object state_of_solution_py(Vector solution, std::optional<Vector> low, bool has_intercept, Vector scale,
                                Vector shift, double y_scale, double y_shift) {
  const Units units = checked_units(scale, shift, y_scale, y_shift);
  check_size("solution", solution.shape(0), units.n_columns + has_intercept);
  if (low) check_size("low", low->shape(0), solution.shape(0));
  State state = state_of_solution(solution.data(), data_of(low), has_intercept, units);
  return nb::make_tuple(to_numpy(std::move(state.coef)), state.intercept);
}

nb::object solution_of_state_py(Vector coef, double intercept, bool has_intercept, Vector scale, Vector shift,
                                double y_scale, double y_shift) {
  const Units units = checked_units(scale, shift, y_scale, y_shift);
  check_size("coef", coef.shape(0), units.n_columns);
  return nb::cast(to_numpy(solution_of_state({copy_of(coef), intercept}, has_intercept, units)));
}

nb::object plain_factor_py(Matrix matrix, std::optional<Vector> norms, double least_share) {
  const size_t n = matrix.shape(0);
  check(matrix.shape(1) == n, "the matrix must be square");
  if (norms) check_size("norms", norms->shape(0), n);
  std::optional<PlainFactor> factor = plain_factor(matrix.data(), data_of(norms), n, least_share);
  if (!factor) return nb::none();
  const size_t square[2] = {n, n};
  return nb::make_tuple(to_numpy<2>(std::move(factor->upper), square), to_numpy<2>(std::move(factor->inverse), square),
                        to_numpy(std::move(factor->units)), factor->condition);
}

nb::object plain_solve_py(Matrix upper, Vector units, Vector right) {
  const size_t n = upper.shape(0);
  check(upper.shape(1) == n, "the factor must be square");
  check_size("units", units.shape(0), n);
  check_size("right-hand side", right.shape(0), n);
  return nb::cast(to_numpy(plain_solve(upper.data(), units.data(), right.data(), n)));
}

nb::object shifted_solutions_py(Vector diagonal, Vector beside, Vector right, Vector shifts) {
  const size_t n = diagonal.shape(0), n_shifts = shifts.shape(0), shape[2] = {n_shifts, n};
  check(n > 0, "the matrix must have a row at least");
  check_size("beside", beside.shape(0), n - 1);
  check_size("right-hand side", right.shape(0), n);
  std::optional<ShiftedSolutions> made =
      shifted_solutions(diagonal.data(), beside.data(), right.data(), n, shifts.data(), n_shifts);
  if (!made) return nb::none();
  return nb::make_tuple(to_numpy<2>(std::move(made->solutions), shape), made->condition);
}

nb::object shifted_gradient_py(Vector hi, Vector lo, Vector shift, Vector penalty, Vector weights) {
  const size_t d = shift.shape(0);
  for (const Vector& part : {hi, lo}) check_size("gradient", part.shape(0), d + 1);
  check_size("penalty", penalty.shape(0), d);
  check_size("weights", weights.shape(0), d);
  return nb::cast(to_numpy(shifted_gradient(hi.data(), lo.data(), shift.data(), penalty.data(), weights.data(), d)));
}

nb::object moved_residual_py(Vector gradient, Vector rounding, double squares, double magnitude, Vector old_coef,
                             double old_intercept, Vector coef, double intercept, Matrix sums, Vector penalty,
                             Vector scale, Vector shift, double y_scale, double small_step, double small_change) {
  const Units units = checked_units(scale, shift, y_scale, 0.0);
  const size_t d = units.n_columns, size = sums.shape(0);
  check(sums.shape(1) == size && size > d, "the sums must be square, the columns and a constant at least");
  for (const Vector& part : {gradient, rounding}) check_size("gradient", part.shape(0), d + 1);
  for (const Vector& part : {old_coef, coef, penalty}) check_size("weights", part.shape(0), d);
  const ResidualAt last{copy_of(gradient), copy_of(rounding), squares, magnitude};
  std::optional<ResidualAt> moved = moved_residual(last, {copy_of(old_coef), old_intercept}, {copy_of(coef), intercept},
                                                   sums.data(), size, penalty.data(), units, small_step, small_change);
  if (!moved) return nb::none();
  return nb::make_tuple(to_numpy(std::move(moved->gradient)), to_numpy(std::move(moved->rounding)), moved->squares);
}

nb::object raw_inverse_py(Matrix inverse, Vector shift) {
  const size_t n = inverse.shape(0), square[2] = {n, n};
  check(inverse.shape(1) == n, "the inverse must be square");
  check_size("shift", shift.shape(0) + 1, n);
  return nb::cast(to_numpy<2>(raw_inverse(inverse.data(), shift.data(), n - 1), square));
}

double error_length_py(Matrix inverse, Vector error) {
  check(inverse.shape(1) == inverse.shape(0), "the inverse must be square");
  check_size("error", error.shape(0), inverse.shape(0));
  return error_length(inverse.data(), error.data(), error.shape(0));
}

nb::object proven_digits_py(Vector estimate, Matrix inverse, Matrix raw, Vector slope, Vector norms, Vector shift,
                            bool has_intercept, double residual, double predictions, double relations, double most) {
  const size_t n = estimate.shape(0);
  check(most >= 0, "the most digits must be 0 or above");
  for (const Matrix& part : {inverse, raw})
    check(part.shape(0) == n && part.shape(1) == n, "the inverse must have a row and a column per coefficient");
  for (const Vector& part : {slope, norms}) check_size("slope", part.shape(0), n);
  check_size("shift", shift.shape(0) + has_intercept, n);
  return nb::cast(to_numpy(proven_digits({estimate.data(), inverse.data(), raw.data(), slope.data(), norms.data(),
                                          shift.data(), n, has_intercept, residual, predictions, relations, most})));
}

nb::object centred_products_py(Matrix sums, bool has_intercept, double no_spread) {
  check(sums.shape(0) == sums.shape(1) && sums.shape(0) >= 2, "the sums must be square: columns, 1 and the target");
  const size_t d = sums.shape(0) - 2, square[2] = {d, d};
  CentredProducts made = centred_products(sums.data(), d, has_intercept, no_spread);
  return nb::make_tuple(to_numpy<2>(std::move(made.matrix), square), to_numpy(std::move(made.moment)),
                        to_numpy(std::move(made.variance)));
}

nb::object centred_dual_py(Vector gradient, Vector rounding, double unit, double total, Vector norms,
                           Vector norms_about, Vector means, Vector means_error, bool has_intercept) {
  const size_t d = norms.shape(0);
  for (const Vector& part : {gradient, rounding}) check_size("gradient", part.shape(0), d + 1);
  for (const Vector& part : {norms_about, means, means_error}) check_size("means", part.shape(0), d);
  DualPoint dual = centred_dual({gradient.data(), rounding.data(), norms.data(), norms_about.data(), means.data(),
                                 means_error.data(), unit, total, has_intercept},
                                d);
  return nb::make_tuple(to_numpy(std::move(dual.q)), to_numpy(std::move(dual.error)), dual.level, dual.level_error);
}

ElasticColumns checked_columns(const Vector& l1, const Vector& l2, const Vector& lower, const Vector& upper) {
  for (const Vector& part : {l2, lower, upper}) check_size("penalty", part.shape(0), l1.shape(0));
  return {l1.data(), l2.data(), lower.data(), upper.data(), l1.shape(0)};
}

nb::object elastic_gap_py(Vector l1, Vector l2, Vector lower, Vector upper, Vector w, Vector q, Vector error) {
  const ElasticColumns penalty = checked_columns(l1, l2, lower, upper);
  for (const Vector& part : {w, q, error}) check_size("weights", part.shape(0), penalty.n_columns);
  const ElasticGap gap = elastic_gap(penalty, w.data(), q.data(), error.data());
  return nb::make_tuple(gap.brackets, gap.rounding);
}

double finite_share_py(Vector l1, Vector l2, Vector lower, Vector upper, Vector q, Vector error) {
  const ElasticColumns penalty = checked_columns(l1, l2, lower, upper);
  for (const Vector& part : {q, error}) check_size("q", part.shape(0), penalty.n_columns);
  return finite_share(penalty, q.data(), error.data());
}

}  // namespace

void bind_factor(nb::module_& m) {
  m.def("powers_of_two", powers_of_two_py, "sizes"_a.noconvert());
  m.def("scaled_coef", scaled_coef_py, "coef"_a.noconvert(), "scale"_a.noconvert(), "y_scale"_a);
  m.def("state_of_solution", state_of_solution_py, "solution"_a.noconvert(), "low"_a.noconvert().none(),
        "has_intercept"_a, "scale"_a.noconvert(), "shift"_a.noconvert(), "y_scale"_a, "y_shift"_a);
  m.def("solution_of_state", solution_of_state_py, "coef"_a.noconvert(), "intercept"_a, "has_intercept"_a,
        "scale"_a.noconvert(), "shift"_a.noconvert(), "y_scale"_a, "y_shift"_a);
  m.def("plain_factor", plain_factor_py, "matrix"_a.noconvert(), "norms"_a.noconvert().none(), "least_share"_a);
  m.def("plain_solve", plain_solve_py, "upper"_a.noconvert(), "units"_a.noconvert(), "right"_a.noconvert());
  m.def("shifted_solutions", shifted_solutions_py, "diagonal"_a.noconvert(), "beside"_a.noconvert(),
        "right"_a.noconvert(), "shifts"_a.noconvert());
  m.def("shifted_gradient", shifted_gradient_py, "hi"_a.noconvert(), "lo"_a.noconvert(), "shift"_a.noconvert(),
        "penalty"_a.noconvert(), "weights"_a.noconvert());
  m.def("moved_residual", moved_residual_py, "gradient"_a.noconvert(), "rounding"_a.noconvert(), "squares"_a,
        "magnitude"_a, "old_coef"_a.noconvert(), "old_intercept"_a, "coef"_a.noconvert(), "intercept"_a,
        "sums"_a.noconvert(), "penalty"_a.noconvert(), "scale"_a.noconvert(), "shift"_a.noconvert(), "y_scale"_a,
        "small_step"_a, "small_change"_a);
  m.def("raw_inverse", raw_inverse_py, "inverse"_a.noconvert(), "shift"_a.noconvert());
  m.def("error_length", error_length_py, "inverse"_a.noconvert(), "error"_a.noconvert());
  m.def("proven_digits", proven_digits_py, "estimate"_a.noconvert(), "inverse"_a.noconvert(), "raw"_a.noconvert(),
        "slope"_a.noconvert(), "norms"_a.noconvert(), "shift"_a.noconvert(), "has_intercept"_a, "residual"_a,
        "predictions"_a, "relations"_a, "most"_a);
  m.def("centred_products", centred_products_py, "sums"_a.noconvert(), "has_intercept"_a, "no_spread"_a);
  m.def("centred_dual", centred_dual_py, "gradient"_a.noconvert(), "rounding"_a.noconvert(), "unit"_a, "total"_a,
        "norms"_a.noconvert(), "norms_about"_a.noconvert(), "means"_a.noconvert(), "means_error"_a.noconvert(),
        "has_intercept"_a);
  m.def("elastic_gap", elastic_gap_py, "l1"_a.noconvert(), "l2"_a.noconvert(), "lower"_a.noconvert(),
        "upper"_a.noconvert(), "w"_a.noconvert(), "q"_a.noconvert(), "error"_a.noconvert());
  m.def("finite_share", finite_share_py, "l1"_a.noconvert(), "l2"_a.noconvert(), "lower"_a.noconvert(),
        "upper"_a.noconvert(), "q"_a.noconvert(), "error"_a.noconvert());
  m.def("twofold_cholesky", cholesky_py, "hi"_a.noconvert(), "lo"_a.noconvert(), "floor"_a.noconvert(), "threads"_a);
  m.def("twofold_solve", solve_py, "upper_hi"_a.noconvert(), "upper_lo"_a.noconvert(), "b_hi"_a.noconvert(),
        "b_lo"_a.noconvert(), "threads"_a);
  m.def("twofold_dot", dot_py, "a"_a.noconvert(), "b"_a.noconvert());
}

}  // namespace certifit
