// Trees of boosting on rows in parts: what a part adds up to, what histograms say, where rows go.
#include "../tree/newton_levels.hpp"

#include "bins.hpp"
#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Places = Array<uint32_t, 1>;
using Numbers = Array<int32_t, 1>;
using Words = Array<int64_t, 2>;
using Sets = Array<uint64_t, 2>;
using Integers = Array<int64_t, 1>;

NewtonColumns checked_tried(const Flags& n_bins, const std::optional<Flags>& n_levels, const Places& columns) {
  if (n_levels) check_size("n_levels", n_levels->shape(0), n_bins.shape(0));
  for (size_t k = 0; k < columns.shape(0); ++k) check(columns.data()[k] < n_bins.shape(0), "a column is not there");
  check(columns.shape(0) > 0, "a tree needs a column");
  return {n_bins.data(), n_levels ? n_levels->data() : nullptr, columns.data(), columns.shape(0)};
}

NewtonPart checked_part(const Vector& slope, const Vector& curvature, const std::optional<Flags>& is_drawn, size_t n) {
  check_size("slope", slope.shape(0), n);
  check_size("curvature", curvature.shape(0), n);
  if (is_drawn) check_size("is_drawn", is_drawn->shape(0), n);
  return {n, slope.data(), curvature.data(), is_drawn ? is_drawn->data() : nullptr};
}

NewtonPlan plan_of(size_t min_rows_leaf, double ridge, const std::optional<Directions>& direction) {
  check(ridge >= 0, "ridge is out of range");
  return {0, 0, min_rows_leaf, ridge, true, direction ? direction->data() : nullptr};
}

// Of all rows that a tree is grown on, from Python: {sum of |slopes|, of curvatures, rows}.
NewtonSizes checked_sizes(const nb::tuple& sizes) {
  check_size("sizes", sizes.size(), 3);
  const NewtonSizes out{nb::cast<double>(sizes[0]), nb::cast<double>(sizes[1]), nb::cast<size_t>(sizes[2])};
  check(out.is_finite(), "slopes or curvatures are not finite");
  check(out.n_drawn < size_t{1} << 28, "boosting needs fewer than 2^28 rows");
  return out;
}

// Sizes with the rows of a part added, one after the other.
nb::object newton_sizes_py(Vector slope, Vector curvature, std::optional<Flags> is_drawn, nb::tuple before) {
  check_size("sizes", before.size(), 3);
  NewtonSizes all{nb::cast<double>(before[0]), nb::cast<double>(before[1]), nb::cast<size_t>(before[2])};
  all.add(checked_part(slope, curvature, is_drawn, slope.shape(0)));
  return nb::make_tuple(all.slopes, all.curvatures, all.n_drawn);
}

// Histograms of some leaves, of the rows of one part: leaves x words.
nb::object newton_histograms_py(Codes codes, Vector slope, Vector curvature, std::optional<Flags> is_drawn,
                                Numbers slot, size_t n_slots, Flags n_bins, Places columns, nb::tuple sizes,
                                int threads) {
  const size_t n = codes.shape(0), p = codes.shape(1);
  check_size("n_bins", n_bins.shape(0), p);
  check_size("slot", slot.shape(0), n);
  check(n_slots > 0 && n_slots < size_t{1} << 24, "n_slots is out of range");
  for (size_t i = 0; i < n; ++i) check(slot.data()[i] < static_cast<int64_t>(n_slots), "a slot is not there");
  const NewtonColumns tried = checked_tried(n_bins, {}, columns);
  check(n_slots * n_words(tried) < size_t{1} << 28, "histograms are larger than 2 GB");
  const NewtonPart part = checked_part(slope, curvature, is_drawn, n);
  const NewtonSizes all = checked_sizes(sizes);
  std::vector<int64_t> words = run(threads, [&](Crew& crew) {
    return leaf_histograms(codes.data(), p, tried, part, all, slot.data(), n_slots, crew);
  });
  return matrix_of(std::move(words), n_slots, n_words(tried));
}

// The best split of every leaf from its histogram. sums: words of all rows of the leaf; bounds: of its value.
nb::object newton_splits_py(Words words, Words sums, Matrix bounds, Flags n_bins, std::optional<Flags> n_levels,
                            Places columns, nb::tuple sizes, size_t min_rows_leaf, double ridge,
                            std::optional<Directions> direction, int threads) {
  const size_t n = words.shape(0);
  if (direction) check_size("direction", direction->shape(0), n_bins.shape(0));
  const NewtonColumns tried = checked_tried(n_bins, n_levels, columns);
  const NewtonPlan plan = plan_of(min_rows_leaf, ridge, direction);
  const NewtonSizes all = checked_sizes(sizes);
  check_size("words", words.shape(1), n_words(tried));
  check_size("sums", sums.shape(0), n);
  check_size("words of a sum", sums.shape(1), 2);
  check_size("bounds", bounds.shape(0), n);
  check_size("numbers of bounds", bounds.shape(1), 2);
  std::vector<LevelLeaf> leaves;
  for (size_t s = 0; s < n; ++s)
    leaves.push_back(
        {words.data() + s * words.shape(1), sums.data() + 2 * s, bounds.data()[2 * s], bounds.data()[2 * s + 1]});
  const auto splits = run(threads, [&](Crew& crew) { return best_splits(leaves, tried, plan, all, crew); });
  std::vector<uint64_t> sets;
  std::vector<int64_t> lefts;
  std::vector<double> within;
  for (const LevelSplit& split : splits) {
    sets.insert(sets.end(), split.levels.begin(), split.levels.end());
    lefts.insert(lefts.end(), split.left, split.left + 2);
    within.insert(within.end(), split.bounds, split.bounds + 4);
  }
  nb::dict out;
  out["is_found"] = array_of<uint8_t>(splits, [](const LevelSplit& split) { return split.is_found; });
  out["gain"] = array_of<double>(splits, [](const LevelSplit& split) { return split.gain; });
  out["feature"] = array_of<int64_t>(splits, [](const LevelSplit& split) { return split.column; });
  out["bin"] = array_of<int64_t>(splits, [](const LevelSplit& split) { return split.is_found ? split.bin : 0; });
  out["is_missing_left"] = array_of<uint8_t>(splits, [](const LevelSplit& split) { return split.is_missing_left; });
  out["levels"] = matrix_of(std::move(sets), n, 4);
  out["left"] = matrix_of(std::move(lefts), n, 2);
  out["bounds"] = matrix_of(std::move(within), n, 4);
  return out;
}

// Nodes of a tree whose children lie behind them, checked.
std::vector<NewtonNode> checked_nodes(const Integers& feature, const Integers& left, const Integers& bin,
                                      const Flags& is_missing_left, const NewtonColumns& columns, size_t n_columns,
                                      size_t n_sets) {
  const size_t n = left.shape(0);
  check_size("feature", feature.shape(0), n);
  check_size("bin", bin.shape(0), n);
  check_size("is_missing_left", is_missing_left.shape(0), n);
  check(n > 0 && n < size_t{1} << 30, "a tree needs a node");
  std::vector<NewtonNode> nodes(n);
  for (size_t k = 0; k < n; ++k) {
    NewtonNode& node = nodes[k];
    const int64_t child = left.data()[k], column = feature.data()[k], at = bin.data()[k];
    if (child == 0) continue;
    check(child > static_cast<int64_t>(k) && child < static_cast<int64_t>(n) - 1, "a child is not behind its node");
    check(column >= 0 && column < static_cast<int64_t>(n_columns), "a column is not there");
    const bool is_levels = columns.is_levels(static_cast<size_t>(column));
    check(at >= 0 && at < static_cast<int64_t>(is_levels ? n_sets : 256), "a bin is not there");
    node.feature = static_cast<int32_t>(column);
    node.left = static_cast<int32_t>(child);
    node.bin = static_cast<uint32_t>(at);
    node.is_missing_left = is_missing_left.data()[k] != 0;
  }
  return nodes;
}

// Rows led on by their codes from the nodes where they are.
nb::object lead_codes_py(Codes codes, Numbers start, Flags n_bins, std::optional<Flags> n_levels, Integers feature,
                         Integers left, Integers bin, Flags is_missing_left, Sets sets, int threads) {
  const size_t n = codes.shape(0), p = codes.shape(1);
  check_size("n_bins", n_bins.shape(0), p);
  if (n_levels) check_size("n_levels", n_levels->shape(0), p);
  check_size("start", start.shape(0), n);
  check_size("words of a set", sets.shape(1), 4);
  const NewtonColumns columns{n_bins.data(), n_levels ? n_levels->data() : nullptr, nullptr, 0};
  std::vector<Levels> levels(sets.shape(0));
  for (size_t k = 0; k < levels.size(); ++k) std::copy_n(sets.data() + 4 * k, 4, levels[k].begin());
  const auto nodes = checked_nodes(feature, left, bin, is_missing_left, columns, p, levels.size());
  for (size_t i = 0; i < n; ++i)
    check(start.data()[i] >= 0 && start.data()[i] < static_cast<int64_t>(nodes.size()), "a node is not there");
  return array_of(run(
      threads, [&](Crew& crew) { return lead_codes(codes.data(), n, p, columns, nodes, levels, start.data(), crew); }));
}

// Sums of slopes, curvatures and weights over the rows of leaves, with those of the parts before.
nb::object newton_leaf_sums_py(Numbers leaves, std::optional<Flags> is_drawn, Vector slope, Vector curvature,
                               Vector weight, Matrix before) {
  const size_t n = leaves.shape(0), n_nodes = before.shape(0);
  const NewtonPart part = checked_part(slope, curvature, is_drawn, n);
  check_size("weight", weight.shape(0), n);
  check_size("numbers of before", before.shape(1), 3);
  for (size_t i = 0; i < n; ++i)
    check(leaves.data()[i] >= 0 && leaves.data()[i] < static_cast<int64_t>(n_nodes), "a leaf is not there");
  std::vector<NewtonSums> all(n_nodes);
  for (size_t k = 0; k < n_nodes; ++k)
    all[k] = {before.data()[3 * k], before.data()[3 * k + 1], before.data()[3 * k + 2]};
  add_leaf_sums(part, weight.data(), leaves.data(), all);
  std::vector<double> sums;
  for (const NewtonSums& sum : all) sums.insert(sums.end(), {sum.g, sum.h, sum.weight});
  return matrix_of(std::move(sums), n_nodes, 3);
}

// Values, gains and weights of nodes from the sums of leaves.
nb::object newton_values_py(Integers feature, Integers left, Matrix sums, double ridge,
                            std::optional<Directions> direction) {
  const size_t n = left.shape(0);
  check_size("feature", feature.shape(0), n);
  check_size("sums", sums.shape(0), n);
  check_size("numbers of sums", sums.shape(1), 3);
  std::vector<NewtonNode> nodes(n);
  std::vector<NewtonSums> all(n);
  for (size_t k = 0; k < n; ++k) {
    const int64_t child = left.data()[k], column = feature.data()[k];
    all[k] = {sums.data()[3 * k], sums.data()[3 * k + 1], sums.data()[3 * k + 2]};
    if (child == 0) continue;
    check(child > static_cast<int64_t>(k) && child < static_cast<int64_t>(n) - 1, "a child is not behind its node");
    check(column >= 0 && (!direction || column < static_cast<int64_t>(direction->shape(0))), "a column is not there");
    nodes[k].left = static_cast<int32_t>(child);
    nodes[k].feature = static_cast<int32_t>(column);
  }
  settle_nodes(nodes, all, plan_of(1, ridge, direction));
  const auto of_nodes = [&](auto get) {
    std::vector<double> values;
    for (const NewtonNode& node : nodes) values.push_back(get(node));
    return array_of(std::move(values));
  };
  return nb::make_tuple(of_nodes([](const NewtonNode& node) { return node.value; }),
                        of_nodes([](const NewtonNode& node) { return node.gain; }),
                        of_nodes([](const NewtonNode& node) { return node.weight; }));
}

}  // namespace

void bind_newton_levels(nb::module_& m) {
  m.def("newton_sizes", newton_sizes_py, "slope"_a.noconvert(), "curvature"_a.noconvert(),
        "is_drawn"_a.noconvert().none(), "before"_a);
  m.def("newton_histograms", newton_histograms_py, "codes"_a.noconvert(), "slope"_a.noconvert(),
        "curvature"_a.noconvert(), "is_drawn"_a.noconvert().none(), "slot"_a.noconvert(), "n_slots"_a,
        "n_bins"_a.noconvert(), "columns"_a.noconvert(), "sizes"_a, "threads"_a);
  m.def("newton_splits", newton_splits_py, "words"_a.noconvert(), "sums"_a.noconvert(), "bounds"_a.noconvert(),
        "n_bins"_a.noconvert(), "n_levels"_a.noconvert().none(), "columns"_a.noconvert(), "sizes"_a, "min_rows_leaf"_a,
        "ridge"_a, "direction"_a.noconvert().none(), "threads"_a);
  m.def("lead_codes", lead_codes_py, "codes"_a.noconvert(), "start"_a.noconvert(), "n_bins"_a.noconvert(),
        "n_levels"_a.noconvert().none(), "feature"_a.noconvert(), "left"_a.noconvert(), "bin"_a.noconvert(),
        "is_missing_left"_a.noconvert(), "sets"_a.noconvert(), "threads"_a);
  m.def("newton_leaf_sums", newton_leaf_sums_py, "leaves"_a.noconvert(), "is_drawn"_a.noconvert().none(),
        "slope"_a.noconvert(), "curvature"_a.noconvert(), "weight"_a.noconvert(), "before"_a.noconvert());
  m.def("newton_values", newton_values_py, "feature"_a.noconvert(), "left"_a.noconvert(), "sums"_a.noconvert(),
        "ridge"_a, "direction"_a.noconvert().none());
}

}  // namespace certifit
