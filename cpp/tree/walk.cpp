// Rows on their way to their leaves.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include "tree.hpp"

namespace certifit {
namespace {

constexpr size_t block_rows = 4096, tile_rows = 64;
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Ranges {
  std::vector<double> below, above;

  void add(const Ranges& other) {
    for (size_t k = 0; k < below.size(); ++k) {
      below[k] = std::max(below[k], other.below[k]);
      above[k] = std::min(above[k], other.above[k]);
    }
  }
};

int32_t leaf_with_ranges(const double* row, const Step* steps, const Paths& paths, Ranges& ranges) {
  int32_t node = 0;
  while (steps[node].left != 0) {
    const double x = row[steps[node].feature];
    const uint8_t n_levels = paths.n_levels ? paths.n_levels[steps[node].feature] : 0;
    const bool left = n_levels != 0 ? steps[node].goes_left(x, n_levels, paths.sets) : steps[node].goes_left(x);
    if (!std::isnan(x)) {
      double& end = left ? ranges.below[node] : ranges.above[node];
      end = left ? std::max(end, x) : std::min(end, x);
    }
    node = steps[node].left + (left ? 0 : 1);
  }
  return node;
}

bool has_infinity(const double* row, size_t n_columns) {
  bool has_infinity = false;
  for (size_t j = 0; j < n_columns; ++j) has_infinity |= std::fabs(row[j]) == infinity;
  return has_infinity;
}

}  // namespace

Walk walk_rows(const Rows& rows, const Paths& paths, bool with_ranges, Crew& crew) {
  // Every block has ranges of its own: a few blocks are enough.
  const size_t size = with_ranges ? std::max(block_rows, (rows.n_rows + 15) / 16) : block_rows;
  const size_t n_blocks = (rows.n_rows + size - 1) / size, n_ranges = with_ranges ? paths.n_nodes : 0;
  const std::vector<Step> steps = steps_of(paths);
  const bool is_plain = !with_ranges && !paths.n_levels && rows.thin.empty() && rows.n_columns > 0;
  std::vector<uint32_t> places(tile_rows);
  std::iota(places.begin(), places.end(), 0u);
  Walk walk;
  walk.leaves.resize(rows.n_rows);
  const Ranges empty{std::vector<double>(n_ranges, -infinity), std::vector<double>(n_ranges, infinity)};
  Ranges total = empty;
  std::atomic<bool> is_finite{true};
  std::mutex lock;  // the largest and the smallest of all blocks do not depend on their order
  crew.for_each_block(n_blocks, [&](size_t block) {
    Ranges ranges = empty;
    WholeRows whole(rows);
    bool is_infinite = false;
    std::vector<double> scratch;
    const size_t end = std::min(rows.n_rows, (block + 1) * size);
    for (size_t first = block * size; first < end; first += tile_rows) {
      const size_t count = std::min(tile_rows, end - first);
      const Tile tile = read_tile(rows, first, count, scratch);
      if (is_plain && static_cast<size_t>(tile.stride) == rows.n_columns) {
        is_infinite |= has_infinity(tile.row(0), count * rows.n_columns);
        for_each_leaf(tile.row(0), rows.n_columns, steps.data(), places.data(), count,
                      [&](uint32_t k, int32_t leaf) { walk.leaves[first + k] = leaf; });
        continue;
      }
      for (size_t k = 0; k < count; ++k) {
        const double* row = whole.row(tile, k, first + k);
        is_infinite |= has_infinity(row, rows.n_columns);
        walk.leaves[first + k] = with_ranges      ? leaf_with_ranges(row, steps.data(), paths, ranges)
                                 : paths.n_levels ? leaf_among_levels(row, steps.data(), paths)
                                                  : leaf_of(row, steps.data());
      }
    }
    if (is_infinite) is_finite = false;
    if (!with_ranges) return;
    std::lock_guard<std::mutex> hold(lock);
    total.add(ranges);
  });
  walk.is_finite = is_finite;
  walk.below = std::move(total.below);
  walk.above = std::move(total.above);
  return walk;
}

}  // namespace certifit
