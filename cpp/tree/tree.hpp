// Decision trees: what a node is, when a node stays a leaf, and the distinct rows that trees are grown on.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "../parallel.hpp"
#include "../tile.hpp"

namespace certifit {

enum class Criterion { gini, entropy, squared_error, poisson };

constexpr size_t summed_block = 16384;  // rows whose rounded sums are added up apart, and then in the order of blocks

// Distinct rows of positive weight: rows equal in every column and in y are one row with the sum of their weights.
// They are in the order of a hash of their values, so a tree does not depend on the order of the rows.
struct TreeRows {
  size_t n_rows = 0, n_columns = 0;
  std::vector<double> columns;  // column after column; NaN is a missing value
  std::vector<double> y;        // a number, or the code of a class
  std::vector<double> weight;
  bool is_weighted = false;  // whether any weight is not 1
  bool is_finite = true;     // no infinite value, and no y that is not finite
  // Of rows that are some of all: where those of each block of all rows begin. Empty: these are all.
  std::vector<uint32_t> block_starts;

  // Where the block of a row ends.
  size_t block_end(size_t row) const {
    if (block_starts.empty()) return (row / summed_block + 1) * summed_block;
    const auto next = std::upper_bound(block_starts.begin(), block_starts.end(), row);
    return next == block_starts.end() ? n_rows : *next;
  }
  const double* column(size_t j) const { return columns.data() + j * n_rows; }
  bool has_missing() const {
    return std::any_of(columns.begin(), columns.end(), [](double x) { return x != x; });
  }
};

// What a tree must know of all its rows, where those at hand are some of them. total: of the weights; is_weighted: one
// of them is not 1; is_whole: all are whole numbers, and their sum is below 2^31. centre: what histograms measure y
// from; moments: the sum of |weight (y - centre)|.
struct Whole {
  size_t n_rows = 0;
  double total = 0;
  bool is_weighted = false, is_whole = true;
  double centre = 0, moments = 0;
};

TreeRows merged_rows(const Rows& rows, const double* y, const double* weight, Crew& crew);

// The first columns of these, row after row.
std::vector<double> row_after_row(const TreeRows& rows, size_t n_columns, Crew& crew);

// Rows that are not held: of each the hash that orders it, and a second one. Rows whose y and both hashes are equal are
// taken for equal.
struct RowHashes {
  std::vector<uint64_t> order, other;
  bool is_finite = true;  // as for TreeRows
};

RowHashes hash_rows(const Rows& rows, const double* y, Crew& crew);

// The distinct ones in their order: the number of the first of the equal rows, and the sum of their weights.
struct MergedHashes {
  std::vector<uint32_t> first;
  std::vector<double> weight;
};

MergedHashes merged_hashes(const uint64_t* order, const uint64_t* other, const double* y, const double* weight,
                           size_t n_rows);

// At least the first `most` of these, or all.
TreeRows first_rows(const Rows& rows, const double* y, const double* weight, size_t most, Crew& crew);

struct Stops {
  size_t max_depth, min_rows_split, min_rows_leaf;
  double min_decrease;  // of the impurity, times the node's share of all weight
};

// Levels of a category, a bit each: codes 0 to 254.
using Levels = std::array<uint64_t, 4>;
inline bool has_level(const Levels& set, size_t code) { return (set[code >> 6] >> (code & 63)) & 1; }

// What is known of the columns beyond their values; an empty vector says nothing of any column.
struct ColumnRules {
  std::vector<int8_t> direction;  // 1: no mean falls as the column grows, -1: none rises, 0: both may
  std::vector<uint8_t> n_levels;  // of a category, whose values are codes from 0; 0: it is none
  int direction_of(size_t j) const { return direction.empty() ? 0 : direction[j]; }
  bool is_levels(size_t j) const { return n_levels.empty() ? false : n_levels[j] != 0; }
  bool has_directions() const {
    return std::any_of(direction.begin(), direction.end(), [](int8_t d) { return d != 0; });
  }
};

// The code of a value of a category; what is no code of its levels counts as missing.
inline size_t level_of(double x, uint8_t n_levels) {
  const bool is_code = x >= 0 && x < n_levels && x == static_cast<double>(static_cast<int>(x));
  return is_code ? static_cast<size_t>(x) : 255;
}

// Rows with x <= threshold go to `left`, the others to left + 1; missing ones to the side that is said. Where the
// column is a category, rows whose level is in set number `threshold` go left. A node whose left child is 0 is a leaf.
// decrease: of the weighted impurity, as a share of all weight.
struct Node {
  int32_t feature = -1, left = 0;
  double threshold = 0;
  bool is_missing_left = false, is_of_levels = false;
  uint32_t n_rows = 0;
  double weight = 0, impurity = 0, decrease = 0;
};

// Nodes level by level, siblings side by side. values: per node the weight of every class, or the mean of y.
struct GrownTree {
  std::vector<Node> nodes;
  std::vector<double> values;
  std::vector<Levels> sets;
};

GrownTree grow_exact(const TreeRows& rows, Criterion criterion, size_t n_classes, const Stops& stops,
                     const ColumnRules& columns, Crew& crew);

// The part of a tree that leads a row to its leaf; children lie behind their parents. Number: of columns and nodes.
template <class Number>
struct PathsOf {
  size_t n_nodes;
  const Number *feature, *left;
  const double* threshold;
  const uint8_t* is_missing_left;
  const uint8_t* n_levels = nullptr;  // by column, 0 where it is no category; null: none is one
  const uint64_t* sets = nullptr;     // four words each
};
using Paths = PathsOf<int64_t>;

// Rows of all columns, dense and thin ones in their places.
class WholeRows {
 public:
  explicit WholeRows(const Rows& rows) : rows_(rows), is_whole_(rows.thin.empty()) {}

  const double* row(const Tile& tile, size_t k, size_t i) {
    if (is_whole_) return tile.row(k);
    row_.assign(rows_.n_columns, 0.0);
    for (size_t j = 0; j < rows_.n_dense; ++j) row_[rows_.dense_columns[j]] = tile.row(k)[j];
    rows_.for_each_entry(i, [&](size_t column, double value) { row_[column] = value; });
    return row_.data();
  }

 private:
  const Rows& rows_;
  bool is_whole_;
  std::vector<double> row_;
};

// What a row meets on its way; a node as read there.
struct Step {
  double threshold;
  int32_t left;
  uint32_t feature : 31, is_missing_left : 1;

  // Without a branch, which would be guessed wrong half of the time.
  bool goes_left(double x) const { return (x <= threshold) | ((is_missing_left != 0) & (x != x)); }
  // Where the column is a category: by the set of its number.
  bool goes_left(double x, uint8_t n_levels, const uint64_t* sets) const {
    const size_t level = level_of(x, n_levels);
    const uint64_t* set = sets + 4 * static_cast<size_t>(threshold);
    return level == 255 ? is_missing_left != 0 : (set[level >> 6] >> (level & 63)) & 1;
  }
};

template <class Number>
std::vector<Step> steps_of(const PathsOf<Number>& paths) {
  std::vector<Step> steps(paths.n_nodes);
  for (size_t k = 0; k < paths.n_nodes; ++k) {
    const bool is_leaf = paths.left[k] == 0;
    steps[k] = {paths.threshold[k], static_cast<int32_t>(paths.left[k]),
                is_leaf ? 0 : static_cast<uint32_t>(paths.feature[k]) & 0x7fffffffu, paths.is_missing_left[k] != 0};
  }
  return steps;
}

// A row is its values, or their ranks among some thresholds, 255 of missing ones.
inline double value_of(double x) { return x; }
inline double value_of(uint8_t rank) { return rank == 255 ? std::numeric_limits<double>::quiet_NaN() : rank; }

template <class Number>
int32_t leaf_of(const Number* row, const Step* steps) {
  int32_t node = 0;
  while (steps[node].left != 0)
    node = steps[node].left + (steps[node].goes_left(value_of(row[steps[node].feature])) ? 0 : 1);
  return node;
}

// The same where columns are categories.
template <class Number>
int32_t leaf_among_levels(const Number* row, const Step* steps, const Paths& paths) {
  int32_t node = 0;
  while (steps[node].left != 0) {
    const Step& step = steps[node];
    const double x = value_of(row[step.feature]);
    const uint8_t n_levels = paths.n_levels[step.feature];
    const bool left = n_levels != 0 ? step.goes_left(x, n_levels, paths.sets) : step.goes_left(x);
    node = step.left + (left ? 0 : 1);
  }
  return node;
}

// Leaves of some rows, each at `x` + its place * n_columns; use(place, leaf). Eight rows go side by side, so that one
// does not wait for the memory of another.
template <class Number, class Use>
void for_each_leaf(const Number* x, size_t n_columns, const Step* steps, const uint32_t* places, size_t n, Use use) {
  constexpr size_t lanes = 8;
  size_t k = 0;
  if (n_columns == 0) {  // a tree that reads nothing is its root, and there may be no x
    for (; k < n; ++k) use(places[k], 0);
    return;
  }
  for (; k + lanes <= n; k += lanes) {
    int32_t at[lanes] = {};
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (size_t lane = 0; lane < lanes; ++lane) {
        const Step step = steps[at[lane]];
        const bool is_inner = step.left != 0;
        const double value = value_of(x[places[k + lane] * n_columns + (is_inner ? step.feature : 0)]);
        const int32_t next = step.left + (step.goes_left(value) ? 0 : 1);
        at[lane] = is_inner ? next : at[lane];
        is_moving |= is_inner;
      }
    }
    for (size_t lane = 0; lane < lanes; ++lane) use(places[k + lane], at[lane]);
  }
  for (; k < n; ++k) use(places[k], leaf_of(x + places[k] * n_columns, steps));
}

// The leaf of every row, and per node the largest value that went left and the smallest that went right.
struct Walk {
  std::vector<int64_t> leaves;
  std::vector<double> below, above;
  bool is_finite = true;  // no value of the rows is infinite
};

Walk walk_rows(const Rows& rows, const Paths& paths, bool with_ranges, Crew& crew);

}  // namespace certifit
