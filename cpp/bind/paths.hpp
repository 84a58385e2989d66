// Trees from Python: their nodes are checked before a row is led through them.
#pragma once

#include <cmath>

#include "../tree/tree.hpp"
#include "check.hpp"

namespace certifit {

template <class Number>
using NodeNumbersOf = Array<Number, 1>;
using NodeFlags = Array<uint8_t, 1>;
using LevelSets = Array<uint64_t, 2>;

template <class Number>
struct TreeArraysOf {
  NodeNumbersOf<Number> feature, left;
  Vector threshold;
  NodeFlags is_missing_left;
  std::optional<NodeFlags> n_levels;
  std::optional<LevelSets> sets;

  void check_sizes(size_t n_columns) const {
    const size_t n = left.shape(0);
    check(n < size_t{1} << 31, "trees need fewer than 2^31 nodes");
    check_size("feature", feature.shape(0), n);
    check_size("threshold", threshold.shape(0), n);
    check_size("is_missing_left", is_missing_left.shape(0), n);
    check(n_levels.has_value() == sets.has_value(), "sets of levels go with categories");
    if (n_levels) check_size("n_levels", n_levels->shape(0), n_columns);
    if (sets) check_size("words of a set", sets->shape(1), 4);
  }

  // The tree of the nodes [begin, end).
  PathsOf<Number> checked(size_t begin, size_t end, size_t n_columns) const {
    check(begin < end && end <= left.shape(0), "a tree needs a node");
    const auto n = static_cast<int64_t>(end - begin);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t child = left.data()[begin + static_cast<size_t>(k)];
      const int64_t column = feature.data()[begin + static_cast<size_t>(k)];
      if (child == 0) continue;
      check(child > k && child < n - 1, "a child is not behind its parent");
      check(column >= 0 && column < static_cast<int64_t>(n_columns), "a node splits a column that is not there");
      if (!n_levels || n_levels->data()[column] == 0) continue;
      const double number = threshold.data()[begin + static_cast<size_t>(k)];
      check(number >= 0 && number < static_cast<double>(sets->shape(0)) && number == std::floor(number),
            "a node has a set of levels that is not there");
    }
    return {end - begin,
            feature.data() + begin,
            left.data() + begin,
            threshold.data() + begin,
            is_missing_left.data() + begin,
            n_levels ? n_levels->data() : nullptr,
            n_levels ? sets->data() : nullptr};
  }
};
using TreeArrays = TreeArraysOf<int64_t>;

}  // namespace certifit
