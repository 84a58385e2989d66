#include "../coordinate.hpp"

#include <algorithm>
#include <cmath>

#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Cube = Array<double, 3>;

bool all_finite(const double* values, size_t n) {
  double sum = 0;  // x - x is 0 for a finite x, else not a number
  for (size_t i = 0; i < n; ++i) sum += values[i] - values[i];
  return sum == 0;
}

// Tiles keep both triangles in cache.
bool is_symmetric(const double* g, size_t d) {
  constexpr size_t tile = 32;
  for (size_t top = 0; top < d; top += tile)
    for (size_t left = 0; left <= top; left += tile)
      for (size_t i = top; i < std::min(top + tile, d); ++i)
        for (size_t j = left; j < std::min(left + tile, i); ++j) {
          const double a = g[i * d + j], b = g[j * d + i];
          if (a != b && (a - b) * (a - b) > 1e-20 * g[i * d + i] * g[j * d + j]) return false;
        }
  return true;
}

// c_j^2 <= G_jj yy for sums over the same rows, with room for what rounding leaves of a column of zeros.
bool is_consistent(const double* g, const double* c, double yy, size_t d) {
  double largest = 0;
  for (size_t j = 0; j < d; ++j) largest = std::max(largest, g[j * d + j]);
  for (size_t j = 0; j < d; ++j)
    if (c[j] * c[j] > yy * ((1 + 1e-6) * std::max(0.0, g[j * d + j]) + 1e-20 * largest)) return false;
  return true;
}

std::vector<GramSystem> checked_systems(const Cube& gram, const Matrix& moment, const Vector& square) {
  const size_t n = gram.shape(0), d = gram.shape(1);
  check(gram.shape(2) == d, "gram must be matrices x columns x columns");
  check(moment.shape(0) == n && moment.shape(1) == d, "moment must be matrices x columns");
  check_size("square", square.shape(0), n);
  check(all_finite(gram.data(), n * d * d) && all_finite(moment.data(), n * d) && all_finite(square.data(), n),
        "gram, moment and square must be finite");
  std::vector<GramSystem> systems;
  for (size_t k = 0; k < n; ++k) {
    const double *g = gram.data() + k * d * d, *c = moment.data() + k * d, yy = square.data()[k];
    const std::string which = "matrix " + std::to_string(k);
    check(yy >= 0, which + ": square must be >= 0");
    check(is_symmetric(g, d), which + " is not symmetric");
    check(is_consistent(g, c, yy, d),
          which + ": moment^2 is above diagonal times square, so they are not sums over the same rows");
    systems.push_back(gram_system(d, g, c, yy));
  }
  return systems;
}

PenaltyPath checked_path(size_t d, const Vector& strengths, double ratio, const Vector& factors, const Vector& lower,
                         const Vector& upper) {
  check_size("factors", factors.shape(0), d);
  check_size("lower", lower.shape(0), d);
  check_size("upper", upper.shape(0), d);
  check(ratio >= 0 && ratio <= 1, "ratio must be in [0, 1]");
  check(all_finite(strengths.data(), strengths.shape(0)) && all_finite(factors.data(), d),
        "alphas and factors must be finite");
  const double largest = d == 0 ? 0 : *std::max_element(factors.data(), factors.data() + d);
  for (size_t a = 0; a < strengths.shape(0); ++a) {
    check(strengths.data()[a] >= 0, "alphas must be >= 0");
    check(std::isfinite(strengths.data()[a] * largest), "alphas times factors must be finite");
  }
  for (size_t j = 0; j < d; ++j) {
    check(factors.data()[j] >= 0, "factors must be >= 0");
    check(lower.data()[j] <= 0 && upper.data()[j] >= 0, "bounds must hold 0: lower <= 0 <= upper");
  }
  return {d, strengths.shape(0), strengths.data(), ratio, factors.data(), lower.data(), upper.data()};
}

auto integers(std::vector<int64_t>&& values, const size_t (&shape)[2]) {
  auto* kept = new std::vector<int64_t>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<int64_t>*>(p); });
  return nb::ndarray<nb::numpy, int64_t, nb::ndim<2>>(kept->data(), 2, shape, owner);
}

nb::object path_py(Cube gram, Matrix moment, Vector square, Vector alphas, double ratio, Vector factors, Vector lower,
                   Vector upper, double tol, size_t max_iter, int threads) {
  check(tol >= 0, "tol must be >= 0");
  check(max_iter >= 1, "max_iter must be >= 1");
  const std::vector<GramSystem> systems = checked_systems(gram, moment, square);
  const PenaltyPath path = checked_path(gram.shape(1), alphas, ratio, factors, lower, upper);
  PathAnswers out = run(threads, [&](Crew& crew) { return gram_lasso_path(systems, path, tol, max_iter, crew); });
  const size_t table[2] = {systems.size(), path.n_strengths};
  const size_t cube[3] = {table[0], table[1], path.n_columns};
  return nb::make_tuple(to_numpy<3>(std::move(out.weights), cube), to_numpy<2>(std::move(out.gaps), table),
                        to_numpy<2>(std::move(out.objectives), table), integers(std::move(out.iterations), table),
                        integers(std::move(out.status), table));
}

nb::object gaps_py(Cube gram, Matrix moment, Vector square, Cube weights, Vector alphas, double ratio, Vector factors,
                   Vector lower, Vector upper, int threads) {
  const std::vector<GramSystem> systems = checked_systems(gram, moment, square);
  const PenaltyPath path = checked_path(gram.shape(1), alphas, ratio, factors, lower, upper);
  const size_t d = path.n_columns, n = path.n_strengths * systems.size();
  check(weights.shape(0) == systems.size() && weights.shape(1) == path.n_strengths && weights.shape(2) == d,
        "weights must be matrices x alphas x columns");
  check(all_finite(weights.data(), n * d), "weights must be finite");
  for (size_t at = 0; at < n * d; ++at)
    check(weights.data()[at] >= path.lower[at % d] && weights.data()[at] <= path.upper[at % d],
          "weights must lie within their bounds");
  PathAnswers out = run(threads, [&](Crew& crew) { return gram_lasso_gaps(systems, path, weights.data(), crew); });
  const size_t table[2] = {systems.size(), path.n_strengths};
  return nb::make_tuple(to_numpy<2>(std::move(out.gaps), table), to_numpy<2>(std::move(out.objectives), table));
}

nb::object alpha_max_py(Cube gram, Matrix moment, Vector square, double ratio, Vector factors, Vector lower,
                        Vector upper, size_t max_iter, int threads) {
  check(max_iter >= 1, "max_iter must be >= 1");
  const std::vector<GramSystem> systems = checked_systems(gram, moment, square);
  const double none = 0;
  const size_t empty[1] = {0};
  const PenaltyPath path =
      checked_path(gram.shape(1), Vector(Vector::Base(&none, 1, empty)), ratio, factors, lower, upper);
  return nb::cast(to_numpy(run(threads, [&](Crew& crew) { return gram_alpha_max(systems, path, max_iter, crew); })));
}

nb::object step_py(Matrix gram, Vector slope, Vector weights, double square, Vector l1, Vector lower, Vector upper,
                   size_t max_iter, int threads) {
  const size_t d = gram.shape(0);
  check(gram.shape(1) == d, "gram must be columns x columns");
  check_size("slope", slope.shape(0), d);
  check_size("weights", weights.shape(0), d);
  check_size("l1", l1.shape(0), d);
  check_size("lower", lower.shape(0), d);
  check_size("upper", upper.shape(0), d);
  check(max_iter >= 1, "max_iter must be >= 1");
  check(all_finite(gram.data(), d * d) && all_finite(slope.data(), d), "gram and slope must be finite");
  check(square >= 0 && std::isfinite(square), "square must be >= 0");
  std::vector<Penalty> penalty(d);
  for (size_t j = 0; j < d; ++j) {
    penalty[j] = {l1.data()[j], 0, lower.data()[j], upper.data()[j]};
    check(penalty[j].l1 >= 0, "l1 must be >= 0");
    check(penalty[j].lower <= 0 && penalty[j].upper >= 0, "bounds must hold 0: lower <= 0 <= upper");
    check(weights.data()[j] >= penalty[j].lower && weights.data()[j] <= penalty[j].upper,
          "weights must lie within their bounds");
  }
  StepAnswer out = run(threads, [&](Crew& crew) {
    return gram_lasso_step(d, gram.data(), slope.data(), weights.data(), square, penalty, max_iter, crew);
  });
  return nb::make_tuple(to_numpy(std::move(out.weights)), out.iterations, static_cast<int64_t>(out.status));
}

}  // namespace

void bind_coordinate(nb::module_& m) {
  m.def("gram_lasso_path", path_py, "gram"_a.noconvert(), "moment"_a.noconvert(), "square"_a.noconvert(),
        "alphas"_a.noconvert(), "ratio"_a, "factors"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(),
        "tol"_a, "max_iter"_a, "threads"_a);
  m.def("gram_lasso_gaps", gaps_py, "gram"_a.noconvert(), "moment"_a.noconvert(), "square"_a.noconvert(),
        "weights"_a.noconvert(), "alphas"_a.noconvert(), "ratio"_a, "factors"_a.noconvert(), "lower"_a.noconvert(),
        "upper"_a.noconvert(), "threads"_a);
  m.def("gram_alpha_max", alpha_max_py, "gram"_a.noconvert(), "moment"_a.noconvert(), "square"_a.noconvert(), "ratio"_a,
        "factors"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(), "max_iter"_a, "threads"_a);
  m.def("gram_lasso_step", step_py, "gram"_a.noconvert(), "slope"_a.noconvert(), "weights"_a.noconvert(), "square"_a,
        "l1"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(), "max_iter"_a, "threads"_a);
}

}  // namespace certifit
