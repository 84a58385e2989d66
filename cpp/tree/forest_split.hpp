// How a node of a forest is split: by cells of draws that all its rows, or histograms of the parts that they are in,
// add up to.
#pragma once

#include "forest_start.hpp"
#include "kinds.hpp"

namespace certifit {

inline size_t levels_of(const ForestPlan& plan, size_t column) {
  return plan.columns.is_levels(column) ? plan.columns.n_levels[column] : 0;
}

// Of columns that are worth the same the one that was drawn first.
inline bool is_larger(const BinSplit& split, const BinSplit& best) {
  return split.is_found && (!best.is_found || split.gain > best.gain * (1 + tie_share));
}

// Squared error, and Gini of two classes. total: of all rows of the node.
inline BinSplit packed_split(const ForestPlan& plan, const PackedUnits& units, const Cell* cells,
                             const ColumnView& view, const Cell& total) {
  const double times = plan.n_classes == 2 ? 2.0 : 1.0, unit = units.sum_unit();
  const SquaredCut gain{units.sum(total), units.mass(total), times};
  BinSplit split = split_of(units, cells, view, levels_of(plan, view.column), plan.stops.min_rows_leaf, gain);
  split.gain *= unit * unit / units.mass_unit();
  return split;
}

// Gini of more classes. met: bins with rows, without the missing one; node: the cell of all its rows.
inline BinSplit class_split(const ForestPlan& plan, const double* cells, size_t column, const std::vector<uint8_t>& met,
                            const double* node, std::vector<double>& work) {
  SplitRules rules;
  rules.min_rows = static_cast<double>(plan.stops.min_rows_leaf);
  rules.n_levels = levels_of(plan, column);
  BinSplit split;
  scan_column(ClassScore{plan.n_classes, false}, column, cells, met, node, rules, work, split);
  return split;
}

}  // namespace certifit
