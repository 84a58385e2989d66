// Systems, penalties, and what is asked of many matrices at once.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "coordinate_solver.hpp"
#include "row_sums.hpp"

namespace certifit {

GramSystem::GramSystem(size_t n, const double* g, const double* c, double yy)
    : n_columns(n), gram(g), moment(c), square(yy), diagonal(n), is_dead(n) {
  constexpr double slack = 1 + 1e-6;
  for (size_t j = 0; j < n; ++j) {
    diagonal[j] = g[j * n + j];
    // c_j beyond |x_j||y| is rounding too.
    is_dead[j] = !(diagonal[j] > 0) || c[j] * c[j] > slack * diagonal[j] * yy;
  }
}

double ColumnPenalty::coordinate_minimum(double z, double square) const {
  const double soft = z > l1 ? z - l1 : (z < -l1 ? z + l1 : 0);
  return std::clamp(soft / (square + l2), lower, upper);
}

std::vector<ColumnPenalty> PenaltyPath::at(double strength) const {
  std::vector<ColumnPenalty> columns(n_columns);
  for (size_t j = 0; j < n_columns; ++j)
    columns[j] = {strength * ratio * factors[j], strength * (1 - ratio) * factors[j], lower[j], upper[j]};
  return columns;
}

void correlations(const GramSystem& system, const double* w, double* q) {
  const size_t d = system.n_columns;
  std::copy(system.moment, system.moment + d, q);
  const double* rows[4];
  double times[4];
  size_t held = 0;
  for (size_t j = 0; j < d; ++j) {
    if (w[j] == 0) continue;
    rows[held] = system.column(j);
    times[held++] = w[j];
    if (held < 4) continue;
    subtract_rows(q, rows, times, d);
    held = 0;
  }
  for (size_t r = 0; r < held; ++r) subtract_row(q, rows[r], times[r], d);
}

PathAnswers gram_lasso_path(const std::vector<GramSystem>& systems, const PenaltyPath& path, double tol,
                            size_t max_iter, Crew& crew) {
  const size_t n = path.n_strengths, d = path.n_columns, all = systems.size() * n;
  PathAnswers out{std::vector<double>(all * d), std::vector<double>(all), std::vector<double>(all),
                  std::vector<int64_t>(all), std::vector<int64_t>(all)};
  crew.for_each_block(systems.size(), [&](size_t matrix) {
    PathSolver solver(systems[matrix], tol, max_iter, crew);
    for (size_t a = 0; a < n; ++a) {
      solver.solve(path.at(path.strengths[a]));
      const size_t at = matrix * n + a;
      std::copy(solver.weights().begin(), solver.weights().end(), out.weights.data() + at * d);
      out.gaps[at] = solver.certified().gap;
      out.objectives[at] = solver.certified().objective;
      out.iterations[at] = static_cast<int64_t>(solver.iterations());
      out.status[at] = static_cast<int64_t>(solver.status());
    }
  });
  return out;
}

std::vector<double> gram_alpha_max(const std::vector<GramSystem>& systems, const PenaltyPath& path, size_t max_iter,
                                   Crew& crew) {
  std::vector<ColumnPenalty> unpenalised(path.n_columns);
  for (size_t j = 0; j < path.n_columns; ++j)
    if (path.factors[j] == 0) unpenalised[j] = {0, 0, path.lower[j], path.upper[j]};
  std::vector<double> out(systems.size());
  crew.for_each_block(systems.size(), [&](size_t matrix) {
    const GramSystem& system = systems[matrix];
    PathSolver solver(system, 0, max_iter, crew);
    solver.solve(unpenalised);
    if (solver.status() == PathStatus::max_iter || solver.status() == PathStatus::not_gram)
      throw std::runtime_error("no alpha_max for matrix " + std::to_string(matrix) +
                               ": its unpenalised columns were not solved. Raise max_iter, or check the matrix");
    for (size_t j = 0; j < path.n_columns; ++j) {
      const double q = solver.q()[j];
      if (path.factors[j] == 0 || system.is_dead[j] || (q > 0 ? path.upper[j] : path.lower[j]) == 0) continue;
      out[matrix] = std::max(out[matrix], std::fabs(q) / (path.ratio * path.factors[j]));
    }
  });
  return out;
}

PathAnswers gram_lasso_gaps(const std::vector<GramSystem>& systems, const PenaltyPath& path, const double* weights,
                            Crew& crew) {
  const size_t n = path.n_strengths, d = path.n_columns, all = systems.size() * n;
  PathAnswers out{{}, std::vector<double>(all), std::vector<double>(all), {}, {}};
  crew.for_each_block(systems.size(), [&](size_t matrix) {
    GapCertifier certifier(systems[matrix], crew);
    std::vector<double> q(d);
    for (size_t at = matrix * n; at < (matrix + 1) * n; ++at) {
      correlations(systems[matrix], weights + at * d, q.data());
      const Certified certified =
          certifier.certify(path.at(path.strengths[at - matrix * n]), weights + at * d, q.data());
      out.gaps[at] = certified.gap;
      out.objectives[at] = certified.objective;
    }
  });
  return out;
}

}  // namespace certifit
