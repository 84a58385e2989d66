// Trees of classes on rows in parts, level by level: those of binned.hpp where weights are whole numbers. A part gives
// weights of the classes by bin, which add up to those of all rows in any order, bit by bit.
#pragma once

#include "histogram.hpp"

namespace certifit {

// total: the weight of all rows; is_weighted: whether any weight is not 1.
struct ClassPlan {
  Criterion criterion;
  size_t n_classes, n_columns;
  Stops stops;
  const ColumnRules& columns;
  double total;
  bool is_weighted;
};

// Whole numbers of a bin: rows, and the weight of every class.
inline size_t class_cell(size_t n_classes) { return 1 + n_classes; }

// Rows of a part. codes: row after row; y: codes of classes; slot: of every row the number of its node's histogram, or
// -1.
struct ClassPart {
  size_t n_rows, n_columns;
  const uint8_t* codes;
  const double *y, *weight;
  const int32_t* slot;
};

// Histograms of some nodes, one after the other: column after column, n_bins cells each.
std::vector<int64_t> class_histograms(const ClassPart& part, size_t n_slots, size_t n_classes, Crew& crew);

// A node and its best split. n_rows: of the node; left_rows: of its left side.
struct ClassNode {
  NodeSums sums;
  size_t n_rows = 0, left_rows = 0;
  BinSplit split;
  double decrease = 0;
};

// words: histograms of n_nodes nodes, depth: of each.
std::vector<ClassNode> class_splits(const int64_t* words, const int64_t* depth, size_t n_nodes, const ClassPlan& plan,
                                    Crew& crew);

}  // namespace certifit
