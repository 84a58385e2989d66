// Trees whose nodes take eight bytes, for rows of ranks: how many thresholds of a column lie below a value, 255 where
// it is missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "tree.hpp"

namespace certifit {

// A row goes left where its rank + lift, as a byte, is at most `bound`: a missing value is lifted to 0 where it goes
// left. `left` of a leaf is its number.
struct RankStep {
  uint32_t left;
  uint16_t feature;
  uint8_t bound;
  uint8_t lift : 1, is_inner : 1;
};

class RankedTree {
 public:
  // Of a tree whose leaves are numbered by `feature`. rank(step): of its threshold, none where it has none; then there
  // is no tree.
  template <class Rank>
  static std::optional<RankedTree> of(const std::vector<Step>& steps, Rank rank) {
    RankedTree tree;
    tree.steps_.reserve(steps.size());
    for (const Step& step : steps) {
      if (step.left == 0) {
        tree.steps_.push_back({step.feature, 0, 0, 0, 0});
        ++tree.n_leaves_;
        continue;
      }
      const std::optional<size_t> found = rank(step);
      if (!found || step.feature > UINT16_MAX) return std::nullopt;
      const uint8_t lift = step.is_missing_left;
      tree.steps_.push_back({static_cast<uint32_t>(step.left), static_cast<uint16_t>(step.feature),
                             static_cast<uint8_t>(std::min(*found, size_t{254}) + lift), lift, 1});
    }
    return tree;
  }

  size_t n_leaves() const { return n_leaves_; }

  // Leaf k is called numbers[k] from now on.
  void renumber(const uint32_t* numbers) {
    for (RankStep& step : steps_)
      if (!step.is_inner) step.left = numbers[step.left];
  }

  // use(place, number of its leaf) of some rows, each at `ranks` + its place * n_columns. Some rows at a time go down
  // level by level, those in a leaf are left behind: no row waits for the memory of another, and no branch is guessed.
  template <class Use>
  void lead(const uint8_t* ranks, size_t n_columns, const uint32_t* places, size_t n, Use use) const {
    constexpr size_t most = 1024;
    uint64_t moving[most];  // a row << 32 | its node
    uint32_t leaf[most];
    for (size_t first = 0; first < n; first += most) {
      const size_t count = std::min(most, n - first);
      for (size_t k = 0; k < count; ++k) moving[k] = uint64_t{k} << 32;
      for (size_t n_moving = count; n_moving > 0;) {
        size_t n_left = 0;
        for (size_t k = 0; k < n_moving; ++k) {
          const uint64_t row = moving[k] >> 32;
          const RankStep step = steps_[static_cast<uint32_t>(moving[k])];
          const uint8_t rank = ranks[places[first + row] * n_columns + step.feature];
          leaf[row] = step.left;
          moving[n_left] = row << 32 | (step.left + (static_cast<uint8_t>(rank + step.lift) > step.bound));
          n_left += step.is_inner;
        }
        n_moving = n_left;
      }
      for (size_t k = 0; k < count; ++k) use(places[first + k], leaf[k]);
    }
  }

 private:
  std::vector<RankStep> steps_;
  size_t n_leaves_ = 0;
};

}  // namespace certifit
