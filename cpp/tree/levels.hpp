// Trees on rows in parts, level by level: those of binned.hpp. A part gives histograms of whole numbers, which add up
// to those of all rows in any order, bit by bit, and rounded sums of its blocks of rows, which are added in their
// order.
#pragma once

#include "binned.hpp"
#include "histogram.hpp"

namespace certifit {

// How a tree is grown. whole: what all rows are.
struct LevelPlan {
  Criterion criterion;
  size_t n_classes, n_columns;
  Stops stops;
  const ColumnRules& columns;
  Whole whole;
};

// Words of a histogram: column after column, n_bins cells each.
size_t level_words(const LevelPlan& plan);

// Rows of a part, y and weights; codes: row after row. slot: of every row the number of its node, or -1.
struct LevelPart {
  const TreeRows& rows;
  const uint8_t* codes;
  const int32_t* slot;
};

// Histograms of some nodes, one after the other.
std::vector<int64_t> level_histograms(const LevelPart& part, size_t n_slots, const LevelPlan& plan, Crew& crew);

// Numbers that say what the rows of a node are: weights of the classes; or weight, mean, spread, first y, and whether
// all y are equal.
inline size_t level_width(size_t n_classes) { return n_classes > 0 ? n_classes : 5; }

// Those of some nodes, of every block of rows: blocks x nodes x width.
std::vector<double> block_sums(const LevelPart& part, size_t n_slots, Criterion criterion, size_t n_classes);

// Adds the sums of later blocks to those of nodes.
void add_block_sums(double* sums, const double* blocks, size_t n_blocks, size_t n_slots, Criterion criterion,
                    size_t n_classes);

// A node to be split. words: its histogram; sums: of its rows; low, high: between which its means must lie.
struct LevelNode {
  const int64_t* words;
  const double* sums;
  size_t depth, n_rows;
  double low, high;
};

// What it is and its best split. decrease: of the split, where is_exact; else it is that of the sums of both sides.
struct LevelSplit {
  NodeSums sums;
  BinSplit split;
  double decrease = 0;
  bool is_exact = true;
};

LevelSplit level_split(const LevelNode& node, const LevelPlan& plan, Crew& crew);

}  // namespace certifit
