// Random forests on binned columns: every tree is grown on draws of the rows, every node tries some of the columns.
#pragma once

#include <functional>

#include "bins.hpp"

namespace certifit {

// How trees are drawn and grown. n_classes 0: y is a number.
struct ForestPlan {
  size_t n_trees, n_classes, n_tried;  // n_tried: columns that a node tries
  uint64_t seed;
  Stops stops;
  ColumnRules columns;
  double centre = 0;  // that numbers are measured from while splits are searched
  size_t width() const { return n_classes > 0 ? n_classes : 1; }
};

// How often each row is drawn for a tree: as many draws as the sum of the weights, where they are whole, else as there
// are rows; each lands on a row with a chance in proportion to its weight.
std::vector<uint32_t> drawn(const TreeRows& rows, uint64_t seed, size_t tree);

// values: of the leaves only, in the order of their nodes: shares of the classes, or the mean of y.
struct ForestTree {
  std::vector<Node> nodes;
  std::vector<double> values;
  std::vector<Levels> sets;   // of splits of categories; the threshold of such a node is the number of its set
  std::vector<double> gains;  // per column: what its splits took from the impurity, times the weight
};

// tell: is told by the calling thread how many trees there are, where it is set, after every n_at_once of them; true
// ends the growth. The trees are the first ones of the whole forest.
std::vector<ForestTree> grow_forest(const TreeRows& rows, const BinnedColumns& bins, const ForestPlan& plan, Crew& crew,
                                    size_t n_at_once, const std::function<bool(size_t)>& tell);

// Trees end to end, as a model stores them.
struct ForestPaths {
  std::vector<std::vector<Step>> trees;  // `feature` of a leaf is its number
  std::vector<const double*> values;     // of the leaves of each tree
  size_t width;
  const uint8_t* n_levels = nullptr;  // by column, 0 where it is no category; null: none is one
  const uint64_t* sets = nullptr;     // four words each
};

// The mean over trees of what their leaves say, rows x width.
struct Means {
  std::vector<double> values;
  bool is_finite = true;
};
Means forest_means(const Rows& rows, const ForestPaths& forest, Crew& crew);

// Rows as bytes that lead them as their values do: how many edges lie below a value, or its level, row after row. The
// thresholds of the forest become ranks among the edges. Empty, and the forest as it was, where one is no edge.
std::vector<uint8_t> ranked_rows(const TreeRows& rows, const Edges& edges, const ColumnRules& columns,
                                 ForestPaths& forest, Crew& crew);

// A forest beside the rows that it was drawn from. deviation: the largest one of a leaf's value from that of the rows
// drawn into it, for numbers relative to the largest |y|; infinite for a leaf without rows. out: per row the mean over
// the trees that did not draw it; n_out: how many these are. target, weight: of the rows. X: row after row, values or
// ranks.
struct ForestCheck {
  double deviation = 0;
  std::vector<double> out, n_out, target, weight;
};
template <class Number>
ForestCheck check_forest(const TreeRows& rows, const Number* X, const ForestPaths& forest, uint64_t seed,
                         size_t n_classes, Crew& crew);

}  // namespace certifit
