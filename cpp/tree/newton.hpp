// A tree of one round of boosting: grown on slopes g and curvatures h of the rows' losses, its leaves are Newton steps.
#pragma once

#include "tree.hpp"

namespace certifit {

// n_bins: of every column; the code behind its bins is a missing value. n_levels: of a column that is a category, whose
// codes are levels in no order; 0 of the others, or null. tried: the columns that are tried, ascending.
struct NewtonColumns {
  const uint8_t *n_bins, *n_levels;
  const uint32_t* tried;
  size_t n_tried;
  bool is_levels(size_t j) const { return n_levels && n_levels[j] != 0; }
};

// codes: row after row, one byte per column; by_column: the same, column after column. rows: those that the tree is
// grown on, ascending; null: all of them. scratch: `newton_scratch` words per row for the call, which the caller keeps
// from round to round: memory that is new to the process costs as much as what is written there.
// bundled: one byte per bundle of columns that share it (bundles.hpp), or null; bundle_of: of every column.
// sorted_rows, sorted_codes: of every column the numbers of its at most `most_sorted` rows in the order of their codes,
// and these codes, column after column, to search by walks through them: every bin of a number then has a row, and no
// column has a direction. Null: search by histograms.
constexpr size_t newton_scratch = 3;
constexpr size_t most_sorted = 256;
struct NewtonRows {
  size_t n_rows, n_columns;
  const uint8_t *codes, *by_column;
  NewtonColumns columns;
  const double *slope, *curvature, *weight;
  const uint32_t* rows;
  size_t n_drawn;
  uint64_t* scratch;
  const uint8_t* bundled;
  size_t n_bundles;
  const uint32_t* bundle_of;
  const uint8_t *sorted_rows, *sorted_codes;
  bool are_all_drawn() const { return rows == nullptr; }
  size_t drawn(size_t k) const { return rows ? rows[k] : k; }
};

// direction: of every column, or null: 1, no score falls as it grows; -1, none rises. is_best_first: the leaf of the
// largest gain is split next, else leaves are split level by level.
struct NewtonPlan {
  size_t max_depth, max_leaves, min_rows_leaf;
  double ridge;  // value of a leaf: -sum g / (sum h + ridge)
  bool is_best_first;
  const int8_t* direction;
};

// Rows whose code is at most `bin`, or in set number `bin` of a category, go to `left`, the others to left + 1.
// gain: what the split takes from the second-order model of the loss, twice. weight: of the rows.
struct NewtonNode {
  int32_t feature = -1, left = 0;
  uint32_t bin = 0;
  bool is_missing_left = false;
  double value = 0, gain = 0, weight = 0;
};

struct NewtonTree {
  std::vector<NewtonNode> nodes;
  std::unique_ptr<int32_t[]> leaves;  // of all rows, drawn or not
  std::vector<Levels> sets;
};

// newton_levels.hpp has the same tree of rows that are in parts.
NewtonTree grow_newton(const NewtonRows& rows, const NewtonPlan& plan, Crew& crew);

}  // namespace certifit
