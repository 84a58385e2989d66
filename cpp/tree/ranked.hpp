// Trees whose nodes take four or eight bytes, for rows of ranks: how many thresholds of a column lie below a value, 255
// where it is missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "tree.hpp"

namespace certifit {

// A row goes right where its rank is at least `bound`, unless its value is missing and these go left. A leaf leads to
// itself. Siblings lie side by side, left ones at odd places.
struct WideStep {
  uint32_t left;
  uint16_t column;
  uint8_t bound;
  bool is_missing_left;

  static constexpr size_t most_columns = size_t{1} << 16, most_nodes = UINT32_MAX;
  static WideStep leaf(uint32_t place) { return {place, 0, 255, true}; }
  static WideStep inner(uint32_t left, uint32_t column, uint8_t bound, bool is_missing_left) {
    return {left, static_cast<uint16_t>(column), bound, is_missing_left};
  }
  uint32_t left_child() const { return left; }
};

struct NarrowStep {
  uint16_t pair;
  uint8_t bound;
  uint8_t column : 7, is_missing_left : 1;

  static constexpr size_t most_columns = 128, most_nodes = size_t{1} << 17;
  // Of a tree that is more than its root: no rank is 255 or more, unless it is missing, and every one is 0 or more.
  static NarrowStep leaf(uint32_t place) {
    return place % 2 == 1 ? inner(place, 0, 255, true) : inner(place - 1, 0, 0, false);
  }
  static NarrowStep inner(uint32_t left, uint32_t column, uint8_t bound, bool is_missing_left) {
    return {static_cast<uint16_t>(left / 2), bound, static_cast<uint8_t>(column & 127), is_missing_left};
  }
  uint32_t left_child() const { return 2 * uint32_t{pair} + 1; }
};

class RankedTree {
 public:
  // Of a tree whose leaves are numbered by `feature`. rank(step): of its threshold, none where it has none; then there
  // is no tree.
  template <class Rank>
  static std::optional<RankedTree> of(const std::vector<Step>& steps, Rank rank) {
    RankedTree tree;
    uint32_t n_columns = 0;
    for (const Step& step : steps) {
      tree.n_leaves_ += step.left == 0;
      if (step.left != 0) n_columns = std::max(n_columns, step.feature + 1);
    }
    const bool is_narrow =
        steps.size() > 1 && steps.size() < NarrowStep::most_nodes && n_columns <= NarrowStep::most_columns;
    const bool is_whole = is_narrow ? tree.fill(steps, rank, tree.narrow_)
                                    : n_columns <= WideStep::most_columns && tree.fill(steps, rank, tree.wide_);
    if (!is_whole) return std::nullopt;
    return tree;
  }

  size_t n_leaves() const { return n_leaves_; }

  // Leaf k is called numbers[k] from now on.
  void renumber(const uint32_t* numbers) {
    for (uint32_t& number : numbers_)
      if (number != no_number) number = numbers[number];
  }

  // use(place, number of its leaf) of some rows, each at `ranks` + its place * n_columns. has_missing: whether any of
  // them may have a rank of 255.
  template <class Use>
  void lead(const uint8_t* ranks, size_t n_columns, bool has_missing, const uint32_t* places, size_t n, Use use) const {
    const auto lead_by = [&](const auto& steps) {
      for (size_t first = 0; first < n; first += at_once) {
        const size_t count = std::min(at_once, n - first);
        const uint8_t* rows[at_once];
        uint32_t nodes[at_once];
        for (size_t k = 0; k < count; ++k) rows[k] = ranks + places[first + k] * n_columns;
        if (has_missing)
          lead_some<true>(steps.data(), rows, count, nodes);
        else
          lead_some<false>(steps.data(), rows, count, nodes);
        for (size_t k = 0; k < count; ++k) use(places[first + k], numbers_[nodes[k]]);
      }
    };
    if (narrow_.empty())
      lead_by(wide_);
    else
      lead_by(narrow_);
  }

 private:
  static constexpr size_t at_once = 512;      // rows, which stay in the nearest cache
  static constexpr size_t n_by_level = 1024;  // nodes that do, too

  template <class Rank, class StepOf>
  bool fill(const std::vector<Step>& steps, Rank rank, std::vector<StepOf>& to) {
    const std::vector<uint32_t> place = places_of(steps);
    if (place.empty()) return false;
    to.resize(steps.size());
    numbers_.resize(steps.size(), no_number);
    for (size_t node = 0; node < steps.size(); ++node) {
      const Step& step = steps[node];
      if (step.left == 0) {
        to[place[node]] = StepOf::leaf(place[node]);
        numbers_[place[node]] = step.feature;
        continue;
      }
      const std::optional<size_t> found = rank(step);
      const auto left = static_cast<size_t>(step.left);
      if (!found || place[left] % 2 == 0 || place[left + 1] != place[left] + 1) return false;
      const auto bound = static_cast<uint8_t>(std::min(*found, size_t{254}) + 1);
      to[place[node]] = StepOf::inner(place[left], step.feature, bound, step.is_missing_left != 0);
    }
    return true;
  }

  // Where nodes go: the first ones, which all rows come to, level by level, side by side; the others in their order.
  // None where a node has two parents.
  static std::vector<uint32_t> places_of(const std::vector<Step>& steps) {
    constexpr uint32_t none = UINT32_MAX;
    std::vector<uint32_t> place(steps.size(), none), level{0}, below;
    uint32_t next = 1;
    place[0] = 0;
    for (; next < n_by_level && !level.empty(); level.swap(below)) {
      below.clear();
      for (const uint32_t node : level) {
        const auto left = static_cast<uint32_t>(steps[node].left);
        if (left == 0) continue;
        if (place[left] != none || place[left + 1] != none) return {};
        place[left] = next++;
        place[left + 1] = next++;
        below.insert(below.end(), {left, left + 1});
      }
    }
    for (uint32_t& of_node : place)
      if (of_node == none) of_node = next++;
    return place;
  }

  template <bool has_missing, class StepOf>
  static uint32_t next_of(const StepOf* steps, uint32_t node, const uint8_t* row) {
    const StepOf& step = steps[node];
    const uint8_t rank = row[step.column];
    bool is_right = rank >= step.bound;
    if constexpr (has_missing) is_right = is_right & !((rank == 255) & (step.is_missing_left != 0));
    return step.left_child() + is_right;
  }

  // The leaves of some rows. All of them go down two levels at a time, those in a leaf are left behind: no row waits
  // for the memory of another, and no branch is guessed.
  template <bool has_missing, class StepOf>
  static void lead_some(const StepOf* steps, const uint8_t* const* rows, size_t count, uint32_t* nodes) {
    uint64_t moving[at_once];  // a row << 32 | its node
    for (size_t k = 0; k < count; ++k) moving[k] = uint64_t{k} << 32;
    for (size_t n_moving = count; n_moving > 0;) {
      size_t n_left = 0;
      for (size_t m = 0; m < n_moving; ++m) {
        const uint64_t k = moving[m] >> 32;
        const uint32_t child = next_of<has_missing>(steps, static_cast<uint32_t>(moving[m]), rows[k]);
        const uint32_t below = next_of<has_missing>(steps, child, rows[k]);
        nodes[k] = below;
        moving[n_left] = k << 32 | below;
        n_left += below != child;
      }
      n_moving = n_left;
    }
  }

  static constexpr uint32_t no_number = UINT32_MAX;

  std::vector<NarrowStep> narrow_;  // or, where these are too few
  std::vector<WideStep> wide_;
  std::vector<uint32_t> numbers_;  // of the leaves, by place
  size_t n_leaves_ = 0;
};

}  // namespace certifit
