// Random forests on binned columns: every tree is grown on draws of the rows, every node tries some of the columns.
#pragma once

#include <functional>

#include "bins.hpp"
#include "draws.hpp"
#include "ranked.hpp"

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

// values: of the leaves only, in the order of their nodes: shares of the classes, or the mean of y. `decrease` of a
// node is what its split took from the impurity, times the weight.
struct ForestTree {
  std::vector<Node> nodes;
  std::vector<double> values;
  std::vector<Levels> sets;   // of splits of categories; the threshold of such a node is the number of its set
  std::vector<double> gains;  // per column: what its splits took, in the order of the nodes
};

// take: is given every tree, in their order, by one thread at a time. tell: is told by the calling thread how many
// trees there are, where it is set, after every n_at_once of them; true ends the growth. The trees are the first ones
// of the whole forest.
void grow_forest(const TreeRows& rows, const BinnedColumns& bins, const ForestPlan& plan, Crew& crew, size_t n_at_once,
                 const std::function<void(ForestTree&&)>& take, const std::function<bool(size_t)>& tell);

// Trees end to end, as a model stores them.
struct ForestPaths {
  std::vector<std::vector<Step>> trees;  // `feature` of a leaf is its number
  std::vector<const double*> values;     // of the leaves of each tree
  size_t width;
  const uint8_t* n_levels = nullptr;  // by column, 0 where it is no category; null: none is one
  const uint64_t* sets = nullptr;     // four words each
  std::vector<RankedTree> ranked;     // in place of `trees`, for rows of ranks

  size_t n_trees() const { return values.size(); }
};

// The rank of a threshold among the edges of its column, one more than all where it is infinite; none where it is none
// of them.
std::optional<size_t> rank_of(double threshold, const std::vector<double>& edges);

// A tree of which every threshold is an edge, for rows of ranks among them; none where one is not.
std::optional<RankedTree> ranked_tree(const std::vector<Step>& steps, const Edges& edges);
// One whose thresholds are ranks already.
std::optional<RankedTree> ranked_tree(const std::vector<Step>& steps);

// The mean over trees of what their leaves say, rows x width.
struct Means {
  std::vector<double> values;
  bool is_finite = true;
};
Means forest_means(const Rows& rows, ForestPaths forest, Crew& crew);

// The thresholds of a forest become ranks among edges; false, and the forest as it was, where one is no edge.
bool rank_thresholds(ForestPaths& forest, const Edges& edges, const ColumnRules& columns, Crew& crew);

// Rows as bytes that lead them as their values do: how many edges lie below a value, or its level, row after row. Empty
// where a look at both sides of every value does not agree.
std::vector<uint8_t> ranked_rows(const TreeRows& rows, const Edges& edges, const ColumnRules& columns, Crew& crew);

// Per row the mean over the trees that did not draw it, rows x width, and how many these are.
struct OutOfBag {
  std::vector<double> means, n_trees;
};

// A forest beside the rows that it was drawn from. deviation: the largest one of a leaf's value from that of the rows
// drawn into it, for numbers relative to the largest |y|; infinite for a leaf without rows. target, weight: of the
// rows. X: row after row, values or ranks.
struct ForestCheck {
  double deviation = 0;
  OutOfBag out;
  std::vector<double> target, weight;
};
template <class Number>
ForestCheck check_forest(const TreeRows& rows, const Number* X, const ForestPaths& forest, uint64_t seed,
                         size_t n_classes, Crew& crew);

// What rows drawn for trees add up to in the leaves, all trees end to end: of every class, or of y; and their draws.
// seen: by node, the levels that its rows have, where a column is a category.
struct ForestSums {
  std::vector<double> sums, mass;
  std::vector<Levels> seen;
};

// Rows that begin with a block, and of every tree the draws of their blocks. is_weighted: not all rows weigh the same.
struct DrawnPartOfRows {
  const TreeRows& rows;
  bool is_weighted;
  size_t first_block;
  const uint32_t* block_draws;  // trees x blocks
  size_t n_blocks;
  uint64_t seed;
};

// Adds the rows of a part to the sums of the parts before.
OutOfBag check_forest_part(const DrawnPartOfRows& part, const uint8_t* ranks, const ForestPaths& forest,
                           size_t n_classes, ForestSums& sums, Crew& crew);

}  // namespace certifit
