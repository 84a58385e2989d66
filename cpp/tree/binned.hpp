// Trees on binned columns.
#pragma once

#include "bins.hpp"

namespace certifit {

// The greedy tree whose thresholds are edges of bins. codes: of the bins of the rows, row after row; the values of
// `rows` are not read.
GrownTree grow_binned(const TreeRows& rows, const uint8_t* codes, const Edges& edges, Criterion criterion,
                      size_t n_classes, const Stops& stops, const ColumnRules& columns, Crew& crew);

}  // namespace certifit
