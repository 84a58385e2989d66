#include "../local/fits.hpp"
#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Indices = Array<int64_t, 1>;

LocalWeight weight_of(const std::string& kind) {
  if (kind == "gaussian") return LocalWeight::gaussian;
  if (kind == "tricube") return LocalWeight::tricube;
  check(kind == "given", "unknown kind of weight: " + kind);
  return LocalWeight::given;
}

LocalRows rows_of(const Matrix& points, const Vector& y, const Vector& weight, const std::optional<Matrix>& columns,
                  int degree) {
  const size_t n = points.shape(0);
  check(n > 0, "local fits need a row");
  check_size("y", y.shape(0), n);
  check_size("weight", weight.shape(0), n);
  check(degree >= 0 && degree <= 2, "degree must be 0, 1 or 2");
  if (columns) check_size("columns", columns->shape(0), n);
  return {points.data(),
          y.data(),
          weight.data(),
          columns ? columns->data() : nullptr,
          n,
          points.shape(1),
          columns ? columns->shape(1) : 0,
          degree};
}

LocalQueries queries_of(const LocalRows& rows, LocalWeight kind, const Matrix& queries, const std::optional<Matrix>& at,
                        const std::optional<Matrix>& weights, const std::optional<Indices>& omitted) {
  const size_t m = queries.shape(0);
  check_size("a query", queries.shape(1), rows.d);
  check(at.has_value() == rows.has_basis(), "columns and their values at the queries go together");
  if (at) {
    check_size("at", at->shape(0), m);
    check_size("a row of at", at->shape(1), rows.n_columns);
  }
  check(weights.has_value() == (kind == LocalWeight::given), "weights are given where their kind says so");
  if (weights) {
    check_size("weights", weights->shape(0), m);
    check_size("a row of weights", weights->shape(1), rows.n);
  }
  if (omitted) {
    check_size("omitted", omitted->shape(0), m);
    for (size_t k = 0; k < m; ++k)
      check(omitted->data()[k] < static_cast<int64_t>(rows.n), "a row that is left out is not there");
  }
  return {queries.data(), at ? at->data() : nullptr, weights ? weights->data() : nullptr,
          omitted ? omitted->data() : nullptr, m};
}

nb::dict fits_py(Matrix points, Vector y, Vector weight, std::optional<Matrix> columns, int degree, Matrix queries,
                 std::optional<Matrix> at, std::optional<Matrix> weights, std::optional<Indices> omitted,
                 const std::string& kind, Vector taus, bool with_norm, bool with_coefficients, int threads) {
  const LocalWeight form = weight_of(kind);
  const LocalRows rows = rows_of(points, y, weight, columns, degree);
  const LocalQueries asked = queries_of(rows, form, queries, at, weights, omitted);
  for (size_t t = 0; t < taus.shape(0); ++t) check(taus.data()[t] > 0, "tau must be above 0");
  LocalFits fits = run(threads, [&](Crew& crew) {
    return local_fits(rows, asked, form, {taus.data(), taus.shape(0)}, with_norm, with_coefficients, crew);
  });
  const size_t shape[2] = {taus.shape(0), asked.m}, deep[3] = {taus.shape(0), asked.m, rows.n_terms() + 1};
  nb::dict out;
  out["prediction"] = to_numpy<2>(std::move(fits.prediction), shape);
  out["leverage"] = to_numpy<2>(std::move(fits.leverage), shape);
  out["norm"] = to_numpy<2>(std::move(fits.norm), shape);
  out["condition"] = to_numpy<2>(std::move(fits.condition), shape);
  out["rank"] = array_of(std::move(fits.rank));
  if (with_coefficients) out["coefficients"] = to_numpy<3>(std::move(fits.coefficients), deep);
  return out;
}

nb::tuple systems_py(Matrix points, Vector y, Vector weight, std::optional<Matrix> columns, int degree, Matrix queries,
                     std::optional<Matrix> at, std::optional<Matrix> weights, const std::string& kind, double tau,
                     Matrix coefficients, int threads) {
  const LocalWeight form = weight_of(kind);
  const LocalRows rows = rows_of(points, y, weight, columns, degree);
  const LocalQueries asked = queries_of(rows, form, queries, at, weights, std::nullopt);
  check_size("coefficients", coefficients.shape(0), asked.m);
  check_size("a row of coefficients", coefficients.shape(1), rows.n_terms() + 1);
  check(tau > 0, "tau must be above 0");
  LocalSystems systems =
      run(threads, [&](Crew& crew) { return local_systems(rows, asked, form, tau, coefficients.data(), crew); });
  const size_t p = rows.n_terms() + 1, shape[3] = {asked.m, p, p};
  return nb::make_tuple(to_numpy(std::move(systems.residual)), to_numpy<3>(std::move(systems.matrix), shape));
}

nb::tuple lowess_py(Vector x, Vector y, size_t k, int n_iterations, int threads) {
  check_size("y", y.shape(0), x.shape(0));
  check(k >= 1 && k <= x.shape(0), "k must be from 1 to the number of rows");
  check(n_iterations >= 0, "iterations must be >= 0");
  for (size_t i = 1; i < x.shape(0); ++i) check(x.data()[i - 1] <= x.data()[i], "x must be sorted");
  std::vector<double> robust;
  std::vector<double> fitted = run(threads, [&](Crew& crew) {
    return lowess({x.data(), x.shape(0)}, {y.data(), y.shape(0)}, k, n_iterations, robust, crew);
  });
  return nb::make_tuple(to_numpy(std::move(fitted)), to_numpy(std::move(robust)));
}

}  // namespace

void bind_local(nb::module_& m) {
  m.def("local_fits", fits_py, "points"_a.noconvert(), "y"_a.noconvert(), "weight"_a.noconvert(),
        "columns"_a.noconvert().none(), "degree"_a, "queries"_a.noconvert(), "at"_a.noconvert().none(),
        "weights"_a.noconvert().none(), "omitted"_a.noconvert().none(), "kind"_a, "taus"_a.noconvert(), "with_norm"_a,
        "with_coefficients"_a, "threads"_a);
  m.def("local_systems", systems_py, "points"_a.noconvert(), "y"_a.noconvert(), "weight"_a.noconvert(),
        "columns"_a.noconvert().none(), "degree"_a, "queries"_a.noconvert(), "at"_a.noconvert().none(),
        "weights"_a.noconvert().none(), "kind"_a, "tau"_a, "coefficients"_a.noconvert(), "threads"_a);
  m.def("lowess", lowess_py, "x"_a.noconvert(), "y"_a.noconvert(), "k"_a, "iterations"_a, "threads"_a);
}

}  // namespace certifit
