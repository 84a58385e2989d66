// The exact search within a node: one pass over a sorted column, or over several side by side.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "histogram.hpp"

namespace certifit {

// A row and the rank of its value among the distinct values of the column; missing values have the highest rank.
template <class Index>
struct Entry {
  Index row, rank;
  static constexpr Index missing = std::numeric_limits<Index>::max();
};

struct Split {
  double gain = -1;  // weight times impurity
  size_t feature = 0, n_left = 0;
  double left_mean = 0, right_mean = 0;
  Levels levels{};  // that go left, of a category
  bool is_missing_left = false, is_found = false, is_of_levels = false;
};

// What the means of both sides must keep to.
struct Limits {
  bool is_bounded = false;
  int direction = 0;
  double low = 0, high = 0;
};

// The best threshold of a column. The first of equal gains stays: that of the lowest threshold, missing on the right.
template <class Index, class Gain>
void scan(const Entry<Index>* entries, size_t n, size_t min_rows, const Limits& limits, Gain gain, Split& best) {
  using E = Entry<Index>;
  size_t n_known = n;
  if (entries[n - 1].rank == E::missing)
    n_known = std::partition_point(entries, entries + n, [](const E& e) { return e.rank != E::missing; }) - entries;
  const size_t n_missing = n - n_known;
  if (n_known == 0 || (n_missing == 0 && entries[0].rank == entries[n - 1].rank)) return;
  for (const bool is_missing_left : {false, true}) {
    if (is_missing_left && n_missing == 0) return;
    gain.start();
    size_t n_left = 0;
    if (is_missing_left)
      for (; n_left < n_missing; ++n_left) gain.add(entries[n_known + n_left].row);
    // With missing values on the right, all known ones may go left.
    const size_t n_tried = n_known - (is_missing_left || n_missing == 0 ? 1 : 0);
    for (size_t i = 0; i < n_tried; ++i) {
      gain.add(entries[i].row);
      ++n_left;
      if (i + 1 < n && entries[i].rank == entries[i + 1].rank) continue;
      if (n_left < min_rows || n - n_left < min_rows || !gain.beats(best.gain) || !gain.has_sides()) continue;
      if (limits.is_bounded) {
        const double means[2] = {gain.left_mean(), gain.right_mean()};
        if (!is_allowed(limits.direction, means[0], means[1], limits.low, limits.high)) continue;
        best.left_mean = means[0];
        best.right_mean = means[1];
      }
      best.gain = gain.gain();
      best.n_left = i + 1;
      best.is_missing_left = is_missing_left;
      best.is_found = true;
    }
  }
}

// The best set of levels of a category, by the sums of each level.
template <class Index, class Score, class Term>
void scan_levels(const Entry<Index>* entries, Range range, const std::vector<uint32_t>& rows, const double* x,
                 const std::vector<double>& node, const SplitRules& rules, const Score& score, Term term, Split& best) {
  const size_t stride = cell_size(score.width);
  std::vector<double> cells(n_bins * stride, 0.0), work;
  for (size_t k = 0; k < range.size(); ++k)
    term(entries[k].row, &cells[level_of(x[rows[entries[k].row]], static_cast<uint8_t>(rules.n_levels)) * stride]);
  std::vector<uint8_t> met;
  bins_met(cells.data(), stride, met);
  BinSplit split;
  scan_column(score, best.feature, cells.data(), met, node.data(), rules, work, split);
  best.is_of_levels = true;
  best.gain = split.gain;
  best.is_found = split.is_found;
  best.levels = split.levels;
  best.is_missing_left = split.is_missing_left;
  best.left_mean = split.left_value;
  best.right_mean = split.right_value;
}

// The best threshold of some columns without missing values, side by side: their sums do not wait for each other. All
// rows weigh 1; `moment` is as for SquaredGain, and so are the gains, to the last bit.
template <size_t width, class Index>
void scan_together(const std::array<const Entry<Index>*, width>& columns, size_t n, size_t min_rows,
                   const double* moment, double tie, Split* best) {
  const auto total = static_cast<double>(n);
  std::array<double, width> sums{}, bars;
  for (size_t c = 0; c < width; ++c) bars[c] = best[c].gain + tie;
  size_t i = 0;
  for (; i + 1 < min_rows; ++i)
    for (size_t c = 0; c < width; ++c) sums[c] += moment[columns[c][i].row];
  for (; i + min_rows < n; ++i) {
    const double mass = static_cast<double>(i + 1), sides = mass * (total - mass);
    for (size_t c = 0; c < width; ++c) {
      const Entry<Index>* at = columns[c] + i;
      sums[c] += moment[at->row];
      if (!(sums[c] * sums[c] * total > bars[c] * sides) || at[0].rank == at[1].rank) continue;
      best[c].gain = sums[c] * sums[c] * total / sides;
      best[c].n_left = i + 1;
      best[c].is_found = true;
      bars[c] = best[c].gain + tie;
    }
  }
}

}  // namespace certifit
