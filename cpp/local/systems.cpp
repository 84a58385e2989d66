// The normal equations at every query, summed again from the rows in plain loops: nothing here is shared with the fits.
#include <cmath>

#include "fits.hpp"

namespace certifit {
namespace {

constexpr size_t queries_at_once = 8;

// 1 and the terms of row i, about the query.
void terms(const LocalRows& rows, const double* query, size_t i, double* phi) {
  phi[0] = 1;
  if (rows.has_basis()) {
    for (size_t j = 0; j < rows.n_columns; ++j) phi[1 + j] = rows.columns[i * rows.n_columns + j];
    return;
  }
  if (rows.degree == 0) return;
  for (size_t j = 0; j < rows.d; ++j) phi[1 + j] = rows.points[i * rows.d + j] - query[j];
  if (rows.degree == 1) return;
  size_t term = 1 + rows.d;
  for (size_t j = 0; j < rows.d; ++j)
    for (size_t k = j; k < rows.d; ++k) phi[term++] = phi[1 + j] * phi[1 + k];
}

double distance(const LocalRows& rows, const double* query, size_t i) {
  double square = 0;
  for (size_t j = 0; j < rows.d; ++j) {
    const double u = rows.points[i * rows.d + j] - query[j];
    square += u * u;
  }
  return square;
}

double weight_of(LocalWeight kind, double square, double tau) {
  if (kind == LocalWeight::gaussian) return std::exp(-square / (2 * tau * tau));
  const double u = std::sqrt(square) / tau;
  return u < 1 ? std::pow(1 - u * u * u, 3) : 0.0;
}

}  // namespace

LocalSystems local_systems(const LocalRows& rows, const LocalQueries& queries, LocalWeight kind, double tau,
                           const double* coefficients, Crew& crew) {
  const size_t m = queries.m, p = rows.n_terms() + 1;
  LocalSystems systems{std::vector<double>(m), std::vector<double>(m * p * p)};
  crew.for_each_block((m + queries_at_once - 1) / queries_at_once, [&](size_t block) {
    std::vector<double> phi(p), gradient(p), size(p);
    for (size_t k = block * queries_at_once; k < std::min(m, (block + 1) * queries_at_once); ++k) {
      if (!crew.keep_going()) return;
      const double *query = queries.points + k * rows.d, *theta = coefficients + k * p;
      double* M = &systems.matrix[k * p * p];
      std::fill(gradient.begin(), gradient.end(), 0.0);
      double of_y = 0;
      for (size_t i = 0; i < rows.n; ++i) {
        const double at = kind == LocalWeight::given ? queries.weights[k * rows.n + i]
                                                     : weight_of(kind, distance(rows, query, i), tau);
        const double w = at * rows.weight[i];
        if (w == 0) continue;
        terms(rows, query, i, phi.data());
        double residual = rows.y[i];
        for (size_t j = 0; j < p; ++j) residual -= theta[j] * phi[j];
        of_y += w * rows.y[i] * rows.y[i];
        for (size_t j = 0; j < p; ++j) {
          gradient[j] += w * phi[j] * residual;
          for (size_t l = 0; l <= j; ++l) M[j * p + l] += w * phi[j] * phi[l];
        }
      }
      double scale = std::sqrt(of_y), worst = 0;
      for (size_t j = 0; j < p; ++j) {
        size[j] = std::sqrt(M[j * p + j]);
        scale += std::fabs(theta[j]) * size[j];
      }
      for (size_t j = 0; j < p; ++j) {
        const double allowed = size[j] * scale;
        if (std::fabs(gradient[j]) > 0) worst = std::max(worst, std::fabs(gradient[j]) / allowed);
        if (!(std::isfinite(gradient[j]))) worst = INFINITY;
        for (size_t l = 0; l <= j; ++l) {
          const double unit = size[j] * size[l];
          M[j * p + l] = M[l * p + j] = unit > 0 ? M[j * p + l] / unit : 0.0;
        }
      }
      systems.residual[k] = worst;
    }
  });
  return systems;
}

}  // namespace certifit
