// Histograms of whole numbers. What a row adds to the cells of its bins is rounded once, to multiples of a power of
// two; from there on sums and differences are exact, so neither threads, nor the order of rows, nor which of two
// children is summed and which is what remains of the parent changes a bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "bins.hpp"

namespace certifit {

// sum: of the first number of rows; mass: of the second, above the bits that count rows. Sums keep within 62 bits, and
// those of a call whose units are not of its rows wrap around.
struct Cell {
  int64_t sum;
  uint64_t mass;
  Cell& operator+=(const Cell& other) {
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(other.sum));
    mass += other.mass;
    return *this;
  }
  Cell operator-(const Cell& other) const {
    return {static_cast<int64_t>(static_cast<uint64_t>(sum) - static_cast<uint64_t>(other.sum)), mass - other.mass};
  }
};

// Rows of weight 1 in two classes: how many there are below, and how many of them are of the second class above.
struct Counts {
  uint64_t word;
  Counts& operator+=(const Counts& other) {
    word += other.word;
    return *this;
  }
  Counts operator-(const Counts& other) const { return {word - other.word}; }
};

struct CountsRead {
  double sum(const Counts& cell) const { return static_cast<double>(cell.word >> 32); }
  double mass(const Counts& cell) const { return static_cast<double>(rows(cell)); }
  size_t rows(const Counts& cell) const { return cell.word & 0xffffffffu; }
};

// Sums of |a| and of b over rows, one after the other, begun at what rows before them gave.
struct PackedSizes {
  double a = 0, b = 0;
  void add(double of_a, double of_b) {
    a += std::fabs(of_a);
    b += std::max(of_b, 0.0);
  }
};

// The numbers of rows as whole ones: sums of |a| and of b over all rows keep within 62 bits, and within those that the
// count leaves.
class PackedUnits {
 public:
  PackedUnits(const PackedSizes& all, size_t n_drawn)
      : count_bits_(static_cast<int>(std::bit_width(n_drawn))), mask_((uint64_t{1} << count_bits_) - 1) {
    is_legal_ = std::isfinite(all.a) && std::isfinite(all.b);
    // A row is rounded by half a unit at most: one bit of room is enough for as many rows as are counted.
    up_a_ = is_legal_ && all.a > 0 ? std::ldexp(1.0, std::min(61 - std::ilogb(all.a), 1000)) : 0.0;
    up_b_ = is_legal_ && all.b > 0 ? std::ldexp(1.0, std::min(62 - count_bits_ - std::ilogb(all.b), 1000)) : 0.0;
  }

  bool is_legal() const { return is_legal_; }
  Cell term(double a, double b) const {
    return {nearest(a * up_a_), (static_cast<uint64_t>(nearest(std::max(b, 0.0) * up_b_)) << count_bits_) | 1};
  }
  double count(const Cell& cell) const { return static_cast<double>(cell.mass & mask_); }
  size_t rows(const Cell& cell) const { return cell.mass & mask_; }
  double sum(const Cell& cell) const { return static_cast<double>(cell.sum); }  // in units
  double mass(const Cell& cell) const { return static_cast<double>(static_cast<int64_t>(cell.mass >> count_bits_)); }
  double sum_unit() const { return up_a_ > 0 ? 1 / up_a_ : 0.0; }
  double mass_unit() const { return up_b_ > 0 ? 1 / up_b_ : 0.0; }

 private:
  static int64_t nearest(double x) { return static_cast<int64_t>(x < 0 ? x - 0.5 : x + 0.5); }

  int count_bits_;
  uint64_t mask_;
  bool is_legal_;
  double up_a_, up_b_;
};

// Numbers whose sum of sizes is known, as whole ones that keep within 62 bits.
class WholeUnit {
 public:
  explicit WholeUnit(double sizes)
      : up_(std::isfinite(sizes) && sizes > 0 ? std::ldexp(1.0, std::min(61 - std::ilogb(sizes), 1000)) : 0.0) {}
  int64_t whole(double x) const {
    return up_ > 0 && std::fabs(x) * up_ < 0x1p62 ? static_cast<int64_t>(std::round(x * up_)) : 0;
  }
  double number(int64_t whole) const { return up_ > 0 ? static_cast<double>(whole) / up_ : 0.0; }

 private:
  double up_;
};

// Unsigned: what is beyond 64 bits wraps, as for cells one by one.
typedef uint64_t TwoWords __attribute__((vector_size(16), aligned(8), may_alias));

// Adds n rows to the cells of the columns that are tried: those of `order`, or those from `begin` on where it is null.
// Rows: anything with codes row after row, and the columns that are tried. first: where the cells of each begin.
template <class Rows>
void add_packed(const Rows& rows, const Cell* terms, const uint32_t* order, size_t begin, size_t n,
                const uint32_t* first, Cell* cells) {
  constexpr size_t ahead = 16;
  const size_t n_tried = rows.columns.n_tried;
  const uint32_t* columns = rows.columns.tried;
  size_t n_near = 0;  // columns that stand side by side from the first on: codes of eight are read at once
  while (n_near < n_tried && columns[n_near] == n_near) ++n_near;
  for (size_t i = 0; i < n; ++i) {
    const size_t row = order ? order[i] : begin + i;
    if (order && i + ahead < n) {
      __builtin_prefetch(rows.codes + order[i + ahead] * rows.n_columns);
      __builtin_prefetch(terms + order[i + ahead]);
    }
    const uint8_t* code = rows.codes + row * rows.n_columns;
    const TwoWords term = *reinterpret_cast<const TwoWords*>(terms + row);
    size_t k = 0;
    for (; k + 8 <= n_near; k += 8) {
      uint64_t eight;
      std::memcpy(&eight, code + k, 8);
      for (size_t j = 0; j < 8; ++j, eight >>= 8)
        *reinterpret_cast<TwoWords*>(cells + first[k + j] + (eight & 255)) += term;
    }
    for (; k + 4 <= n_tried; k += 4) {
      *reinterpret_cast<TwoWords*>(cells + first[k] + code[columns[k]]) += term;
      *reinterpret_cast<TwoWords*>(cells + first[k + 1] + code[columns[k + 1]]) += term;
      *reinterpret_cast<TwoWords*>(cells + first[k + 2] + code[columns[k + 2]]) += term;
      *reinterpret_cast<TwoWords*>(cells + first[k + 3] + code[columns[k + 3]]) += term;
    }
    for (; k < n_tried; ++k) *reinterpret_cast<TwoWords*>(cells + first[k] + code[columns[k]]) += term;
  }
}

}  // namespace certifit
