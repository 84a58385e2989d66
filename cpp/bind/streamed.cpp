// Rows that are read in passes and not held: their hashes, which of them are distinct, their bins, and trees level by
// level.
#include "../tree/levels.hpp"
#include "bins.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Hashes = Array<uint64_t, 1>;

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

using Slots = Array<int32_t, 1>;
using LevelWords = Array<int64_t, 1>;
using Blocks = Array<double, 3>;

// Rows of a part that are as they should be.
struct CheckedPart {
  CheckedPart(const Codes& codes, const Vector& y, const Vector& weight, const Slots& slot, size_t n_slots,
              const std::string& criterion, size_t n_classes)
      : rows(coded_rows(y, weight, codes.shape(0), codes.shape(1))),
        criterion(checked_criterion(criterion, n_classes)),
        part{rows, codes.data(), slot.data()} {
    check_target(y, weight, this->criterion, n_classes);
    check_size("slot", slot.shape(0), rows.n_rows);
    check(n_slots > 0 && n_slots < size_t{1} << 24, "n_slots is out of range");
    for (size_t i = 0; i < rows.n_rows; ++i)
      check(slot.data()[i] < static_cast<int64_t>(n_slots), "a slot is not there");
  }
  TreeRows rows;
  Criterion criterion;
  LevelPart part;
};

LevelPlan level_plan(size_t n_columns, const std::string& criterion, size_t n_classes, const Stops& stops,
                     const ColumnRules& columns, const WholeNumbers& whole) {
  check(n_columns > 0 && n_columns < size_t{1} << 31, "a tree needs a column");
  check(n_classes < size_t{1} << 20, "n_classes is out of range");
  return {checked_criterion(criterion, n_classes), n_classes, n_columns, stops, columns, checked_whole(whole)};
}

// Histograms of nodes by column and bin, of the rows of a part: nodes x words.
nb::object level_histograms_py(Codes codes, Vector y, Vector weight, Slots slot, size_t n_slots,
                               const std::string& criterion, size_t n_classes, std::optional<Directions> direction,
                               const WholeNumbers& whole, int threads) {
  const CheckedPart checked(codes, y, weight, slot, n_slots, criterion, n_classes);
  const ColumnRules columns = checked_columns(direction, {}, codes.shape(1), n_classes);
  const LevelPlan plan = level_plan(codes.shape(1), criterion, n_classes, {}, columns, whole);
  const size_t size = level_words(plan);
  check(n_slots * size < size_t{1} << 28, "histograms are larger than 2 GB");
  return matrix_of(run(threads, [&](Crew& crew) { return level_histograms(checked.part, n_slots, plan, crew); }),
                   n_slots, size);
}

// Sums of rows by block and node: a row per block.
auto block_sums_py(Codes codes, Vector y, Vector weight, Slots slot, size_t n_slots, const std::string& criterion,
                   size_t n_classes) {
  const CheckedPart checked(codes, y, weight, slot, n_slots, criterion, n_classes);
  const size_t n_blocks = (checked.rows.n_rows + summed_block - 1) / summed_block;
  std::vector<double> sums =
      run(1, [&](Crew&) { return block_sums(checked.part, n_slots, checked.criterion, n_classes); });
  const size_t shape[3] = {n_blocks, n_slots, level_width(n_classes)};
  return to_numpy<3>(std::move(sums), shape);
}

// Those of nodes and of later blocks.
auto add_block_sums_py(Matrix before, Blocks blocks, const std::string& criterion, size_t n_classes) {
  const Criterion kind = checked_criterion(criterion, n_classes);
  const size_t n_slots = before.shape(0), width = level_width(n_classes);
  check_size("sums of a node", before.shape(1), width);
  check_size("nodes of a block", blocks.shape(1), n_slots);
  check_size("sums of a node of a block", blocks.shape(2), width);
  std::vector<double> sums(before.data(), before.data() + n_slots * width);
  add_block_sums(sums.data(), blocks.data(), blocks.shape(0), n_slots, kind, n_classes);
  const size_t shape[2] = {n_slots, width};
  return to_numpy<2>(std::move(sums), shape);
}

// Weights and sizes of y of every block: what `whole` adds up.
auto block_sizes_py(Vector y, Vector weight, double centre) {
  const TreeRows rows = coded_rows(y, weight, y.shape(0), 0);
  std::vector<double> sizes;
  for (size_t begin = 0; begin < rows.n_rows; begin += summed_block) {
    const WholeSizes block = sizes_of(rows, begin, std::min(summed_block, rows.n_rows - begin), centre);
    sizes.insert(sizes.end(), {block.weight, block.moments});
  }
  const size_t shape[2] = {sizes.size() / 2, 2};
  return to_numpy<2>(std::move(sizes), shape);
}

// A node and its best split from its histogram and the sums of its rows.
nb::object level_split_py(LevelWords words, Vector sums, size_t depth, size_t n_rows, double low, double high,
                          size_t n_columns, const std::string& criterion, size_t n_classes, size_t max_depth,
                          size_t min_rows_split, size_t min_rows_leaf, double min_decrease,
                          std::optional<Directions> direction, std::optional<Flags> n_levels, const WholeNumbers& whole,
                          int threads) {
  check(min_rows_leaf > 0 && min_rows_leaf < size_t{1} << 40, "min_rows_leaf is out of range");
  const ColumnRules columns = checked_columns(direction, n_levels, n_columns, n_classes);
  const LevelPlan plan = level_plan(n_columns, criterion, n_classes,
                                    {max_depth, min_rows_split, min_rows_leaf, min_decrease}, columns, whole);
  check_size("words", words.shape(0), level_words(plan));
  check_size("sums", sums.shape(0), level_width(n_classes));
  const LevelNode node{words.data(), sums.data(), depth, n_rows, low, high};
  LevelSplit found = run(threads, [&](Crew& crew) { return level_split(node, plan, crew); });
  nb::dict out;
  out["is_found"] = found.split.is_found;
  out["is_exact"] = found.is_exact;
  out["feature"] = found.split.feature;
  out["bin"] = found.split.bin;
  out["is_missing_left"] = found.split.is_missing_left;
  out["left_rows"] = static_cast<size_t>(std::clamp(found.split.n_left, 0.0, 0x1p53));
  out["left_value"] = found.split.left_value;
  out["right_value"] = found.split.right_value;
  out["weight"] = found.sums.weight;
  out["impurity"] = found.sums.impurity;
  out["decrease"] = found.decrease;
  out["values"] = array_of(std::move(found.sums.values));
  out["levels"] = array_of(std::vector<uint64_t>(found.split.levels.begin(), found.split.levels.end()));
  return out;
}

}  // namespace

void bind_streamed(nb::module_& m) {
  m.def("hash_rows", hash_rows_py, "x"_a, "y"_a.noconvert(), "threads"_a);
  m.def("merge_hashes", merge_hashes_py, "order"_a.noconvert(), "other"_a.noconvert(), "y"_a.noconvert(),
        "weight"_a.noconvert().none());
  m.def("level_histograms", level_histograms_py, "codes"_a.noconvert(), "y"_a.noconvert(), "weight"_a.noconvert(),
        "slot"_a.noconvert(), "n_slots"_a, "criterion"_a, "n_classes"_a, "direction"_a.noconvert().none(),
        "whole"_a.noconvert(), "threads"_a);
  m.def("block_sums", block_sums_py, "codes"_a.noconvert(), "y"_a.noconvert(), "weight"_a.noconvert(),
        "slot"_a.noconvert(), "n_slots"_a, "criterion"_a, "n_classes"_a);
  m.def("add_block_sums", add_block_sums_py, "before"_a.noconvert(), "blocks"_a.noconvert(), "criterion"_a,
        "n_classes"_a);
  m.def("block_sizes", block_sizes_py, "y"_a.noconvert(), "weight"_a.noconvert(), "centre"_a);
  m.def("level_split", level_split_py, "words"_a.noconvert(), "sums"_a.noconvert(), "depth"_a, "n_rows"_a, "low"_a,
        "high"_a, "n_columns"_a, "criterion"_a, "n_classes"_a, "max_depth"_a, "min_rows_split"_a, "min_rows_leaf"_a,
        "min_decrease"_a, "direction"_a.noconvert().none(), "n_levels"_a.noconvert().none(), "whole"_a.noconvert(),
        "threads"_a);
  m.def("bin_rows", bin_rows_py, "x"_a, "edges"_a, "n_levels"_a.noconvert().none(), "threads"_a);
}

}  // namespace certifit
