// Trees on binned columns.
#pragma once

#include "bins.hpp"

namespace certifit {

// The greedy tree whose thresholds are edges of bins.
GrownTree grow_binned(const TreeRows& rows, const Bins& bins, Criterion criterion, size_t n_classes, const Stops& stops,
                      const ColumnRules& columns, Crew& crew);

}  // namespace certifit
