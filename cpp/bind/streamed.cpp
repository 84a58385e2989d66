// Rows that are read in passes and not held: their hashes, which of them are distinct, their bins, and trees of classes
// level by level.
#include "../tree/class_levels.hpp"
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

using Slots = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ClassWords = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Depths = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Weights of classes by node, column and bin, of the rows of a part: nodes x words.
nb::object class_histograms_py(Codes codes, Vector y, Vector weight, Slots slot, size_t n_slots, size_t n_classes,
                               int threads) {
  const size_t n = codes.shape(0), p = codes.shape(1);
  check_size("y", y.shape(0), n);
  check_size("weight", weight.shape(0), n);
  check_size("slot", slot.shape(0), n);
  check(n_classes > 1 && n_classes < size_t{1} << 20 && n_slots > 0 && n_slots < size_t{1} << 24,
        "n_classes or n_slots is out of range");
  for (size_t i = 0; i < n; ++i) {
    check(slot.data()[i] < static_cast<int64_t>(n_slots), "a slot is not there");
    check(y.data()[i] >= 0 && y.data()[i] < static_cast<double>(n_classes), "y must be codes of the classes");
    check(weight.data()[i] >= 0 && weight.data()[i] < 0x1p31, "weights must be whole numbers below 2^31");
  }
  const size_t size = p * n_bins * class_cell(n_classes);
  check(n_slots * size < size_t{1} << 28, "histograms are larger than 2 GB");
  const ClassPart part{n, p, codes.data(), y.data(), weight.data(), slot.data()};
  return matrix_of(run(threads, [&](Crew& crew) { return class_histograms(part, n_slots, n_classes, crew); }), n_slots,
                   size);
}

// Nodes and their best splits from weights of classes.
nb::object class_splits_py(ClassWords words, Depths depth, size_t n_columns, const std::string& criterion,
                           size_t n_classes, size_t max_depth, size_t min_rows_split, size_t min_rows_leaf,
                           double min_decrease, std::optional<Flags> n_levels, double total, bool is_weighted,
                           int threads) {
  const size_t n = words.shape(0);
  check(criterion == "gini" || criterion == "entropy", "classes need gini or entropy");
  check(n_classes > 1 && n_classes < size_t{1} << 20 && min_rows_leaf > 0 && min_rows_leaf < size_t{1} << 40,
        "n_classes or min_rows_leaf is out of range");
  check(n_columns > 0 && n_columns < size_t{1} << 31, "a tree needs a column");
  check_size("words", words.shape(1), n_columns * n_bins * class_cell(n_classes));
  check_size("depth", depth.shape(0), n);
  check(total > 0, "total must be above 0");
  for (size_t k = 0; k < n * words.shape(1); ++k)
    check(words.data()[k] >= 0 && words.data()[k] < int64_t{1} << 40, "words must be 0 to 2^40");
  const ColumnRules columns = checked_columns({}, n_levels, n_columns, n_classes);
  const ClassPlan plan{criterion == "gini" ? Criterion::gini : Criterion::entropy,
                       n_classes,
                       n_columns,
                       {max_depth, min_rows_split, min_rows_leaf, min_decrease},
                       columns,
                       total,
                       is_weighted};
  const auto nodes = run(threads, [&](Crew& crew) { return class_splits(words.data(), depth.data(), n, plan, crew); });
  std::vector<uint64_t> sets;
  std::vector<double> values;
  for (const ClassNode& node : nodes) {
    sets.insert(sets.end(), node.split.levels.begin(), node.split.levels.end());
    values.insert(values.end(), node.sums.values.begin(), node.sums.values.end());
  }
  nb::dict out;
  out["is_found"] = array_of<uint8_t>(nodes, [](const ClassNode& node) { return node.split.is_found; });
  out["feature"] = array_of<int64_t>(nodes, [](const ClassNode& node) { return node.split.feature; });
  out["bin"] = array_of<int64_t>(nodes, [](const ClassNode& node) { return node.split.bin; });
  out["is_missing_left"] = array_of<uint8_t>(nodes, [](const ClassNode& node) { return node.split.is_missing_left; });
  out["n_rows"] = array_of<int64_t>(nodes, [](const ClassNode& node) { return node.n_rows; });
  out["left_rows"] = array_of<int64_t>(nodes, [](const ClassNode& node) { return node.left_rows; });
  out["weight"] = array_of<double>(nodes, [](const ClassNode& node) { return node.sums.weight; });
  out["impurity"] = array_of<double>(nodes, [](const ClassNode& node) { return node.sums.impurity; });
  out["decrease"] = array_of<double>(nodes, [](const ClassNode& node) { return node.decrease; });
  out["values"] = matrix_of(std::move(values), n, n_classes);
  out["levels"] = matrix_of(std::move(sets), n, 4);
  return out;
}

}  // namespace

void bind_streamed(nb::module_& m) {
  m.def("hash_rows", hash_rows_py, "x"_a, "y"_a.noconvert(), "threads"_a);
  m.def("merge_hashes", merge_hashes_py, "order"_a.noconvert(), "other"_a.noconvert(), "y"_a.noconvert(),
        "weight"_a.noconvert().none());
  m.def("class_histograms", class_histograms_py, "codes"_a.noconvert(), "y"_a.noconvert(), "weight"_a.noconvert(),
        "slot"_a.noconvert(), "n_slots"_a, "n_classes"_a, "threads"_a);
  m.def("class_splits", class_splits_py, "words"_a.noconvert(), "depth"_a.noconvert(), "n_columns"_a, "criterion"_a,
        "n_classes"_a, "max_depth"_a, "min_rows_split"_a, "min_rows_leaf"_a, "min_decrease"_a,
        "n_levels"_a.noconvert().none(), "total"_a, "is_weighted"_a, "threads"_a);
  m.def("bin_rows", bin_rows_py, "x"_a, "edges"_a, "n_levels"_a.noconvert().none(), "threads"_a);
}

}  // namespace certifit
