#include "coordinate.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "coordinate/solver.hpp"

namespace certifit {

std::vector<Penalty> PenaltyPath::at(double strength) const {
  std::vector<Penalty> columns(n_columns);
  for (size_t j = 0; j < n_columns; ++j)
    columns[j] = {strength * ratio * factors[j], strength * (1 - ratio) * factors[j], lower[j], upper[j]};
  return columns;
}

PathAnswers gram_lasso_path(const std::vector<GramSystem>& systems, const PenaltyPath& path, double tol,
                            size_t max_iter, Crew& crew) {
  const size_t n = path.n_strengths, d = path.n_columns, all = systems.size() * n;
  PathAnswers out{std::vector<double>(all * d), std::vector<double>(all), std::vector<double>(all),
                  std::vector<int64_t>(all), std::vector<int64_t>(all)};
  crew.for_each_block(systems.size(), [&](size_t matrix) {
    PathSolver solver(systems[matrix], crew);
    for (size_t a = 0; a < n; ++a) {
      solver.solve(path.at(path.strengths[a]), tol, max_iter);
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
  std::vector<Penalty> unpenalised(path.n_columns, Penalty{0, 0, 0, 0});  // 0 alone is legal
  for (size_t j = 0; j < path.n_columns; ++j)
    if (path.factors[j] == 0) unpenalised[j] = {0, 0, path.lower[j], path.upper[j]};
  std::vector<double> out(systems.size());
  crew.for_each_block(systems.size(), [&](size_t matrix) {
    const GramSystem& system = systems[matrix];
    PathSolver solver(system, crew);
    solver.solve(unpenalised, 0, max_iter);
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

StepAnswer gram_lasso_step(size_t n_columns, const double* gram, const double* slope, const double* weights,
                           double square, const std::vector<Penalty>& penalty, size_t max_iter, Crew& crew) {
  std::vector<double> moment(n_columns);
  for (size_t j = 0; j < n_columns; ++j) moment[j] = -slope[j];
  const std::vector<double> origin(weights, weights + n_columns);
  GramSystem system{n_columns, n_columns, gram, moment.data(), origin.data(), square};
  system.diagonal.resize(n_columns);
  system.is_dead.resize(n_columns);
  for (size_t j = 0; j < n_columns; ++j) {
    system.diagonal[j] = gram[j * n_columns + j];
    system.is_dead[j] = !(system.diagonal[j] > 0);
  }
  PathSolver solver(system, crew);
  solver.set_weights(origin);
  solver.solve(penalty, 0, max_iter);
  return {solver.weights(), static_cast<int64_t>(solver.iterations()), solver.status()};
}

}  // namespace certifit
