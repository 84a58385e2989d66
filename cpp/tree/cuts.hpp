// The best cut of a column of whole-number cells (packed.hpp): trees, forests and boosting search with this code alone.
//
// A Gain says what cuts are worth: operator()(sum, mass) of their left sides, four at a time; `size`, which gains are
// compared relative to.
#pragma once

#include <limits>

#include "../simd.hpp"
#include "packed.hpp"

namespace certifit {

constexpr double cut_tie = 1e-12;  // gains that differ by less, relative to `size`, are equal: the first is taken

// Squared error, and Gini of two classes with `times` 2: s^2 W / (W_L W_R), s = sum of the left less the mean times
// W_L.
struct SquaredCut {
  double sum, mass, times = 1, size = 0;
  double mean = sum / mass, least = cut_tie * mass;
  Vec operator()(Vec left, Vec left_mass) const {
    const Vec s = left - mean * left_mass, right_mass = mass - left_mass;
    const Vec worth = times * s * s * mass / (left_mass * right_mass);
    return (left_mass > least) & (right_mass > least) ? worth : Vec{};
  }
};

// What a second-order step takes from the loss, twice: G^2 / (H + ridge) of both sides less that of the whole.
struct NewtonCut {
  double sum, mass, ridge, size = 0;
  Vec whole = of_side(broadcast(sum), broadcast(mass + ridge));
  static Vec of_side(Vec g, Vec h) {
    const Vec ratio = g * g / h;
    return h > 0.0 ? ratio : Vec{};
  }
  Vec operator()(Vec left, Vec left_mass) const {
    return of_side(left, left_mass + ridge) + of_side(sum - left, mass - left_mass + ridge) - whole;
  }
};

// A cut: the first `n_moved` codes go left, after `start`.
template <class Cell>
struct Cut {
  double gain = 0;
  size_t n_moved = 0;
  bool is_missing_left = false, is_found = false;
  Cell left{};
};

// The largest of some numbers, 0 where none is above it: a NaN counts for nothing.
inline double largest_of(const double* x, size_t n) {
  Vec some{};
  size_t k = 0;
  for (; k + lanes <= n; k += lanes) some = some < load(x + k) ? load(x + k) : some;
  double most = 0;
  for (size_t lane = 0; lane < lanes; ++lane) most = std::max<double>(most, some[lane]);
  for (; k < n; ++k) most = std::max(most, x[k]);
  return most;
}

// The first of the cuts that leave `least` rows on both sides, and the one behind the last.
template <class Cell, class Read>
std::pair<size_t, size_t> legal_cuts(const Read& read, const Cell* lefts, size_t n, size_t n_rows, size_t least) {
  size_t begin = 0, end = n;
  while (begin < n && read.rows(lefts[begin]) < least) ++begin;
  while (end > begin && read.rows(lefts[end - 1]) + least > n_rows) --end;
  return {begin, end};
}

// Keeps the first cut that is as good as the best, if it is better than the one before. lefts: what is on the left once
// each of n codes has moved there. n_rows: of the node; least: rows of a side.
template <class Cell, class Read, class Gain>
bool better_cut(const Read& read, const Cell* lefts, size_t n, size_t n_rows, size_t least, const Gain& gain,
                Cut<Cell>& best) {
  const auto [begin, end] = legal_cuts(read, lefts, n, n_rows, least);
  const size_t n_cuts = end - begin;
  alignas(32) double sum[256], mass[256], worth[256];
  for (size_t k = 0; k < n_cuts; ++k) {
    sum[k] = read.sum(lefts[begin + k]);
    mass[k] = read.mass(lefts[begin + k]);
  }
  for (size_t k = n_cuts; k % lanes != 0; ++k) sum[k] = mass[k] = 0;
  for (size_t k = 0; k < n_cuts; k += lanes) store(worth + k, gain(load(sum + k), load(mass + k)));
  const double most = largest_of(worth, n_cuts);
  const double equal = cut_tie * (gain.size + most);
  if (!(most > best.gain + equal) || !std::isfinite(most)) return false;
  size_t at = 0;
  while (worth[at] < most - equal) ++at;
  best.gain = most;
  best.n_moved = begin + at + 1;
  best.is_found = true;
  best.left = lefts[begin + at];
  return true;
}

// Both ways for missing values: on the right, and then on the left, where `lefts` are changed to what is there then.
template <class Cell, class Read, class Gain>
Cut<Cell> best_cut(const Read& read, Cell* lefts, size_t n, const Cell& missing, size_t n_rows, size_t least,
                   const Gain& gain) {
  Cut<Cell> best;
  better_cut(read, lefts, n, n_rows, least, gain, best);
  if (read.rows(missing) == 0) {
    if (best.is_found) best.is_missing_left = 2 * read.rows(best.left) > n_rows;
    return best;
  }
  for (size_t k = 0; k < n; ++k) lefts[k] += missing;
  if (better_cut(read, lefts, n, n_rows, least, gain, best)) best.is_missing_left = true;
  return best;
}

// The same of codes that move in their order from right to left. codes: null where all n bins move in order.
template <class Cell, class Read, class Gain>
Cut<Cell> best_cut(const Read& read, const Cell* cells, const uint8_t* codes, size_t n, const Cell& missing,
                   size_t n_rows, size_t least, const Gain& gain) {
  Cell lefts[256];
  Cell left{};
  for (size_t k = 0; k < n; ++k) {
    left += cells[codes ? codes[k] : k];
    lefts[k] = left;
  }
  return best_cut(read, lefts, n, missing, n_rows, least, gain);
}

// Levels with rows by what they say, in `order`; how many there are. The best set of levels is one end of this order.
// sign: -1 where a leaf says minus the sum over the mass.
template <class Cell, class Read>
size_t levels_in_order(const Read& read, const Cell* cells, size_t n_levels, double ridge, double sign,
                       uint8_t* order) {
  size_t n = 0;
  double value[256];
  for (size_t code = 0; code < n_levels; ++code) {
    if (read.rows(cells[code]) == 0) continue;
    const double mass = read.mass(cells[code]) + ridge;
    value[code] = mass > 0 ? sign * read.sum(cells[code]) / mass : 0.0;
    order[n++] = static_cast<uint8_t>(code);
  }
  std::stable_sort(order, order + n, [&](uint8_t a, uint8_t b) { return value[a] < value[b]; });
  return n;
}

// The set of the levels that go left: the first n_moved of the order, and, where more rows go left than right, those
// that no row of the node has.
template <class Cell, class Read>
Levels levels_left(const Read& read, const Cell* cells, size_t n_levels, const uint8_t* order, size_t n_moved,
                   bool is_more_left) {
  Levels set{};
  for (size_t k = 0; k < n_moved; ++k) set[order[k] >> 6] |= uint64_t{1} << (order[k] & 63);
  for (size_t code = 0; is_more_left && code < n_levels; ++code)
    if (read.rows(cells[code]) == 0) set[code >> 6] |= uint64_t{1} << (code & 63);
  return set;
}

}  // namespace certifit
