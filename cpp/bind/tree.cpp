#include "../tree/tree.hpp"

#include <cmath>

#include "../tree/binned.hpp"
#include "../tree/boost.hpp"
#include "../tree/boost_proof.hpp"
#include "bins.hpp"
#include "check.hpp"
#include "paths.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Places = Array<int64_t, 1>;

template <class T, class Get>
nb::object of_nodes(const GrownTree& tree, Get get) {
  std::vector<T> values(tree.nodes.size());
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<T>(get(tree.nodes[k]));
  return array_of(std::move(values));
}

using Words = Array<uint64_t, 2>;

nb::object tree_arrays(GrownTree&& tree, size_t n_classes) {
  const size_t shape[2] = {tree.nodes.size(), std::max<size_t>(n_classes, 1)};
  nb::dict out;
  out["feature"] = of_nodes<int64_t>(tree, [](const Node& node) { return node.feature; });
  out["left"] = of_nodes<int64_t>(tree, [](const Node& node) { return node.left; });
  out["threshold"] = of_nodes<double>(tree, [](const Node& node) { return node.threshold; });
  out["is_missing_left"] = of_nodes<uint8_t>(tree, [](const Node& node) { return node.is_missing_left; });
  out["n_rows"] = of_nodes<int64_t>(tree, [](const Node& node) { return node.n_rows; });
  out["weight"] = of_nodes<double>(tree, [](const Node& node) { return node.weight; });
  out["impurity"] = of_nodes<double>(tree, [](const Node& node) { return node.impurity; });
  out["decrease"] = of_nodes<double>(tree, [](const Node& node) { return node.decrease; });
  out["values"] = to_numpy<2>(std::move(tree.values), shape);
  std::vector<uint64_t> words;
  for (const Levels& set : tree.sets) words.insert(words.end(), set.begin(), set.end());
  out["sets"] = array_of(std::move(words));  // four words a set
  return out;
}

// The edges of the bins of every column, or None where a value is infinite.
nb::object bin_edges_py(nb::list x, Vector y, std::optional<Vector> weight, size_t max_bins,
                        std::optional<Flags> n_levels, int threads) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  check_size("y", y.shape(0), rows.n_rows);
  if (weight) check_size("weight", weight->shape(0), rows.n_rows);
  check(rows.n_rows < size_t{1} << 31, "bins need fewer than 2^31 rows");
  check(max_bins > 1 && max_bins <= 255, "max_bins must be 2 to 255");
  const ColumnRules columns = checked_columns({}, n_levels, rows.n_columns, 0);
  Edges edges;
  const bool is_made = run(threads, [&](Crew& crew) {
    const TreeRows merged = first_rows(rows, y.data(), weight ? weight->data() : nullptr, sample_rows, crew);
    if (!merged.is_finite || merged.n_rows == 0) return false;
    edges = bin_edges(merged, max_bins, columns, crew);
    return true;
  });
  if (!is_made) return nb::none();
  nb::list out;
  for (std::vector<double>& column : edges) out.append(to_numpy(std::move(column)));
  return out;
}

nb::object grow_tree_py(nb::list x, Vector y, std::optional<Vector> weight, const std::string& criterion,
                        size_t n_classes, size_t max_depth, size_t min_rows_split, size_t min_rows_leaf,
                        double min_decrease, std::optional<Directions> direction, std::optional<Flags> n_levels,
                        size_t max_bins, std::optional<nb::list> edges, int threads) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  check_size("y", y.shape(0), rows.n_rows);
  if (weight) check_size("weight", weight->shape(0), rows.n_rows);
  check(rows.n_rows < size_t{1} << 31, "a tree needs fewer than 2^31 rows");
  check(n_classes < size_t{1} << 31 && min_rows_leaf > 0 && min_rows_leaf < size_t{1} << 40,
        "n_classes or min_rows_leaf is out of range");
  const Criterion kind = checked_criterion(criterion, n_classes);
  check_target(y, weight, kind, n_classes);
  const Stops stops{max_depth, min_rows_split, min_rows_leaf, min_decrease};
  const ColumnRules columns = checked_columns(direction, n_levels, rows.n_columns, n_classes);
  check(max_bins != 1 && max_bins <= 255, "max_bins must be 0, which tries every threshold, or 2 to 255");
  const bool is_binned = max_bins > 0 || edges;
  const Edges known = edges ? checked_edges(*edges, rows.n_columns) : Edges{};
  GrownTree tree;
  const bool is_grown = run(threads, [&](Crew& crew) {
    TreeRows merged = merged_rows(rows, y.data(), weight ? weight->data() : nullptr, crew);
    if (!merged.is_finite || merged.n_rows == 0) return false;
    if (!is_binned) {
      tree = grow_exact(merged, kind, n_classes, stops, columns, crew);
      return true;
    }
    const Bins bins = binned(merged, edges ? known : bin_edges(merged, max_bins, columns, crew), columns, crew);
    std::vector<double>().swap(merged.columns);  // the tree reads bins only
    tree = grow_binned(merged, by_row(bins, crew).data(), bins.edges, kind, n_classes, stops, columns, crew,
                       whole_of(merged, kind));
    return true;
  });
  return is_grown ? tree_arrays(std::move(tree), n_classes) : nb::none();
}

// The same on rows of one node that are merged and binned. codes: row after row; edges: of their bins; starts: where
// their blocks begin; whole: what all rows are.
nb::object grow_codes_py(Codes codes, nb::list edges, Vector y, Vector weight, const std::string& criterion,
                         size_t n_classes, size_t max_depth, size_t min_rows_split, size_t min_rows_leaf,
                         double min_decrease, std::optional<Directions> direction, std::optional<Flags> n_levels,
                         double low, double high, Places starts, WholeNumbers whole, int threads) {
  const size_t n = codes.shape(0), p = codes.shape(1);
  TreeRows rows = coded_rows(y, weight, n, p);
  check(starts.shape(0) > 0 && starts.data()[0] == 0, "the first block must begin at 0");
  for (size_t k = 0; k < starts.shape(0); ++k) {
    check(k == 0 || starts.data()[k] > starts.data()[k - 1], "blocks must be in order");
    check(starts.data()[k] < static_cast<int64_t>(n), "a block has no rows");
    rows.block_starts.push_back(static_cast<uint32_t>(starts.data()[k]));
  }
  check(n_classes < size_t{1} << 31 && min_rows_leaf > 0 && min_rows_leaf < size_t{1} << 40,
        "n_classes or min_rows_leaf is out of range");
  const Criterion kind = checked_criterion(criterion, n_classes);
  check_target(y, weight, kind, n_classes);
  const Stops stops{max_depth, min_rows_split, min_rows_leaf, min_decrease};
  const ColumnRules columns = checked_columns(direction, n_levels, p, n_classes);
  const Edges known = checked_edges(edges, p);
  const Whole all = checked_whole(whole);
  GrownTree tree = run(threads, [&](Crew& crew) {
    return grow_binned(rows, codes.data(), known, kind, n_classes, stops, columns, crew, all, low, high);
  });
  return tree_arrays(std::move(tree), n_classes);
}

nb::object walk_tree_py(nb::list x, Places feature, Places left, Vector threshold, Flags is_missing_left,
                        std::optional<Flags> n_levels, std::optional<Words> sets, bool with_ranges, int threads) {
  HeldRows held(x);
  const TreeArrays tree{feature, left, threshold, is_missing_left, n_levels, sets};
  tree.check_sizes(held.rows.n_columns);
  const Paths paths = tree.checked(0, left.shape(0), held.rows.n_columns);
  Walk walk = run(threads, [&](Crew& crew) { return walk_rows(held.rows, paths, with_ranges, crew); });
  return nb::make_tuple(array_of(std::move(walk.leaves)), to_numpy(std::move(walk.below)),
                        to_numpy(std::move(walk.above)), walk.is_finite);
}

template <class T, class Get>
nb::object of_stumps(const std::vector<Stump>& stumps, Get get) {
  std::vector<T> values(stumps.size());
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<T>(get(stumps[k]));
  return array_of(std::move(values));
}

nb::object boost_stumps_py(nb::list x, Vector y, std::optional<Vector> weight, size_t n_classes, size_t n_rounds,
                           double rate, int threads, nb::object tell) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  check_size("y", y.shape(0), rows.n_rows);
  if (weight) check_size("weight", weight->shape(0), rows.n_rows);
  check(rows.n_rows < size_t{1} << 31, "stumps need fewer than 2^31 rows");
  check(rows.n_columns > 0, "stumps need a column");
  check(n_classes > 1 && n_classes < size_t{1} << 20, "boosting needs 2 to 2^20 - 1 classes");
  check(n_rounds < size_t{1} << 31 && rate > 0 && rate < 0x1p100, "n_rounds or rate is out of range");
  check_target(y, weight, Criterion::gini, n_classes);
  std::function<bool(const Stump&)> ask;
  if (!tell.is_none())
    ask = [&](const Stump& stump) {
      nb::gil_scoped_acquire gil;
      return nb::cast<bool>(tell(stump.error, stump.alpha, stump.training_error));
    };
  std::vector<Stump> stumps;
  const bool is_boosted = run(threads, [&](Crew& crew) {
    TreeRows merged = merged_rows(rows, y.data(), weight ? weight->data() : nullptr, crew);
    if (!merged.is_finite || merged.has_missing() || merged.n_rows == 0) return false;
    stumps = boost_stumps(std::move(merged), n_classes, n_rounds, rate, crew, ask);
    return true;
  });
  if (!is_boosted) return nb::none();
  nb::dict out;
  out["feature"] = of_stumps<int64_t>(stumps, [](const Stump& stump) { return stump.feature; });
  out["threshold"] = of_stumps<double>(stumps, [](const Stump& stump) { return stump.threshold; });
  out["left"] = of_stumps<int64_t>(stumps, [](const Stump& stump) { return stump.left; });
  out["right"] = of_stumps<int64_t>(stumps, [](const Stump& stump) { return stump.right; });
  out["error"] = of_stumps<double>(stumps, [](const Stump& stump) { return stump.error; });
  out["alpha"] = of_stumps<double>(stumps, [](const Stump& stump) { return stump.alpha; });
  out["training_error"] = of_stumps<double>(stumps, [](const Stump& stump) { return stump.training_error; });
  return out;
}

// Stumps of a vote, which are not believed.
std::vector<Stump> checked_stumps(const Places& feature, const Vector& threshold, const Places& left,
                                  const Places& right, const Vector& alpha, size_t n_columns, size_t n_classes) {
  const size_t n = feature.shape(0);
  check_size("threshold", threshold.shape(0), n);
  check_size("left", left.shape(0), n);
  check_size("right", right.shape(0), n);
  check_size("alpha", alpha.shape(0), n);
  check(n_classes < size_t{1} << 20, "n_classes is out of range");
  std::vector<Stump> stumps(n);
  for (size_t k = 0; k < n; ++k) {
    Stump& stump = stumps[k];
    stump.feature = static_cast<size_t>(feature.data()[k]);
    stump.left = static_cast<size_t>(left.data()[k]);
    stump.right = static_cast<size_t>(right.data()[k]);
    check(stump.feature < n_columns, "a stump asks for a column that is not there");
    check(stump.left < n_classes && stump.right < n_classes, "a stump calls a class that is not there");
    stump.threshold = threshold.data()[k];
    stump.alpha = alpha.data()[k];
  }
  return stumps;
}

nb::object vote_stumps_py(nb::list x, Places feature, Vector threshold, Places left, Places right, Vector alpha,
                          size_t n_classes, int threads) {
  HeldRows held(x);
  const std::vector<Stump> stumps =
      checked_stumps(feature, threshold, left, right, alpha, held.rows.n_columns, n_classes);
  Votes votes = run(threads, [&](Crew& crew) { return vote(held.rows, stumps, n_classes, crew); });
  const size_t shape[2] = {held.rows.n_rows, n_classes};
  return nb::make_tuple(to_numpy<2>(std::move(votes.scores), shape), votes.is_finite);
}

nb::object replay_stumps_py(nb::list x, Vector y, std::optional<Vector> weight, Places feature, Vector threshold,
                            Places left, Places right, Vector alpha, Vector error, Vector near, size_t chosen,
                            size_t n_classes, int threads) {
  HeldRows held(x);
  const size_t n = held.rows.n_rows;
  check_size("y", y.shape(0), n);
  if (weight) check_size("weight", weight->shape(0), n);
  std::vector<Stump> stumps = checked_stumps(feature, threshold, left, right, alpha, held.rows.n_columns, n_classes);
  check_size("error", error.shape(0), stumps.size());
  check_size("near", near.shape(0), stumps.size());
  check_target(y, weight, Criterion::gini, n_classes);
  for (size_t j = 0; j < stumps.size(); ++j) stumps[j].error = error.data()[j];
  Replay replay = run(threads, [&](Crew& crew) {
    return replay_stumps(held.rows, y.data(), weight ? weight->data() : nullptr, stumps, near.data(), chosen, n_classes,
                         crew);
  });
  nb::dict out;
  out["wrong"] = to_numpy(std::move(replay.wrong));
  out["total"] = to_numpy(std::move(replay.total));
  out["lost"] = to_numpy(std::move(replay.lost));
  out["drawn"] = to_numpy(std::move(replay.drawn));
  out["below"] = to_numpy(std::move(replay.below));
  out["above"] = to_numpy(std::move(replay.above));
  out["chosen"] = to_numpy(std::move(replay.chosen));
  out["sum"] = to_numpy(std::move(replay.sum));
  out["since"] = to_numpy(std::move(replay.since));
  out["last"] = to_numpy(std::move(replay.last));
  out["leads"] = to_numpy(std::move(replay.leads));
  return out;
}

// The largest edges of all stumps under four signed weights of the rows: rows x 4.
nb::object largest_edges_py(nb::list x, Matrix signs, int threads) {
  HeldRows held(x);
  check_size("signs", signs.shape(0), held.rows.n_rows);
  check_size("a row of signs", signs.shape(1), n_edges);
  check(held.rows.n_rows < size_t{1} << 31, "stumps need fewer than 2^31 rows");
  const auto edges = run(threads, [&](Crew& crew) { return largest_edges(held.rows, signs.data(), crew); });
  return array_of(std::vector<double>(edges.begin(), edges.end()));
}

}  // namespace

void bind_tree(nb::module_& m) {
  m.def("grow_tree", grow_tree_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "criterion"_a,
        "n_classes"_a, "max_depth"_a, "min_rows_split"_a, "min_rows_leaf"_a, "min_decrease"_a,
        "direction"_a.noconvert().none(), "n_levels"_a.noconvert().none(), "max_bins"_a, "edges"_a.none(), "threads"_a);
  m.def("grow_codes", grow_codes_py, "codes"_a.noconvert(), "edges"_a, "y"_a.noconvert(), "weight"_a.noconvert(),
        "criterion"_a, "n_classes"_a, "max_depth"_a, "min_rows_split"_a, "min_rows_leaf"_a, "min_decrease"_a,
        "direction"_a.noconvert().none(), "n_levels"_a.noconvert().none(), "low"_a, "high"_a, "starts"_a.noconvert(),
        "whole"_a.noconvert(), "threads"_a);
  m.def("bin_edges", bin_edges_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "max_bins"_a,
        "n_levels"_a.noconvert().none(), "threads"_a);
  m.def("walk_tree", walk_tree_py, "x"_a, "feature"_a.noconvert(), "left"_a.noconvert(), "threshold"_a.noconvert(),
        "is_missing_left"_a.noconvert(), "n_levels"_a.noconvert().none(), "sets"_a.noconvert().none(), "with_ranges"_a,
        "threads"_a);
  m.def("boost_stumps", boost_stumps_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "n_classes"_a,
        "n_rounds"_a, "rate"_a, "threads"_a, "tell"_a.none() = nb::none());
  m.def("vote_stumps", vote_stumps_py, "x"_a, "feature"_a.noconvert(), "threshold"_a.noconvert(), "left"_a.noconvert(),
        "right"_a.noconvert(), "alpha"_a.noconvert(), "n_classes"_a, "threads"_a);
  m.def("replay_stumps", replay_stumps_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(),
        "feature"_a.noconvert(), "threshold"_a.noconvert(), "left"_a.noconvert(), "right"_a.noconvert(),
        "alpha"_a.noconvert(), "error"_a.noconvert(), "near"_a.noconvert(), "chosen"_a, "n_classes"_a, "threads"_a);
  m.def("largest_edges", largest_edges_py, "x"_a, "signs"_a.noconvert(), "threads"_a);
}

}  // namespace certifit
