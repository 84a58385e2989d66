#include "../passes/folds.hpp"
#include "../passes/softmax.hpp"
#include "rows.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

ScoreWeights checked_weights(const Rows& rows, const Matrix& weights, const Vector& intercepts) {
  check_size("intercepts", intercepts.shape(0), weights.shape(1));
  check(weights.shape(1) > 0, "weights need at least one column of scores");
  check_size("weights", weights.shape(0), rows.n_columns);
  return {weights.data(), intercepts.data(), weights.shape(1)};
}

void check_codes(const Vector& y, const std::optional<Vector>& weight, size_t n_classes) {
  const double last = static_cast<double>(n_classes) - 1;
  for (size_t row = 0; row < y.shape(0); ++row) {
    const double code = y.data()[row];
    const bool is_code = code >= 0 && code <= last && code == std::floor(code);
    check(is_code || (weight && weight->data()[row] == 0), "a class is not a whole number below the number of classes");
  }
}

nb::object gradient_of(ManySums& sums, size_t n_slopes) {
  const size_t shape[2] = {sums.gradient.size() / n_slopes, n_slopes};
  return nb::cast(to_numpy<2>(std::move(sums.gradient), shape));
}

nb::object softmax_py(nb::list x, Vector y, std::optional<Vector> weight, Vector scale, Vector shift,
                      double weight_scale, Matrix weights, Vector intercepts, size_t block_rows, int threads) {
  HeldRows held(x);
  check_rows(held.rows, y, weight, block_rows);
  const ScoreWeights state = checked_weights(held.rows, weights, intercepts);
  check_codes(y, weight, state.n_scores);
  const Scaling scaling = checked_scaling(held.rows, scale, shift, 1.0, 0.0, weight_scale);
  ManySums sums = run(threads, [&](Crew& crew) {
    return softmax(held.rows, y.data(), data_of(weight), scaling, state, block_rows, crew);
  });
  return nb::make_tuple(sums.own[0], gradient_of(sums, state.n_scores));
}

nb::object product_py(nb::list x, std::optional<Vector> weight, Vector scale, Vector shift, double weight_scale,
                      Matrix weights, Vector intercepts, Matrix ways, Vector levels, size_t block_rows, int threads) {
  HeldRows held(x);
  check_rows(held.rows, std::nullopt, weight, block_rows);
  const ScoreWeights state = checked_weights(held.rows, weights, intercepts);
  const ScoreWeights direction = checked_weights(held.rows, ways, levels);
  check_size("ways", direction.n_scores, state.n_scores);
  const Scaling scaling = checked_scaling(held.rows, scale, shift, 1.0, 0.0, weight_scale);
  ManySums sums = run(threads, [&](Crew& crew) {
    return softmax_product(held.rows, data_of(weight), scaling, state, direction, block_rows, crew);
  });
  return gradient_of(sums, state.n_scores);
}

nb::object dual_py(nb::list x, Vector y, std::optional<Vector> weight, Vector scale, Vector shift, double weight_scale,
                   Matrix weights, Vector intercepts, Vector lift, Vector mix, double share, size_t block_rows,
                   int threads) {
  HeldRows held(x);
  check_rows(held.rows, y, weight, block_rows);
  const ScoreWeights state = checked_weights(held.rows, weights, intercepts);
  const size_t n_classes = state.n_scores;
  check_codes(y, weight, n_classes);
  check_size("lift", lift.shape(0), n_classes);
  check_size("mix", mix.shape(0), n_classes);
  check(share >= 0 && share <= 1, "share must be from 0 to 1");
  const Scaling scaling = checked_scaling(held.rows, scale, shift, 1.0, 0.0, weight_scale);
  ManySums sums = run(threads, [&](Crew& crew) {
    return softmax_dual(held.rows, y.data(), data_of(weight), scaling, state, {lift.data(), mix.data(), share},
                        block_rows, crew);
  });
  const size_t square[2] = {n_classes, n_classes};
  std::vector<double> curvature(sums.own.begin() + 1, sums.own.end());
  return nb::make_tuple(sums.own[0], gradient_of(sums, n_classes), to_numpy<2>(std::move(curvature), square));
}

nb::object pairs_py(nb::list x, std::optional<Vector> weight, Vector scale, Vector shift, double weight_scale,
                    Matrix weights, Vector intercepts, size_t block_rows, int threads) {
  HeldRows held(x);
  check_rows(held.rows, std::nullopt, weight, block_rows);
  const ScoreWeights state = checked_weights(held.rows, weights, intercepts);
  const Scaling scaling = checked_scaling(held.rows, scale, shift, 1.0, 0.0, weight_scale);
  const size_t size = held.rows.n_columns + 1, n_pairs = state.n_scores * (state.n_scores - 1) / 2;
  const size_t cubes[3] = {n_pairs, size, size};
  std::vector<double> pairs = run(
      threads, [&](Crew& crew) { return softmax_pairs(held.rows, data_of(weight), scaling, state, block_rows, crew); });
  return nb::cast(to_numpy<3>(std::move(pairs), cubes));
}

nb::object folds_py(nb::list x, Vector y, std::optional<Vector> weight, std::optional<Vector> offset, Vector scale,
                    Vector shift, double weight_scale, Matrix weights, Vector intercepts, CellNumbers cells,
                    Matrix train, Matrix validation, int loss, double parameter, bool with_value, size_t block_rows,
                    int threads) {
  HeldRows held(x);
  check_rows(held.rows, y, weight, block_rows);
  if (offset) check_size("offset", offset->shape(0), held.rows.n_rows);
  const ScoreWeights state = checked_weights(held.rows, weights, intercepts);
  const size_t n_scores = state.n_scores, n_cells = train.shape(1);
  check_size("train", train.shape(0), n_scores);
  check_size("validation", validation.shape(0), n_scores);
  check_size("validation", validation.shape(1), n_cells);
  check(loss >= 0 && loss < n_losses, "there is no such loss");
  const Scaling scaling = checked_scaling(held.rows, scale, shift, 1.0, 0.0, weight_scale);
  const Training training{checked_cells(held.rows, cells, n_cells), train.data(), validation.data()};
  ManySums sums = run(threads, [&](Crew& crew) {
    return fold_scores(held.rows, y.data(), data_of(weight), data_of(offset), training, scaling, state,
                       static_cast<Loss>(loss), parameter, with_value, block_rows, crew);
  });
  auto part = [&](size_t k) {
    return to_numpy(std::vector<double>(&sums.own[k * n_scores], &sums.own[k * n_scores] + n_scores));
  };
  return nb::make_tuple(part(0), gradient_of(sums, n_scores), part(1), part(2));
}

}  // namespace

void bind_many(nb::module_& m) {
  m.def("softmax_oracle", softmax_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "scale"_a.noconvert(),
        "shift"_a.noconvert(), "weight_scale"_a, "weights"_a.noconvert(), "intercepts"_a.noconvert(), "block_rows"_a,
        "threads"_a);
  m.def("softmax_product", product_py, "x"_a, "weight"_a.noconvert().none(), "scale"_a.noconvert(),
        "shift"_a.noconvert(), "weight_scale"_a, "weights"_a.noconvert(), "intercepts"_a.noconvert(),
        "ways"_a.noconvert(), "levels"_a.noconvert(), "block_rows"_a, "threads"_a);
  m.def("softmax_dual", dual_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "scale"_a.noconvert(),
        "shift"_a.noconvert(), "weight_scale"_a, "weights"_a.noconvert(), "intercepts"_a.noconvert(),
        "lift"_a.noconvert(), "mix"_a.noconvert(), "share"_a, "block_rows"_a, "threads"_a);
  m.def("softmax_pairs", pairs_py, "x"_a, "weight"_a.noconvert().none(), "scale"_a.noconvert(), "shift"_a.noconvert(),
        "weight_scale"_a, "weights"_a.noconvert(), "intercepts"_a.noconvert(), "block_rows"_a, "threads"_a);
  m.def("fold_oracle", folds_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "offset"_a.noconvert().none(),
        "scale"_a.noconvert(), "shift"_a.noconvert(), "weight_scale"_a, "weights"_a.noconvert(),
        "intercepts"_a.noconvert(), "cells"_a.noconvert(), "train"_a.noconvert(), "validation"_a.noconvert(), "loss"_a,
        "parameter"_a, "with_value"_a, "block_rows"_a, "threads"_a);
}

}  // namespace certifit
