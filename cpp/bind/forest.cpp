#include "../tree/forest.hpp"

#include <cmath>

#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Places = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_labelled(const Rows& rows, const Vector& y, const std::optional<Vector>& weight, size_t n_classes) {
  check_size("y", y.shape(0), rows.n_rows);
  if (weight) check_size("weight", weight->shape(0), rows.n_rows);
  check(rows.n_rows < size_t{1} << 31, "a forest needs fewer than 2^31 rows");
  check(n_classes < size_t{1} << 20, "n_classes is out of range");
  double total = 0;
  for (size_t i = 0; i < rows.n_rows; ++i) {
    const double w = weight ? weight->data()[i] : 1.0, value = y.data()[i];
    check(w >= 0 && w < 0x1p500, "weights must be >= 0 and below 2^500");
    const bool is_code = value >= 0 && value < static_cast<double>(n_classes) && value == std::floor(value);
    check(n_classes == 0 || w == 0 || is_code, "y must be codes of the classes");
    total += w;
  }
  check(total < 0x1p31 || !weight || total != std::floor(total), "weights add up to 2^31 draws or more");
}

nb::object forest_arrays(std::vector<ForestTree>&& trees, size_t width, size_t n_columns) {
  std::vector<int64_t> ends{0}, feature, left;
  std::vector<double> threshold, values, gains;
  std::vector<uint8_t> is_missing_left;
  for (ForestTree& tree : trees) {
    for (const Node& node : tree.nodes) {
      feature.push_back(node.feature);
      left.push_back(node.left);
      threshold.push_back(node.threshold);
      is_missing_left.push_back(node.is_missing_left);
    }
    ends.push_back(static_cast<int64_t>(feature.size()));
    values.insert(values.end(), tree.values.begin(), tree.values.end());
    gains.insert(gains.end(), tree.gains.begin(), tree.gains.end());
    tree = {};
  }
  const size_t shape[2] = {values.size() / width, width}, gain_shape[2] = {trees.size(), n_columns};
  nb::dict out;
  out["ends"] = array_of(std::move(ends));
  out["feature"] = array_of(std::move(feature));
  out["left"] = array_of(std::move(left));
  out["threshold"] = array_of(std::move(threshold));
  out["is_missing_left"] = array_of(std::move(is_missing_left));
  out["values"] = to_numpy<2>(std::move(values), shape);
  out["gains"] = to_numpy<2>(std::move(gains), gain_shape);
  return out;
}

nb::object grow_forest_py(nb::list x, Vector y, std::optional<Vector> weight, size_t n_classes, size_t n_trees,
                          size_t n_tried, size_t max_bins, size_t max_depth, size_t min_rows_split,
                          size_t min_rows_leaf, uint64_t seed, int threads, nb::object tell) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  check_labelled(rows, y, weight, n_classes);
  check(n_classes != 1 && max_bins > 1 && max_bins <= 255, "n_classes or max_bins is out of range");
  check(n_trees < size_t{1} << 20 && min_rows_leaf > 0 && min_rows_leaf < size_t{1} << 40,
        "n_trees or min_rows_leaf is out of range");
  const ForestPlan plan{n_trees, n_classes, n_tried, seed, {max_depth, min_rows_split, min_rows_leaf, 0.0}};
  std::function<bool(size_t)> ask;
  if (!tell.is_none())
    ask = [&](size_t n_grown) {
      nb::gil_scoped_acquire gil;
      return nb::cast<bool>(tell(n_grown));
    };
  std::vector<ForestTree> trees;
  const bool is_grown = run(threads, [&](Crew& crew) {
    TreeRows merged = merged_rows(rows, y.data(), weight ? weight->data() : nullptr, crew);
    if (!merged.is_finite || merged.n_rows == 0) return false;
    const Bins bins = binned(merged, bin_edges(merged, max_bins, {}, crew), {}, crew);
    std::vector<double>().swap(merged.columns);  // trees read bins only
    trees = grow_forest(merged, bins, plan, crew, static_cast<size_t>(std::max(1, threads)), ask);
    return true;
  });
  if (!is_grown) return nb::none();
  return forest_arrays(std::move(trees), plan.width(), rows.n_columns);
}

// Arrays of a forest, checked and as rows walk through them.
ForestPaths checked_forest(const Places& ends, const Places& feature, const Places& left, const Vector& threshold,
                           const Flags& is_missing_left, const Matrix& values, size_t n_columns) {
  const size_t n = left.shape(0), n_trees = ends.shape(0) - 1;
  check(ends.shape(0) > 1 && ends.data()[0] == 0 && ends.data()[n_trees] == static_cast<int64_t>(n),
        "ends do not span the nodes");
  check_size("feature", feature.shape(0), n);
  check_size("threshold", threshold.shape(0), n);
  check_size("is_missing_left", is_missing_left.shape(0), n);
  ForestPaths forest{{}, {}, values.shape(1)};
  size_t n_leaves = 0;
  for (size_t t = 0; t < n_trees; ++t) {
    const int64_t begin = ends.data()[t], end = ends.data()[t + 1];
    check(begin >= 0 && begin < end && end <= static_cast<int64_t>(n) && end - begin < int64_t{1} << 31,
          "a tree has no nodes, or too many");
    const auto size = static_cast<size_t>(end - begin);
    const Paths paths{size, feature.data() + begin, left.data() + begin, threshold.data() + begin,
                      is_missing_left.data() + begin};
    for (size_t k = 0; k < size; ++k) {
      if (paths.left[k] == 0) continue;
      check(paths.left[k] > static_cast<int64_t>(k) && paths.left[k] < static_cast<int64_t>(size) - 1,
            "a child is not behind its parent");
      check(paths.feature[k] >= 0 && paths.feature[k] < static_cast<int64_t>(n_columns),
            "a node splits a column that is not there");
    }
    std::vector<Step> steps = steps_of(paths);
    forest.values.push_back(values.data() + n_leaves * values.shape(1));
    uint32_t number = 0;
    for (Step& step : steps)
      if (step.left == 0) step.feature = number++ & 0x7fffffffu;
    n_leaves += number;
    forest.trees.push_back(std::move(steps));
  }
  check_size("values", values.shape(0), n_leaves);
  return forest;
}

nb::object forest_means_py(nb::list x, Places ends, Places feature, Places left, Vector threshold,
                           Flags is_missing_left, Matrix values, int threads) {
  HeldRows held(x);
  const ForestPaths forest =
      checked_forest(ends, feature, left, threshold, is_missing_left, values, held.rows.n_columns);
  Means means = run(threads, [&](Crew& crew) { return forest_means(held.rows, forest, crew); });
  const size_t shape[2] = {held.rows.n_rows, forest.width};
  return nb::make_tuple(to_numpy<2>(std::move(means.values), shape), means.is_finite);
}

nb::object check_forest_py(nb::list x, Vector y, std::optional<Vector> weight, Places ends, Places feature, Places left,
                           Vector threshold, Flags is_missing_left, Matrix values, size_t n_classes, uint64_t seed,
                           int threads) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  check_labelled(rows, y, weight, n_classes);
  const ForestPaths forest = checked_forest(ends, feature, left, threshold, is_missing_left, values, rows.n_columns);
  check_size("columns of values", forest.width, n_classes > 0 ? n_classes : 1);
  ForestCheck found;
  const bool is_checked = run(threads, [&](Crew& crew) {
    const TreeRows merged = merged_rows(rows, y.data(), weight ? weight->data() : nullptr, crew);
    if (!merged.is_finite || merged.n_rows == 0) return false;
    found = check_forest(merged, forest, seed, n_classes, crew);
    return true;
  });
  if (!is_checked) return nb::none();
  const size_t shape[2] = {found.n_out.size(), forest.width};
  return nb::make_tuple(found.deviation, to_numpy<2>(std::move(found.out), shape), to_numpy(std::move(found.n_out)),
                        to_numpy(std::move(found.target)), to_numpy(std::move(found.weight)));
}

}  // namespace

void bind_forest(nb::module_& m) {
  m.def("grow_forest", grow_forest_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "n_classes"_a,
        "n_trees"_a, "n_tried"_a, "max_bins"_a, "max_depth"_a, "min_rows_split"_a, "min_rows_leaf"_a, "seed"_a,
        "threads"_a, "tell"_a.none() = nb::none());
  m.def("forest_means", forest_means_py, "x"_a, "ends"_a.noconvert(), "feature"_a.noconvert(), "left"_a.noconvert(),
        "threshold"_a.noconvert(), "is_missing_left"_a.noconvert(), "values"_a.noconvert(), "threads"_a);
  m.def("check_forest", check_forest_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "ends"_a.noconvert(),
        "feature"_a.noconvert(), "left"_a.noconvert(), "threshold"_a.noconvert(), "is_missing_left"_a.noconvert(),
        "values"_a.noconvert(), "n_classes"_a, "seed"_a, "threads"_a);
}

}  // namespace certifit
