// The best stump of two classes is the largest edge |T - 2 A|: T the sum of w y, A that of the rows on the left, y = -1
// or 1. Of more classes it has the least of W - max_k L_k - max_k R_k. Columns are sorted once.
#include "boost.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "../sorted.hpp"

namespace certifit {
namespace {

constexpr double tie = 1e-12;  // errors that differ by less are equal: the lowest column, then the lowest threshold

// Rows in ascending order of a column. The highest bit marks the last row of those with its value.
constexpr uint32_t last_of_value = 1u << 31, row_bits = last_of_value - 1;
using Order = std::vector<uint32_t>;

Order sorted_rows(const double* x, size_t n) {
  std::vector<Key> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = {ordered_bits(x[i]), static_cast<uint32_t>(i)};
  radix_sort(keys);
  Order order(n);
  for (size_t k = 0; k < n; ++k)
    order[k] = keys[k].row | (k + 1 == n || keys[k].bits != keys[k + 1].bits ? last_of_value : 0);
  return order;
}

// The least error of a column, and after how many rows it is cut.
struct Cut {
  double error;
  size_t n_left;
};

// Two columns at a time: their sums do not wait for each other.
std::pair<double, double> largest_edges(const Order& a, const Order& b, const double* signed_weight, double total) {
  double best_a = -1, best_b = -1, sum_a = 0, sum_b = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    sum_a += signed_weight[a[k] & row_bits];
    sum_b += signed_weight[b[k] & row_bits];
    const double edge_a = std::fabs(total - 2 * sum_a), edge_b = std::fabs(total - 2 * sum_b);
    best_a = (a[k] & last_of_value) && edge_a > best_a ? edge_a : best_a;
    best_b = (b[k] & last_of_value) && edge_b > best_b ? edge_b : best_b;
  }
  return {best_a, best_b};
}

// The first cut whose edge is the largest but for rounding.
size_t first_cut(const Order& order, const double* signed_weight, double total, double largest) {
  double sum = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    sum += signed_weight[order[k] & row_bits];
    if ((order[k] & last_of_value) && std::fabs(total - 2 * sum) >= largest - tie) return k + 1;
  }
  return order.size();
}

// Of any number of classes: what both sides have of their heaviest class, as rows go to the left one by one.
Cut best_cut(const Order& order, const double* weight, const double* y, const std::vector<double>& classes) {
  std::vector<double> left(classes.size(), 0.0), right = classes;
  Cut best{std::numeric_limits<double>::infinity(), 0};
  for (size_t k = 0; k < order.size(); ++k) {
    const uint32_t row = order[k] & row_bits;
    left[static_cast<size_t>(y[row])] += weight[row];
    right[static_cast<size_t>(y[row])] -= weight[row];
    if (!(order[k] & last_of_value)) continue;
    const double right_most = k + 1 == order.size() ? 0.0 : *std::max_element(right.begin(), right.end());
    const double error = 1 - *std::max_element(left.begin(), left.end()) - right_most;
    if (error < best.error - tie) best = {error, k + 1};
  }
  return best;
}

class Booster {
 public:
  Booster(const TreeRows& rows, size_t n_classes, Crew& crew)
      : rows_(rows),
        n_classes_(n_classes),
        crew_(crew),
        orders_(rows.n_columns),
        weight_(rows.weight),
        signed_(rows.n_rows),
        scores_(rows.n_rows * n_classes, 0.0) {
    crew.for_each_block(rows.n_columns, [&](size_t j) { orders_[j] = sorted_rows(rows.column(j), rows.n_rows); });
    normalise();
    first_ = weight_;
  }

  Stump best() {
    std::vector<double> classes(n_classes_, 0.0);
    for (size_t i = 0; i < rows_.n_rows; ++i) classes[static_cast<size_t>(rows_.y[i])] += weight_[i];
    const auto [feature, n_left] = n_classes_ == 2 ? best_of_two(classes) : best_of_many(classes);
    return stump_of(feature, n_left);
  }

  // The stump votes, and rows that it calls wrong weigh e^alpha times as much.
  void learn(Stump& stump) {
    const double factor = std::exp(stump.alpha);
    const double* x = rows_.column(stump.feature);
    for (size_t i = 0; i < rows_.n_rows; ++i) {
      const size_t called = x[i] <= stump.threshold ? stump.left : stump.right;
      if (called != static_cast<size_t>(rows_.y[i])) weight_[i] *= factor;
      scores_[i * n_classes_ + called] += stump.alpha;
      if (!is_won(i)) stump.training_error += first_[i];
    }
    normalise();
  }

 private:
  bool is_won(size_t i) const {
    const double* scores = scores_.data() + i * n_classes_;
    const auto y = static_cast<size_t>(rows_.y[i]);
    for (size_t c = 0; c < n_classes_; ++c)
      if (c != y && scores[c] >= scores[y]) return false;
    return true;
  }

  struct Place {
    size_t feature, n_left;
  };

  void normalise() {
    const double total = std::accumulate(weight_.begin(), weight_.end(), 0.0);
    for (size_t i = 0; i < rows_.n_rows; ++i) {
      weight_[i] /= total;
      signed_[i] = rows_.y[i] > 0 ? weight_[i] : -weight_[i];
    }
  }

  Place best_of_two(const std::vector<double>& classes) {
    const double total = classes[1] - classes[0];
    std::vector<double> edges(rows_.n_columns);
    crew_.for_each_block((rows_.n_columns + 1) / 2, [&](size_t pair) {
      const size_t a = 2 * pair, b = std::min(a + 1, rows_.n_columns - 1);
      std::tie(edges[a], edges[b]) = largest_edges(orders_[a], orders_[b], signed_.data(), total);
    });
    const double largest = *std::max_element(edges.begin(), edges.end());
    const size_t feature =
        std::find_if(edges.begin(), edges.end(), [&](double e) { return e >= largest - tie; }) - edges.begin();
    return {feature, first_cut(orders_[feature], signed_.data(), total, edges[feature])};
  }

  Place best_of_many(const std::vector<double>& classes) {
    std::vector<Cut> cuts(rows_.n_columns);
    crew_.for_each_block(rows_.n_columns,
                         [&](size_t j) { cuts[j] = best_cut(orders_[j], weight_.data(), rows_.y.data(), classes); });
    size_t best = 0;
    for (size_t j = 1; j < cuts.size(); ++j)
      if (cuts[j].error < cuts[best].error - tie) best = j;
    return {best, cuts[best].n_left};
  }

  Stump stump_of(size_t feature, size_t n_left) const {
    const Order& order = orders_[feature];
    const double* x = rows_.column(feature);
    std::vector<double> left(n_classes_, 0.0), right(n_classes_, 0.0);
    for (size_t k = 0; k < order.size(); ++k) {
      const uint32_t row = order[k] & row_bits;
      (k < n_left ? left : right)[static_cast<size_t>(rows_.y[row])] += weight_[row];
    }
    Stump stump;
    stump.feature = feature;
    stump.left = std::max_element(left.begin(), left.end()) - left.begin();
    stump.right = n_left == order.size() ? stump.left : std::max_element(right.begin(), right.end()) - right.begin();
    for (size_t c = 0; c < n_classes_; ++c) {
      if (c != stump.left) stump.error += left[c];
      if (c != stump.right) stump.error += right[c];
    }
    if (n_left == order.size()) {
      stump.threshold = std::numeric_limits<double>::infinity();
    } else {
      const double low = x[order[n_left - 1] & row_bits], high = x[order[n_left] & row_bits];
      const double middle = low / 2 + high / 2;
      stump.threshold = middle >= low && middle < high ? middle : low;
    }
    return stump;
  }

  const TreeRows& rows_;
  size_t n_classes_;
  Crew& crew_;
  std::vector<Order> orders_;
  std::vector<double> weight_, signed_, scores_, first_;
};

}  // namespace

std::vector<Stump> boost_stumps(const TreeRows& rows, size_t n_classes, size_t n_rounds, double rate, Crew& crew,
                                const std::function<bool(const Stump&)>& tell) {
  Booster booster(rows, n_classes, crew);
  const double classes = static_cast<double>(n_classes), chance = 1 - 1 / classes;
  std::vector<Stump> stumps;
  while (stumps.size() < n_rounds) {
    Stump stump = booster.best();
    const bool is_perfect = stump.error <= 0, is_chance = stump.error >= chance * (1 - tie);
    if (is_perfect || is_chance) {
      stump.alpha = is_perfect ? rate : 0.0;
      if (!stumps.empty()) break;
      booster.learn(stump);
      stumps.push_back(stump);
      break;
    }
    stump.alpha = rate * (std::log((1 - stump.error) / stump.error) + std::log(classes - 1));
    booster.learn(stump);
    stumps.push_back(stump);
    if (tell && tell(stump)) break;
  }
  return stumps;
}

Votes vote(const Rows& rows, const std::vector<Stump>& stumps, size_t n_classes, Crew& crew) {
  constexpr size_t block_rows = 2048;
  Votes votes;
  votes.scores.assign(rows.n_rows * n_classes, 0.0);
  std::atomic<bool> is_finite{true};
  crew.for_each_block((rows.n_rows + block_rows - 1) / block_rows, [&](size_t block) {
    const size_t first = block * block_rows, count = std::min(block_rows, rows.n_rows - first);
    std::vector<double> scratch;
    WholeRows whole(rows);
    const Tile tile = read_tile(rows, first, count, scratch);
    bool is_bad = false;
    for (size_t k = 0; k < count; ++k) {
      const double* x = whole.row(tile, k, first + k);
      double* scores = votes.scores.data() + (first + k) * n_classes;
      for (const Stump& stump : stumps)
        scores[x[stump.feature] <= stump.threshold ? stump.left : stump.right] += stump.alpha;
      for (size_t j = 0; j < rows.n_columns; ++j) is_bad |= !std::isfinite(x[j]);
    }
    if (is_bad) is_finite = false;
  });
  votes.is_finite = is_finite;
  return votes;
}

}  // namespace certifit
