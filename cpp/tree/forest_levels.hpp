// Trees of a forest on rows in parts, level by level: those of forest.hpp. Draws are whole numbers, so histograms of
// the parts add up to those of all rows, bit by bit, in any order.
#pragma once

#include "forest_start.hpp"
#include "histogram.hpp"

namespace certifit {

// Rows of a part. codes: row after row; draws: for one tree; slot: of every row the number of its node, or -1.
struct ForestPart {
  const TreeRows& rows;
  const uint8_t* codes;
  const uint32_t* draws;
  const int32_t* slot;
};

// Words of a histogram: column after column, n_bins cells each.
size_t forest_words(const ForestPlan& plan, size_t n_columns);

// Histograms of some nodes of a tree, one after the other. units: of the tree.
std::vector<int64_t> forest_histograms(const ForestPart& part, size_t n_slots, const ForestPlan& plan,
                                       const PackedUnits& units, Crew& crew);

// A node to be split. is_pure: all its y are equal; of classes it is counted.
struct ForestNode {
  const int64_t* words;
  uint64_t key;
  size_t depth, n_rows;
  bool is_pure;
};

// Its best split among the columns that it tries. shares: of the classes.
struct ForestChoice {
  BinSplit split;
  std::vector<double> shares;
};

ForestChoice forest_choice(const ForestNode& node, size_t n_columns, const ForestPlan& plan, const PackedUnits& units);

}  // namespace certifit
