// What the bindings of passes over rows share: their arguments, checked.
#pragma once

#include "../passes/gram.hpp"
#include "check.hpp"

namespace certifit {

inline const double* data_of(const std::optional<Vector>& v) { return v ? v->data() : nullptr; }

inline Scaling checked_scaling(const Rows& rows, const Vector& scale, const Vector& shift, double y_scale,
                               double y_shift, double weight_scale) {
  check_size("scale", scale.shape(0), rows.n_columns);
  check_size("shift", shift.shape(0), rows.n_columns);
  return {scale.data(), shift.data(), y_scale, y_shift, weight_scale};
}

inline void check_block_rows(size_t block_rows) {
  check(block_rows > 0 && block_rows < size_t{1} << 48, "block_rows must be at least 1 and below 2^48");
}

inline void check_rows(const Rows& rows, const std::optional<Vector>& y, const std::optional<Vector>& weight,
                       size_t block_rows) {
  if (y) check_size("y", y->shape(0), rows.n_rows);
  if (weight) check_size("weight", weight->shape(0), rows.n_rows);
  check_block_rows(block_rows);
}

using CellNumbers = Array<int32_t, 1>;

inline Cells checked_cells(const Rows& rows, const std::optional<CellNumbers>& cells, size_t n_cells) {
  if (!cells) return {};
  const double size = static_cast<double>(rows.n_columns) + 2;  // columns, 1 and y: a square of sums per cell
  check(n_cells > 0 && static_cast<double>(n_cells) * size * size < 0x1p48,
        "n_cells must be at least 1, and the sums of all cells below 2^48 numbers");
  check_size("cells", cells->shape(0), rows.n_rows);
  for (size_t row = 0; row < rows.n_rows; ++row)
    check(cells->data()[row] < static_cast<int64_t>(n_cells), "a cell is not below n_cells");
  return {cells->data(), n_cells};
}

}  // namespace certifit
