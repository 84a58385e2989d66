// LOWESS in O(n log n) per pass. The tricube weight (1 -+ v^3)^3 is a polynomial on each side of the query, so the sums
// over many rows follow from moments of x. A tree of blocks holds them in coordinates of each block, |u| <= 1: moments
// about one common origin would lose (range / h)^9 of their digits.
#include <algorithm>
#include <array>
#include <cmath>

#include "../elementary.hpp"
#include "fits.hpp"

namespace certifit {
namespace {

constexpr size_t leaf = 64;               // rows of a block
constexpr int n_moments = 12;             // powers 0 .. 9 of the weight, times u^2
constexpr size_t direct_rows = 4 * leaf;  // fewer neighbours are summed one by one
constexpr size_t rows_at_once = 256;
using Moments = std::array<double, n_moments>;

struct Node {
  double centre = 0, half = 0;
  Moments of_weight{}, of_target{};  // sums of r u^p and r y u^p
};

double total(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }

struct Sums {
  double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0;  // sum of w, w v, w v^2, w y, w v y
};

class MomentTree {
 public:
  MomentTree(std::span<const double> x, std::span<const double> y, std::span<const double> r) : x_(x), y_(y), r_(r) {
    for (int p = 0; p < n_moments; ++p) {
      binomial_[p][0] = 1;
      for (int q = 1; q <= p; ++q) binomial_[p][q] = binomial_[p - 1][q - 1] + (q < p ? binomial_[p - 1][q] : 0);
    }
    levels_.emplace_back(x.size() / leaf);
    for (size_t b = 0; b < levels_[0].size(); ++b) levels_[0][b] = leaf_node(b * leaf);
    while (levels_.back().size() > 1) {
      const std::vector<Node>& below = levels_.back();
      std::vector<Node> above(below.size() / 2);
      for (size_t j = 0; j < above.size(); ++j) above[j] = joined(below[2 * j], below[2 * j + 1]);
      levels_.push_back(std::move(above));
    }
  }

  // Sums over rows [begin, end), all on one side of the query: sign +1 below it, -1 above.
  void add(size_t begin, size_t end, double query, double per_width, double sign, Sums& sums) const {
    size_t left = (begin + leaf - 1) / leaf, right = end / leaf;
    if (left >= right || end - begin < direct_rows) return add_rows(begin, end, query, per_width, sums);
    add_rows(begin, left * leaf, query, per_width, sums);
    add_rows(right * leaf, end, query, per_width, sums);
    for (size_t level = 0; left < right; ++level, left /= 2, right /= 2) {
      if (left % 2) add_node(levels_[level][left++], query, per_width, sign, sums);
      if (right % 2) add_node(levels_[level][--right], query, per_width, sign, sums);
    }
  }

 private:
  Node leaf_node(size_t begin) const {
    Node node;
    const double low = x_[begin], high = x_[begin + leaf - 1];
    node.centre = 0.5 * (low + high);
    node.half = 0.5 * (high - low);
    const double per_half = node.half > 0 ? 1 / node.half : 0;
    for (size_t i = begin; i < begin + leaf; ++i) {
      const double u = (x_[i] - node.centre) * per_half;
      double power = r_[i];
      for (int p = 0; p < n_moments; ++p, power *= u) {
        node.of_weight[p] += power;
        node.of_target[p] += power * y_[i];
      }
    }
    return node;
  }

  Node joined(const Node& a, const Node& b) const {
    Node node;
    const double low = a.centre - a.half, high = b.centre + b.half;
    node.centre = 0.5 * (low + high);
    node.half = 0.5 * (high - low);
    for (const Node* part : {&a, &b}) move(*part, node);
    return node;
  }

  // u of the part is (scale u' + shift) of the whole: moments by the binomial theorem.
  void move(const Node& part, Node& whole) const {
    const double per_half = whole.half > 0 ? 1 / whole.half : 0;
    const double scale = part.half * per_half, shift = (part.centre - whole.centre) * per_half;
    Moments weight, target, shifts;
    double power = 1;
    for (int p = 0; p < n_moments; ++p, power *= scale) {
      weight[p] = part.of_weight[p] * power;
      target[p] = part.of_target[p] * power;
      shifts[p] = p == 0 ? 1 : shifts[p - 1] * shift;
    }
    for (int p = 0; p < n_moments; ++p)
      for (int e = 0; e <= p; ++e) {
        const double factor = binomial_[p][e] * shifts[p - e];
        whole.of_weight[p] += factor * weight[e];
        whole.of_target[p] += factor * target[e];
      }
  }

  void add_rows(size_t begin, size_t end, double query, double per_width, Sums& sums) const {
    Vec s0 = broadcast(0.0), s1 = s0, s2 = s0, t0 = s0, t1 = s0;
    auto add = [&](Vec x, Vec y, Vec r) {
      const Vec v = (x - broadcast(query)) * broadcast(per_width);
      const Vec c = greater(broadcast(1.0) - absolute(v * v * v), broadcast(0.0));
      const Vec w = c * c * c * r, wv = w * v;
      s0 = s0 + w;
      s1 = s1 + wv;
      s2 = multiply_add(wv, v, s2);
      t0 = multiply_add(w, y, t0);
      t1 = multiply_add(wv, y, t1);
    };
    size_t i = begin;
    for (; i + lanes <= end; i += lanes) add(load(&x_[i]), load(&y_[i]), load(&r_[i]));
    if (i < end) {
      double x[lanes] = {query, query, query, query}, y[lanes] = {}, r[lanes] = {};
      std::copy(x_.begin() + i, x_.begin() + end, x);
      std::copy(y_.begin() + i, y_.begin() + end, y);
      std::copy(r_.begin() + i, r_.begin() + end, r);
      add(load(x), load(y), load(r));
    }
    sums.s0 += total(s0), sums.s1 += total(s1), sums.s2 += total(s2), sums.t0 += total(t0), sums.t1 += total(t1);
  }

  // (1 + sign v^3)^3 with v = a + b u as a polynomial in u, then times v and v^2.
  static void add_node(const Node& node, double query, double per_width, double sign, Sums& sums) {
    const double a = (node.centre - query) * per_width, b = node.half * per_width;
    const double g0 = 1 + sign * a * a * a, g1 = 3 * sign * a * a * b, g2 = 3 * sign * a * b * b, g3 = sign * b * b * b;
    const double h0 = g0 * g0, h1 = 2 * g0 * g1, h2 = 2 * g0 * g2 + g1 * g1, h3 = 2 * (g0 * g3 + g1 * g2),
                 h4 = 2 * g1 * g3 + g2 * g2, h5 = 2 * g2 * g3, h6 = g3 * g3;
    // One zero before the coefficients: f[p - 1] of p = 0.
    const double f[n_moments + 1] = {0,
                                     g0 * h0,
                                     g0 * h1 + g1 * h0,
                                     g0 * h2 + g1 * h1 + g2 * h0,
                                     g0 * h3 + g1 * h2 + g2 * h1 + g3 * h0,
                                     g0 * h4 + g1 * h3 + g2 * h2 + g3 * h1,
                                     g0 * h5 + g1 * h4 + g2 * h3 + g3 * h2,
                                     g0 * h6 + g1 * h5 + g2 * h4 + g3 * h3,
                                     g1 * h6 + g2 * h5 + g3 * h4,
                                     g2 * h6 + g3 * h5,
                                     g3 * h6,
                                     0,
                                     0};
    double first[n_moments + 1] = {};
    const Vec shift = broadcast(a), scale = broadcast(b);
    Vec s0 = broadcast(0.0), s1 = s0, s2 = s0, t0 = s0, t1 = s0;
    for (int p = 0; p < n_moments; p += static_cast<int>(lanes)) {
      const Vec weight = load(f + p + 1), product = multiply_add(scale, load(f + p), shift * weight);
      const Vec moments = load(&node.of_weight[p]), targets = load(&node.of_target[p]);
      store(first + p + 1, product);
      s0 = multiply_add(weight, moments, s0);
      s1 = multiply_add(product, moments, s1);
      t0 = multiply_add(weight, targets, t0);
      t1 = multiply_add(product, targets, t1);
    }
    for (int p = 0; p < n_moments; p += static_cast<int>(lanes)) {
      const Vec product = multiply_add(scale, load(first + p), shift * load(first + p + 1));
      s2 = multiply_add(product, load(&node.of_weight[p]), s2);
    }
    sums.s0 += total(s0), sums.s1 += total(s1), sums.s2 += total(s2), sums.t0 += total(t0), sums.t1 += total(t1);
  }

  std::span<const double> x_, y_, r_;
  std::vector<std::vector<Node>> levels_;
  double binomial_[n_moments][n_moments] = {};
};

// First of the k nearest rows of every row.
std::vector<size_t> windows(std::span<const double> x, size_t k) {
  std::vector<size_t> first(x.size());
  for (size_t i = 0, left = 0; i < x.size(); ++i) {
    while (left + k < x.size() && x[left + k] - x[i] < x[i] - x[left]) ++left;
    first[i] = left;
  }
  return first;
}

double median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  if (values.size() % 2) return values[middle];
  return 0.5 * (values[middle] + *std::max_element(values.begin(), values.begin() + middle));
}

void smooth(const MomentTree& tree, std::span<const double> x, std::span<const double> y, std::span<const double> r,
            const std::vector<size_t>& first, size_t k, std::vector<double>& fitted, Crew& crew) {
  crew.for_each_block((x.size() + rows_at_once - 1) / rows_at_once, [&](size_t block) {
    for (size_t i = block * rows_at_once; i < std::min(x.size(), (block + 1) * rows_at_once); ++i) {
      const size_t begin = first[i], end = begin + k;
      const double width = std::max(x[i] - x[begin], x[end - 1] - x[i]);
      Sums sums;
      if (width > 0) {
        const size_t middle = std::clamp(i, begin, end);
        tree.add(begin, middle, x[i], 1 / width, 1.0, sums);
        tree.add(middle, end, x[i], 1 / width, -1.0, sums);
      } else {
        for (size_t j = begin; j < end; ++j) sums.s0 += r[j], sums.t0 += r[j] * y[j];
      }
      if (!(sums.s0 > 0)) {  // every neighbour was held to be an outlier: the value before stays
        continue;
      }
      const double determinant = sums.s0 * sums.s2 - sums.s1 * sums.s1;
      const bool is_line = determinant > 1e-14 * sums.s0 * sums.s2;
      fitted[i] = is_line ? (sums.s2 * sums.t0 - sums.s1 * sums.t1) / determinant : sums.t0 / sums.s0;
    }
  });
}

}  // namespace

std::vector<double> lowess(std::span<const double> x, std::span<const double> y, size_t k, int n_iterations,
                           std::vector<double>& robust, Crew& crew) {
  const std::vector<size_t> first = windows(x, k);
  std::vector<double> fitted(y.begin(), y.end()), size(x.size());
  robust.assign(x.size(), 1.0);
  for (int iteration = 0;; ++iteration) {
    smooth(MomentTree(x, y, robust), x, y, robust, first, k, fitted, crew);
    if (iteration == n_iterations) return fitted;
    for (size_t i = 0; i < x.size(); ++i) size[i] = std::fabs(y[i] - fitted[i]);
    const double scale = 6 * median(size);
    if (!(scale > 0)) return fitted;  // half of the rows are met exactly
    for (size_t i = 0; i < x.size(); ++i) {
      const double u = size[i] / scale, c = std::max(1 - u * u, 0.0);
      robust[i] = u < 1 ? c * c : 0.0;
    }
  }
}

}  // namespace certifit
