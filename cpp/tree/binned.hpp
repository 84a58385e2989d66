// Trees on binned columns.
#pragma once

#include "bins.hpp"

namespace certifit {

// The greedy tree whose thresholds are edges of bins. codes: of the bins of the rows, row after row; the values of
// `rows` are not read. total: the weight of all rows, where these are those of one node; 0: these are all.
GrownTree grow_binned(const TreeRows& rows, const uint8_t* codes, const Edges& edges, Criterion criterion,
                      size_t n_classes, const Stops& stops, const ColumnRules& columns, Crew& crew, double total = 0);

}  // namespace certifit
