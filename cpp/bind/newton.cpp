#include "../tree/newton.hpp"

#include <cmath>

#include "../passes/row_losses.hpp"
#include "../tree/added_trees.hpp"
#include "../tree/boosted.hpp"
#include "../tree/contributions.hpp"
#include "bins.hpp"
#include "check.hpp"
#include "paths.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Places = Array<uint32_t, 1>;
using Scratch = nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = NodeNumbersOf<int64_t>;
using NodeNumbers32 = Array<int32_t, 1>;

// Distinct rows in the order of their hashes, binned. The last column is the offset where there is one: rows of
// different offsets are different. None where a value is not finite.
// n_levels: of every column, the offset left out; 0 where it is no category.
nb::object boosting_rows_py(nb::list x, Vector y, std::optional<Vector> weight, bool has_offset, size_t max_bins,
                            std::optional<Flags> n_levels, int threads) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  check_size("y", y.shape(0), rows.n_rows);
  if (weight) check_size("weight", weight->shape(0), rows.n_rows);
  check(rows.n_rows < size_t{1} << 31, "boosting needs fewer than 2^31 rows");
  check(max_bins > 1 && max_bins <= 255, "max_bins must be 2 to 255");
  check(rows.n_columns > static_cast<size_t>(has_offset), "boosting needs a column");
  TreeRows merged;
  Bins bins;
  ColumnRules rules;
  std::vector<uint8_t> codes, n_bins;
  if (n_levels) {
    check_size("n_levels", n_levels->shape(0), rows.n_columns - has_offset);
    rules.n_levels.assign(n_levels->data(), n_levels->data() + n_levels->shape(0));
    if (has_offset) rules.n_levels.push_back(0);
  }
  const bool is_finite = run(threads, [&](Crew& crew) {
    merged = merged_rows(rows, y.data(), weight ? weight->data() : nullptr, crew);
    if (!merged.is_finite || merged.n_rows == 0) return false;
    bins = binned(merged, bin_edges(merged, max_bins, rules, crew), rules, crew);
    const size_t p = rows.n_columns - has_offset, n = merged.n_rows;
    for (size_t j = 0; j < p; ++j)
      n_bins.push_back(rules.is_levels(j) ? rules.n_levels[j] : static_cast<uint8_t>(bins.edges[j].size() + 1));
    codes.resize(n * p);
    constexpr size_t block_rows = 4096;
    crew.for_each_block((n + block_rows - 1) / block_rows, [&](size_t block) {
      for (size_t j = 0; j < p; ++j)
        for (size_t i = block * block_rows; i < std::min(n, (block + 1) * block_rows); ++i)
          codes[i * p + j] = std::min(bins.column(j)[i], n_bins[j]);  // missing values behind the bins
    });
    return true;
  });
  if (!is_finite) return nb::none();
  const size_t p = rows.n_columns - has_offset, n = merged.n_rows;
  nb::dict out;
  out["X"] = matrix_of(run(threads, [&](Crew& crew) { return row_after_row(merged, p, crew); }), n, p);
  out["codes"] = matrix_of(std::move(codes), n, p);
  out["n_bins"] = array_of(std::move(n_bins));
  nb::list edges;
  for (size_t j = 0; j < p; ++j) edges.append(array_of(std::move(bins.edges[j])));
  out["edges"] = edges;
  const double* last = merged.column(rows.n_columns - 1);
  out["offset"] = has_offset ? array_of(std::vector<double>(last, last + n)) : nb::none();
  out["y"] = array_of(std::move(merged.y));
  out["weight"] = array_of(std::move(merged.weight));
  return out;
}

template <class T>
nb::object vector_of(std::unique_ptr<T[]> values, size_t n) {
  T* data = values.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {n}, owner));
}

// Rows in the order of their codes, in every column: there are bytes for them.
void check_sorted(Codes rows, Codes codes, size_t n, size_t p) {
  check(n <= most_sorted, "sorted rows are more than bytes can tell");
  check_size("columns of sorted_rows", rows.shape(0), p);
  check_size("sorted_rows", rows.shape(1), n);
  check_size("columns of sorted_codes", codes.shape(0), p);
  check_size("sorted_codes", codes.shape(1), n);
}

// All columns are tried, every column is of a bundle, and the codes of a bundle fit a byte.
void check_bundles(Codes bundled, Places bundle_of, Flags n_bins, size_t n, Places columns) {
  const size_t p = n_bins.shape(0), n_bundles = bundled.shape(1);
  check_size("rows of bundled", bundled.shape(0), n);
  check_size("bundle_of", bundle_of.shape(0), p);
  check_size("columns beside bundles", columns.shape(0), p);
  std::vector<size_t> n_codes(n_bundles, 1);
  for (size_t j = 0; j < p; ++j) {
    check(columns.data()[j] == j, "columns beside bundles are all of them");
    check(bundle_of.data()[j] < n_bundles, "a bundle is not there");
    size_t& size = n_codes[bundle_of.data()[j]];
    size *= n_bins.data()[j] + size_t{1};
    check(size <= 256, "the codes of a bundle are more than a byte");
  }
}

nb::object grow_newton_py(Codes codes, Codes by_column, Flags n_bins, std::optional<Flags> n_levels, Vector slope,
                          Vector curvature, Vector weight, std::optional<Places> rows, Places columns, size_t max_depth,
                          size_t max_leaves, size_t min_rows_leaf, double ridge, bool is_best_first,
                          std::optional<Directions> direction, Scratch scratch, std::optional<Codes> bundled,
                          std::optional<Places> bundle_of, std::optional<Codes> sorted_rows,
                          std::optional<Codes> sorted_codes, int threads) {
  const size_t n = codes.shape(0), p = codes.shape(1);
  check_size("by_column", by_column.shape(0), p);
  check_size("rows of by_column", by_column.shape(1), n);
  check_size("n_bins", n_bins.shape(0), p);
  if (n_levels) check_size("n_levels", n_levels->shape(0), p);
  check_size("slope", slope.shape(0), n);
  check_size("curvature", curvature.shape(0), n);
  check_size("weight", weight.shape(0), n);
  check_size("scratch", scratch.shape(0), newton_scratch * n);
  if (direction) check_size("direction", direction->shape(0), p);
  const size_t n_drawn = rows ? rows->shape(0) : n;
  check(n_drawn > 0 && columns.shape(0) > 0, "a tree needs a row and a column");
  check(n_drawn < size_t{1} << 28, "boosting needs fewer than 2^28 rows");
  for (size_t k = 0; rows && k < n_drawn; ++k)
    check(rows->data()[k] < n && (k == 0 || rows->data()[k - 1] < rows->data()[k]),
          "rows do not ascend, or are not there");
  for (size_t k = 0; k < columns.shape(0); ++k) check(columns.data()[k] < p, "a column is not there");
  check(max_leaves > 0 && max_leaves < size_t{1} << 30 && ridge >= 0, "max_leaves or ridge is out of range");
  check(bundled.has_value() == bundle_of.has_value(), "bundles go with their columns");
  if (bundled) check_bundles(*bundled, *bundle_of, n_bins, n, columns);
  check(sorted_rows.has_value() == sorted_codes.has_value(), "sorted rows go with their codes");
  if (sorted_rows) check_sorted(*sorted_rows, *sorted_codes, n, p);
  check(!sorted_rows || !direction, "sorted rows are for columns without a direction");
  const NewtonRows all{n,
                       p,
                       codes.data(),
                       by_column.data(),
                       {n_bins.data(), n_levels ? n_levels->data() : nullptr, columns.data(), columns.shape(0)},
                       slope.data(),
                       curvature.data(),
                       weight.data(),
                       rows ? rows->data() : nullptr,
                       n_drawn,
                       scratch.data(),
                       bundled ? bundled->data() : nullptr,
                       bundled ? bundled->shape(1) : 0,
                       bundled ? bundle_of->data() : nullptr,
                       sorted_rows ? sorted_rows->data() : nullptr,
                       sorted_codes ? sorted_codes->data() : nullptr};
  const NewtonPlan plan{max_depth, max_leaves,    min_rows_leaf,
                        ridge,     is_best_first, direction ? direction->data() : nullptr};
  NewtonTree tree = run(threads, [&](Crew& crew) { return grow_newton(all, plan, crew); });
  const auto of_nodes = [&]<class T>(T, auto get) {
    std::vector<T> values;
    for (const NewtonNode& node : tree.nodes) values.push_back(static_cast<T>(get(node)));
    return array_of(std::move(values));
  };
  nb::dict out;
  out["feature"] = of_nodes(int64_t{}, [](const NewtonNode& node) { return node.feature; });
  out["left"] = of_nodes(int64_t{}, [](const NewtonNode& node) { return node.left; });
  out["bin"] = of_nodes(int64_t{}, [](const NewtonNode& node) { return node.bin; });
  out["is_missing_left"] = of_nodes(uint8_t{}, [](const NewtonNode& node) { return node.is_missing_left; });
  out["value"] = of_nodes(double{}, [](const NewtonNode& node) { return node.value; });
  out["gain"] = of_nodes(double{}, [](const NewtonNode& node) { return node.gain; });
  out["weight"] = of_nodes(double{}, [](const NewtonNode& node) { return node.weight; });
  out["leaves"] = vector_of(std::move(tree.leaves), n);
  std::vector<uint64_t> words;
  for (const Levels& set : tree.sets) words.insert(words.end(), set.begin(), set.end());
  out["sets"] = matrix_of(std::move(words), tree.sets.size(), 4);
  return out;
}

// Slopes and curvatures of rows times their weights, and sums of weighted losses per block, of the rows trained on and
// of the others; with leaves, at the scores that their values move, which come first.
nb::object row_losses_py(int loss, double parameter, Vector y, Vector z, Vector weight, std::optional<Flags> is_trained,
                         std::optional<NodeNumbers32> leaf, std::optional<Vector> value, int threads) {
  const size_t n = y.shape(0);
  check_size("z", z.shape(0), n);
  check_size("weight", weight.shape(0), n);
  if (is_trained) check_size("is_trained", is_trained->shape(0), n);
  check(loss >= 0 && loss < n_losses, "loss is not in the table");
  check(leaf.has_value() == value.has_value(), "leaves go with their values");
  if (leaf) {
    check_size("leaf", leaf->shape(0), n);
    const auto n_values = static_cast<int64_t>(value->shape(0));
    bool are_there = true;
    for (size_t i = 0; i < n; ++i) are_there &= (leaf->data()[i] >= 0) & (leaf->data()[i] < n_values);
    check(are_there, "a leaf is not there");
  }
  const ScoredRows rows{n,
                        y.data(),
                        weight.data(),
                        z.data(),
                        is_trained ? is_trained->data() : nullptr,
                        leaf ? leaf->data() : nullptr,
                        leaf ? value->data() : nullptr};
  RowLosses out = run(threads, [&](Crew& crew) { return row_losses(static_cast<Loss>(loss), parameter, rows, crew); });
  const size_t n_blocks = out.sums.size() / 2;
  return nb::make_tuple(leaf ? vector_of(std::move(out.score), n) : nb::none(), vector_of(std::move(out.slope), n),
                        vector_of(std::move(out.curvature), n), matrix_of(std::move(out.sums), n_blocks, 2));
}

// Rounds of boosting, of one tree each, derived again: sums over leaves, losses before every round and after the last,
// scores after it. X: values, or their ranks among the thresholds, which are ranks then.
template <class Rows>
nb::object derive_rounds_py(Rows X, Indices ends, Indices feature, Indices left, Vector threshold,
                            Flags is_missing_left, std::optional<Flags> n_levels, std::optional<LevelSets> sets,
                            Vector value, int loss, double parameter, Vector y, Vector weight, Vector score,
                            std::optional<Flags> is_trained, int threads) {
  const size_t n = X.shape(0), n_nodes = left.shape(0);
  const TreeArrays arrays{feature, left, threshold, is_missing_left, n_levels, sets};
  arrays.check_sizes(X.shape(1));
  check_size("value", value.shape(0), n_nodes);
  check_size("y", y.shape(0), n);
  check_size("weight", weight.shape(0), n);
  check_size("score", score.shape(0), n);
  if (is_trained) check_size("is_trained", is_trained->shape(0), n);
  check(loss >= 0 && loss < n_losses, "loss is not in the table");
  check(n > 0 && ends.shape(0) > 0, "rounds need a row");
  std::vector<Paths> trees;
  int64_t begin = 0;
  check(ends.data()[0] == 0, "ends begin at 0");
  for (size_t t = 0; t + 1 < ends.shape(0); ++t) {
    const int64_t end = ends.data()[t + 1];
    check(begin < end && end <= static_cast<int64_t>(n_nodes), "ends do not rise");
    trees.push_back(arrays.checked(static_cast<size_t>(begin), static_cast<size_t>(end), X.shape(1)));
    begin = end;
  }
  check_size("nodes", n_nodes, static_cast<size_t>(begin));
  const BoostedRows<std::remove_const_t<typename Rows::Scalar>> rows{n,
                                                                     X.shape(1),
                                                                     X.data(),
                                                                     y.data(),
                                                                     weight.data(),
                                                                     score.data(),
                                                                     is_trained ? is_trained->data() : nullptr,
                                                                     static_cast<Loss>(loss),
                                                                     parameter};
  DerivedRounds out = run(threads, [&](Crew& crew) { return derive_rounds(rows, trees, value.data(), crew); });
  return nb::make_tuple(matrix_of(std::move(out.sums), n_nodes, 4),
                        matrix_of(std::move(out.losses), trees.size() + 1, 2), array_of(std::move(out.scores)));
}

// Leaves of rows in one tree of boosting, and sums of slopes, curvatures, |slopes| and weights over them.
// X: values, or their ranks among the thresholds, which are ranks then.
template <class Rows>
nb::object sum_leaves_py(Rows X, Indices feature, Indices left, Vector threshold, Flags is_missing_left,
                         std::optional<Flags> n_levels, std::optional<LevelSets> sets, Vector slope, Vector curvature,
                         Vector weight, std::optional<Flags> is_drawn, int threads) {
  const size_t n = X.shape(0), n_nodes = left.shape(0);
  const TreeArrays tree{feature, left, threshold, is_missing_left, n_levels, sets};
  tree.check_sizes(X.shape(1));
  const Paths paths = tree.checked(0, n_nodes, X.shape(1));
  check_size("slope", slope.shape(0), n);
  check_size("curvature", curvature.shape(0), n);
  check_size("weight", weight.shape(0), n);
  if (is_drawn) check_size("is_drawn", is_drawn->shape(0), n);
  check(n > 0, "a tree needs a row");
  LeafSums all = run(threads, [&](Crew& crew) {
    return sum_leaves(X.data(), n, X.shape(1), paths, slope.data(), curvature.data(), weight.data(),
                      is_drawn ? is_drawn->data() : nullptr, crew);
  });
  return nb::make_tuple(array_of(std::move(all.leaves)), matrix_of(std::move(all.sums), n_nodes, 4));
}

// scores += value of the leaf of tree t, in column t % width, for the trees [first, last).
nb::object add_trees_py(nb::list x, Indices ends, Indices feature, Indices left, Vector threshold,
                        Flags is_missing_left, std::optional<Flags> n_levels, std::optional<LevelSets> sets,
                        Vector value, size_t width, size_t first, size_t last, int threads) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  const TreeArrays arrays{feature, left, threshold, is_missing_left, n_levels, sets};
  arrays.check_sizes(rows.n_columns);
  check_size("value", value.shape(0), left.shape(0));
  check(width > 0 && width < size_t{1} << 20, "width is out of range");
  check(first <= last && last < ends.shape(0), "trees are out of range");
  std::vector<AddedTree> trees;
  for (size_t t = first; t < last; ++t) {
    const int64_t begin = ends.data()[t], end = ends.data()[t + 1];
    check(begin >= 0 && begin < end && end <= static_cast<int64_t>(left.shape(0)), "ends do not rise");
    trees.push_back(
        {arrays.checked(static_cast<size_t>(begin), static_cast<size_t>(end), rows.n_columns), value.data() + begin});
  }
  std::vector<double> scores(rows.n_rows * width, 0.0);
  const bool is_finite =
      run(threads, [&](Crew& crew) { return add_trees(rows, trees, first, width, scores.data(), crew); });
  const size_t shape[2] = {rows.n_rows, width};
  return nb::make_tuple(to_numpy<2>(std::move(scores), shape), is_finite);
}

// Contributions of columns to what trees say of rows, rows x columns x width, and the means of the trees, width. Values
// of one number add to output t % width of tree t; of more numbers there are as many outputs.
nb::object tree_contributions_py(nb::list x, Indices ends, Indices feature, Indices left, Vector threshold,
                                 Flags is_missing_left, std::optional<Flags> n_levels, std::optional<LevelSets> sets,
                                 Vector weight, Matrix values, size_t width, int threads) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  const TreeArrays arrays{feature, left, threshold, is_missing_left, n_levels, sets};
  arrays.check_sizes(rows.n_columns);
  const size_t n_values = values.shape(1), p = rows.n_columns;
  check_size("weight", weight.shape(0), left.shape(0));
  check_size("values", values.shape(0), left.shape(0));
  check(width > 0 && width < size_t{1} << 20 && (n_values == 1 || n_values == width), "width is out of range");
  check(ends.shape(0) > 0, "ends has no entry");
  for (size_t k = 0; k < weight.shape(0); ++k) check(weight.data()[k] > 0, "a node has no weight");
  std::vector<WeightedTree> trees;
  std::vector<double> mean(width, 0.0);
  for (size_t t = 0; t + 1 < ends.shape(0); ++t) {
    const int64_t begin = ends.data()[t], end = ends.data()[t + 1];
    check(begin >= 0 && begin < end && end <= static_cast<int64_t>(left.shape(0)), "ends do not rise");
    const auto first = static_cast<size_t>(begin);
    trees.push_back({arrays.checked(first, static_cast<size_t>(end), p), weight.data() + first,
                     values.data() + first * n_values, n_values});
    check(depth_of(trees.back().paths) <= deepest, "a tree is deeper than " + std::to_string(deepest) + " levels");
    const std::vector<double> of_tree = mean_of(trees.back());
    for (size_t k = 0; k < n_values; ++k) mean[n_values == 1 ? t % width : k] += of_tree[k];
  }
  std::vector<double> out(rows.n_rows * p * width, 0.0);
  run(threads, [&](Crew& crew) {
    constexpr size_t block_rows = 64;
    crew.for_each_block((rows.n_rows + block_rows - 1) / block_rows, [&](size_t block) {
      const size_t begin = block * block_rows, count = std::min(block_rows, rows.n_rows - begin);
      std::vector<double> scratch;
      WholeRows whole(rows);
      const Tile tile = read_tile(rows, begin, count, scratch);
      for (size_t k = 0; k < count; ++k) {
        const double* row = whole.row(tile, k, begin + k);
        double* of_row = out.data() + (begin + k) * p * width;
        for (size_t t = 0; t < trees.size(); ++t)
          add_contributions(trees[t], row, width, of_row + (n_values == 1 ? t % width : 0));
      }
    });
    return true;
  });
  const size_t shape[3] = {rows.n_rows, p, width};
  return nb::make_tuple(to_numpy<3>(std::move(out), shape), array_of(std::move(mean)));
}

}  // namespace

void bind_newton(nb::module_& m) {
  m.def("boosting_rows", boosting_rows_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "has_offset"_a,
        "max_bins"_a, "n_levels"_a.noconvert().none(), "threads"_a);
  m.def("grow_newton", grow_newton_py, "codes"_a.noconvert(), "by_column"_a.noconvert(), "n_bins"_a.noconvert(),
        "n_levels"_a.noconvert().none(), "slope"_a.noconvert(), "curvature"_a.noconvert(), "weight"_a.noconvert(),
        "rows"_a.noconvert().none(), "columns"_a.noconvert(), "max_depth"_a, "max_leaves"_a, "min_rows_leaf"_a,
        "ridge"_a, "is_best_first"_a, "direction"_a.noconvert().none(), "scratch"_a.noconvert(),
        "bundled"_a.noconvert().none(), "bundle_of"_a.noconvert().none(), "sorted_rows"_a.noconvert().none(),
        "sorted_codes"_a.noconvert().none(), "threads"_a);
  m.def("row_losses", row_losses_py, "loss"_a, "parameter"_a, "y"_a.noconvert(), "z"_a.noconvert(),
        "weight"_a.noconvert(), "is_trained"_a.noconvert().none(), "leaf"_a.noconvert().none(),
        "value"_a.noconvert().none(), "threads"_a);
  const auto def_rounds = [&](const char* name, auto rounds) {
    m.def(name, rounds, "X"_a.noconvert(), "ends"_a.noconvert(), "feature"_a.noconvert(), "left"_a.noconvert(),
          "threshold"_a.noconvert(), "is_missing_left"_a.noconvert(), "n_levels"_a.noconvert().none(),
          "sets"_a.noconvert().none(), "value"_a.noconvert(), "loss"_a, "parameter"_a, "y"_a.noconvert(),
          "weight"_a.noconvert(), "score"_a.noconvert(), "is_trained"_a.noconvert().none(), "threads"_a);
  };
  def_rounds("derive_rounds", derive_rounds_py<Matrix>);
  def_rounds("derive_rounds_of_ranks", derive_rounds_py<Codes>);
  const auto def_sums = [&](const char* name, auto sums) {
    m.def(name, sums, "X"_a.noconvert(), "feature"_a.noconvert(), "left"_a.noconvert(), "threshold"_a.noconvert(),
          "is_missing_left"_a.noconvert(), "n_levels"_a.noconvert().none(), "sets"_a.noconvert().none(),
          "slope"_a.noconvert(), "curvature"_a.noconvert(), "weight"_a.noconvert(), "is_drawn"_a.noconvert().none(),
          "threads"_a);
  };
  def_sums("sum_leaves", sum_leaves_py<Matrix>);
  def_sums("sum_leaves_of_ranks", sum_leaves_py<Codes>);
  m.def("tree_contributions", tree_contributions_py, "x"_a, "ends"_a.noconvert(), "feature"_a.noconvert(),
        "left"_a.noconvert(), "threshold"_a.noconvert(), "is_missing_left"_a.noconvert(),
        "n_levels"_a.noconvert().none(), "sets"_a.noconvert().none(), "weight"_a.noconvert(), "values"_a.noconvert(),
        "width"_a, "threads"_a);
  m.def("add_trees", add_trees_py, "x"_a, "ends"_a.noconvert(), "feature"_a.noconvert(), "left"_a.noconvert(),
        "threshold"_a.noconvert(), "is_missing_left"_a.noconvert(), "n_levels"_a.noconvert().none(),
        "sets"_a.noconvert().none(), "value"_a.noconvert(), "width"_a, "first"_a, "last"_a, "threads"_a);
}

}  // namespace certifit
