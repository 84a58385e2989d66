// The recursion of path-dependent tree Shapley values (Lundberg, Erion, Lee 2018): a path keeps, for every number of
// its columns that take part, the sum over such sets of the shares of rows that reach the node.
#include "contributions.hpp"

namespace certifit {
namespace {

// A column on the path. without: the share that goes on where the column takes no part; with: 1 or 0 where it does.
struct Met {
  int64_t column;
  double without, with, sum;
};

using Path = std::vector<Met>;

void extend(Path& path, int64_t column, double without, double with) {
  const size_t n = path.size();
  path.push_back({column, without, with, n == 0 ? 1.0 : 0.0});
  for (size_t i = n; i-- > 0;) {
    path[i + 1].sum += with * path[i].sum * static_cast<double>(i + 1) / static_cast<double>(n + 1);
    path[i].sum = without * path[i].sum * static_cast<double>(n - i) / static_cast<double>(n + 1);
  }
}

// Sums of the path without its element `at`; handed to use(place, sum) from the last one down.
template <class Use>
void each_without(const Path& path, size_t at, Use use) {
  const size_t n = path.size() - 1;
  const double with = path[at].with, without = path[at].without, count = static_cast<double>(n + 1);
  double next = path[n].sum;
  for (size_t j = n; j-- > 0;) {
    const double others = static_cast<double>(n - j);
    if (with != 0) {
      const double sum = next * count / (static_cast<double>(j + 1) * with);
      next = path[j].sum - sum * without * others / count;
      use(j, sum);
    } else {
      use(j, path[j].sum * count / (without * others));
    }
  }
}

void remove(Path& path, size_t at) {
  const Path whole = path;
  each_without(whole, at, [&](size_t j, double sum) { path[j].sum = sum; });
  for (size_t j = at; j + 1 < path.size(); ++j) {
    path[j].column = whole[j + 1].column;
    path[j].without = whole[j + 1].without;
    path[j].with = whole[j + 1].with;
  }
  path.pop_back();
}

struct Descent {
  const WeightedTree& tree;
  const double* row;
  size_t width;
  double* out;

  bool goes_left(size_t node) const {
    const Paths& paths = tree.paths;
    const auto column = static_cast<size_t>(paths.feature[node]);
    const Step step{paths.threshold[node], 0, 0, paths.is_missing_left[node] != 0};
    const uint8_t n_levels = paths.n_levels ? paths.n_levels[column] : 0;
    return n_levels != 0 ? step.goes_left(row[column], n_levels, paths.sets) : step.goes_left(row[column]);
  }

  void at_leaf(size_t node, const Path& path) const {
    for (size_t i = 1; i < path.size(); ++i) {
      double sum = 0;
      each_without(path, i, [&](size_t, double part) { sum += part; });
      const double share = sum * (path[i].with - path[i].without);
      for (size_t k = 0; k < tree.n_values; ++k)
        out[static_cast<size_t>(path[i].column) * width + k] += share * tree.values[node * tree.n_values + k];
    }
  }

  void visit(size_t node, Path path, double without, double with, int64_t column) const {
    extend(path, column, without, with);
    const auto left = static_cast<size_t>(tree.paths.left[node]);
    if (left == 0) return at_leaf(node, path);
    const int64_t split = tree.paths.feature[node];
    double before = 1, taken = 1;
    for (size_t i = 1; i < path.size(); ++i) {
      if (path[i].column != split) continue;
      before = path[i].without;
      taken = path[i].with;
      remove(path, i);
      break;
    }
    const size_t hot = goes_left(node) ? left : left + 1;
    for (const size_t child : {left, left + 1}) {
      const double share = before * tree.weight[child] / tree.weight[node];
      if (share > 0) visit(child, path, share, child == hot ? taken : 0.0, split);
    }
  }
};

}  // namespace

size_t depth_of(const Paths& paths) {
  std::vector<size_t> depth(paths.n_nodes, 0);
  size_t most = 0;
  for (size_t node = 0; node < paths.n_nodes; ++node) {
    const auto left = static_cast<size_t>(paths.left[node]);
    if (left != 0) most = std::max(most, depth[left] = depth[left + 1] = depth[node] + 1);
  }
  return most;
}

void add_contributions(const WeightedTree& tree, const double* row, size_t width, double* out) {
  Descent{tree, row, width, out}.visit(0, {}, 1, 1, -1);
}

std::vector<double> mean_of(const WeightedTree& tree) {
  std::vector<double> mean(tree.n_values, 0.0), share(tree.paths.n_nodes, 0.0);
  share[0] = 1;
  for (size_t node = 0; node < tree.paths.n_nodes; ++node) {
    const auto left = static_cast<size_t>(tree.paths.left[node]);
    if (left == 0) {
      for (size_t k = 0; k < tree.n_values; ++k) mean[k] += share[node] * tree.values[node * tree.n_values + k];
      continue;
    }
    for (const size_t child : {left, left + 1}) share[child] = share[node] * tree.weight[child] / tree.weight[node];
  }
  return mean;
}

}  // namespace certifit
