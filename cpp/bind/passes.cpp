#include "../passes/column_sizes.hpp"
#include "../passes/entries.hpp"
#include "../passes/gram.hpp"
#include "../passes/number_facts.hpp"
#include "../passes/project.hpp"
#include "../passes/residual.hpp"
#include "rows.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

nb::object column_sizes_py(nb::list x) {
  HeldRows held(x);
  return nb::cast(to_numpy(run(1, [&](Crew&) { return column_sizes(held.rows); })));
}

using OutMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::object to_python(ColumnLook seen) {
  return nb::make_tuple(to_numpy(std::move(seen.sizes)), to_numpy(std::move(seen.sums)));
}

nb::object turn_py(Matrix x, std::optional<Vector> weights, OutMatrix out, int threads) {
  check(out.shape(0) == x.shape(1) && out.shape(1) == x.shape(0), "out must have a row per column of x");
  check(out.data() + out.size() <= x.data() || x.data() + x.size() <= out.data(), "x and out must be apart");
  if (weights) check_size("weights", weights->shape(0), x.shape(0));
  return to_python(run(
      threads, [&](Crew& crew) { return turn(x.data(), data_of(weights), x.shape(0), x.shape(1), out.data(), crew); }));
}

nb::object look_at_columns_py(Matrix turned, std::optional<Vector> weights, int threads) {
  if (weights) check_size("weights", weights->shape(0), turned.shape(1));
  return to_python(run(threads, [&](Crew& crew) {
    return look_at_columns(turned.data(), data_of(weights), turned.shape(1), turned.shape(0), crew);
  }));
}

nb::object column_shifts_py(nb::list x, Vector scale, bool exact) {
  HeldRows held(x);
  check_size("scale", scale.shape(0), held.rows.n_columns);
  return nb::cast(to_numpy(run(1, [&](Crew&) { return column_shifts(held.rows, scale.data(), exact); })));
}

nb::object gram_py(nb::list x, std::optional<Vector> y, std::optional<Vector> weight, Vector scale, Vector shift,
                   double y_scale, double y_shift, double weight_scale, size_t block_rows, bool twofold, int threads,
                   std::optional<CellNumbers> cells, size_t n_cells) {
  HeldRows held(x);
  check_rows(held.rows, y, weight, block_rows);
  const Scaling scaling = checked_scaling(held.rows, scale, shift, y_scale, y_shift, weight_scale);
  const Cells checked = checked_cells(held.rows, cells, n_cells);
  GramSums sums = run(threads, [&](Crew& crew) {
    return gram(held.rows, data_of(y), data_of(weight), checked, scaling, block_rows, twofold, crew);
  });
  const size_t size = held.rows.n_columns + 1 + (y ? 1 : 0);
  const size_t square[2] = {size, size};
  const size_t cubes[3] = {n_cells, size, size};
  auto result = [&](std::vector<double> part) {
    return cells ? nb::cast(to_numpy<3>(std::move(part), cubes)) : nb::cast(to_numpy<2>(std::move(part), square));
  };
  nb::object lo = nb::none();
  if (twofold) lo = result(std::move(sums.lo));
  return nb::make_tuple(result(std::move(sums.hi)), lo);
}

nb::object residual_py(nb::list x, Vector y, std::optional<Vector> weight, Vector scale, double y_scale,
                       double weight_scale, Vector weights, double intercept, size_t block_rows, int threads) {
  HeldRows held(x);
  check_rows(held.rows, y, weight, block_rows);
  check_size("weights", weights.shape(0), held.rows.n_columns);
  const Scaling scaling = checked_scaling(held.rows, scale, scale, y_scale, 0.0, weight_scale);
  ResidualSums sums = run(threads, [&](Crew& crew) {
    return residual(held.rows, y.data(), data_of(weight), scaling, weights.data(), intercept, block_rows, crew);
  });
  return nb::make_tuple(to_numpy(std::move(sums.gradient_hi)), to_numpy(std::move(sums.gradient_lo)), sums.squares_hi,
                        sums.squares_lo, sums.magnitude);
}

nb::object moved_fits_py(nb::list x, Vector multipliers, double scale, Vector less, Vector start, size_t block_rows,
                         int threads) {
  HeldRows held(x);
  check(held.rows.n_dense == held.rows.n_columns, "moved_fits takes dense columns alone");
  check_size("multipliers", multipliers.shape(0), held.rows.n_columns);
  check_size("less", less.shape(0), held.rows.n_rows);
  check_size("start", start.shape(0), held.rows.n_rows);
  check_block_rows(block_rows);
  MovedFits moved = run(threads, [&](Crew& crew) {
    return moved_fits(held.rows, multipliers.data(), scale, less.data(), start.data(), block_rows, crew);
  });
  return nb::make_tuple(to_numpy(std::move(moved.weights)), to_numpy(std::move(moved.hi)),
                        to_numpy(std::move(moved.lo)));
}

nb::object residual_rows_py(nb::list x, Vector y, Vector scale, double y_scale, Vector weights, double intercept,
                            int threads, std::optional<Vector> low) {
  HeldRows held(x);
  check_rows(held.rows, y, std::nullopt, 1);
  check_size("weights", weights.shape(0), held.rows.n_columns);
  if (low) {
    check(held.rows.n_dense == held.rows.n_columns, "residual_rows takes low parts of dense columns alone");
    check_size("low", low->shape(0), held.rows.n_columns);
  }
  const Scaling scaling = checked_scaling(held.rows, scale, scale, y_scale, 0.0, 1.0);
  return nb::cast(to_numpy(run(threads, [&](Crew& crew) {
    return residual_rows(held.rows, y.data(), scaling, weights.data(), data_of(low), intercept, crew);
  })));
}

nb::object scores_py(nb::list x, Vector weights, double intercept, int threads) {
  HeldRows held(x);
  check_size("weights", weights.shape(0), held.rows.n_columns);
  return nb::cast(
      to_numpy(run(threads, [&](Crew& crew) { return scores(held.rows, weights.data(), intercept, crew); })));
}

nb::object project_py(nb::list x, Vector scale, Vector shift, Matrix directions, int threads) {
  HeldRows held(x);
  check_size("directions", directions.shape(0), held.rows.n_columns);
  const Scaling scaling = checked_scaling(held.rows, scale, shift, 1.0, 0.0, 1.0);
  const size_t shape[2] = {held.rows.n_rows, directions.shape(1)};
  return nb::cast(to_numpy<2>(
      run(threads, [&](Crew& crew) { return project(held.rows, scaling, directions.data(), shape[1], crew); }), shape));
}

bool is_canonical_csr_py(AnyArray indices, AnyArray offsets, size_t n_columns, int threads) {
  const Dtype type = dtype_of(indices);
  check(type == dtype_of(offsets) && (type == Dtype::i32 || type == Dtype::i64),
        "CSR indices and offsets must both be int32 or both int64");
  for (const AnyArray& array : {indices, offsets})
    check(array.ndim() == 1 && (array.shape(0) < 2 || array.stride(0) == 1), "CSR needs contiguous 1-D arrays");
  check(offsets.shape(0) >= 1, "CSR offsets are empty");
  return run(threads, [&](Crew& crew) {
    auto found = [&](auto* all) {
      using Index = std::remove_pointer_t<decltype(all)>;
      return is_canonical(static_cast<const Index*>(indices.data()), static_cast<const Index*>(offsets.data()),
                          offsets.shape(0) - 1, static_cast<int64_t>(indices.shape(0)), static_cast<int64_t>(n_columns),
                          crew);
    };
    return type == Dtype::i64 ? found(static_cast<int64_t*>(nullptr)) : found(static_cast<int32_t*>(nullptr));
  });
}

using Keys = Array<uint64_t, 2>;

nb::object number_facts_py(Matrix x, Keys keys) {
  const size_t n = x.shape(0), m = x.shape(1);
  check(m > 0, "number_facts needs at least one number of every line");
  check(keys.shape(0) == n || keys.shape(0) == 1, "keys must have one line, or as many as x");
  check_size("keys", keys.shape(1), m);
  const size_t stride = keys.shape(0) == 1 ? 0 : m;
  NumberFacts facts = run(1, [&](Crew&) { return number_facts(x.data(), n, m, keys.data(), stride); });
  return nb::make_tuple(array_of(std::move(facts.lower)), array_of(std::move(facts.upper)),
                        array_of(std::move(facts.mean)), array_of(std::move(facts.squares)),
                        array_of(std::move(facts.fingerprint)));
}

}  // namespace

void bind_passes(nb::module_& m) {
  m.def("column_sizes", column_sizes_py, "x"_a);
  m.def("number_facts", number_facts_py, "x"_a.noconvert(), "keys"_a.noconvert());
  m.def("turn", turn_py, "x"_a.noconvert(), "weights"_a.noconvert().none(), "out"_a.noconvert(), "threads"_a);
  m.def("look_at_columns", look_at_columns_py, "turned"_a.noconvert(), "weights"_a.noconvert().none(), "threads"_a);
  m.def("column_shifts", column_shifts_py, "x"_a, "scale"_a.noconvert(), "exact"_a);
  m.def("gram", gram_py, "x"_a, "y"_a.noconvert().none(), "weight"_a.noconvert().none(), "scale"_a.noconvert(),
        "shift"_a.noconvert(), "y_scale"_a, "y_shift"_a, "weight_scale"_a, "block_rows"_a, "twofold"_a, "threads"_a,
        "cells"_a.noconvert().none() = nb::none(), "n_cells"_a = 1);
  m.def("residual", residual_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "scale"_a.noconvert(),
        "y_scale"_a, "weight_scale"_a, "weights"_a.noconvert(), "intercept"_a, "block_rows"_a, "threads"_a);
  m.def("moved_fits", moved_fits_py, "x"_a, "multipliers"_a.noconvert(), "scale"_a, "less"_a.noconvert(),
        "start"_a.noconvert(), "block_rows"_a, "threads"_a);
  m.def("residual_rows", residual_rows_py, "x"_a, "y"_a.noconvert(), "scale"_a.noconvert(), "y_scale"_a,
        "weights"_a.noconvert(), "intercept"_a, "threads"_a, "low"_a.noconvert().none() = nb::none());
  m.def("project", project_py, "x"_a, "scale"_a.noconvert(), "shift"_a.noconvert(), "directions"_a.noconvert(),
        "threads"_a);
  m.def("is_canonical_csr", is_canonical_csr_py, "indices"_a.noconvert(), "offsets"_a.noconvert(), "n_columns"_a,
        "threads"_a);
  m.def("scores", scores_py, "x"_a, "weights"_a.noconvert(), "intercept"_a, "threads"_a);
}

}  // namespace certifit
