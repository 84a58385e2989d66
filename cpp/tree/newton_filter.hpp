// Which columns may have the best cut of a leaf of few rows: sums of float32 from left to right, eight columns at a
// time. Only columns whose every cut is certainly worth less than one that is known are told apart, nearly all of them.
#pragma once

#include <array>
#include <bit>
#include <cmath>

#include "../simd.hpp"
#include "cuts.hpp"
#include "newton.hpp"

namespace certifit {

class NewtonFilter {
 public:
  static constexpr size_t n_together = 8;
  using Columns = std::array<const uint8_t*, n_together>;  // their rows in the order of their codes

  // The leaf is of n_leaf of n_all rows, those of `order`; sum: of its terms; least: rows of a side.
  NewtonFilter(const PackedUnits& packed, const Cell* terms, const uint32_t* order, size_t n_leaf, size_t n_all,
               const Cell& sum, double ridge, size_t least)
      : n_all_(n_all), n_leaf_(n_leaf), least_(least) {
    double sizes = 0;
    for (size_t i = 0; i < n_leaf; ++i) sizes += std::fabs(packed.sum(terms[order[i]]));
    const double masses = packed.mass(sum) + 2 * ridge;
    // Far from the ends of float64, where worths have lost their digits.
    holds_ = sizes > 0 && masses > 0x1p-100 && masses < 0x1p100 && n_leaf >= 2 * least;
    if (!holds_) return;
    const double a = std::ldexp(1.0, -std::ilogb(sizes) - 1), b = std::ldexp(1.0, -std::ilogb(masses) - 1);
    worth_unit_ = a * a / b;
    sum_ = static_cast<float>(a * packed.sum(sum));
    ridge_ = static_cast<float>(b * ridge);
    mass_ = static_cast<float>(b * (packed.mass(sum) + ridge));
    for (size_t i = 0; i < n_leaf; ++i) {
      const Cell& term = terms[order[i]];
      const float two[] = {static_cast<float>(a * packed.sum(term)), static_cast<float>(b * packed.mass(term))};
      std::memcpy(&of_row_[order[i]], two, sizeof two);
      is_in_leaf_[order[i]] = 1;
    }
  }

  // Of each column, a bit: whether a cut may be worth as much as `worth`, both sides and not less the whole.
  unsigned may_reach(Columns columns, double worth) const {
    constexpr unsigned all = (1u << n_together) - 1;
    const double limit = worth * worth_unit_;
    if (!holds_ || !(limit < 0x1p20)) return all;
    if (n_leaf_ == n_all_) return largest_above(columns, limit);
    std::array<std::array<uint8_t, most_sorted + 1>, n_together> of_leaf{};
    for (size_t j = 0; j < n_together; ++j) {
      keep_leaf(columns[j], of_leaf[j].data());
      columns[j] = of_leaf[j].data();
    }
    return largest_above(columns, limit);
  }

 private:
  typedef float Eight __attribute__((vector_size(32)));
  typedef uint64_t Words __attribute__((vector_size(32)));
  typedef int32_t Places __attribute__((vector_size(32)));

  // The rows of the leaf, up to the last cut.
  void keep_leaf(const uint8_t* rows, uint8_t* to) const {
    const size_t n_seen = n_leaf_ - least_;
    size_t n = 0;
    for (size_t k = 0; k < n_all_ && n < n_seen; ++k) {
      to[n] = rows[k];
      n += is_in_leaf_[rows[k]];
    }
  }

  // A cut of sums g and masses h + ridge is worth g^2 / h + other g^2 / other h. Less the limit and times both masses,
  // that is a polynomial: no division. Sizes of slopes add up to 1 at most, masses too, so every number in it is off by
  // at most (n + 8) / 2^24, and the polynomial by less than eight times that times 1 + limit.
  // Rows of equal codes lie on both sides of some cuts here, which are none: their column is then looked at in vain.
  unsigned largest_above(const Columns& rows, double limit) const {
    Eight most = Eight{} - std::numeric_limits<float>::infinity();
    const auto bound = static_cast<float>(limit);
    Eight first{}, second{};  // sums of columns 0, 1, 4, 5 and of 2, 3, 6, 7: g and mass in turn
    for (size_t k = 0; k + least_ < n_leaf_; ++k) {
      const auto of_row = [&](size_t j) { return of_row_[rows[j][k]]; };
      first += (Eight)Words{of_row(0), of_row(1), of_row(4), of_row(5)};
      second += (Eight)Words{of_row(2), of_row(3), of_row(6), of_row(7)};
      if (k + 1 < least_) continue;
      const Eight g = __builtin_shuffle(first, second, Places{0, 2, 8, 10, 4, 6, 12, 14}),
                  mass = __builtin_shuffle(first, second, Places{1, 3, 9, 11, 5, 7, 13, 15});
      const Eight h = mass + ridge_, other_h = mass_ - mass, other_g = sum_ - g;
      const Eight above = (g * g - bound * h) * other_h + other_g * other_g * h;
      most = above > most ? above : most;
    }
    unsigned bits = 0;
    const double off = 8 * static_cast<double>(n_leaf_ + 8) * 0x1p-24 * (1 + limit);
    for (size_t j = 0; j < n_together; ++j) bits |= static_cast<unsigned>(!(most[j] <= -off)) << j;
    return bits;
  }

  size_t n_all_, n_leaf_, least_;
  bool holds_ = false;
  double worth_unit_ = 0;
  float sum_ = 0, mass_ = 0, ridge_ = 0;        // shares: of the sizes of slopes, of masses and both ridges
  std::array<uint64_t, most_sorted> of_row_{};  // slope and mass of a row, both as shares; 0 of rows of other leaves
  std::array<uint8_t, most_sorted> is_in_leaf_{};
};

}  // namespace certifit
