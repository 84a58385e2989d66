#include "../passes/thin_oracle.hpp"
#include "rows.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

void check_thin(const Rows& rows, const Vector& scale, size_t block_rows) {
  check(rows.n_dense == 0, "a pass over thin rows takes no dense columns, and no CSR of 32 columns or fewer");
  check_size("scale", scale.shape(0), rows.n_columns);
  check_block_rows(block_rows);
}

nb::object thin_oracle_py(nb::list x, Vector y, std::optional<Vector> weight, std::optional<Vector> offset,
                          Vector scale, double weight_scale, Vector weights, double intercept, int loss,
                          double parameter, size_t block_rows, int threads) {
  HeldRows held(x);
  check_thin(held.rows, scale, block_rows);
  check_rows(held.rows, y, weight, block_rows);
  if (offset) check_size("offset", offset->shape(0), held.rows.n_rows);
  check_size("weights", weights.shape(0), held.rows.n_columns);
  check(loss >= 0 && loss < n_losses, "there is no such loss");
  const Scaling scaling = checked_scaling(held.rows, scale, scale, 1.0, 0.0, weight_scale);
  ThinSums sums = run(threads, [&](Crew& crew) {
    return thin_oracle(held.rows, y.data(), data_of(weight), data_of(offset), scaling, {weights.data(), intercept},
                       static_cast<Loss>(loss), parameter, block_rows, crew);
  });
  return nb::make_tuple(sums.value, to_numpy(std::move(sums.gradient)), to_numpy(std::move(sums.curvatures)));
}

nb::object thin_product_py(nb::list x, Vector curvatures, Vector scale, Vector direction, size_t block_rows,
                           int threads) {
  HeldRows held(x);
  check_thin(held.rows, scale, block_rows);
  check_size("curvatures", curvatures.shape(0), held.rows.n_rows);
  check_size("direction", direction.shape(0), held.rows.n_columns + 1);
  const Scaling scaling = checked_scaling(held.rows, scale, scale, 1.0, 0.0, 1.0);
  return nb::cast(to_numpy(run(threads, [&](Crew& crew) {
    return thin_product(held.rows, curvatures.data(), scaling, direction.data(), block_rows, crew);
  })));
}

nb::object thin_diagonal_py(nb::list x, Vector curvatures, Vector scale, size_t block_rows, int threads) {
  HeldRows held(x);
  check_thin(held.rows, scale, block_rows);
  check_size("curvatures", curvatures.shape(0), held.rows.n_rows);
  const Scaling scaling = checked_scaling(held.rows, scale, scale, 1.0, 0.0, 1.0);
  return nb::cast(to_numpy(run(
      threads, [&](Crew& crew) { return thin_diagonal(held.rows, curvatures.data(), scaling, block_rows, crew); })));
}

}  // namespace

void bind_thin(nb::module_& m) {
  m.def("thin_oracle", thin_oracle_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(),
        "offset"_a.noconvert().none(), "scale"_a.noconvert(), "weight_scale"_a, "weights"_a.noconvert(), "intercept"_a,
        "loss"_a, "parameter"_a, "block_rows"_a, "threads"_a);
  m.def("thin_product", thin_product_py, "x"_a, "curvatures"_a.noconvert(), "scale"_a.noconvert(),
        "direction"_a.noconvert(), "block_rows"_a, "threads"_a);
  m.def("thin_diagonal", thin_diagonal_py, "x"_a, "curvatures"_a.noconvert(), "scale"_a.noconvert(), "block_rows"_a,
        "threads"_a);
}

}  // namespace certifit
