#include "../passes/oracle.hpp"

#include "rows.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

nb::object oracle_py(nb::list x, Vector y, std::optional<Vector> weight, std::optional<Vector> offset, Vector scale,
                     Vector shift, double weight_scale, Vector weights, double intercept, int loss, double parameter,
                     bool with_hessian, size_t block_rows, int threads, std::optional<CellNumbers> cells,
                     size_t n_cells) {
  HeldRows held(x);
  check_rows(held.rows, y, weight, block_rows);
  if (offset) check_size("offset", offset->shape(0), held.rows.n_rows);
  check_size("weights", weights.shape(0), held.rows.n_columns);
  check(loss >= 0 && loss < n_losses, "there is no such loss");
  const Scaling scaling = checked_scaling(held.rows, scale, shift, 1.0, 0.0, weight_scale);
  const Cells checked = checked_cells(held.rows, cells, n_cells);
  const size_t size = held.rows.n_columns + 1, shape[2] = {checked.count, size}, cubes[3] = {checked.count, size, size};
  OracleSums sums = run(threads, [&](Crew& crew) {
    return oracle(held.rows, y.data(), data_of(weight), data_of(offset), checked, scaling, {weights.data(), intercept},
                  static_cast<Loss>(loss), parameter, with_hessian, block_rows, crew);
  });
  nb::object value = nb::cast(to_numpy(std::move(sums.value)));
  nb::object gradient = nb::cast(to_numpy<2>(std::move(sums.gradient), shape));
  if (!with_hessian) return nb::make_tuple(value, gradient, nb::none(), nb::none(), sums.slopes, sums.curvatures);
  return nb::make_tuple(value, gradient, to_numpy<3>(std::move(sums.hessian), cubes), to_numpy(std::move(sums.largest)),
                        sums.slopes, sums.curvatures);
}

nb::object weighted_sums_py(nb::list x, Vector slopes, std::optional<Vector> curvatures, std::optional<Vector> weight,
                            Vector scale, Vector shift, double weight_scale, size_t block_rows, int threads,
                            std::optional<CellNumbers> cells, size_t n_cells) {
  HeldRows held(x);
  check_rows(held.rows, slopes, weight, block_rows);
  if (curvatures) {
    check_size("curvatures", curvatures->shape(0), held.rows.n_rows);
    for (size_t row = 0; row < held.rows.n_rows; ++row)
      check(curvatures->data()[row] >= 0 || (weight && weight->data()[row] == 0), "a curvature is not >= 0");
  }
  const Scaling scaling = checked_scaling(held.rows, scale, shift, 1.0, 0.0, weight_scale);
  const Cells checked = checked_cells(held.rows, cells, n_cells);
  const size_t size = held.rows.n_columns + 1, shape[2] = {checked.count, size}, cubes[3] = {checked.count, size, size};
  OracleSums sums = run(threads, [&](Crew& crew) {
    return weighted_sums(held.rows, slopes.data(), data_of(curvatures), data_of(weight), checked, scaling, block_rows,
                         crew);
  });
  nb::object gradient = nb::cast(to_numpy<2>(std::move(sums.gradient), shape));
  if (!curvatures) return nb::make_tuple(gradient, nb::none(), nb::none(), 0.0);
  return nb::make_tuple(gradient, to_numpy<3>(std::move(sums.hessian), cubes), to_numpy(std::move(sums.largest)),
                        sums.slopes);
}

}  // namespace

void bind_oracle(nb::module_& m) {
  m.def("oracle", oracle_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "offset"_a.noconvert().none(),
        "scale"_a.noconvert(), "shift"_a.noconvert(), "weight_scale"_a, "weights"_a.noconvert(), "intercept"_a,
        "loss"_a, "parameter"_a, "with_hessian"_a, "block_rows"_a, "threads"_a,
        "cells"_a.noconvert().none() = nb::none(), "n_cells"_a = 1);
  m.def("weighted_sums", weighted_sums_py, "x"_a, "slopes"_a.noconvert(), "curvatures"_a.noconvert().none(),
        "weight"_a.noconvert().none(), "scale"_a.noconvert(), "shift"_a.noconvert(), "weight_scale"_a, "block_rows"_a,
        "threads"_a, "cells"_a.noconvert().none() = nb::none(), "n_cells"_a = 1);
}

}  // namespace certifit
