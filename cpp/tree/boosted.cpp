#include "boosted.hpp"

#include <cmath>

namespace certifit {

template <class Number>
LeafSums sum_leaves(const Number* X, size_t n_rows, size_t n_columns, const Paths& paths, const double* slope,
                    const double* curvature, const double* weight, const uint8_t* is_drawn, Crew& crew) {
  constexpr size_t lanes = 512;
  const std::vector<Step> steps = steps_of(paths);
  const size_t size = std::max<size_t>(16384, 4 * paths.n_nodes), n_blocks = (n_rows + size - 1) / size;
  std::vector<int32_t> leaves(n_rows);
  std::vector<uint32_t> places(lanes);
  for (size_t k = 0; k < lanes; ++k) places[k] = static_cast<uint32_t>(k);
  SumTree<LeafSums> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    LeafSums own{std::vector<double>(4 * paths.n_nodes, 0.0), {}};
    const size_t end = std::min(n_rows, (block + 1) * size);
    for (size_t first = block * size; first < end; first += lanes) {
      const size_t count = std::min(lanes, end - first);
      const auto use = [&](uint32_t place, int32_t leaf) { leaves[first + place] = leaf; };
      if (paths.n_levels)
        for (size_t k = 0; k < count; ++k)
          leaves[first + k] = leaf_among_levels(X + (first + k) * n_columns, steps.data(), paths);
      else
        for_each_leaf(X + first * n_columns, n_columns, steps.data(), places.data(), count, use);
      for (size_t i = first; i < first + count; ++i) {
        if (is_drawn && !is_drawn[i]) continue;
        double* sum = own.sums.data() + 4 * static_cast<size_t>(leaves[i]);
        sum[0] += slope[i];
        sum[1] += curvature[i];
        sum[2] += std::fabs(slope[i]);
        sum[3] += weight[i];
      }
    }
    tree.add(block, std::move(own));
  });
  LeafSums all = std::move(tree.root());
  all.leaves = std::move(leaves);
  return all;
}

template LeafSums sum_leaves(const double*, size_t, size_t, const Paths&, const double*, const double*, const double*,
                             const uint8_t*, Crew&);
template LeafSums sum_leaves(const uint8_t*, size_t, size_t, const Paths&, const double*, const double*, const double*,
                             const uint8_t*, Crew&);

}  // namespace certifit
