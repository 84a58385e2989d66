// The best split that the histograms of a node show, in double precision.
//
// A cell is what the rows of one bin of one column add up to: {rows, mass, sum, 0} where a row has one number, else
// {rows, mass, sum of every class}. mass: weights, or second derivatives; sum: weight times target, or gradients.
// Cells subtract: those of a node less those of one child are those of the other.
//
// What a split is worth is said by a Score:
//
//   size_t width                       numbers of a row: 1, or the classes
//   double gain(left, node)            of sending the cell `left` left and the rest of `node` right
//   double value(cell)                 what a leaf would say, in the order that directions and categories go by
//   size_t n_orders, order(cell, k)    orders of a category's levels that are tried
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "bins.hpp"
#include "branch.hpp"

namespace certifit {

constexpr size_t n_bins = 256;  // of a column, that of missing values among them

inline size_t cell_size(size_t width) { return width == 1 ? 4 : 2 + width; }

// The best split of a column. Levels: those that go left, where the column is a category.
struct BinSplit {
  double gain = -1, left_value = 0, right_value = 0;
  size_t feature = 0, bin = 0;
  double n_left = 0;
  Levels levels{};
  bool is_missing_left = false, is_found = false;
};

// Whether each code of the column goes left.
inline void sides_of(const BinSplit& split, bool is_levels, bool* goes_left) {
  if (is_levels) {
    for (size_t code = 0; code < n_bins; ++code) goes_left[code] = has_level(split.levels, code);
  } else {
    std::memset(goes_left, 1, split.bin + 1);
    std::memset(goes_left + split.bin + 1, 0, n_bins - split.bin - 1);
  }
  goes_left[Bins::missing] = split.is_missing_left;
}

struct SplitRules {
  double min_rows = 1, min_mass = 0;  // of a side
  double tie = 0;                     // gains that differ by less are equal: the first is taken
  int direction = 0;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool is_bounded = false;  // whether any column has a direction
  size_t n_levels = 0;      // of a category
};

// Where to cut between two bins with rows, of which those between have none: halfway, as exact trees do.
inline size_t bin_between(size_t left, size_t right) { return (left + right) / 2; }

// Moves bins in an order from right to left, missing values on the right and then on the left, and keeps the best cut.
// codes: bins with rows, in the order in which they move. work: two cells of scratch.
template <class Score>
bool scan_in_order(const Score& score, const double* cells, const uint8_t* codes, size_t n_codes, const double* node,
                   const SplitRules& rules, double* work, BinSplit& best, size_t& best_count) {
  const size_t stride = cell_size(score.width);
  double *left = work, *right = work + stride;
  const double* missing = cells + size_t{Bins::missing} * stride;
  const bool has_missing = missing[0] > 0;
  bool is_better = false;
  for (const bool is_missing_left : {false, true}) {
    if (is_missing_left && !has_missing) break;
    for (size_t s = 0; s < stride; ++s) left[s] = is_missing_left ? missing[s] : 0.0;
    const size_t n_cuts = n_codes - (is_missing_left || !has_missing ? 1 : 0);
    for (size_t k = 0; k < n_cuts; ++k) {
      const double* cell = cells + codes[k] * stride;
      for (size_t s = 0; s < stride; ++s) left[s] += cell[s];
      if (left[0] < rules.min_rows || node[0] - left[0] < rules.min_rows) continue;
      if (!(left[1] > rules.min_mass && node[1] - left[1] > rules.min_mass)) continue;
      const double gain = score.gain(left, node);
      if (!(gain > best.gain + rules.tie) || !std::isfinite(gain)) continue;
      for (size_t s = 0; s < stride; ++s) right[s] = node[s] - left[s];
      const double left_value = score.value(left), right_value = score.value(right);
      if (rules.is_bounded && !is_allowed(rules.direction, left_value, right_value, rules.low, rules.high)) continue;
      best.gain = gain;
      best.left_value = left_value;
      best.right_value = right_value;
      best.bin = k + 1 < n_codes ? bin_between(codes[k], codes[k + 1]) : codes[k];
      best.n_left = left[0];
      best.is_missing_left = is_missing_left;
      best.is_found = is_better = true;
      best_count = k + 1;
    }
  }
  return is_better;
}

// The best split of a column whose cells are known. codes: its bins with rows, ascending, without the missing one.
template <class Score>
void scan_column(const Score& score, size_t feature, const double* cells, const std::vector<uint8_t>& codes,
                 const double* node, const SplitRules& rules, std::vector<double>& work, BinSplit& best) {
  const size_t stride = cell_size(score.width), missing = size_t{Bins::missing} * stride;
  best.feature = feature;
  if (codes.empty() || (codes.size() == 1 && cells[missing] == 0)) return;
  work.resize(2 * stride);
  size_t count = 0;
  if (rules.n_levels == 0) {
    const bool is_better =
        scan_in_order(score, cells, codes.data(), codes.size(), node, rules, work.data(), best, count);
    if (is_better && count == codes.size()) best.bin = Bins::missing - 1;  // all that is known goes left
  } else {
    std::vector<uint8_t> order;
    for (size_t o = 0; o < score.n_orders(); ++o) {
      order = codes;
      std::stable_sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) {
        return score.order(cells + a * stride, o) < score.order(cells + b * stride, o);
      });
      if (!scan_in_order(score, cells, order.data(), order.size(), node, rules, work.data(), best, count)) continue;
      best.levels = {};
      for (size_t k = 0; k < count; ++k) best.levels[order[k] >> 6] |= uint64_t{1} << (order[k] & 63);
    }
    if (!best.is_found) return;
    // Levels that no row of the node has go where more rows go.
    if (2 * best.n_left > node[0]) {
      Levels seen{};
      for (uint8_t code : codes) seen[code >> 6] |= uint64_t{1} << (code & 63);
      for (size_t word = 0; word < 4; ++word) best.levels[word] |= ~seen[word];
    }
    for (size_t code = rules.n_levels; code < n_bins; ++code) best.levels[code >> 6] &= ~(uint64_t{1} << (code & 63));
  }
  if (best.is_found && cells[missing] == 0) best.is_missing_left = 2 * best.n_left > node[0];
}

// Bins with rows of a column, ascending, without the missing one.
inline void bins_met(const double* cells, size_t stride, std::vector<uint8_t>& codes) {
  codes.clear();
  for (size_t bin = 0; bin < Bins::missing; ++bin)
    if (cells[bin * stride] > 0) codes.push_back(static_cast<uint8_t>(bin));
}

// Squared error, and Gini of two classes with `times` 2.
struct SquaredScore {
  double times = 1;
  static constexpr size_t width = 1;
  double gain(const double* left, const double* node) const {
    const double s = left[2] - node[2] / node[1] * left[1];
    return times * s * s * node[1] / (left[1] * (node[1] - left[1]));
  }
  double value(const double* cell) const { return cell[2] / cell[1]; }
  size_t n_orders() const { return 1; }
  double order(const double* cell, size_t) const { return value(cell); }
};

struct PoissonScore {
  static constexpr size_t width = 1;
  static double of_side(double sum, double mass) { return sum > 0 ? sum * std::log(sum / mass) : 0.0; }
  double gain(const double* left, const double* node) const {
    const double rest = node[2] - left[2];
    // What is left of a sum is rounding where it is below its last digits.
    if (!(left[2] > tie_share * node[2] && rest > tie_share * node[2])) return -1;
    return of_side(left[2], left[1]) + of_side(rest, node[1] - left[1]) - of_side(node[2], node[1]);
  }
  double value(const double* cell) const { return cell[2] / cell[1]; }
  size_t n_orders() const { return 1; }
  double order(const double* cell, size_t) const { return value(cell); }
};

// Gini and entropy of classes. The levels of a category are tried in the order of the share of each class: of two
// classes the best subset is among these.
struct ClassScore {
  size_t width;
  bool is_entropy;
  double gain(const double* left, const double* node) const {
    const double left_mass = left[1], right_mass = node[1] - left[1];
    double sides[2] = {0, 0}, whole = 0;
    for (size_t c = 2; c < width + 2; ++c) {
      const double rest = node[c] - left[c];
      if (is_entropy) {
        sides[0] += x_log_x(left[c]);
        sides[1] += x_log_x(rest);
        whole += x_log_x(node[c]);
      } else {
        sides[0] += left[c] * left[c];
        sides[1] += rest * rest;
        whole += node[c] * node[c];
      }
    }
    if (is_entropy) return sides[0] - x_log_x(left_mass) + sides[1] - x_log_x(right_mass) - (whole - x_log_x(node[1]));
    return sides[0] / left_mass + sides[1] / right_mass - whole / node[1];
  }
  double value(const double* cell) const { return cell[3] / cell[1]; }  // of two classes: the share of the second
  size_t n_orders() const { return width == 2 ? 1 : width; }
  double order(const double* cell, size_t k) const { return (width == 2 ? cell[3] : cell[2 + k]) / cell[1]; }
};

// A second-order step on sums of gradients G and second derivatives H: a leaf says -G / (H + ridge).
struct NewtonScore {
  double ridge = 0;
  static constexpr size_t width = 1;
  double of_side(double sum, double mass) const { return sum * sum / (mass + ridge); }
  double gain(const double* left, const double* node) const {
    return of_side(left[2], left[1]) + of_side(node[2] - left[2], node[1] - left[1]) - of_side(node[2], node[1]);
  }
  double value(const double* cell) const { return -cell[2] / (cell[1] + ridge); }
  size_t n_orders() const { return 1; }
  double order(const double* cell, size_t) const { return value(cell); }
};

}  // namespace certifit
