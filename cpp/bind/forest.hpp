// What bindings of forests check.
#pragma once

#include <cmath>

#include "../tree/forest.hpp"
#include "bins.hpp"

namespace certifit {

inline void check_labelled(size_t n_rows, const Vector& y, const std::optional<Vector>& weight, size_t n_classes) {
  check_size("y", y.shape(0), n_rows);
  if (weight) check_size("weight", weight->shape(0), n_rows);
  check(n_rows < size_t{1} << 31, "a forest needs fewer than 2^31 rows");
  check(n_classes < size_t{1} << 20, "n_classes is out of range");
  for (size_t i = 0; i < n_rows; ++i) {
    const double w = weight ? weight->data()[i] : 1.0, value = y.data()[i];
    check(w >= 0 && w < 0x1p500, "weights must be >= 0 and below 2^500");
    const bool is_code = value >= 0 && value < static_cast<double>(n_classes) && value == std::floor(value);
    check(n_classes == 0 || w == 0 || is_code, "y must be codes of the classes");
  }
}

inline void check_plan(ForestPlan& plan, const std::optional<Flags>& n_levels, size_t n_columns) {
  const size_t least = plan.stops.min_rows_leaf;
  check(plan.n_classes != 1, "n_classes is out of range");
  check(plan.n_trees < size_t{1} << 20 && least > 0 && least < size_t{1} << 40,
        "n_trees or min_rows_leaf is out of range");
  plan.columns = checked_columns({}, n_levels, n_columns, 0);
}

}  // namespace certifit
