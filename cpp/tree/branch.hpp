// What every way to grow a tree shares: the sums of a node, the nodes of a worker, and the tree that they make.
#pragma once

#include <cmath>
#include <limits>

#include "criteria.hpp"
#include "tree.hpp"

namespace certifit {

struct Range {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

// What a tree is grown on and when its nodes stay leaves. rows: those at hand; whole: what all rows are.
struct Plan {
  const TreeRows& rows;
  Criterion criterion;
  size_t n_classes;  // 0: y is a number
  Stops stops;
  const ColumnRules& columns;
  Whole whole;
  bool has_moments() const { return criterion == Criterion::squared_error || is_two_class_gini(); }
  bool is_two_class_gini() const { return criterion == Criterion::gini && n_classes == 2; }
};

inline NodeSums class_node(std::vector<double> weights, Criterion criterion) {
  NodeSums node;
  node.values = std::move(weights);
  double squares = 0, logs = 0;
  size_t n_there = 0;
  for (double c : node.values) {
    node.weight += c;
    n_there += c > 0;
  }
  for (double c : node.values) {
    const double share = c / node.weight;
    squares += share * (1 - share);
    logs -= x_log_x(share);
  }
  node.impurity = criterion == Criterion::gini ? squares : logs;
  node.is_pure = n_there < 2;
  return node;
}

inline void add_classes(const RowArrays& rows, const auto* order, size_t n, std::vector<double>& weights) {
  for (size_t k = 0; k < n; ++k) weights[static_cast<size_t>(rows.y[order[k]])] += rows.mass(order[k]);
}

inline NodeSums class_sums(const Plan& plan, const RowArrays& rows, const auto* order, size_t n) {
  std::vector<double> weights(plan.n_classes, 0.0);
  add_classes(rows, order, n, weights);
  return class_node(std::move(weights), plan.criterion);
}

// Rows of numbers. spread: the sum of w (y - mean)^2, or of w y log(y / mean). first: of their y; all are equal where
// they are pure.
struct NumberSums {
  double weight = 0, mean = 0, spread = 0, first = 0;
  bool is_pure = true;

  // With the rows of a later block: their mean, and what two means add to the spread. Nothing cancels.
  void add(const NumberSums& next, Criterion criterion) {
    if (next.weight == 0) return;
    if (weight == 0) {
      *this = next;
      return;
    }
    const double all = weight + next.weight, apart = next.mean - mean, share = next.weight / all;
    const double merged = mean + apart * share;
    spread += next.spread;
    if (criterion == Criterion::poisson) {
      for (const NumberSums* side : {static_cast<const NumberSums*>(this), &next})
        if (side->mean > 0) spread += side->weight * side->mean * std::log(side->mean / merged);
    } else {
      spread += apart * apart * (weight * share);
    }
    weight = all;
    mean = merged;
    is_pure = is_pure && next.is_pure && first == next.first;
  }

  NodeSums node() const { return {weight, is_pure ? 0.0 : std::max(spread, 0.0) / weight, {mean}, is_pure}; }
};

// The mean about the first y, and then what the mean is still off by: nothing cancels. No spread.
inline NumberSums mean_block(const RowArrays& rows, const auto* order, size_t n) {
  NumberSums sums;
  sums.first = rows.y[order[0]];
  double sum = 0;
  for (size_t k = 0; k < n; ++k) {
    const double y = rows.y[order[k]], w = rows.mass(order[k]);
    sums.weight += w;
    sum += w * (y - sums.first);
    sums.is_pure = sums.is_pure && y == sums.first;
  }
  sums.mean = sums.first + sum / sums.weight;
  return sums;
}

inline NumberSums number_block(const RowArrays& rows, const auto* order, size_t n, Criterion criterion) {
  NumberSums sums = mean_block(rows, order, n);
  const double log_mean = criterion == Criterion::poisson ? std::log(sums.mean) : 0.0;
  for (size_t k = 0; k < n; ++k) {
    const double y = rows.y[order[k]], apart = y - sums.mean, w = rows.mass(order[k]);
    if (criterion == Criterion::poisson)
      sums.spread += y > 0 ? w * (x_log_x(y) - y * log_mean) : 0.0;
    else
      sums.spread += w * apart * apart;
  }
  return sums;
}

inline NodeSums number_sums(const Plan& plan, const RowArrays& rows, const auto* order, size_t n) {
  return number_block(rows, order, n, plan.criterion).node();
}

// use(order, n) of the rows of every block, in their order.
template <class Use>
void for_each_row_block(const TreeRows& rows, const uint32_t* order, size_t n, Use use) {
  for (size_t begin = 0; begin < n;) {
    const size_t end_row = rows.block_end(order[begin]);
    size_t end = begin + 1;
    while (end < n && order[end] < end_row) ++end;
    use(order + begin, end - begin);
    begin = end;
  }
}

// Nodes of one worker. `rest`: a subtree that another worker grows in place of the node, or -1.
struct Branch {
  std::vector<Node> nodes;
  std::vector<double> values;
  std::vector<int32_t> rest;
  std::vector<Levels> sets;  // of splits of categories; the threshold of such a node is the number of its set
};

// A node whose split is still to be searched. low, high: between which the means of its leaves must lie.
struct Open {
  size_t node, depth;
  Range range;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

// The two halves of what the means of a node's leaves may be, where its column has a direction: the left leaves stay on
// one side of the middle of both means, the right ones on the other.
inline std::pair<Open, Open> children_of(const Open& at, size_t left, size_t n_left, int direction, double left_mean,
                                         double right_mean) {
  const size_t middle = at.range.begin + n_left;
  Open first{left, at.depth + 1, {at.range.begin, middle}, at.low, at.high};
  Open second{left + 1, at.depth + 1, {middle, at.range.end}, at.low, at.high};
  const double between = left_mean / 2 + right_mean / 2;
  if (direction > 0) first.high = second.low = between;
  if (direction < 0) first.low = second.high = between;
  return {first, second};
}

// Whether means of two sides keep to a direction and to what their node allows.
inline bool is_allowed(int direction, double left_mean, double right_mean, double low, double high) {
  if (direction > 0 && !(left_mean <= right_mean)) return false;
  if (direction < 0 && !(left_mean >= right_mean)) return false;
  return left_mean >= low && left_mean <= high && right_mean >= low && right_mean <= high;
}

// All branches as one tree, level by level.
inline GrownTree level_by_level(const std::vector<Branch>& branches, size_t width) {
  struct At {
    size_t branch, node;
  };
  GrownTree tree;
  std::vector<At> level{{0, 0}};
  while (!level.empty()) {
    std::vector<At> next;
    const size_t first = tree.nodes.size() + level.size();
    for (At at : level) {
      if (const int32_t rest = branches[at.branch].rest[at.node]; rest >= 0) at = {static_cast<size_t>(rest), 0};
      const Branch& branch = branches[at.branch];
      Node node = branch.nodes[at.node];
      if (node.left != 0) {
        const auto left = static_cast<size_t>(node.left);
        node.left = static_cast<int32_t>(first + next.size());
        next.push_back({at.branch, left});
        next.push_back({at.branch, left + 1});
      }
      if (node.left != 0 && node.is_of_levels) {
        tree.sets.push_back(branch.sets[static_cast<size_t>(node.threshold)]);
        node.threshold = static_cast<double>(tree.sets.size() - 1);
      }
      tree.nodes.push_back(node);
      const double* values = branch.values.data() + at.node * width;
      tree.values.insert(tree.values.end(), values, values + width);
    }
    level = std::move(next);
  }
  return tree;
}

}  // namespace certifit
