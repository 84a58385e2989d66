#include "boosted.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace certifit {
namespace {

// Rows that are summed at a time, a power of two: rows in parts are cut between blocks (models/trees/passes.py).
constexpr size_t least_block = 16384, most_block = 262144;

// Rows on their way through one tree, many at a time: they are parted at every node, so that a row costs no more than
// its own depth.
class PartedRows {
 public:
  explicit PartedRows(const Paths& paths) : paths_(paths), steps_(steps_of(paths)), ranges_(paths.n_nodes) {}

  // The leaves of n rows of X.
  template <class Number>
  void lead(const Number* X, size_t n_columns, size_t n, int32_t* leaves) {
    order_.resize(n);
    others_.resize(n);
    for (size_t k = 0; k < n; ++k) order_[k] = static_cast<uint32_t>(k);
    ranges_[0] = {0, n};
    for (size_t node = 0; node < steps_.size(); ++node) {  // children lie behind their parents
      const Step& step = steps_[node];
      const auto [begin, end] = ranges_[node];
      if (step.left == 0) {
        for (size_t k = begin; k < end; ++k) leaves[order_[k]] = static_cast<int32_t>(node);
        continue;
      }
      const Number* x = X + step.feature;
      const uint8_t n_levels = paths_.n_levels ? paths_.n_levels[step.feature] : 0;
      const size_t middle =
          n_levels == 0 ? part(begin, end, [&](size_t row) { return step.goes_left(value_of(x[row * n_columns])); })
                        : part(begin, end, [&](size_t row) {
                            return step.goes_left(value_of(x[row * n_columns]), n_levels, paths_.sets);
                          });
      const auto left = static_cast<size_t>(step.left);
      ranges_[left] = {begin, middle};
      ranges_[left + 1] = {middle, end};
    }
  }

 private:
  // Rows that go left first, both sides in their order. Where the right side begins.
  template <class Side>
  size_t part(size_t begin, size_t end, Side goes_left) {
    size_t middle = begin, n_right = 0;
    for (size_t k = begin; k < end; ++k) {
      const uint32_t row = order_[k];
      const bool is_left = goes_left(row);
      order_[middle] = row;
      others_[n_right] = row;
      middle += is_left;
      n_right += !is_left;
    }
    std::copy_n(others_.begin(), n_right, order_.begin() + static_cast<ptrdiff_t>(middle));
    return middle;
  }

  const Paths& paths_;
  std::vector<Step> steps_;
  std::vector<std::pair<size_t, size_t>> ranges_;  // of the rows of every node, in `order_`
  std::vector<uint32_t> order_, others_;
};

}  // namespace

template <class Number>
LeafSums sum_leaves(const Number* X, size_t n_rows, size_t n_columns, const Paths& paths, const double* slope,
                    const double* curvature, const double* weight, const uint8_t* is_drawn, Crew& crew) {
  const size_t size = std::clamp(std::bit_ceil(4 * paths.n_nodes), least_block, most_block),
               n_blocks = (n_rows + size - 1) / size;
  const size_t tile_rows = std::max<size_t>(2048, 2 * paths.n_nodes);  // every tile visits all nodes
  std::vector<int32_t> leaves(n_rows);
  SumTree<LeafSums> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    LeafSums own{std::vector<double>(4 * paths.n_nodes, 0.0), {}};
    const size_t end = std::min(n_rows, (block + 1) * size);
    PartedRows parted(paths);
    for (size_t first = block * size; first < end; first += tile_rows) {
      const size_t count = std::min(tile_rows, end - first);
      parted.lead(X + first * n_columns, n_columns, count, leaves.data() + first);
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
