// Bins of columns from Python: their edges, their codes and what is known of the columns.
#pragma once

#include <cmath>

#include "../tree/bins.hpp"
#include "check.hpp"

namespace certifit {

using Flags = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Directions = nb::ndarray<const int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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
