// Growth of the trees of a forest.
#include "forest.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "../philox.hpp"
#include "criteria.hpp"

namespace certifit {
namespace {

constexpr size_t few_rows = 1024;  // below it only bins that were met are looked at

// What a bin holds: draws, their sum of y less the mean of the node, and how many rows they are.
struct Cell {
  double mass = 0, sum = 0;
  uint32_t n = 0;
};

struct Choice {
  double gain = -1;
  size_t feature = 0, bin = 0;
  bool is_missing_left = false, is_found = false;
};

struct Open {
  size_t node, depth, begin, end;
};

// One tree at a time; what it needs is kept for the next tree.
class TreeGrower {
 public:
  TreeGrower(const TreeRows& rows, const Bins& bins, const ForestPlan& plan)
      : rows_(rows),
        bins_(bins),
        plan_(plan),
        columns_(bins.n_columns),
        cells_(256),
        counts_(plan.n_classes > 2 ? 256 * plan.n_classes : 0) {}

  ForestTree grow(size_t number, Crew& crew) {
    tree_ = {};
    tree_.gains.assign(bins_.n_columns, 0.0);
    draws_ = drawn(rows_, plan_.seed, number);
    order_.clear();
    for (size_t i = 0; i < rows_.n_rows; ++i)
      if (draws_[i] > 0) order_.push_back(static_cast<uint32_t>(i));
    Philox random(plan_.seed, 2 * number + 1);
    std::iota(columns_.begin(), columns_.end(), size_t{0});
    tree_.nodes.emplace_back();
    std::vector<Open> open{{0, 0, 0, order_.size()}};
    while (!open.empty()) {
      if (!crew.keep_going()) throw Interrupted();
      const Open at = open.back();
      open.pop_back();
      const Choice choice = choose(at, random);
      if (!choice.is_found) continue;
      const size_t middle = at.begin + part(at, choice), left = tree_.nodes.size();
      tree_.nodes.resize(left + 2);
      Node& node = tree_.nodes[at.node];
      node.feature = static_cast<int32_t>(choice.feature);
      node.left = static_cast<int32_t>(left);
      node.threshold = choice.bin < bins_.edges[choice.feature].size() ? bins_.edges[choice.feature][choice.bin]
                                                                       : std::numeric_limits<double>::infinity();
      node.is_missing_left = choice.is_missing_left;
      tree_.gains[choice.feature] += choice.gain;
      open.push_back({left + 1, at.depth + 1, middle, at.end});
      open.push_back({left, at.depth + 1, at.begin, middle});
    }
    keep_leaves();
    return std::move(tree_);
  }

 private:
  // Sums of a node, kept until its leaf is known: leaf values are written at the end, in the order of the nodes.
  bool sum_up(const Open& at) {
    const size_t width = plan_.width();
    node_values_.resize(tree_.nodes.size() * width);
    double* values = node_values_.data() + at.node * width;
    std::fill_n(values, width, 0.0);
    mass_ = 0;
    const double first = rows_.y[order_[at.begin]];
    bool is_pure = true;
    for (size_t k = at.begin; k < at.end; ++k) {
      const double draws = draws_[order_[k]], y = rows_.y[order_[k]];
      mass_ += draws;
      is_pure &= y == first;
      if (plan_.n_classes > 0) {
        values[static_cast<size_t>(y)] += draws;
      } else {
        values[0] += draws * (y - first);
      }
    }
    if (plan_.n_classes == 0) values[0] = first + values[0] / mass_;
    class_sums_.assign(values, values + width);
    if (plan_.n_classes > 0)
      for (size_t c = 0; c < width; ++c) values[c] /= mass_;
    mean_ = plan_.n_classes == 2 ? values[1] : values[0];
    return is_pure;
  }

  Choice choose(const Open& at, Philox& random) {
    const bool is_pure = sum_up(at);
    const size_t n = at.end - at.begin;
    const Stops& stops = plan_.stops;
    Choice best;
    if (is_pure || at.depth >= stops.max_depth || n < stops.min_rows_split || n < 2 * stops.min_rows_leaf) return best;
    size_t left = columns_.size();
    // Columns that are constant in the node do not count as tried.
    for (size_t n_tried = 0; n_tried < plan_.n_tried && left > 0;) {
      std::swap(columns_[random.below(static_cast<uint32_t>(left))], columns_[left - 1]);
      --left;
      n_tried += plan_.n_classes > 2 ? try_classes(at, columns_[left], best) : try_column(at, columns_[left], best);
    }
    return best;
  }

  // Bins that the node's rows are in, in ascending order; false where all are in one.
  bool find_bins(const Open& at, const uint8_t* codes) {
    std::fill_n(met_, 4, 0);
    for (size_t k = at.begin; k < at.end; ++k) {
      const uint8_t code = codes[order_[k]];
      met_[code >> 6] |= uint64_t{1} << (code & 63);
    }
    met_bins_.clear();
    for (size_t word = 0; word < 4; ++word)
      for (uint64_t bits = met_[word]; bits != 0; bits &= bits - 1)
        met_bins_.push_back(static_cast<uint8_t>(64 * word + static_cast<size_t>(std::countr_zero(bits))));
    return met_bins_.size() > 1;
  }

  bool try_column(const Open& at, size_t j, Choice& best) {
    const uint8_t* codes = bins_.column(j);
    if (at.end - at.begin < few_rows) {
      if (!find_bins(at, codes)) return false;
      for (uint8_t bin : met_bins_) cells_[bin] = {};
    } else {
      std::fill(cells_.begin(), cells_.end(), Cell{});
    }
    for (size_t k = at.begin; k < at.end; ++k) {
      const uint32_t row = order_[k];
      Cell& cell = cells_[codes[row]];
      const double draws = draws_[row];
      cell.mass += draws;
      cell.sum += draws * (rows_.y[row] - mean_);
      ++cell.n;
    }
    if (at.end - at.begin >= few_rows) {
      met_bins_.clear();
      for (size_t bin = 0; bin < 256; ++bin)
        if (cells_[bin].n > 0) met_bins_.push_back(static_cast<uint8_t>(bin));
      if (met_bins_.size() < 2) return false;
    }
    scan(at, j, best);
    return true;
  }

  // Every cut between bins that were met, missing values on the right and then on the left.
  void scan(const Open& at, size_t j, Choice& best) {
    const bool has_missing = met_bins_.back() == Bins::missing;
    const size_t n = at.end - at.begin, n_known = met_bins_.size() - has_missing;
    const double times = plan_.n_classes == 2 ? 2.0 : 1.0;  // Gini of two classes
    for (const bool is_missing_left : {false, true}) {
      if (is_missing_left && !has_missing) return;
      Cell left = is_missing_left ? cells_[Bins::missing] : Cell{};
      const size_t n_cuts = n_known - (is_missing_left || !has_missing ? 1 : 0);
      for (size_t k = 0; k < n_cuts; ++k) {
        const Cell& cell = cells_[met_bins_[k]];
        left.mass += cell.mass;
        left.sum += cell.sum;
        left.n += cell.n;
        if (left.n < plan_.stops.min_rows_leaf || n - left.n < plan_.stops.min_rows_leaf) continue;
        const double gain = times * left.sum * left.sum * mass_ / (left.mass * (mass_ - left.mass));
        offer(gain, j, k + 1 == n_known ? bins_.edges[j].size() : met_bins_[k], is_missing_left, has_missing, left.n, n,
              best);
      }
    }
  }

  void offer(double gain, size_t j, size_t bin, bool is_missing_left, bool has_missing, size_t n_left, size_t n,
             Choice& best) {
    if (best.is_found && !(gain > best.gain * (1 + tie_share))) return;
    best = {gain, j, bin, has_missing ? is_missing_left : 2 * n_left > n, true};
  }

  bool try_classes(const Open& at, size_t j, Choice& best) {
    const uint8_t* codes = bins_.column(j);
    if (!find_bins(at, codes)) return false;
    const size_t K = plan_.n_classes;
    for (uint8_t bin : met_bins_) {
      std::fill_n(counts_.begin() + static_cast<ptrdiff_t>(bin * K), K, 0.0);
      cells_[bin] = {};
    }
    for (size_t k = at.begin; k < at.end; ++k) {
      const uint32_t row = order_[k];
      const double draws = draws_[row];
      counts_[codes[row] * K + static_cast<size_t>(rows_.y[row])] += draws;
      cells_[codes[row]].mass += draws;
      ++cells_[codes[row]].n;
    }
    scan_classes(at, j, best);
    return true;
  }

  void scan_classes(const Open& at, size_t j, Choice& best) {
    const bool has_missing = met_bins_.back() == Bins::missing;
    const size_t n = at.end - at.begin, n_known = met_bins_.size() - has_missing, K = plan_.n_classes;
    double whole = 0;
    for (double c : class_sums_) whole += c * c / mass_;
    for (const bool is_missing_left : {false, true}) {
      if (is_missing_left && !has_missing) return;
      std::vector<double> classes(K, 0.0);
      Cell left;
      const auto move = [&](uint8_t bin) {
        for (size_t c = 0; c < K; ++c) classes[c] += counts_[bin * K + c];
        left.mass += cells_[bin].mass;
        left.n += cells_[bin].n;
      };
      if (is_missing_left) move(Bins::missing);
      const size_t n_cuts = n_known - (is_missing_left || !has_missing ? 1 : 0);
      for (size_t k = 0; k < n_cuts; ++k) {
        move(met_bins_[k]);
        if (left.n < plan_.stops.min_rows_leaf || n - left.n < plan_.stops.min_rows_leaf) continue;
        double on_left = 0, on_right = 0;
        for (size_t c = 0; c < K; ++c) {
          const double rest = class_sums_[c] - classes[c];
          on_left += classes[c] * classes[c];
          on_right += rest * rest;
        }
        const double gain = on_left / left.mass + on_right / (mass_ - left.mass) - whole;
        offer(gain, j, k + 1 == n_known ? bins_.edges[j].size() : met_bins_[k], is_missing_left, has_missing, left.n, n,
              best);
      }
    }
  }

  // Rows of the left side first, both sides in their order. How many go left.
  size_t part(const Open& at, const Choice& choice) {
    const uint8_t* codes = bins_.column(choice.feature);
    scratch_.resize(std::max(scratch_.size(), at.end - at.begin));
    size_t n_left = 0, n_right = 0;
    for (size_t k = at.begin; k < at.end; ++k) {
      const uint32_t row = order_[k];
      const uint8_t code = codes[row];
      const bool left = code == Bins::missing ? choice.is_missing_left : code <= choice.bin;
      order_[at.begin + n_left] = row;
      scratch_[n_right] = row;
      n_left += left;
      n_right += !left;
    }
    std::copy_n(scratch_.data(), n_right, order_.data() + at.begin + n_left);
    return n_left;
  }

  void keep_leaves() {
    const size_t width = plan_.width();
    for (size_t k = 0; k < tree_.nodes.size(); ++k) {
      if (tree_.nodes[k].left != 0) continue;
      const double* values = node_values_.data() + k * width;
      tree_.values.insert(tree_.values.end(), values, values + width);
    }
  }

  const TreeRows& rows_;
  const Bins& bins_;
  const ForestPlan& plan_;
  ForestTree tree_;
  std::vector<size_t> columns_;
  std::vector<Cell> cells_;
  std::vector<double> counts_, node_values_, class_sums_;
  std::vector<uint32_t> draws_, order_, scratch_;
  std::vector<uint8_t> met_bins_;
  uint64_t met_[4];
  double mass_ = 0, mean_ = 0;
};

}  // namespace

std::vector<uint32_t> drawn(const TreeRows& rows, uint64_t seed, size_t tree) {
  std::vector<uint32_t> draws(rows.n_rows, 0);
  Philox random(seed, 2 * tree);
  std::vector<double> ends(rows.is_weighted ? rows.n_rows : 0);
  double total = 0;
  bool is_whole = true;
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i] = total += rows.weight[i];
    is_whole = is_whole && rows.weight[i] == std::floor(rows.weight[i]);
  }
  is_whole = is_whole && total < 0x1p32;
  const size_t n_draws = rows.is_weighted && is_whole ? static_cast<size_t>(total) : rows.n_rows;
  for (size_t k = 0; k < n_draws; ++k) {
    if (!rows.is_weighted) {
      ++draws[random.below(static_cast<uint32_t>(rows.n_rows))];
      continue;
    }
    const double place = is_whole ? random.below(static_cast<uint32_t>(total))
                                  : (random.next() * 0x1p-32 + random.next() * 0x1p-64) * total;
    const auto found = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), place) - ends.begin());
    ++draws[std::min(found, rows.n_rows - 1)];
  }
  return draws;
}

std::vector<ForestTree> grow_forest(const TreeRows& rows, const Bins& bins, const ForestPlan& plan, Crew& crew,
                                    size_t n_at_once, const std::function<bool(size_t)>& tell) {
  std::vector<ForestTree> trees;
  const size_t most = tell ? std::max<size_t>(n_at_once, 1) : plan.n_trees;
  while (trees.size() < plan.n_trees) {
    const size_t first = trees.size(), count = std::min(most, plan.n_trees - first);
    trees.resize(first + count);
    crew.for_each_block(count,
                        [&](size_t t) { trees[first + t] = TreeGrower(rows, bins, plan).grow(first + t, crew); });
    if (tell && tell(trees.size())) break;
  }
  return trees;
}

}  // namespace certifit
