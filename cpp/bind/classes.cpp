#include "../passes/cell_sums.hpp"
#include "../passes/class_scores.hpp"
#include "rows.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

using Cube = Array<double, 3>;

void check_shape(const char* name, const Matrix& matrix, size_t n_rows, size_t n_columns) {
  check_size(name, matrix.shape(0) * matrix.shape(1), n_rows * n_columns);
  check_size(name, matrix.shape(1), n_columns);
}

nb::object cell_sums_py(nb::list x, std::optional<Vector> weight, CellNumbers cells, Vector scale, Matrix shift,
                        double weight_scale, bool squares, std::optional<double> threshold, size_t block_rows,
                        int threads) {
  HeldRows held(x);
  const size_t d = held.rows.n_columns, n_cells = shift.shape(0);
  check_rows(held.rows, std::nullopt, weight, block_rows);
  check_size("cells", cells.shape(0), held.rows.n_rows);
  check_size("scale", scale.shape(0), d);
  check_shape("shift", shift, n_cells, d);
  for (size_t row = 0; row < held.rows.n_rows; ++row)
    check(cells.data()[row] < static_cast<int64_t>(n_cells), "a cell is not below the number of cells");
  CellSumsTask task;
  task.weight = data_of(weight);
  task.cells = {cells.data(), n_cells};
  task.scale = scale.data();
  task.shift = shift.data();
  task.weight_scale = weight_scale;
  task.has_squares = squares;
  task.is_indicator = threshold.has_value();
  task.threshold = threshold.value_or(0.0);
  CellSums sums = run(threads, [&](Crew& crew) { return cell_sums(held.rows, task, block_rows, crew); });
  const size_t shape[2] = {n_cells, d};
  nb::object second = nb::none();
  if (squares) second = nb::cast(to_numpy<2>(std::move(sums.squares), shape));
  return nb::make_tuple(to_numpy(std::move(sums.weight)), to_numpy<2>(std::move(sums.sums), shape), second, sums.lowest,
                        sums.is_finite);
}

nb::object linear_scores_py(nb::list x, Matrix weights, Vector intercepts, int threads) {
  HeldRows held(x);
  const size_t n_classes = weights.shape(0);
  check_shape("weights", weights, n_classes, held.rows.n_columns);
  check_size("intercepts", intercepts.shape(0), n_classes);
  const size_t shape[2] = {held.rows.n_rows, n_classes};
  return nb::cast(to_numpy<2>(
      run(threads,
          [&](Crew& crew) { return linear_scores(held.rows, weights.data(), intercepts.data(), n_classes, crew); }),
      shape));
}

nb::object quadratic_scores_py(nb::list x, Matrix means, Cube roots, Vector constants, int threads) {
  HeldRows held(x);
  const size_t n_classes = means.shape(0), d = held.rows.n_columns;
  const bool is_diagonal = roots.shape(1) == 1;
  check_shape("means", means, n_classes, d);
  check_size("roots", roots.shape(0), n_classes);
  check_size("roots", roots.shape(1), is_diagonal ? 1 : d);
  check_size("roots", roots.shape(2), d);
  check_size("constants", constants.shape(0), n_classes);
  const size_t shape[2] = {held.rows.n_rows, n_classes};
  return nb::cast(to_numpy<2>(run(threads,
                                  [&](Crew& crew) {
                                    return quadratic_scores(held.rows, means.data(), roots.data(), is_diagonal,
                                                            constants.data(), n_classes, crew);
                                  }),
                              shape));
}

}  // namespace

void bind_classes(nb::module_& m) {
  m.def("cell_sums", cell_sums_py, "x"_a, "weight"_a.noconvert().none(), "cells"_a.noconvert(), "scale"_a.noconvert(),
        "shift"_a.noconvert(), "weight_scale"_a, "squares"_a, "threshold"_a.none(), "block_rows"_a, "threads"_a);
  m.def("linear_scores", linear_scores_py, "x"_a, "weights"_a.noconvert(), "intercepts"_a.noconvert(), "threads"_a);
  m.def("quadratic_scores", quadratic_scores_py, "x"_a, "means"_a.noconvert(), "roots"_a.noconvert(),
        "constants"_a.noconvert(), "threads"_a);
}

}  // namespace certifit
