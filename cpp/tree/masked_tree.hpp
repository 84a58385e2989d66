// Trees of few leaves, for rows whose values are ranks among the thresholds.
#pragma once

#include <algorithm>
#include <bit>

#include "tree.hpp"

namespace certifit {

// A tree of at most 64 leaves, for rows of ranks. Leaves are numbered from left to right. A node whose question a row
// answers with no takes the leaves below its left side from the row; the first leaf that no node takes is the row's.
// masks: of every column that is asked for and every rank, the leaves that its nodes leave.
class MaskedTree {
 public:
  static constexpr size_t most_leaves = 64;

  explicit MaskedTree(const Paths& paths) {
    const std::vector<Step> steps = steps_of(paths);
    std::vector<size_t> n_leaves(steps.size(), 1), first(steps.size(), 0);
    for (size_t node = steps.size(); node-- > 0;)  // children lie behind their parents
      if (const auto left = static_cast<size_t>(steps[node].left); left != 0)
        n_leaves[node] = n_leaves[left] + n_leaves[left + 1];
    for (size_t node = 0; node < steps.size(); ++node) {
      const Step& step = steps[node];
      const auto left = static_cast<size_t>(step.left);
      if (left == 0) {
        leaves_[first[node]] = static_cast<int32_t>(node);
        continue;
      }
      first[left] = first[node];
      first[left + 1] = first[node] + n_leaves[left];
      const uint64_t taken = ((uint64_t{1} << n_leaves[left]) - 1) << first[node];  // fewer than 64 on one side
      uint64_t* masks = masks_of(step.feature);
      const uint8_t n_levels = paths.n_levels ? paths.n_levels[step.feature] : 0;
      for (size_t rank = 0; rank < n_ranks; ++rank) {
        const double value = value_of(static_cast<uint8_t>(rank));
        const bool is_left = n_levels == 0 ? step.goes_left(value) : step.goes_left(value, n_levels, paths.sets);
        if (!is_left) masks[rank] &= ~taken;
      }
    }
  }

  // Few nodes, each of them but the root the child of one node: numbers from a file or from Python may be anything.
  static bool fits(const Paths& paths) {
    if (paths.n_nodes >= 2 * most_leaves) return false;
    bool is_child[2 * most_leaves + 1] = {};
    size_t n_children = 0;
    for (size_t node = 0; node < paths.n_nodes; ++node) {
      const auto left = static_cast<size_t>(paths.left[node]);
      if (left == 0) continue;
      if (is_child[left] || is_child[left + 1]) return false;
      is_child[left] = is_child[left + 1] = true;
      n_children += 2;
    }
    return n_children + 1 == paths.n_nodes;
  }

  void lead(const uint8_t* ranks, size_t n_columns, size_t n, int32_t* leaves) const {
    for (size_t i = 0; i < n; ++i) {
      const uint8_t* row = ranks + i * n_columns;
      uint64_t left = ~uint64_t{0};
      const uint64_t* masks = masks_.data();
      for (const uint32_t column : columns_) {
        left &= masks[row[column]];
        masks += n_ranks;
      }
      leaves[i] = leaves_[static_cast<size_t>(std::countr_zero(left))];
    }
  }

 private:
  static constexpr size_t n_ranks = 256;

  uint64_t* masks_of(uint32_t column) {
    const auto at = static_cast<size_t>(std::find(columns_.begin(), columns_.end(), column) - columns_.begin());
    if (at == columns_.size()) {
      columns_.push_back(column);
      masks_.resize(masks_.size() + n_ranks, ~uint64_t{0});
    }
    return masks_.data() + at * n_ranks;
  }

  std::vector<uint32_t> columns_;
  std::vector<uint64_t> masks_;
  int32_t leaves_[most_leaves] = {};
};

}  // namespace certifit
