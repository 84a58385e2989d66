#include "system.hpp"

#include <algorithm>

#include "row_sums.hpp"

namespace certifit {

GramSystem gram_system(size_t n, const double* gram, const double* moment, double square) {
  constexpr double slack = 1 + 1e-6;
  GramSystem system{
      n, n, gram, moment, nullptr, square, 1e-14 * 0.5 * square, std::vector<double>(n), std::vector<char>(n)};
  for (size_t j = 0; j < n; ++j) {
    system.diagonal[j] = gram[j * n + j];
    // c_j beyond |x_j||y| is rounding too.
    system.is_dead[j] = !(system.diagonal[j] > 0) || moment[j] * moment[j] > slack * system.diagonal[j] * square;
  }
  return system;
}

void correlations(const GramSystem& system, const double* w, double* q) {
  const size_t d = system.n_columns;
  std::copy(system.moment, system.moment + d, q);
  const double* rows[4];
  double times[4];
  size_t held = 0;
  for (size_t j = 0; j < d; ++j) {
    const double moved = system.moved(w, j);
    if (moved == 0) continue;
    rows[held] = system.column(j);
    times[held++] = moved;
    if (held < 4) continue;
    subtract_rows(q, rows, times, d);
    held = 0;
  }
  for (size_t r = 0; r < held; ++r) subtract_row(q, rows[r], times[r], d);
}

// With v = w - w0:  |r|^2 = square - 2 moment'v + v'Gv  and  Gv = moment - q.
double residual_squares(const GramSystem& system, const double* w, const double* q) {
  double by_moment = 0, by_q = 0;
  for (size_t j = 0; j < system.n_columns; ++j) {
    const double moved = system.moved(w, j);
    by_moment += system.moment[j] * moved;
    by_q += q[j] * moved;
  }
  return std::max(0.0, system.square - by_moment - by_q);
}

}  // namespace certifit
