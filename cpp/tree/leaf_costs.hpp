// What the four leaves of two splits cost, from a table of sums: 0-1 loss and squared error.
#pragma once

#include <limits>

#include "grid.hpp"

namespace certifit {

// What leaves cost, from the sums of a table: planes of n_a x n_b numbers, summed up from the corner.
template <class S>
struct Quadrants {
  S q00[256], q01[256], q10[256], q11[256];
};

template <class S>
struct TableShape {
  const S* sums;
  size_t n_a, n_b, n_planes;
  const S* plane(size_t c, size_t i) const { return sums + (c * n_a + i) * n_b; }
};

// 0-1 loss: all weight of a leaf but that of its heaviest class.
template <class S>
struct Errors {
  using Sum = S;
  static size_t n_planes(const GridRows<S>& all) { return all.n_classes; }
  static void add(S* sums, size_t size, size_t cell, const Subset<S>& part, size_t k) {
    sums[part.label[k] * size + cell] += part.weight[k];
  }
  static double offset(const Subset<S>&) { return 0; }
  static void quadrants(const TableShape<S>& table, size_t i, double, Quadrants<S>& q) {
    if (table.n_planes == 2) return of_two(table, i, q);
    const size_t n_b = table.n_b;
    S all00[256] = {}, all10[256] = {}, all0 = 0, all1 = 0;
    for (size_t j = 0; j < n_b; ++j) q.q00[j] = q.q01[j] = q.q10[j] = q.q11[j] = 0;
    for (size_t c = 0; c < table.n_planes; ++c) {
      const S *up = table.plane(c, i), *whole = table.plane(c, table.n_a - 1);
      const S up_all = up[n_b - 1], down_all = whole[n_b - 1] - up_all;
      all0 += up_all;
      all1 += down_all;
      for (size_t j = 0; j < n_b; ++j) {
        const S down = whole[j] - up[j];
        q.q00[j] = std::max(q.q00[j], up[j]);
        q.q01[j] = std::max(q.q01[j], up_all - up[j]);
        q.q10[j] = std::max(q.q10[j], down);
        q.q11[j] = std::max(q.q11[j], down_all - down);
        all00[j] += up[j];
        all10[j] += down;
      }
    }
    for (size_t j = 0; j < n_b; ++j) {
      q.q00[j] = all00[j] - q.q00[j];
      q.q01[j] = all0 - all00[j] - q.q01[j];
      q.q10[j] = all10[j] - q.q10[j];
      q.q11[j] = all1 - all10[j] - q.q11[j];
    }
  }

 private:
  static void of_two(const TableShape<S>& table, size_t i, Quadrants<S>& q) {
    const size_t n_b = table.n_b;
    const S *p = table.plane(0, i), *r = table.plane(1, i);
    const S *P = table.plane(0, table.n_a - 1), *R = table.plane(1, table.n_a - 1);
    const S p_all = p[n_b - 1], r_all = r[n_b - 1], P_all = P[n_b - 1] - p_all, R_all = R[n_b - 1] - r_all;
    for (size_t j = 0; j < n_b; ++j) {
      const S u = P[j] - p[j], v = R[j] - r[j];
      q.q00[j] = std::min(p[j], r[j]);
      q.q01[j] = std::min<S>(p_all - p[j], r_all - r[j]);
      q.q10[j] = std::min(u, v);
      q.q11[j] = std::min<S>(P_all - u, R_all - v);
    }
  }
};

// Squared error without the sum of squares, which all trees share: -(sum w y)^2 / sum w of a leaf.
struct Squares {
  using Sum = double;
  static size_t n_planes(const GridRows<double>&) { return 2; }
  static void add(double* sums, size_t size, size_t cell, const Subset<double>& part, size_t k) {
    sums[cell] += part.weight[k];
    sums[size + cell] += part.moment[k];
  }
  static double offset(const Subset<double>& part) { return part.squares; }
  // A leaf of less than half of the least weight is empty: its sums are what rounding left.
  static double cost(double mass, double sum, double half) {
    return -sum * sum / (mass > half ? mass : std::numeric_limits<double>::max());
  }
  static void quadrants(const TableShape<double>& table, size_t i, double half, Quadrants<double>& q) {
    const size_t n_b = table.n_b;
    const double *p = table.plane(0, i), *r = table.plane(1, i);
    const double *P = table.plane(0, table.n_a - 1), *R = table.plane(1, table.n_a - 1);
    const double p_all = p[n_b - 1], r_all = r[n_b - 1], P_all = P[n_b - 1] - p_all, R_all = R[n_b - 1] - r_all;
    for (size_t j = 0; j < n_b; ++j) {
      const double u = P[j] - p[j], v = R[j] - r[j];
      q.q00[j] = cost(p[j], r[j], half);
      q.q01[j] = cost(p_all - p[j], r_all - r[j], half);
      q.q10[j] = cost(u, v, half);
      q.q11[j] = cost(P_all - u, R_all - v, half);
    }
  }
};

}  // namespace certifit
