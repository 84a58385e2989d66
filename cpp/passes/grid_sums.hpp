// Residual sums of dense rows on a grid: the same twofold sums as in residual.cpp with half the operations.
//
// A sum of n products begins at acc = 1.5 * 2^k with 2 S < 2^k <= 4 S, S at least the sum of |a b| over all of them. No
// partial sum leaves [2^k, 2^(k+1)), so acc is always a multiple of 2^(k-52), and with next = fma(a, b, acc)
//
//     next - acc               is exact: a multiple of 2^(k-52) below 2^k,
//     fma(a, b, -(next - acc)) is what the step lost, at most 2^(k-53), itself rounded by 2^(k-106) at most,
//
// and `low` adds these up: four operations per product where a twofold sum takes eleven. After i products
// |low| <= i 2^(k-53), so the error is at most (n + n^2 / 2) 2^(k-106) <= (n + n^2 / 2) 2^-104 S.
//
// Scores: n = columns / 4 per lane, S the row's own sum of |x_j w_j|, four lanes, the highs of which add exactly and
// the lows with at most 12 n 2^(k-106):
//     |error of r_i| <= (2 n^2 + 16 n) 2^-104 S_i.
// Gradient: t = 16 rows of a tile, a column to a lane, S = max_i |x_ij| sum_i |r_i| <= sqrt(t) |x_j| |r| over the tile,
// two additions to `low` per row, as |x_ij| times the low part of r_i, 2^-53 S at most in sum, is one of them, and 3 t
// for adding the tile to the block:
//     |error| <= (1.25 t (t + 1) + 4 t) 2^-104 S <= 2^-93.3 |x_j| |r|, and over all tiles the same by Cauchy and
//     Schwarz.
// The unit of residuals is 2^-104 times the rows of a block (`twofold_unit` in statistics/residual.py): 2^-92 for 4,096
// rows. `is_for` asks for so many and for 8 n^2 + 64 n <= rows, so scores take a quarter of it and the gradient 0.4.
// What is added per four rows or per tile (squares, totals, tiles to the block) is normalised every time: 2^-104 of the
// larger of both per addition.
#pragma once

#include <bit>
#include <cstdint>

#include "../tile.hpp"
#include "../twofold.hpp"

namespace certifit {

#if CERTIFIT_HAS_FMA

inline constexpr size_t grid_rows = 16;  // of a tile

// What one block adds up, lanes apart.
struct GridBlock {
  Twofold<Vec> total, squares;
  Vec magnitude{};
  std::vector<double> hi, lo;  // gradient, four numbers per vector of columns
};

class GridSums {
 public:
  // weights: of the columns as they are read. d >= 4.
  GridSums(const double* weights, size_t d) : d_(d), n_(vectors(d)), weights_(n_ * lanes, 0.0), most_(n_ * lanes) {
    // The last vector begins at column d - 4: columns that the one before it has too weigh nothing there.
    for (size_t j = 0; j < d; ++j) {
      const size_t v = j / lanes;
      weights_[v * lanes + (j - first_column(v))] = weights[j];
    }
  }

  static bool is_for(const Rows& rows, size_t block_rows) {
    const size_t n = vectors(rows.n_dense);
    return rows.thin.empty() && rows.n_dense >= lanes && block_rows >= 4096 && 8 * n * n + 64 * n <= block_rows;
  }

  GridBlock start() const {
    GridBlock block;
    block.hi.assign(n_ * lanes, 0.0);
    block.lo.assign(n_ * lanes, 0.0);
    return block;
  }

  // Adds 16 rows; false, and nothing added, where sizes are so far from 1 that a bound may fail. weight may be null.
  bool add(const Tile& tile, const double* y, const double* weight, double y_scale, double intercept,
           double weight_scale, Ahead& next, GridBlock& block) {
    Twofold<Vec> r[groups];
    Vec size[groups];
    std::fill(most_.begin(), most_.end(), 0.0);
    const size_t lines = lanes * d_ * sizeof(double) / 64 + 1;
    for (size_t g = 0; g < groups; ++g) {
      next.fetch(lines);
      const double* x[lanes];
      for (size_t k = 0; k < lanes; ++k) x[k] = tile.row(g * lanes + k);
      size[g] = sizes(x);
      if (!are_within(size[g], 0x1p-400, 0x1p400)) return false;
      const Vec target = load(y + g * lanes) * broadcast(y_scale);
      r[g] = residuals(x, grid_of(size[g]), target, intercept);
      size[g] += absolute(target);
    }
    alignas(32) double hi[grid_rows], lo[grid_rows];
    Vec sum_of_sizes{};
    Twofold<Vec> weighted[groups];
    Vec w[groups];
    for (size_t g = 0; g < groups; ++g) {
      w[g] = weight ? load(weight + g * lanes) * broadcast(weight_scale) : broadcast(1.0);
      weighted[g] = weight ? times(w[g], r[g]) : r[g];
      store(hi + g * lanes, weighted[g].hi);
      store(lo + g * lanes, weighted[g].lo);
      sum_of_sizes += absolute(weighted[g].hi);
    }
    const double reach = ((sum_of_sizes[0] + sum_of_sizes[1]) + (sum_of_sizes[2] + sum_of_sizes[3])) * above;
    for (size_t v = 0; v < n_; ++v) {
      const Vec most = load(&most_[v * lanes]) * broadcast(reach);
      if (!are_within(most, 0x1p-700, 0x1p700)) return false;
      store(&most_[v * lanes], grid_of(most));
    }
    for (size_t g = 0; g < groups; ++g) {
      const Vec square = r[g].hi * r[g].hi;
      const Vec rest = multiply_add(r[g].hi + r[g].hi, r[g].lo, less(r[g].hi, r[g].hi, square));
      block.squares = plus(block.squares, times(w[g], Twofold<Vec>{square, rest}));
      block.total = plus(block.total, weighted[g]);
      block.magnitude = multiply_add(w[g] * size[g], size[g], block.magnitude);
    }
    size_t v = 0;
    for (; v + 3 <= n_; v += 3) add_gradient<3>(tile, hi, lo, v, block);
    if (v + 2 == n_) add_gradient<2>(tile, hi, lo, v, block);
    if (v + 1 == n_) add_gradient<1>(tile, hi, lo, v, block);
    return true;
  }

  // The gradient's place of column j.
  size_t place(size_t j) const { return j / lanes * lanes + (j - first_column(j / lanes)); }

 private:
  static constexpr size_t groups = grid_rows / lanes;
  static constexpr double above = 1 + 0x1p-40;  // for the roundings of sums of sizes, and of partial sums

  static size_t vectors(size_t d) { return (d + lanes - 1) / lanes; }
  size_t first_column(size_t v) const { return std::min(v * lanes, d_ - lanes); }

  // a b - c with one rounding.
  static Vec less(Vec a, Vec b, Vec c) { return (Vec)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)c); }
  static Vec larger(Vec a, Vec b) { return (Vec)_mm256_max_pd((__m256d)a, (__m256d)b); }

  static bool are_within(Vec a, double low, double high) {
    bool ok = true;
    for (size_t l = 0; l < lanes; ++l) ok &= (a[l] > low || a[l] == 0) && a[l] < high;  // never for a NaN
    return ok;
  }

  // 1.5 * 2^k with 2 size < 2^k <= 4 size: six times the power of two in size; a small one where there is nothing.
  static Vec grid_of(Vec size) {
    typedef long long Bits __attribute__((vector_size(32)));
    constexpr long long exponent = 0x7ff0000000000000LL;
    const Vec power = (Vec)((Bits)size & Bits{exponent, exponent, exponent, exponent});
    return larger(power * broadcast(6.0), broadcast(0x1.8p-700));
  }

  // Lanes of four vectors added: entry k is the sum of the lanes of a[k].
  static Vec folded(const Vec (&a)[lanes]) {
    const __m256d u = _mm256_hadd_pd((__m256d)a[0], (__m256d)a[1]), v = _mm256_hadd_pd((__m256d)a[2], (__m256d)a[3]);
    return (Vec)_mm256_permute2f128_pd(u, v, 0x20) + (Vec)_mm256_permute2f128_pd(u, v, 0x31);
  }

  static Twofold<Vec> times(Vec w, Twofold<Vec> a) {
    const Twofold<Vec> p = two_product(w, a.hi);
    return quick_two_sum(p.hi, multiply_add(w, a.lo, p.lo));
  }
  static Twofold<Vec> plus(Twofold<Vec> a, Twofold<Vec> b) {
    const Twofold<Vec> s = two_sum(a.hi, b.hi);
    return quick_two_sum(s.hi, s.lo + (a.lo + b.lo));
  }

  // sum_j |x_j w_j| of four rows, at least; the largest |x_j| so far is kept.
  Vec sizes(const double* const (&x)[lanes]) {
    Vec sum[lanes] = {};
    for (size_t v = 0; v < n_; ++v) {
      const size_t j = first_column(v);
      const Vec w = absolute(load(&weights_[v * lanes]));
      Vec most = load(&most_[v * lanes]);
#pragma GCC unroll 4
      for (size_t k = 0; k < lanes; ++k) {
        const Vec a = absolute(load(x[k] + j));
        sum[k] = multiply_add(a, w, sum[k]);
        most = larger(most, a);
      }
      store(&most_[v * lanes], most);
    }
    return folded(sum) * broadcast(above);
  }

  Twofold<Vec> residuals(const double* const (&x)[lanes], Vec start, Vec target, double intercept) const {
    Vec acc[lanes], low[lanes];
#pragma GCC unroll 4
    for (size_t k = 0; k < lanes; ++k) acc[k] = broadcast(start[k]), low[k] = Vec{};
    for (size_t v = 0; v < n_; ++v) {
      const size_t j = first_column(v);
      const Vec w = load(&weights_[v * lanes]);
#pragma GCC unroll 4
      for (size_t k = 0; k < lanes; ++k) step(load(x[k] + j), w, acc[k], low[k]);
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < lanes; ++k) acc[k] -= broadcast(start[k]);
    const Twofold<Vec> about = two_sum(target, broadcast(-intercept)), s = two_sum(about.hi, -folded(acc));
    return two_sum(s.hi, (s.lo + about.lo) - folded(low));
  }

  static void step(Vec a, Vec b, Vec& acc, Vec& low) {
    const Vec next = multiply_add(a, b, acc);
    low += less(a, b, next - acc);
    acc = next;
  }

  // For n vectors of columns side by side; most_ holds where their sums begin.
  template <size_t n>
  void add_gradient(const Tile& tile, const double* hi, const double* lo, size_t first, GridBlock& block) {
    Vec acc[n], low[n];
    size_t column[n];
#pragma GCC unroll 3
    for (size_t q = 0; q < n; ++q) {
      acc[q] = load(&most_[(first + q) * lanes]), low[q] = Vec{};
      column[q] = first_column(first + q);
    }
    for (size_t k = 0; k < grid_rows; ++k) {
      const Vec r = broadcast(hi[k]), r_low = broadcast(lo[k]);
      const double* x = tile.row(k);
#pragma GCC unroll 3
      for (size_t q = 0; q < n; ++q) {
        const Vec a = load(x + column[q]);
        step(a, r, acc[q], low[q]);
        low[q] = multiply_add(a, r_low, low[q]);
      }
    }
#pragma GCC unroll 3
    for (size_t q = 0; q < n; ++q) {
      const size_t at = (first + q) * lanes;
      const Twofold<Vec> sum = plus({load(&block.hi[at]), load(&block.lo[at])}, {acc[q] - load(&most_[at]), low[q]});
      store(&block.hi[at], sum.hi);
      store(&block.lo[at], sum.lo);
    }
  }

  size_t d_, n_;
  std::vector<double> weights_, most_;  // most_: largest |x_j| of the tile, then where the sums of its gradient begin
};

#endif

}  // namespace certifit
