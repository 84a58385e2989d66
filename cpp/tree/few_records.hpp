// Nodes of few records: what lies left of every row is added up for all rows side by side. Nothing is sorted, no bin is
// visited and no branch hangs on the rows. The splits are those of split_of.
#pragma once

#include "../simd.hpp"
#include "kinds.hpp"
#include "records.hpp"

namespace certifit {

class FewRecords {
 public:
  static constexpr size_t most = 32;  // rows: their counts fit into 32 bits

  void begin(const Records& records, size_t begin, size_t end) {
    records_ = records.row(begin);
    stride_ = records.stride();
    n_ = end - begin;
    for (size_t i = 0; i < n_; ++i) {
      const uint8_t* row = records_ + i * stride_;
      const uint32_t draws = row[stride_ - 2], second = row[stride_ - 1];
      terms_[i] = static_cast<int32_t>(1 | draws << row_bits | (second * draws) << (row_bits + mass_bits));
    }
    for (size_t i = n_; i < n_groups() * at_once; ++i) codes_[i] = Bins::missing;
  }

  struct Column {
    bool is_constant, has_missing;
  };

  // Looks at the bins of a column.
  Column read(size_t column) {
    int32_t least = 255, largest = 0;
    for (size_t i = 0; i < n_; ++i) {
      const int32_t code = records_[i * stride_ + column];
      codes_[i] = code;
      least = std::min(least, code);
      largest = std::max(largest, code);
    }
    return {least == largest, largest == Bins::missing};
  }

  // Takes the split of the column that was read last, which has no missing value and is no category, where it is worth
  // more than `best`. True: both sides are of one class, so that no other column is worth more.
  bool improve(size_t column, size_t least_rows, const SquaredCut& gain, BinSplit& best) const {
    switch ((n_groups() + 1) / 2) {
      case 1:
        return n_ <= at_once ? improve_by<1>(column, least_rows, gain, best)
                             : improve_by<2>(column, least_rows, gain, best);
      default: return improve_by<4>(column, least_rows, gain, best);
    }
  }

 private:
  static constexpr int row_bits = 6, mass_bits = 13;
  static constexpr size_t at_once = 8;
  typedef int32_t Eight __attribute__((vector_size(32)));
  typedef int32_t Four __attribute__((vector_size(16)));
  typedef int64_t Mask __attribute__((vector_size(32)));

  size_t n_groups() const { return (n_ + at_once - 1) / at_once; }

  // Rows behind the last are in the bin of missing values, all rows are left of them: they are no cut.
  template <size_t n_groups>
  bool improve_by(size_t column, size_t least_rows, const SquaredCut& gain, BinSplit& best) const {
    Eight codes[n_groups], left[n_groups] = {};
    std::memcpy(codes, codes_, sizeof codes);
    for (size_t j = 0; j < n_; ++j) {
      const Eight code = Eight{} + codes_[j], term = Eight{} + terms_[j];
      for (size_t g = 0; g < n_groups; ++g) left[g] += (code <= codes[g]) & term;
    }
    int32_t counts[n_groups * at_once];
    std::memcpy(counts, left, sizeof left);
    alignas(32) double worth[n_groups * at_once];
    const auto least = static_cast<int32_t>(std::min<size_t>(least_rows, most)), n = static_cast<int32_t>(n_);
    Vec largest = {};
    for (size_t i = 0; i < n_; i += lanes) {
      Four some;
      std::memcpy(&some, counts + i, sizeof some);
      const Vec of_cut = worth_of(gain, some, least, n);
      store(worth + i, of_cut);
      largest = of_cut > largest ? of_cut : largest;
    }
    const double most_worth = std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3]));
    const double equal = cut_tie * most_worth;
    if (!(most_worth > equal) || (best.is_found && !(most_worth > best.gain * (1 + tie_share)))) return false;
    size_t at = 0;
    int32_t code = Bins::missing;
    for (size_t i = 0; i < n_; ++i) {
      const bool is_first = (worth[i] >= most_worth - equal) & (codes_[i] < code);
      at = is_first ? i : at;
      code = is_first ? codes_[i] : code;
    }
    int32_t next = Bins::missing;  // the bin with rows behind it
    for (size_t i = 0; i < n_; ++i) next = codes_[i] > code ? std::min(next, codes_[i]) : next;
    best.feature = column;
    best.gain = most_worth;
    best.bin = bin_between(static_cast<size_t>(code), static_cast<size_t>(next));
    best.n_left = rows(counts[at]);
    best.is_missing_left = 2 * rows(counts[at]) > n;
    best.is_found = true;
    const auto of_left = static_cast<double>(sum(counts[at])), all_left = static_cast<double>(mass(counts[at]));
    return (of_left == 0 && gain.sum == gain.mass - all_left) || (of_left == all_left && gain.sum == of_left);
  }

  // Of four cuts; 0 where a side has too few rows.
  static Vec worth_of(const SquaredCut& gain, Four counts, int32_t least, int32_t n) {
    const Vec worth = gain(__builtin_convertvector(sum(counts), Vec), __builtin_convertvector(mass(counts), Vec));
    const Four n_left = rows(counts), is_enough = (n_left >= least) & (n_left + least <= n);
    return __builtin_convertvector(is_enough, Mask) ? worth : Vec{};
  }

  // Of one word, or of four.
  template <class Words>
  static Words rows(Words counts) {
    return counts & ((1 << row_bits) - 1);
  }
  template <class Words>
  static Words mass(Words counts) {
    return (counts >> row_bits) & ((1 << mass_bits) - 1);
  }
  template <class Words>
  static Words sum(Words counts) {  // the sign bit is the last bit of the number
    return (counts >> (row_bits + mass_bits)) & ((1 << mass_bits) - 1);
  }

  const uint8_t* records_ = nullptr;
  size_t stride_ = 0, n_ = 0;
  int32_t terms_[most];
  int32_t codes_[most];
};

}  // namespace certifit
