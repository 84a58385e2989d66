#include "../tree/optimal.hpp"

#include <cmath>

#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

template <class T, class Get>
nb::object of_nodes(const std::vector<Node>& nodes, Get get) {
  std::vector<T> values(nodes.size());
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<T>(get(nodes[k]));
  return array_of(std::move(values));
}

// None where a value is not finite.
nb::object best_tree_py(nb::list x, Vector y, std::optional<Vector> weight, size_t n_classes, size_t depth,
                        size_t min_rows_leaf, size_t n_thresholds, uint64_t max_nodes, int threads) {
  HeldRows held(x);
  const Rows& rows = held.rows;
  check_size("y", y.shape(0), rows.n_rows);
  if (weight) check_size("weight", weight->shape(0), rows.n_rows);
  check(rows.n_rows < size_t{1} << 31, "a tree needs fewer than 2^31 rows");
  check(n_classes < size_t{1} << 16, "n_classes is out of range");
  check(depth > 0 && depth < 5, "depth must be 1 to 4");
  check(n_thresholds > 0 && n_thresholds < 255, "n_thresholds must be 1 to 254");
  check(min_rows_leaf > 0, "min_rows_leaf must be positive");
  for (size_t i = 0; i < rows.n_rows; ++i) {
    const double w = weight ? weight->data()[i] : 1.0, value = y.data()[i];
    check(w >= 0 && w < 0x1p500, "weights must be >= 0 and below 2^500");
    const bool is_code = value >= 0 && value < static_cast<double>(n_classes) && value == std::floor(value);
    check(n_classes == 0 || w == 0 || is_code, "y must be codes of the classes");
  }
  const OptimalPlan plan{depth, n_classes, min_rows_leaf, n_thresholds, max_nodes};
  BestTree best;
  const bool is_searched = run(threads, [&](Crew& crew) {
    const TreeRows merged = merged_rows(rows, y.data(), weight ? weight->data() : nullptr, crew);
    if (!merged.is_finite || merged.n_rows == 0) return false;
    best = best_tree(merged, plan, crew);
    return true;
  });
  if (!is_searched) return nb::none();
  nb::dict out;
  out["feature"] = of_nodes<int64_t>(best.nodes, [](const Node& node) { return node.feature; });
  out["left"] = of_nodes<int64_t>(best.nodes, [](const Node& node) { return node.left; });
  out["threshold"] = of_nodes<double>(best.nodes, [](const Node& node) { return node.threshold; });
  out["is_missing_left"] = of_nodes<uint8_t>(best.nodes, [](const Node& node) { return node.is_missing_left; });
  out["lower"] = best.lower;
  out["upper"] = best.upper;
  out["rounding"] = best.rounding;
  out["n_nodes"] = best.n_nodes;
  out["n_thresholds"] = best.n_thresholds;
  out["is_closed"] = best.is_closed;
  out["is_in_range"] = best.is_in_range;
  return out;
}

}  // namespace

void bind_optimal(nb::module_& m) {
  m.def("best_tree", best_tree_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "n_classes"_a, "depth"_a,
        "min_rows_leaf"_a, "n_thresholds"_a, "max_nodes"_a, "threads"_a);
}

}  // namespace certifit
