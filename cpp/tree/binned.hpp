// Trees on binned columns.
#pragma once

#include "bins.hpp"

namespace certifit {

// Weights of rows [begin, begin + n) of a block, and what they add to `Whole::moments`.
struct WholeSizes {
  double weight = 0, moments = 0;
};
WholeSizes sizes_of(const TreeRows& rows, size_t begin, size_t n, double centre);

// What these rows are, where they are all.
Whole whole_of(const TreeRows& rows, Criterion criterion);

// The greedy tree whose thresholds are edges of bins. codes: of the bins of the rows, row after row; the values of
// `rows` are not read. whole: what all rows are, of which these may be those of one node. low, high: between
// which the means of the leaves must lie.
GrownTree grow_binned(const TreeRows& rows, const uint8_t* codes, const Edges& edges, Criterion criterion,
                      size_t n_classes, const Stops& stops, const ColumnRules& columns, Crew& crew, const Whole& whole,
                      double low = -std::numeric_limits<double>::infinity(),
                      double high = std::numeric_limits<double>::infinity());

}  // namespace certifit
