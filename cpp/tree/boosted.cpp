#include "boosted.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "../passes/tile_losses.hpp"
#include "masked_tree.hpp"

namespace certifit {
namespace {

// Rows that are summed at a time, a power of two: rows in parts are cut between blocks (models/trees/passes.py).
constexpr size_t least_block = 16384, most_block = 262144;

size_t block_of(size_t n_nodes) { return std::clamp(std::bit_ceil(4 * n_nodes), least_block, most_block); }

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

// Trees that lead rows of values, or of ranks: these by masks where there are few leaves.
template <class Number>
class LeadingTrees {
 public:
  explicit LeadingTrees(const std::vector<Paths>& trees) : trees_(trees), masked_(trees.size()) {
    if constexpr (std::is_same_v<Number, uint8_t>)
      for (size_t t = 0; t < trees.size(); ++t)
        if (MaskedTree::fits(trees[t])) masked_[t] = std::make_unique<MaskedTree>(trees[t]);
  }

  void lead(size_t t, const Number* X, size_t n_columns, size_t n, int32_t* leaves) const {
    if constexpr (std::is_same_v<Number, uint8_t>)
      if (masked_[t]) return masked_[t]->lead(X, n_columns, n, leaves);
    PartedRows(trees_[t]).lead(X, n_columns, n, leaves);
  }

 private:
  const std::vector<Paths>& trees_;
  std::vector<std::unique_ptr<MaskedTree>> masked_;
};

}  // namespace

template <class Number>
DerivedRounds derive_rounds(const BoostedRows<Number>& rows, const std::vector<Paths>& trees, const double* values,
                            Crew& crew) {
  size_t n_nodes = 0, most_nodes = 1;
  for (const Paths& paths : trees) {
    n_nodes += paths.n_nodes;
    most_nodes = std::max(most_nodes, paths.n_nodes);
  }
  const LeadingTrees<Number> leading(trees);
  const AnyLoss loss = any_loss(rows.loss, rows.parameter);
  const size_t size = block_of(most_nodes), n_blocks = (rows.n_rows + size - 1) / size;
  const size_t tile_rows = std::max<size_t>(4096, 2 * most_nodes);
  std::vector<double> scores(rows.score, rows.score + rows.n_rows);
  SumTree<DerivedRounds> sums(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    DerivedRounds of_block{std::vector<double>(4 * n_nodes, 0.0), std::vector<double>(2 * (trees.size() + 1), 0.0), {}};
    std::vector<double> slope(std::min(size, tile_rows)), curvature(slope.size());
    std::vector<int32_t> leaves(slope.size());
    const size_t end = std::min(rows.n_rows, (block + 1) * size);
    for (size_t first = block * size; first < end; first += tile_rows) {
      const size_t count = std::min(tile_rows, end - first);
      const double* weight = rows.weight + first;
      const uint8_t* is_trained = rows.is_trained ? rows.is_trained + first : nullptr;
      double* score = scores.data() + first;
      const double* value = values;
      double* sum = of_block.sums.data();
      for (size_t t = 0; t <= trees.size(); ++t) {
        const LossSums losses =
            tile_losses(loss, count, rows.y + first, score, weight, is_trained, slope.data(), curvature.data());
        of_block.losses[2 * t] += losses.trained;
        of_block.losses[2 * t + 1] += losses.others;
        if (t == trees.size()) break;
        leading.lead(t, rows.X + first * rows.n_columns, rows.n_columns, count, leaves.data());
        for (size_t i = 0; i < count; ++i) {
          const auto leaf = static_cast<size_t>(leaves[i]);
          score[i] += value[leaf];
          if (is_trained && !is_trained[i]) continue;
          double* of_leaf = sum + 4 * leaf;
          store(of_leaf, load(of_leaf) + Vec{slope[i], curvature[i], std::fabs(slope[i]), weight[i]});
        }
        value += trees[t].n_nodes;
        sum += 4 * trees[t].n_nodes;
      }
    }
    sums.add(block, std::move(of_block));
  });
  DerivedRounds all = std::move(sums.root());
  all.scores = std::move(scores);
  return all;
}

template DerivedRounds derive_rounds(const BoostedRows<double>&, const std::vector<Paths>&, const double*, Crew&);
template DerivedRounds derive_rounds(const BoostedRows<uint8_t>&, const std::vector<Paths>&, const double*, Crew&);

template <class Number>
LeafSums sum_leaves(const Number* X, size_t n_rows, size_t n_columns, const Paths& paths, const double* slope,
                    const double* curvature, const double* weight, const uint8_t* is_drawn, Crew& crew) {
  const size_t size = block_of(paths.n_nodes), n_blocks = (n_rows + size - 1) / size;
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
