// Rows of two classes as a tree of a forest moves them: the bins of all columns, how often the row was drawn and its
// class lie side by side, and rows of a node lie one after the other. Counts are whole numbers, so the order of the
// rows of a node is nothing.
#pragma once

#include <bit>
#include <cstring>
#include <vector>

#include "histogram.hpp"

namespace certifit {

// Rows, draws, and draws of the second class: 21 bits each.
struct DrawCounts {
  uint64_t word;
  DrawCounts& operator+=(const DrawCounts& other) {
    word += other.word;
    return *this;
  }
};

struct DrawCountsRead {
  static constexpr int bits = 21;
  static constexpr uint64_t mask = (uint64_t{1} << bits) - 1;
  double sum(const DrawCounts& cell) const { return number(cell.word >> (2 * bits)); }
  double mass(const DrawCounts& cell) const { return number((cell.word >> bits) & mask); }
  size_t rows(const DrawCounts& cell) const { return cell.word & mask; }

 private:
  // Of a number below 2^52: its bits are the last ones of 2^52 + it. No AVX2 instruction converts 64 bits.
  static double number(uint64_t whole) { return std::bit_cast<double>(whole | 0x4330000000000000ULL) - 0x1p52; }
};

// Bins that a node has rows in, in ascending order.
struct MetBins {
  uint8_t bins[n_bins];
  size_t n = 0;
};

// Rows before they are drawn, row after row: shared by all trees.
class RecordTable {
 public:
  static constexpr size_t most_columns = 62, chunk = 16;

  // Empty where y is no class of two, and where records would be too long to be moved about.
  RecordTable(const BinnedColumns& bins, const double* y, Crew& crew)
      : n_rows_(bins.n_rows), stride_((bins.n_columns + 2 + chunk - 1) / chunk * chunk) {
    if (!y || bins.n_columns > most_columns) return;
    bytes_.resize(n_rows_ * stride_);
    constexpr size_t block_rows = 4096;
    crew.for_each_block((n_rows_ + block_rows - 1) / block_rows, [&](size_t block) {
      const size_t begin = block * block_rows, end = std::min(n_rows_, begin + block_rows);
      for (size_t j = 0; j < bins.n_columns; ++j)
        for (size_t i = begin; i < end; ++i) bytes_[i * stride_ + j] = bins.column(j)[i];
      for (size_t i = begin; i < end; ++i) bytes_[(i + 1) * stride_ - 1] = y[i] != 0;
    });
  }
  bool is_empty() const { return bytes_.empty(); }
  size_t n_rows() const { return n_rows_; }
  size_t stride() const { return stride_; }
  const uint8_t* row(size_t i) const { return bytes_.data() + i * stride_; }

 private:
  size_t n_rows_, stride_;
  std::vector<uint8_t> bytes_;
};

// The drawn rows of one tree.
class Records {
 public:
  static constexpr size_t most_at_once = 8;  // columns

  // False where a count of the draws needs more bits.
  bool draw(const RecordTable& table, const std::vector<uint32_t>& draws) {
    stride_ = table.stride();
    size_t n = 0, total = 0, most = 0;
    for (const uint32_t count : draws) {
      n += count > 0;
      total += count;
      most = std::max<size_t>(most, count);
    }
    if (most > 255 || total > DrawCountsRead::mask) return false;
    n_rows_ = n;
    bytes_.resize(n * stride_);
    uint8_t* to = bytes_.data();
    for (size_t i = 0; i < table.n_rows(); ++i) {
      if (draws[i] == 0) continue;
      std::memcpy(to, table.row(i), stride_);
      to[stride_ - 2] = static_cast<uint8_t>(draws[i]);
      to += stride_;
    }
    return true;
  }

  size_t n_rows() const { return n_rows_; }
  size_t stride() const { return stride_; }
  const uint8_t* row(size_t i) const { return at(i); }

  DrawCounts sum(size_t begin, size_t end) const {
    DrawCounts all{};
    for (const uint8_t* row = at(begin); row != at(end); row += stride_) all += term(row);
    return all;
  }

  // Counts of some columns of the rows of a node, and the bins that they have rows in. cells: n_bins for each column,
  // all of them empty.
  void add(size_t begin, size_t end, const size_t* columns, size_t n_columns, DrawCounts* cells, MetBins* met) const {
    with_number<most_at_once>(n_columns, [&](auto n) { add_some<n.value>(begin, end, columns, cells, met); });
  }

  // Rows of the left side first; what these count.
  DrawCounts part(size_t begin, size_t end, size_t column, const bool* goes_left) {
    scratch_.resize(std::max(scratch_.size(), (end - begin) * stride_));
    DrawCounts counts{};
    with_number<n_chunks_of_most>(stride_ / RecordTable::chunk,
                                  [&](auto n) { counts = part_some<n.value>(begin, end, column, goes_left); });
    return counts;
  }

 private:
  static constexpr size_t few_rows = 256;  // below it bins are marked as they are met, above it all are looked at
  static constexpr size_t n_chunks_of_most = (RecordTable::most_columns + 2) / RecordTable::chunk;

  // f of a number from 1 to `most` that the compiler knows.
  template <size_t most, class F>
  static void with_number(size_t n, F f) {
    if constexpr (most > 0) {
      if (n == most) return f(std::integral_constant<size_t, most>{});
      with_number<most - 1>(n, f);
    }
  }

  template <size_t n_columns>
  void add_some(size_t begin, size_t end, const size_t* columns, DrawCounts* cells, MetBins* met) const {
    size_t column[n_columns];
    std::copy_n(columns, n_columns, column);
    if (end - begin >= few_rows) {
      for (const uint8_t* row = at(begin); row != at(end); row += stride_) {
        const DrawCounts one = term(row);
        for (size_t k = 0; k < n_columns; ++k) cells[k * n_bins + row[column[k]]] += one;
      }
      for (size_t k = 0; k < n_columns; ++k) {
        size_t n = 0;
        for (size_t bin = 0; bin < n_bins; ++bin) {
          met[k].bins[n] = static_cast<uint8_t>(bin);
          n += cells[k * n_bins + bin].word != 0;
        }
        met[k].n = n;
      }
      return;
    }
    uint64_t seen[n_columns][4] = {};
    for (const uint8_t* row = at(begin); row != at(end); row += stride_) {
      const DrawCounts one = term(row);
      for (size_t k = 0; k < n_columns; ++k) {
        const uint8_t code = row[column[k]];
        cells[k * n_bins + code] += one;
        seen[k][code >> 6] |= uint64_t{1} << (code & 63);
      }
    }
    for (size_t k = 0; k < n_columns; ++k) {
      size_t n = 0;
      for (size_t word = 0; word < 4; ++word)
        for (uint64_t left = seen[k][word]; left != 0; left &= left - 1)
          met[k].bins[n++] = static_cast<uint8_t>(64 * word + static_cast<size_t>(std::countr_zero(left)));
      met[k].n = n;
    }
  }

  template <size_t n_chunks>
  DrawCounts part_some(size_t begin, size_t end, size_t column, const bool* goes_left) {
    constexpr size_t stride = n_chunks * RecordTable::chunk;
    uint8_t *left = at(begin), *right = scratch_.data();
    DrawCounts counts{};
    for (const uint8_t *row = left, *last = at(end); row != last; row += stride) {
      const uint64_t is_left = goes_left[row[column]];
      counts.word += term(row).word & -is_left;
      uint64_t whole[stride / 8];
      std::memcpy(whole, row, stride);
      std::memcpy(left, whole, stride);
      std::memcpy(right, whole, stride);
      left += stride & -is_left;
      right += stride & (is_left - 1);
    }
    std::memcpy(left, scratch_.data(), static_cast<size_t>(right - scratch_.data()));
    return counts;
  }

  const uint8_t* at(size_t row) const { return bytes_.data() + row * stride_; }
  uint8_t* at(size_t row) { return bytes_.data() + row * stride_; }
  DrawCounts term(const uint8_t* row) const {
    const uint64_t draws = row[stride_ - 2], second = row[stride_ - 1];
    return {1 | (draws << DrawCountsRead::bits) | ((second * draws) << (2 * DrawCountsRead::bits))};
  }

  size_t stride_ = 0, n_rows_ = 0;
  std::vector<uint8_t> bytes_, scratch_;
};

}  // namespace certifit
