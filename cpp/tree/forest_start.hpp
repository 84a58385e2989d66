// Where trees of a forest begin, and what their rows add to sums.
#pragma once

#include <optional>

#include "forest.hpp"
#include "packed.hpp"

namespace certifit {

// Where a tree, or a part of one, begins. units: those of the whole tree; none: these are all its rows.
struct ForestStart {
  std::vector<uint32_t> draws;
  uint64_t key;
  size_t depth;
  std::optional<PackedUnits> units;
};

// The part of a tree below a node. rows: those that are drawn into it; `block_starts` say which blocks they are of.
ForestTree grow_rest(const TreeRows& rows, const BinnedColumns& bins, const ForestPlan& plan, ForestStart start,
                     Crew& crew);

// What the draws of a row add to sums of y: of two classes, how many there are of the second.
inline double drawn_moment(const ForestPlan& plan, double y, double draws) {
  return draws * (y - (plan.n_classes == 2 ? 0.0 : plan.centre));
}

// Sums of |moments| and of draws over drawn rows, block by block.
PackedSizes drawn_sizes(const ForestPlan& plan, const TreeRows& rows, const std::vector<uint32_t>& draws,
                        const std::vector<uint32_t>& order);

}  // namespace certifit
