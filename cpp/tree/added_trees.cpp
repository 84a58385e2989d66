// Many rows are led by masks of leaves, their values as ranks among the thresholds; few rows, and rows of trees that no
// mask fits, from node to node. Both add the same values in the same order.
#include "added_trees.hpp"

#include <atomic>
#include <cmath>

#include "bins.hpp"
#include "masked_tree.hpp"

namespace certifit {
namespace {

constexpr size_t block_rows = 1024;
constexpr size_t many_rows = 2048;       // from which masks are worth their making
constexpr size_t trees_at_once = 512;    // whose masks are made together, some 60 KB each
constexpr size_t columns_per_tree = 4;   // whose ranks take the time that a mask saves
constexpr size_t most_thresholds = 254;  // of a column, that bytes tell apart, beside missing values

class Added {
 public:
  Added(const std::vector<AddedTree>& trees, size_t first, size_t width, double* scores)
      : trees_(trees), first_(first), width_(width), scores_(scores) {}

  size_t size() const { return trees_.size(); }
  const Paths& paths(size_t t) const { return trees_[t].paths; }
  void add(size_t t, size_t row, size_t leaf) const {
    scores_[row * width_ + (first_ + t) % width_] += trees_[t].values[leaf];
  }

 private:
  const std::vector<AddedTree>& trees_;
  size_t first_, width_;
  double* scores_;
};

bool add_by_nodes(const Rows& rows, const Added& trees, Crew& crew) {
  std::vector<std::vector<Step>> steps;
  for (size_t t = 0; t < trees.size(); ++t) steps.push_back(steps_of(trees.paths(t)));
  std::vector<uint32_t> places(block_rows);
  for (size_t k = 0; k < block_rows; ++k) places[k] = static_cast<uint32_t>(k);
  std::atomic<bool> is_finite{true};
  crew.for_each_block((rows.n_rows + block_rows - 1) / block_rows, [&](size_t block) {
    const size_t begin = block * block_rows, count = std::min(block_rows, rows.n_rows - begin), p = rows.n_columns;
    std::vector<double> scratch, dense(count * p);
    WholeRows whole(rows);
    const Tile tile = read_tile(rows, begin, count, scratch);
    bool is_bad = false;
    for (size_t k = 0; k < count; ++k) {
      const double* row = whole.row(tile, k, begin + k);
      for (size_t j = 0; j < p; ++j) is_bad |= std::isinf(dense[k * p + j] = row[j]);
    }
    if (is_bad) is_finite = false;
    const double* x = dense.data();
    for (size_t t = 0; t < trees.size(); ++t) {
      const auto add = [&](size_t k, int32_t leaf) { trees.add(t, begin + k, static_cast<size_t>(leaf)); };
      if (trees.paths(t).n_levels) {
        for (size_t k = 0; k < count; ++k) add(k, leaf_among_levels(x + k * p, steps[t].data(), trees.paths(t)));
      } else {
        for_each_leaf(x, p, steps[t].data(), places.data(), count, add);
      }
    }
  });
  return is_finite;
}

// Thresholds of trees, column by column, and as ranks among them.
class Ranks {
 public:
  Ranks(const Added& trees, size_t n_columns) : edges_(n_columns) {
    if (const uint8_t* n_levels = trees.paths(0).n_levels) columns_.n_levels.assign(n_levels, n_levels + n_columns);
    for (size_t t = 0; t < trees.size() && is_legal_; ++t) collect(trees.paths(t));
    for (std::vector<double>& edges : edges_) {
      std::sort(edges.begin(), edges.end());
      edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
      is_legal_ &= edges.size() <= most_thresholds;
    }
  }

  bool are_legal() const { return is_legal_; }

  // A tree's thresholds as ranks; infinite ones and numbers of sets stay.
  std::vector<double> thresholds(const Paths& paths) const {
    std::vector<double> ranks(paths.threshold, paths.threshold + paths.n_nodes);
    for (size_t node = 0; node < paths.n_nodes; ++node) {
      const auto column = static_cast<size_t>(paths.feature[node]);
      if (paths.left[node] == 0 || columns_.is_levels(column) || !std::isfinite(ranks[node])) continue;
      const std::vector<double>& edges = edges_[column];
      ranks[node] = static_cast<double>(std::lower_bound(edges.begin(), edges.end(), ranks[node]) - edges.begin());
    }
    return ranks;
  }

  const Edges& edges() const { return edges_; }
  const ColumnRules& columns() const { return columns_; }

 private:
  void collect(const Paths& paths) {
    for (size_t node = 0; node < paths.n_nodes; ++node) {
      if (paths.left[node] == 0) continue;
      const auto column = static_cast<size_t>(paths.feature[node]);
      const double threshold = paths.threshold[node];
      if (!columns_.is_levels(column) && std::isfinite(threshold)) edges_[column].push_back(threshold);
      is_legal_ &= !std::isnan(threshold);
    }
    is_legal_ &= MaskedTree::fits(paths);
  }

  Edges edges_;
  ColumnRules columns_;
  bool is_legal_ = true;
};

bool add_by_masks(const Rows& rows, const Added& trees, const Ranks& ranks, Crew& crew) {
  const Edges ends = ends_of(ranks.edges());
  std::atomic<bool> is_finite{true};
  for (size_t first = 0; first < trees.size(); first += trees_at_once) {
    const size_t end = std::min(trees.size(), first + trees_at_once);
    std::vector<MaskedTree> masked;
    for (size_t t = first; t < end; ++t) {
      Paths paths = trees.paths(t);
      const std::vector<double> thresholds = ranks.thresholds(paths);
      paths.threshold = thresholds.data();
      masked.emplace_back(paths);
    }
    crew.for_each_block((rows.n_rows + block_rows - 1) / block_rows, [&](size_t block) {
      const size_t begin = block * block_rows, count = std::min(block_rows, rows.n_rows - begin);
      std::vector<uint8_t> of_rows(count * rows.n_columns);
      if (!bin_block(rows, begin, count, ends, ranks.columns(), of_rows.data())) is_finite = false;
      std::vector<int32_t> leaves(count);
      for (size_t t = first; t < end; ++t) {
        masked[t - first].lead(of_rows.data(), rows.n_columns, count, leaves.data());
        for (size_t k = 0; k < count; ++k) trees.add(t, begin + k, static_cast<size_t>(leaves[k]));
      }
    });
  }
  return is_finite;
}

}  // namespace

bool add_trees(const Rows& rows, const std::vector<AddedTree>& trees, size_t first, size_t width, double* scores,
               Crew& crew) {
  const Added added(trees, first, width, scores);
  if (!trees.empty() && rows.n_rows >= many_rows && rows.n_columns <= columns_per_tree * trees.size()) {
    const Ranks ranks(added, rows.n_columns);
    if (ranks.are_legal()) return add_by_masks(rows, added, ranks, crew);
  }
  return add_by_nodes(rows, added, crew);
}

}  // namespace certifit
