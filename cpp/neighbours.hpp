// Exact nearest neighbours of all points of the plane, in the distance max(|dx|, y_factor |dy|).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "simd.hpp"

namespace certifit {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline constexpr size_t leaf_size = 16;  // points
using Leaf = std::array<double, leaf_size>;

struct Box {
  double x_low, x_high, y_low, y_high;
};

// Points (x, y) in a k-d tree: boxes halved along their longer side, down to leaves of 16 points that lie together.
// Points are named by the rank of their x; `by_y` holds the names in order of y and `y_rank` tells that order.
class Tree {
 public:
  Tree(const std::vector<double>& xs, const std::vector<double>& ys, std::vector<uint32_t> y_rank, double y_factor)
      : y_factor(y_factor), xs_(xs), ys_(ys), y_rank_(std::move(y_rank)) {
    const size_t n = xs.size(), n_padded = (n + leaf_size - 1) / leaf_size * leaf_size;
    by_x_.resize(n);
    by_y_.resize(n);
    moved_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      by_x_[i] = static_cast<uint32_t>(i);
      by_y_[y_rank_[i]] = static_cast<uint32_t>(i);
    }
    x.assign(n_padded, infinity);  // what fills up the last leaf is infinitely far
    y.assign(n_padded, infinity);
    nodes_.reserve(2 * n_padded / leaf_size);
    build(0, n);
  }

  size_t n_leaves() const { return x.size() / leaf_size; }

  // visit(leaf, its box) for leaves nearer than `reach` to `box`, near ones first; a visit may lower `reach`.
  template <class Visit>
  void near(const Box& box, const double& reach, Visit visit) const {
    std::array<std::pair<uint32_t, double>, 128> waiting;
    size_t n_waiting = 0;
    waiting[n_waiting++] = {0, -infinity};
    while (n_waiting) {
      auto [at, gap] = waiting[--n_waiting];
      while (gap < reach) {
        const Node& node = nodes_[at];
        if (node.right == 0) {
          visit(node.leaf, node.box);
          break;
        }
        const uint32_t left = at + 1, right = node.right;
        const double left_gap = distance(box, nodes_[left].box), right_gap = distance(box, nodes_[right].box);
        const bool is_left = left_gap <= right_gap;
        waiting[n_waiting++] = is_left ? std::pair{right, right_gap} : std::pair{left, left_gap};
        at = is_left ? left : right;
        gap = is_left ? left_gap : right_gap;
      }
    }
  }

  double distance(const Box& a, const Box& b) const {
    const double dx = std::max(a.x_low - b.x_high, b.x_low - a.x_high);
    const double dy = std::max(a.y_low - b.y_high, b.y_low - a.y_high);
    return std::max(dx, dy * y_factor);  // below zero where they overlap
  }

  const Box& leaf_box(size_t leaf) const { return nodes_[leaves_[leaf]].box; }

  const double y_factor;
  std::vector<double> x, y;  // of the points, leaf after leaf

 private:
  struct Node {
    Box box;
    uint32_t right;  // 0 for a leaf; the left child is the next node
    uint32_t leaf;
  };

  void build(size_t begin, size_t end) {
    const size_t at = nodes_.size(), n_leaves = (end - begin + leaf_size - 1) / leaf_size;
    nodes_.push_back(
        {{xs_[by_x_[begin]], xs_[by_x_[end - 1]], ys_[y_rank_[by_y_[begin]]], ys_[y_rank_[by_y_[end - 1]]]},
         0,
         static_cast<uint32_t>(begin / leaf_size)});
    if (n_leaves == 1) {
      leaves_.push_back(static_cast<uint32_t>(at));
      for (size_t i = begin; i < end; ++i) {
        x[i] = xs_[by_x_[i]];
        y[i] = ys_[y_rank_[by_x_[i]]];
      }
      return;
    }
    const Box& box = nodes_[at].box;
    const size_t middle = begin + n_leaves / 2 * leaf_size;
    if (box.x_high - box.x_low >= (box.y_high - box.y_low) * y_factor) {
      const uint32_t first = by_x_[middle];
      divide(by_y_, begin, end, [&](uint32_t name) { return name < first; });
    } else {
      const uint32_t first = y_rank_[by_y_[middle]];
      divide(by_x_, begin, end, [&](uint32_t name) { return y_rank_[name] < first; });
    }
    build(begin, middle);
    nodes_[at].right = static_cast<uint32_t>(nodes_.size());
    build(middle, end);
  }

  // Names of the first half, then the others, each in the order they had.
  template <class Claim>
  void divide(std::vector<uint32_t>& names, size_t begin, size_t end, Claim is_first) {
    size_t n_first = 0, n_others = 0;
    for (size_t i = begin; i < end; ++i) {
      const uint32_t name = names[i];
      const bool first = is_first(name);
      names[begin + n_first] = name;
      moved_[n_others] = name;
      n_first += first;
      n_others += !first;
    }
    std::copy_n(moved_.begin(), n_others, names.begin() + static_cast<std::ptrdiff_t>(begin + n_first));
  }

  const std::vector<double>&xs_, &ys_;
  std::vector<uint32_t> y_rank_, by_x_, by_y_, moved_, leaves_;
  std::vector<Node> nodes_;
};

// As many doubles as one instruction takes.
inline constexpr size_t width = CERTIFIT_HAS_FMA ? 4 : 2;
typedef double Wide __attribute__((vector_size(8 * width)));
typedef int64_t WideBits __attribute__((vector_size(8 * width)));

inline Wide wide(const double* p) {
  Wide v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline Wide wide(double x) { return x - Wide{}; }
inline void put(double* p, Wide v) { std::memcpy(p, &v, sizeof v); }
inline Wide larger(Wide a, Wide b) { return a > b ? a : b; }
inline Wide smaller(Wide a, Wide b) { return a < b ? a : b; }
inline Wide size_of(Wide a) { return (Wide)((WideBits)a & (WideBits{} + 0x7fffffffffffffffLL)); }
inline bool any_below(Wide a, Wide b) {
#if CERTIFIT_HAS_FMA
  return _mm256_movemask_pd((__m256d)(a < b)) != 0;
#else
  const WideBits below = a < b;
  return (below[0] | below[1]) != 0;
#endif
}

// The k smallest distances of each point of one leaf.
class Nearest {
 public:
  Nearest(const Tree& tree, size_t k) : tree_(tree), distances_(k) {}

  void search(size_t leaf) {
    begin_ = leaf * leaf_size;
    // What fills up the last leaf has its neighbours already, and asks for none.
    for (Leaf& distance : distances_)
      for (size_t i = 0; i < leaf_size; ++i) distance[i] = tree_.x[begin_ + i] < infinity ? infinity : -infinity;
    for (size_t t = 0; t < leaf_size; t += width) scan<true>(begin_, t);
    double reach = largest_kth();
    tree_.near(tree_.leaf_box(leaf), reach, [&](size_t other, const Box& box) {
      if (other == leaf) return;
      for (size_t t = 0; t < leaf_size; t += width)
        if (any_near(box, t)) scan<false>(other * leaf_size, t);
      reach = largest_kth();
    });
  }

  // Distance of the k-th neighbour of point i; -inf for what fills up the last leaf.
  double kth(size_t i) const { return distances_.back()[i]; }

  // How many points lie in the open ball about point i, that point included; not more than k of them.
  size_t inside(size_t i, double radius) const {
    size_t n = 1;
    for (const Leaf& distance : distances_) n += distance[i] < radius;
    return n;
  }

 private:
  double largest_kth() const { return *std::max_element(distances_.back().begin(), distances_.back().end()); }

  // Whether one of `width` points is nearer to the box than to its k-th neighbour.
  bool any_near(const Box& box, size_t t) const {
    const Wide x = wide(tree_.x.data() + begin_ + t), y = wide(tree_.y.data() + begin_ + t);
    const Wide dx = larger(wide(box.x_low) - x, x - wide(box.x_high));
    const Wide dy = larger(wide(box.y_low) - y, y - wide(box.y_high));
    return any_below(larger(dx, dy * wide(tree_.y_factor)), wide(distances_.back().data() + t));
  }

  // `width` points against the points of a leaf: the new distance sinks into the ascending ones, the largest is lost.
  template <bool is_own>
  void scan(size_t other, size_t t) {
    const Wide x = wide(tree_.x.data() + begin_ + t), y = wide(tree_.y.data() + begin_ + t);
    for (size_t j = 0; j < leaf_size; ++j) {
      const Wide dx = size_of(x - wide(tree_.x[other + j])), dy = size_of(y - wide(tree_.y[other + j]));
      Wide d = larger(dx, dy * wide(tree_.y_factor));
      if (is_own && j / width == t / width) d[j % width] = infinity;
      if (!any_below(d, wide(distances_.back().data() + t))) continue;
      for (Leaf& distance : distances_) {
        const Wide held = wide(distance.data() + t);
        put(distance.data() + t, smaller(held, d));
        d = larger(held, d);
      }
    }
  }

  const Tree& tree_;
  size_t begin_ = 0;
  std::vector<Leaf> distances_;  // ascending: the smallest of every point, the second smallest, ...
};

}  // namespace certifit
