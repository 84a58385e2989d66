// Rows one at a time, in any order: their dense columns, their entries, and weights of the columns.
#pragma once

#include "passes/entries.hpp"
#include "simd.hpp"
#include "stochastic.hpp"

namespace certifit {

inline constexpr size_t most_fetched = 64;  // entries of a sparse row: of longer ones the processor foresees the rest
inline constexpr size_t ahead_rows =
    6;  // rows asked for before their turn: their order is not one the processor foresees

inline double row_product(const double* x, const double* w, size_t d) {
  Vec sum[2] = {};
  size_t j = 0;
  for (; j + 2 * lanes <= d; j += 2 * lanes) {
    sum[0] = multiply_add(load(x + j), load(w + j), sum[0]);
    sum[1] = multiply_add(load(x + j + lanes), load(w + j + lanes), sum[1]);
  }
  const Vec both = sum[0] + sum[1];
  double total = (both[0] + both[1]) + (both[2] + both[3]);
  for (; j < d; ++j) total = multiply_add(x[j], w[j], total);
  return total;
}

inline void add_multiple(double a, const double* x, double* w, size_t d) {
  size_t j = 0;
  for (; j + lanes <= d; j += lanes) store(w + j, multiply_add(broadcast(a), load(x + j), load(w + j)));
  for (; j < d; ++j) w[j] = multiply_add(a, x[j], w[j]);
}

// Dense columns of single rows, in any order.
class RowReader {
 public:
  RowReader(const Rows& rows, const Order& order) : rows_(rows), order_(order) {}

  const double* at(size_t row) { return read_tile(rows_, row, 1, scratch_).data; }

  // By force: GCC takes a call of a function that only prefetches for one without effect and drops it.
  [[gnu::always_inline]] void fetch(size_t k) const {
    if (!order_.rows || k + ahead_rows >= order_.count) return;
    if (is_one_csr(rows_)) fetch_entries(k);
    if (!rows_.is_plain) return;
    const Segment& s = rows_.dense[0];
    const auto* begin = static_cast<const char*>(s.values) +
                        static_cast<ptrdiff_t>(order_[k + ahead_rows] * sizeof(double)) * s.row_stride;
    for (size_t line = 0; line < s.n_columns * sizeof(double); line += 64) __builtin_prefetch(begin + line, 0, 2);
  }

 private:
  // The entries of the row that comes soon, and the place of those of the row after it; values of 8 bytes at most.
  [[gnu::always_inline]] void fetch_entries(size_t k) const {
    const Segment& s = rows_.thin[0];
    const size_t index_size = s.wide_index ? 8 : 4, value_size = s.dtype == Dtype::f64 ? 8 : 4;
    if (k + 2 * ahead_rows < order_.count)
      __builtin_prefetch(static_cast<const char*>(s.offsets) + order_[k + 2 * ahead_rows] * index_size, 0, 2);
    const auto [begin, end] = s.entries(order_[k + ahead_rows]);
    const auto first = static_cast<size_t>(begin), last = std::min<size_t>(end, first + most_fetched);
    const char *indices = static_cast<const char*>(s.indices), *values = static_cast<const char*>(s.values);
    for (size_t at = first * index_size; at < last * index_size; at += 64) __builtin_prefetch(indices + at, 0, 2);
    for (size_t at = first * value_size; at < last * value_size; at += 64) __builtin_prefetch(values + at, 0, 2);
  }

  const Rows& rows_;
  const Order& order_;
  std::vector<double> scratch_;
};

// Weights of single rows: those of dense columns side by side, the others in place.
class RowWeights {
 public:
  RowWeights(const Rows& rows, std::vector<double>& all) : rows_(rows), all_(all), dense_(of_dense(rows, all.data())) {}

  double times(size_t row, const double* x) const {
    double z = row_product(x, dense_.data(), rows_.n_dense);
    if (is_one_csr(rows_)) return z + times_csr(row);
    if (!rows_.thin.empty())
      for_each_entry(rows_, row, [&](size_t j, double value) { z = multiply_add(value, all_[j], z); });
    return z;
  }

  void add(size_t row, const double* x, double amount) {
    add_multiple(amount, x, dense_.data(), rows_.n_dense);
    if (!rows_.thin.empty())
      for_each_entry(rows_, row, [&](size_t j, double value) { all_[j] = multiply_add(amount, value, all_[j]); });
  }

  void finish() {
    for (size_t j = 0; j < rows_.n_dense; ++j) all_[rows_.dense_columns[j]] = dense_[j];
  }

 private:
  // Four sums side by side: one would wait for every multiply-add before the next.
  double times_csr(size_t row) const {
    const Segment& s = rows_.thin[0];
    double sums[4] = {};
    with_csr(s, [&](const auto* indices, const auto* values) {
      const auto [begin, end] = s.entries(row);
      s.check_columns(indices + begin, static_cast<size_t>(end - begin));
      const double* w = all_.data() + s.first_column;
      int64_t e = begin;
      for (; e + 4 <= end; e += 4)
        for (size_t k = 0; k < 4; ++k) sums[k] = multiply_add(double(values[e + k]), w[indices[e + k]], sums[k]);
      for (; e < end; ++e) sums[0] = multiply_add(double(values[e]), w[indices[e]], sums[0]);
    });
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  const Rows& rows_;
  std::vector<double>& all_;
  std::vector<double> dense_;
};

}  // namespace certifit
