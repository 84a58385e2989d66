// Bins of columns from Python: their edges, their codes and what is known of the columns.
#pragma once

#include <cmath>
#include <map>
#include <string>

#include "../tree/bins.hpp"
#include "check.hpp"

namespace certifit {

using Flags = Array<uint8_t, 1>;
using Codes = Array<uint8_t, 2>;
using Directions = Array<int8_t, 1>;

inline ColumnRules checked_columns(const std::optional<Directions>& direction, const std::optional<Flags>& n_levels,
                                   size_t n_columns, size_t n_classes) {
  ColumnRules columns;
  if (direction) {
    check_size("direction", direction->shape(0), n_columns);
    columns.direction.assign(direction->data(), direction->data() + n_columns);
    check(n_classes < 3 || !columns.has_directions(), "directions need numbers, or two classes");
  }
  if (n_levels) {
    check_size("n_levels", n_levels->shape(0), n_columns);
    columns.n_levels.assign(n_levels->data(), n_levels->data() + n_columns);
  }
  return columns;
}

// Edges from Python, ascending and finite, at most 254 per column.
inline Edges checked_edges(const nb::list& arrays, size_t n_columns) {
  check_size("edges", arrays.size(), n_columns);
  Edges edges;
  for (nb::handle item : arrays) {
    const auto array = nb::cast<Vector>(item);
    const std::vector<double> values(array.data(), array.data() + array.shape(0));
    check(values.size() < 255, "a column has more than 255 bins");
    for (size_t k = 0; k < values.size(); ++k)
      check(std::isfinite(values[k]) && (k == 0 || values[k] > values[k - 1]), "edges must be finite and ascending");
    edges.push_back(values);
  }
  return edges;
}

inline Criterion checked_criterion(const std::string& name, size_t n_classes) {
  const std::map<std::string, Criterion> known = {{"gini", Criterion::gini},
                                                  {"entropy", Criterion::entropy},
                                                  {"squared_error", Criterion::squared_error},
                                                  {"poisson", Criterion::poisson}};
  const auto found = known.find(name);
  check(found != known.end(), "unknown criterion: " + name);
  const bool is_of_classes = found->second == Criterion::gini || found->second == Criterion::entropy;
  check(is_of_classes == (n_classes > 0), name + " does not go with " + std::to_string(n_classes) + " classes");
  return found->second;
}

inline void check_target(const Vector& y, const std::optional<Vector>& weight, Criterion criterion, size_t n_classes) {
  for (size_t i = 0; i < y.shape(0); ++i) {
    const double w = weight ? weight->data()[i] : 1.0, value = y.data()[i];
    check(w >= 0 && w < 0x1p500, "weights must be >= 0 and below 2^500");
    const bool is_code = value >= 0 && value < static_cast<double>(n_classes) && value == std::floor(value);
    check(n_classes == 0 || w == 0 || is_code, "y must be codes of the classes");
    check(criterion != Criterion::poisson || !(value < 0), "Poisson needs y >= 0");
  }
}

// `Whole` from Python: its numbers in their order.
using WholeNumbers = Vector;

inline Whole checked_whole(const WholeNumbers& whole) {
  check_size("whole", whole.shape(0), 6);
  const double* at = whole.data();
  for (size_t k = 0; k < 6; ++k) check(std::isfinite(at[k]), "whole must be finite");
  check(at[0] >= 1 && at[0] < 0x1p31 && at[1] > 0 && at[5] >= 0, "whole is out of range");
  return {static_cast<size_t>(at[0]), at[1], at[2] != 0, at[3] != 0, at[4], at[5]};
}

// Distinct rows whose values are elsewhere, as codes.
inline TreeRows coded_rows(const Vector& y, const Vector& weight, size_t n_rows, size_t n_columns) {
  check_size("y", y.shape(0), n_rows);
  check_size("weight", weight.shape(0), n_rows);
  check(n_rows > 0 && n_rows < size_t{1} << 31, "a tree needs 1 to 2^31 - 1 rows");
  TreeRows rows;
  rows.n_rows = n_rows;
  rows.n_columns = n_columns;
  rows.y.assign(y.data(), y.data() + n_rows);
  rows.weight.assign(weight.data(), weight.data() + n_rows);
  for (double mass : rows.weight) {
    check(mass > 0 && mass < 0x1p500, "weights must be above 0 and below 2^500");
    rows.is_weighted |= mass != 1.0;
  }
  return rows;
}

template <class T>
nb::object matrix_of(std::vector<T>&& values, size_t n_rows, size_t n_columns) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const size_t shape[2] = {n_rows, n_columns};
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(kept->data(), 2, shape, owner));
}

}  // namespace certifit
