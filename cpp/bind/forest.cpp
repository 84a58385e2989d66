#include "forest.hpp"

#include <algorithm>
#include <atomic>

#include "paths.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Places = Array<int64_t, 1>;
using BlockDraws = Array<uint32_t, 2>;
using Nodes = NodeNumbersOf<int32_t>;  // forests have millions
using Trees = TreeArraysOf<int32_t>;

// Trees end to end.
class ForestArrays {
 public:
  ForestArrays(size_t n_trees, size_t width) : n_trees_(n_trees), width_(width) {}

  void add(ForestTree&& tree) {
    if (n_added_++ == 0) reserve(tree);
    const auto n_sets = static_cast<double>(words_.size() / 4);  // of the trees before
    for (const Node& node : tree.nodes) {
      feature_.push_back(node.feature);
      left_.push_back(node.left);
      threshold_.push_back(node.threshold + (node.left != 0 && node.is_of_levels ? n_sets : 0.0));
      is_missing_left_.push_back(node.is_missing_left);
    }
    ends_.push_back(static_cast<int64_t>(feature_.size()));
    values_.insert(values_.end(), tree.values.begin(), tree.values.end());
    gains_.insert(gains_.end(), tree.gains.begin(), tree.gains.end());
    for (const Levels& set : tree.sets) words_.insert(words_.end(), set.begin(), set.end());
  }

  nb::object arrays(size_t n_columns) && {
    const size_t shape[2] = {values_.size() / width_, width_}, gain_shape[2] = {n_added_, n_columns};
    nb::dict out;
    out["ends"] = array_of(std::move(ends_));
    out["feature"] = array_of(std::move(feature_));
    out["left"] = array_of(std::move(left_));
    out["threshold"] = array_of(std::move(threshold_));
    out["is_missing_left"] = array_of(std::move(is_missing_left_));
    out["values"] = to_numpy<2>(std::move(values_), shape);
    out["gains"] = to_numpy<2>(std::move(gains_), gain_shape);
    out["sets"] = array_of(std::move(words_));
    return out;
  }

 private:
  // Trees of one forest are of about one size; room that nobody writes to costs no memory.
  void reserve(const ForestTree& first) {
    const auto room = [this](size_t n) { return n * n_trees_ + n * n_trees_ / 8; };
    const size_t n_nodes = room(first.nodes.size());
    if (n_nodes > most_room) return;
    for (auto* of_nodes : {&feature_, &left_}) of_nodes->reserve(n_nodes);
    threshold_.reserve(n_nodes);
    is_missing_left_.reserve(n_nodes);
    values_.reserve(room(first.values.size()));
  }

  static constexpr size_t most_room = size_t{1} << 28;

  size_t n_trees_, width_, n_added_ = 0;
  std::vector<int64_t> ends_{0};
  std::vector<int32_t> feature_, left_;
  std::vector<double> threshold_, values_, gains_;
  std::vector<uint8_t> is_missing_left_;
  std::vector<uint64_t> words_;
};

ForestArrays grown_forest(const TreeRows& rows, const BinnedColumns& bins, ForestPlan& plan, Crew& crew, int threads,
                          const nb::object& tell) {
  std::function<bool(size_t)> ask;
  if (!tell.is_none())
    ask = [&](size_t n_grown) {
      nb::gil_scoped_acquire gil;
      return nb::cast<bool>(tell(n_grown));
    };
  for (size_t begin = 0; begin < rows.n_rows; begin += summed_block) {
    double block = 0;
    for (size_t i = begin; i < std::min(rows.n_rows, begin + summed_block); ++i) block += rows.y[i];
    plan.centre += block / static_cast<double>(rows.n_rows);
  }
  ForestArrays trees(plan.n_trees, plan.width());
  const auto take = [&](ForestTree&& tree) { trees.add(std::move(tree)); };
  grow_forest(rows, bins, plan, crew, static_cast<size_t>(std::max(1, threads)), take, ask);
  return trees;
}

nb::object grow_forest_py(nb::list x, Vector y, std::optional<Vector> weight, size_t n_classes, size_t n_trees,
                          size_t n_tried, size_t max_bins, size_t max_depth, size_t min_rows_split,
                          size_t min_rows_leaf, uint64_t seed, std::optional<Flags> n_levels, int threads,
                          nb::object tell) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  check_labelled(rows.n_rows, y, weight, n_classes);
  check(max_bins > 1 && max_bins <= 255, "max_bins is out of range");
  ForestPlan plan{n_trees, n_classes, n_tried, seed, {max_depth, min_rows_split, min_rows_leaf, 0.0}, {}, 0.0};
  check_plan(plan, n_levels, rows.n_columns);
  std::optional<ForestArrays> trees;
  run(threads, [&](Crew& crew) {
    TreeRows merged = merged_rows(rows, y.data(), weight ? weight->data() : nullptr, crew);
    if (!merged.is_finite || merged.n_rows == 0) return;
    const Bins bins = binned(merged, bin_edges(merged, max_bins, plan.columns, crew), plan.columns, crew);
    std::vector<double>().swap(merged.columns);  // trees read bins only
    const BinnedColumns columns{bins.n_columns, bins.n_rows, bins.codes.data(), bins.edges};
    trees = grown_forest(merged, columns, plan, crew, threads, tell);
  });
  return trees ? std::move(*trees).arrays(rows.n_columns) : nb::none();
}

std::optional<RankedTree> as_they_are(const std::vector<Step>&) { return std::nullopt; }

// Arrays of a forest, checked and as rows walk through them. compressed(steps): the tree for rows of ranks, if any; the
// forest has such trees, or where one has none all as they are.
template <class Compressed>
ForestPaths checked_forest(const Places& ends, const Trees& trees, const Matrix& values, size_t n_columns, Crew& crew,
                           Compressed compressed) {
  const size_t n = trees.left.shape(0), n_trees = ends.shape(0) - 1;
  check(ends.shape(0) > 1 && ends.data()[0] == 0 && ends.data()[n_trees] == static_cast<int64_t>(n),
        "ends do not span the nodes");
  trees.check_sizes(n_columns);
  ForestPaths forest{std::vector<std::vector<Step>>(n_trees), {}, values.shape(1), nullptr, nullptr, {}};
  if (trees.n_levels) {
    forest.n_levels = trees.n_levels->data();
    forest.sets = trees.sets->data();
  }
  std::vector<size_t> n_leaves(n_trees);
  std::vector<RankedTree> ranked(n_trees);
  std::atomic<bool> is_ranked{true};
  crew.for_each_block(n_trees, [&](size_t t) {
    const int64_t begin = ends.data()[t], end = ends.data()[t + 1];
    check(begin >= 0 && begin < end && end <= static_cast<int64_t>(n), "a tree has no nodes");
    std::vector<Step> steps = steps_of(trees.checked(static_cast<size_t>(begin), static_cast<size_t>(end), n_columns));
    uint32_t number = 0;
    for (Step& step : steps)
      if (step.left == 0) step.feature = number++ & 0x7fffffffu;
    n_leaves[t] = number;
    if (std::optional<RankedTree> tree = is_ranked ? compressed(steps) : std::nullopt) {
      ranked[t] = std::move(*tree);
    } else {
      is_ranked = false;
      forest.trees[t] = std::move(steps);
    }
  });
  if (!is_ranked &&
      std::any_of(forest.trees.begin(), forest.trees.end(), [](const auto& tree) { return tree.empty(); }))
    return checked_forest(ends, trees, values, n_columns, crew, as_they_are);
  if (is_ranked) {
    forest.ranked = std::move(ranked);
    forest.trees.clear();
  }
  size_t first = 0;
  for (const size_t of_tree : n_leaves) {
    forest.values.push_back(values.data() + first * values.shape(1));
    first += of_tree;
  }
  check_size("values", values.shape(0), first);
  return forest;
}

nb::object forest_means_py(nb::list x, Places ends, Nodes feature, Nodes left, Vector threshold, Flags is_missing_left,
                           std::optional<Flags> n_levels, std::optional<LevelSets> sets, Matrix values, int threads) {
  HeldRows held(x);
  const Trees trees{feature, left, threshold, is_missing_left, n_levels, sets};
  const size_t shape[2] = {held.rows.n_rows, values.shape(1)};
  Means means = run(threads, [&](Crew& crew) {
    ForestPaths forest = checked_forest(ends, trees, values, held.rows.n_columns, crew, as_they_are);
    return forest_means(held.rows, std::move(forest), crew);
  });
  return nb::make_tuple(to_numpy<2>(std::move(means.values), shape), means.is_finite);
}

nb::object check_arrays(ForestCheck&& found, size_t width) {
  const size_t shape[2] = {found.target.size(), width};
  return nb::make_tuple(found.deviation, to_numpy<2>(std::move(found.out.means), shape),
                        to_numpy(std::move(found.out.n_trees)), to_numpy(std::move(found.target)),
                        to_numpy(std::move(found.weight)));
}

// edges: of bins; where every threshold is one of them, rows are led by their ranks, which takes less memory.
nb::object check_forest_py(nb::list x, Vector y, std::optional<Vector> weight, Places ends, Nodes feature, Nodes left,
                           Vector threshold, Flags is_missing_left, std::optional<Flags> n_levels,
                           std::optional<LevelSets> sets, Matrix values, size_t n_classes, uint64_t seed, int threads,
                           std::optional<nb::list> edges) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  check_labelled(rows.n_rows, y, weight, n_classes);
  const Trees trees{feature, left, threshold, is_missing_left, n_levels, sets};
  check_size("columns of values", values.shape(1), n_classes > 0 ? n_classes : 1);
  const Edges known = edges ? checked_edges(*edges, rows.n_columns) : Edges{};
  ColumnRules columns;
  if (n_levels) columns.n_levels.assign(n_levels->data(), n_levels->data() + rows.n_columns);
  ForestCheck found;
  const bool is_checked = run(threads, [&](Crew& crew) {
    TreeRows merged = merged_rows(rows, y.data(), weight ? weight->data() : nullptr, crew);
    if (!merged.is_finite || merged.n_rows == 0) return false;
    const std::vector<uint8_t> ranks = edges ? ranked_rows(merged, known, columns, crew) : std::vector<uint8_t>{};
    const bool has_ranks = !ranks.empty();
    if (has_ranks) std::vector<double>().swap(merged.columns);  // rows are read by their ranks only
    ForestPaths forest = checked_forest(ends, trees, values, rows.n_columns, crew, [&](const std::vector<Step>& steps) {
      return has_ranks && !n_levels ? ranked_tree(steps, known) : std::nullopt;
    });
    if (!forest.ranked.empty() || (has_ranks && rank_thresholds(forest, known, columns, crew))) {
      found = check_forest(merged, ranks.data(), forest, seed, n_classes, crew);
      return true;
    }
    if (has_ranks) merged = merged_rows(rows, y.data(), weight ? weight->data() : nullptr, crew);
    const std::vector<double> by_row = row_after_row(merged, merged.n_columns, crew);
    found = check_forest(merged, by_row.data(), forest, seed, n_classes, crew);
    return true;
  });
  if (!is_checked) return nb::none();
  return check_arrays(std::move(found), values.shape(1));
}

// The same of the rows of a part, which begins with a block. ranks: of their values among the thresholds, which are
// ranks too; block_draws: of every tree those of its blocks. sums, mass: of the leaves of all trees so far; seen: the
// levels that nodes have met. Then per row the mean over the trees that did not draw it, and their number.
nb::object check_forest_part_py(Codes ranks, Vector y, Vector weight, bool is_weighted, BlockDraws block_draws,
                                size_t first_block, Matrix sums, Vector mass, LevelSets seen, Places ends,
                                Nodes feature, Nodes left, Vector threshold, Flags is_missing_left,
                                std::optional<Flags> n_levels, std::optional<LevelSets> sets, Matrix values,
                                size_t n_classes, uint64_t seed, int threads) {
  const size_t n = ranks.shape(0), p = ranks.shape(1), width = n_classes > 0 ? n_classes : 1;
  check_labelled(n, y, weight, n_classes);
  TreeRows rows = coded_rows(y, weight, n, p);
  check_size("columns of values", values.shape(1), width);
  check_size("columns of sums", sums.shape(1), width);
  check_size("sums", sums.shape(0), values.shape(0));
  check_size("mass", mass.shape(0), values.shape(0));
  check_size("seen", seen.shape(0), n_levels ? left.shape(0) : 0);
  check_size("words of a set", seen.shape(1), 4);
  check_size("trees of block_draws", block_draws.shape(0) + 1, ends.shape(0));
  check_size("blocks", block_draws.shape(1), (n + summed_block - 1) / summed_block);
  check(first_block < size_t{1} << 31, "first_block is out of range");
  for (size_t k = 0; k < block_draws.size(); ++k)
    check(block_draws.data()[k] < uint32_t{1} << 31, "draws are out of range");
  const Trees trees{feature, left, threshold, is_missing_left, n_levels, sets};
  ForestSums leaves{{sums.data(), sums.data() + sums.size()}, {mass.data(), mass.data() + mass.size()}, {}};
  leaves.seen.resize(seen.shape(0));
  for (size_t k = 0; k < leaves.seen.size(); ++k) std::copy_n(seen.data() + 4 * k, 4, leaves.seen[k].begin());
  const DrawnPartOfRows part{rows, is_weighted, first_block, block_draws.data(), block_draws.shape(1), seed};
  OutOfBag out = run(threads, [&](Crew& crew) {
    const ForestPaths forest = checked_forest(ends, trees, values, p, crew, [&](const std::vector<Step>& steps) {
      return n_levels || p == 0 ? std::nullopt : ranked_tree(steps);
    });
    return check_forest_part(part, ranks.data(), forest, n_classes, leaves, crew);
  });
  const size_t shape[2] = {n, width}, leaf_shape[2] = {values.shape(0), width};
  std::vector<uint64_t> words;
  for (const Levels& levels : leaves.seen) words.insert(words.end(), levels.begin(), levels.end());
  return nb::make_tuple(to_numpy<2>(std::move(leaves.sums), leaf_shape), to_numpy(std::move(leaves.mass)),
                        matrix_of(std::move(words), leaves.seen.size(), 4), to_numpy<2>(std::move(out.means), shape),
                        to_numpy(std::move(out.n_trees)));
}

}  // namespace

void bind_forest(nb::module_& m) {
  m.def("grow_forest", grow_forest_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "n_classes"_a,
        "n_trees"_a, "n_tried"_a, "max_bins"_a, "max_depth"_a, "min_rows_split"_a, "min_rows_leaf"_a, "seed"_a,
        "n_levels"_a.noconvert().none(), "threads"_a, "tell"_a.none() = nb::none());
  m.def("check_forest_part", check_forest_part_py, "ranks"_a.noconvert(), "y"_a.noconvert(), "weight"_a.noconvert(),
        "is_weighted"_a, "block_draws"_a.noconvert(), "first_block"_a, "sums"_a.noconvert(), "mass"_a.noconvert(),
        "seen"_a.noconvert(), "ends"_a.noconvert(), "feature"_a.noconvert(), "left"_a.noconvert(),
        "threshold"_a.noconvert(), "is_missing_left"_a.noconvert(), "n_levels"_a.noconvert().none(),
        "sets"_a.noconvert().none(), "values"_a.noconvert(), "n_classes"_a, "seed"_a, "threads"_a);
  m.def("forest_means", forest_means_py, "x"_a, "ends"_a.noconvert(), "feature"_a.noconvert(), "left"_a.noconvert(),
        "threshold"_a.noconvert(), "is_missing_left"_a.noconvert(), "n_levels"_a.noconvert().none(),
        "sets"_a.noconvert().none(), "values"_a.noconvert(), "threads"_a);
  m.def("check_forest", check_forest_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "ends"_a.noconvert(),
        "feature"_a.noconvert(), "left"_a.noconvert(), "threshold"_a.noconvert(), "is_missing_left"_a.noconvert(),
        "n_levels"_a.noconvert().none(), "sets"_a.noconvert().none(), "values"_a.noconvert(), "n_classes"_a, "seed"_a,
        "threads"_a, "edges"_a.none() = nb::none());
}

}  // namespace certifit
