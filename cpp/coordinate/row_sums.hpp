// Sums of multiples of rows, four rows at a time: what Gram products and triangular solves are made of.
#pragma once

#include "../simd.hpp"

namespace certifit {

// y -= x_0 rows_0 + x_1 rows_1 + x_2 rows_2 + x_3 rows_3, all of length n.
inline void subtract_rows(double* __restrict y, const double* const (&rows)[4], const double (&x)[4], size_t n) {
  const Vec x0 = broadcast(-x[0]), x1 = broadcast(-x[1]), x2 = broadcast(-x[2]), x3 = broadcast(-x[3]);
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    Vec sum = multiply_add(x0, load(rows[0] + j), load(y + j));
    sum = multiply_add(x1, load(rows[1] + j), sum);
    sum = multiply_add(x2, load(rows[2] + j), sum);
    store(y + j, multiply_add(x3, load(rows[3] + j), sum));
  }
  for (; j < n; ++j)
    for (size_t r = 0; r < 4; ++r) y[j] = multiply_add(-x[r], rows[r][j], y[j]);
}

inline void subtract_row(double* __restrict y, const double* __restrict row, double x, size_t n) {
  const Vec times = broadcast(-x);
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) store(y + j, multiply_add(times, load(row + j), load(y + j)));
  for (; j < n; ++j) y[j] = multiply_add(-x, row[j], y[j]);
}

// products[r] = rows_r ' x
inline void dot_rows(double (&products)[4], const double* const (&rows)[4], const double* x, size_t n) {
  Vec sum[4] = {};
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const Vec xs = load(x + j);
    for (size_t r = 0; r < 4; ++r) sum[r] = multiply_add(load(rows[r] + j), xs, sum[r]);
  }
  for (size_t r = 0; r < 4; ++r) products[r] = (sum[r][0] + sum[r][1]) + (sum[r][2] + sum[r][3]);
  for (; j < n; ++j)
    for (size_t r = 0; r < 4; ++r) products[r] = multiply_add(rows[r][j], x[j], products[r]);
}

inline double dot(const double* a, const double* b, size_t n) {
  Vec sum{};
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) sum = multiply_add(load(a + j), load(b + j), sum);
  double product = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  for (; j < n; ++j) product = multiply_add(a[j], b[j], product);
  return product;
}

}  // namespace certifit
