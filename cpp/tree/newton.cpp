#include "newton.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <queue>

namespace certifit {
namespace {

constexpr size_t n_bins = 256, missing = 255, columns_of_block = 8;
constexpr double tie = 1e-12;  // gains that differ by less, relative to the node's, are equal: the first is taken
constexpr double infinite = std::numeric_limits<double>::infinity();

// Sums of the rows of a bin. Four numbers are added at once.
struct Cell {
  double g = 0, h = 0, n = 0, unused = 0;
  void add(const Cell& other) {
    g += other.g;
    h += other.h;
    n += other.n;
  }
  Cell less(const Cell& other) const { return {g - other.g, h - other.h, n - other.n, 0}; }
};
typedef double Four __attribute__((vector_size(32), aligned(8)));

using Histogram = std::vector<Cell>;  // of the columns that are tried, n_bins each

struct Range {
  double low = -infinite, high = infinite;
};

struct Split {
  double gain = 0;
  size_t column = 0;
  uint8_t bin = 0;
  bool is_missing_left = false, is_found = false;
  double left_value = 0, right_value = 0;
};

struct Leaf {
  size_t node, depth, begin, end;
  Cell sum;
  Range range;
  Histogram histogram;
  Split split;
};

class Grower {
 public:
  Grower(const NewtonRows& rows, const NewtonPlan& plan, Crew& crew) : rows_(rows), plan_(plan), crew_(crew) {
    order_.assign(rows.rows, rows.rows + rows.n_drawn);
    moved_.resize(rows.n_drawn);
    terms_.resize(rows.n_rows);
    for (size_t i = 0; i < rows.n_rows; ++i) terms_[i] = {rows.slope[i], rows.curvature[i], 1, 0};
  }

  NewtonTree grow() {
    tree_.nodes.emplace_back();
    tree_.leaves.assign(rows_.n_rows, -1);
    auto root = std::make_unique<Leaf>();
    root->node = root->depth = root->begin = 0;
    root->end = order_.size();
    for (uint32_t row : order_) root->sum.add(terms_[row]);
    tree_.nodes[0].value = value(root->sum, root->range);
    offer(std::move(root), true);
    for (size_t n_leaves = 1; n_leaves < plan_.max_leaves && !open_.empty(); ++n_leaves) {
      if (!crew_.keep_going()) throw Interrupted();
      auto leaf = std::move(leaves_[open_.top().place]);
      open_.pop();
      split(*leaf);
    }
    for (auto& leaf : leaves_)
      if (leaf) close(*leaf);
    lead_others();
    return std::move(tree_);
  }

 private:
  double value(const Cell& sum, const Range& range) const {
    const double mass = sum.h + plan_.ridge;
    return mass > 0 ? std::clamp(-sum.g / mass, range.low, range.high) : 0.0;
  }

  // Twice what a leaf takes from the second-order model, at its value.
  double worth(const Cell& sum, double value) const { return -value * (2 * sum.g + (sum.h + plan_.ridge) * value); }
  double worth(const Cell& sum) const {
    const double mass = sum.h + plan_.ridge;
    return mass > 0 ? sum.g * sum.g / mass : 0.0;
  }

  size_t n_blocks() const { return (rows_.n_tried + columns_of_block - 1) / columns_of_block; }

  void add_rows(const uint32_t* order, size_t n, size_t first, size_t last, Histogram& histogram) const {
    constexpr size_t ahead = 12;
    size_t columns[columns_of_block];
    for (size_t k = first; k < last; ++k) columns[k - first] = rows_.columns[k];
    for (size_t i = 0; i < n; ++i) {
      if (i + ahead < n) {
        __builtin_prefetch(rows_.codes + order[i + ahead] * rows_.n_columns + columns[0]);
        __builtin_prefetch(&terms_[order[i + ahead]]);
      }
      const uint8_t* codes = rows_.codes + order[i] * rows_.n_columns;
      const Four term = *reinterpret_cast<const Four*>(&terms_[order[i]]);
      Cell* cells = histogram.data() + first * n_bins;
      for (size_t k = 0; k < last - first; ++k)
        *reinterpret_cast<Four*>(&cells[k * n_bins + codes[columns[k]]]) += term;
    }
  }

  // Sums of the leaf's bins, added up or what the sibling leaves of those of the parent, and its best split.
  void search(Leaf& leaf, const Histogram* parent, const Leaf* sibling) {
    if (!parent)
      leaf.histogram.assign(rows_.n_tried * n_bins, Cell{});
    else
      leaf.histogram.resize(rows_.n_tried * n_bins);
    std::vector<Split> best(rows_.n_tried);
    const auto of_columns = [&](size_t block) {
      const size_t first = block * columns_of_block, last = std::min(rows_.n_tried, first + columns_of_block);
      if (parent) {
        for (size_t k = first * n_bins; k < last * n_bins; ++k)
          leaf.histogram[k] = (*parent)[k].less(sibling->histogram[k]);
      } else {
        add_rows(order_.data() + leaf.begin, leaf.end - leaf.begin, first, last, leaf.histogram);
      }
      for (size_t k = first; k < last; ++k) best[k] = scan(leaf, k);
    };
    if ((leaf.end - leaf.begin) * rows_.n_tried > 20000) {
      crew_.for_each_block(n_blocks(), of_columns);
    } else {
      for (size_t block = 0; block < n_blocks(); ++block) of_columns(block);
    }
    for (const Split& split : best)
      if (split.is_found && split.gain > leaf.split.gain + tie * worth(leaf.sum)) leaf.split = split;
  }

  Split scan(const Leaf& leaf, size_t k) const {
    const size_t column = rows_.columns[k];
    const Cell* cells = leaf.histogram.data() + k * n_bins;
    const int direction = plan_.direction ? plan_.direction[column] : 0;
    const double whole = plan_.direction ? worth(leaf.sum, value(leaf.sum, leaf.range)) : worth(leaf.sum);
    const auto least = static_cast<double>(plan_.min_rows_leaf);
    const bool has_missing = cells[missing].n > 0;
    Split best;
    best.column = column;
    best.gain = tie * (std::fabs(whole) + worth(leaf.sum));
    for (const bool is_missing_left : {false, true}) {
      if (is_missing_left && !has_missing) break;
      Cell left = is_missing_left ? cells[missing] : Cell{};
      for (size_t bin = 0; bin < missing; ++bin) {
        if (cells[bin].n == 0) continue;
        left.add(cells[bin]);
        const Cell right = leaf.sum.less(left);
        if (right.n < least || right.n < 1) break;
        if (left.n < least) continue;
        double gain, left_value = 0, right_value = 0;
        if (plan_.direction) {
          left_value = value(left, leaf.range);
          right_value = value(right, leaf.range);
          if (direction * (right_value - left_value) < 0) continue;
          gain = worth(left, left_value) + worth(right, right_value) - whole;
        } else {
          gain = worth(left) + worth(right) - whole;
        }
        if (!(gain > best.gain * (1 + tie)) || !std::isfinite(gain)) continue;
        best = {gain, column, static_cast<uint8_t>(bin), is_missing_left, true, left_value, right_value};
        if (!has_missing) best.is_missing_left = 2 * left.n > leaf.sum.n;
      }
    }
    return best;
  }

  struct Open {
    double gain;
    size_t depth, place;
    bool is_best_first;
    bool operator<(const Open& other) const {  // the queue's top is the largest
      if (is_best_first && gain != other.gain) return gain < other.gain;
      if (!is_best_first && depth != other.depth) return depth > other.depth;
      return place > other.place;
    }
  };

  // Keeps a leaf, and lines it up where it may be split.
  void offer(std::unique_ptr<Leaf> leaf, bool is_searched_here) {
    if (is_searched_here && can_split(*leaf)) search(*leaf, nullptr, nullptr);
    const size_t place = leaves_.size();
    if (leaf->split.is_found) {
      open_.push({leaf->split.gain, leaf->depth, place, plan_.is_best_first});
    } else {
      Histogram().swap(leaf->histogram);
    }
    leaves_.push_back(std::move(leaf));
  }

  bool can_split(const Leaf& leaf) const {
    return leaf.depth < plan_.max_depth && leaf.end - leaf.begin >= 2 * std::max<size_t>(plan_.min_rows_leaf, 1);
  }

  void split(Leaf& leaf) {
    const Split& split = leaf.split;
    const size_t middle = part(leaf), left = tree_.nodes.size();
    tree_.nodes.resize(left + 2);
    NewtonNode& node = tree_.nodes[leaf.node];
    node.feature = static_cast<int32_t>(split.column);
    node.left = static_cast<int32_t>(left);
    node.bin = split.bin;
    node.is_missing_left = split.is_missing_left;
    node.gain = split.gain;
    std::unique_ptr<Leaf> sides[2];
    for (const size_t side : {size_t{0}, size_t{1}}) {
      sides[side] = std::make_unique<Leaf>();
      Leaf& child = *sides[side];
      child.node = left + side;
      child.depth = leaf.depth + 1;
      child.begin = side == 0 ? leaf.begin : middle;
      child.end = side == 0 ? middle : leaf.end;
      child.range = range_of(leaf, side);
      for (size_t k = child.begin; k < child.end; ++k) child.sum.add(terms_[order_[k]]);
      tree_.nodes[child.node].value = value(child.sum, child.range);
    }
    const size_t small = middle - leaf.begin <= leaf.end - middle ? 0 : 1;
    const bool is_large_open = can_split(*sides[1 - small]), is_small_open = can_split(*sides[small]);
    if (is_small_open || is_large_open) {
      search(*sides[small], nullptr, nullptr);
      if (!is_small_open) sides[small]->split = {};
      if (is_large_open) search(*sides[1 - small], &leaf.histogram, sides[small].get());
    }
    offer(std::move(sides[0]), false);
    offer(std::move(sides[1]), false);
  }

  // Scores of the two sides of a split in a direction stay apart, below too.
  Range range_of(const Leaf& leaf, size_t side) const {
    const int direction = plan_.direction ? plan_.direction[leaf.split.column] : 0;
    if (direction == 0) return leaf.range;
    const double middle = leaf.split.left_value / 2 + leaf.split.right_value / 2;
    const bool is_upper = (direction > 0) == (side == 1);
    return is_upper ? Range{std::max(leaf.range.low, middle), leaf.range.high}
                    : Range{leaf.range.low, std::min(leaf.range.high, middle)};
  }

  bool goes_left(const Split& split, uint8_t code) const {
    return code == missing ? split.is_missing_left : code <= split.bin;
  }

  size_t part(const Leaf& leaf) {
    size_t left = leaf.begin, n_right = 0;
    const uint8_t* codes = rows_.codes + leaf.split.column;
    for (size_t k = leaf.begin; k < leaf.end; ++k) {
      const uint32_t row = order_[k];
      const bool is_left = goes_left(leaf.split, codes[row * rows_.n_columns]);
      order_[left] = row;
      moved_[n_right] = row;
      left += is_left;
      n_right += !is_left;
    }
    std::copy_n(moved_.begin(), n_right, order_.begin() + static_cast<ptrdiff_t>(left));
    return left;
  }

  void close(const Leaf& leaf) {
    for (size_t k = leaf.begin; k < leaf.end; ++k) tree_.leaves[order_[k]] = static_cast<int32_t>(leaf.node);
  }

  void lead_others() {
    if (rows_.n_drawn == rows_.n_rows) return;
    for (size_t i = 0; i < rows_.n_rows; ++i) {
      if (tree_.leaves[i] >= 0) continue;
      int32_t at = 0;
      while (tree_.nodes[at].left != 0) {
        const NewtonNode& node = tree_.nodes[at];
        const uint8_t code = rows_.codes[i * rows_.n_columns + static_cast<size_t>(node.feature)];
        at = node.left + (code == missing ? !node.is_missing_left : code > node.bin);
      }
      tree_.leaves[i] = at;
    }
  }

  const NewtonRows& rows_;
  const NewtonPlan& plan_;
  Crew& crew_;
  NewtonTree tree_;
  std::vector<uint32_t> order_, moved_;
  std::vector<Cell> terms_;
  std::vector<std::unique_ptr<Leaf>> leaves_;
  std::priority_queue<Open> open_;
};

}  // namespace

NewtonTree grow_newton(const NewtonRows& rows, const NewtonPlan& plan, Crew& crew) {
  return Grower(rows, plan, crew).grow();
}

}  // namespace certifit
