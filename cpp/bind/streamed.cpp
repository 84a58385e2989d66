// Rows that are read in passes and not held: their hashes, which of them are distinct, and their bins.
#include "bins.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Hashes = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object hash_rows_py(nb::list x, Vector y, int threads) {
  HeldRows held(x);
  check_size("y", y.shape(0), held.rows.n_rows);
  RowHashes hashes = run(threads, [&](Crew& crew) { return hash_rows(held.rows, y.data(), crew); });
  return nb::make_tuple(array_of(std::move(hashes.order)), array_of(std::move(hashes.other)), hashes.is_finite);
}

nb::object merge_hashes_py(Hashes order, Hashes other, Vector y, std::optional<Vector> weight) {
  const size_t n = order.shape(0);
  check(n < size_t{1} << 31, "trees need fewer than 2^31 rows");
  check_size("other", other.shape(0), n);
  check_size("y", y.shape(0), n);
  if (weight) check_size("weight", weight->shape(0), n);
  MergedHashes merged = run(1, [&](Crew&) {
    return merged_hashes(order.data(), other.data(), y.data(), weight ? weight->data() : nullptr, n);
  });
  return nb::make_tuple(array_of(std::move(merged.first)), array_of(std::move(merged.weight)));
}

// Bins of rows, row after row: the code behind the last edge below a value, the level of a category, 255 where missing.
nb::object bin_rows_py(nb::list x, nb::list edges, std::optional<Flags> n_levels, int threads) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  const Edges known = checked_edges(edges, rows.n_columns);
  const ColumnRules columns = checked_columns({}, n_levels, rows.n_columns, 0);
  std::vector<uint8_t> codes = run(threads, [&](Crew& crew) { return binned_rows(rows, known, columns, crew); });
  return matrix_of(std::move(codes), rows.n_rows, rows.n_columns);
}

}  // namespace

void bind_streamed(nb::module_& m) {
  m.def("hash_rows", hash_rows_py, "x"_a, "y"_a.noconvert(), "threads"_a);
  m.def("merge_hashes", merge_hashes_py, "order"_a.noconvert(), "other"_a.noconvert(), "y"_a.noconvert(),
        "weight"_a.noconvert().none());
  m.def("bin_rows", bin_rows_py, "x"_a, "edges"_a, "n_levels"_a.noconvert().none(), "threads"_a);
}

}  // namespace certifit
