// The best tree of a depth on a grid of thresholds, and a proof: no tree of that depth has a smaller loss than `lower`.
#pragma once

#include "tree.hpp"

namespace certifit {

// n_classes > 0: the loss is the weight of the rows that are called wrong; 0: the weighted sum of squared errors.
// n_thresholds: most thresholds of a column of more than `few_values` different values; others have all midpoints.
struct OptimalPlan {
  size_t depth, n_classes, min_rows_leaf, n_thresholds;
  uint64_t max_nodes;  // subsets of the rows whose best tree of depth 2 is searched; depth 2 itself needs one
};
constexpr size_t few_values = 64;

// nodes: level by level, with columns, thresholds and children only. lower and upper: a tree of this depth has at least
// the loss `lower`, and this one has `upper` up to `rounding`, which `lower` is already reduced by.
struct BestTree {
  std::vector<Node> nodes;
  double lower = 0, upper = 0, rounding = 0;
  uint64_t n_nodes = 0;
  size_t n_thresholds = 0;
  bool is_closed = false;   // the whole of the search was done
  bool is_in_range = true;  // weights are near enough to each other for sums of them to be told from 0
};

BestTree best_tree(const TreeRows& rows, const OptimalPlan& plan, Crew& crew);

}  // namespace certifit
