// Branch and bound over the split of the root. E_L(s) and E_R(s): the least losses of trees of one level less on the
// rows left and right of the split s of a column. E_L never falls and E_R never rises with s, so for lo < s < hi
//
//   E(s) >= E_L(lo) + E_R(hi)                                    losses that are least sums of row losses >= 0
//   E(s) >= max(E_L(lo), E_L(hi) - w(s, hi)) + max(E_R(hi), E_R(lo) - w(lo, s))       0-1 loss, w: weight between
//
// Intervals of splits wait in a queue, the one of the least bound first; its middle is solved and halves it. A least
// number of rows of a leaf breaks these bounds: they are of trees without that rule (`relaxed`), and only what is known
// of a split itself (`lower`) is of trees that obey it.
#include "optimal.hpp"

#include <bit>
#include <cmath>
#include <numeric>
#include <queue>

#include "pairs.hpp"

namespace certifit {
namespace {

// A tree in heap order: the children of k are 2k + 1 and 2k + 2.
using Cuts = std::vector<Cut>;

// No tree has less than `lower`, without the rule for leaves less than `relaxed`; `cuts` has `upper`.
struct Outcome {
  double relaxed, lower, upper;
  Cuts cuts;
};

template <class Loss>
class Search {
 public:
  using S = typename Loss::Sum;
  using Part = Subset<S>;
  static constexpr double infinite = Pairs<Loss>::infinite;

  Search(const GridRows<S>& all, const OptimalPlan& plan, double slack, Crew& crew)
      : all_(all), plan_(plan), slack_(slack), crew_(crew), pairs_(all, crew) {}

  Outcome solve(const Part& part, size_t depth, double cutoff) {
    if (!crew_.keep_going()) throw Interrupted();
    if (depth == 1) return shallow(part, 1, cutoff);
    if (depth == 2) return shallow(part, 2, cutoff);
    return Branches(*this, part, depth, cutoff).run();
  }

  uint64_t n_nodes() const { return n_nodes_; }

 private:
  bool is_spent() const { return n_nodes_ >= plan_.max_nodes; }

  Valued best_of(const Part& part, size_t depth, size_t min_rows) const {
    return depth == 1 ? pairs_.depth1(part, min_rows, slack_) : pairs_.depth2(part, min_rows, slack_);
  }

  // Trees of depth 1 and 2 are searched in full. Their cuts are made where they can be of use.
  Outcome shallow(const Part& part, size_t depth, double cutoff) {
    ++n_nodes_;
    const Valued best = best_of(part, depth, plan_.min_rows_leaf);
    const double relaxed = plan_.min_rows_leaf > 1 ? best_of(part, depth, 1).loss - slack_ : best.loss - slack_;
    Outcome outcome{relaxed, best.loss - slack_, best.loss, {}};
    if (best.loss >= cutoff) return outcome;
    outcome.cuts.assign((size_t{1} << depth) - 1, Cut{});
    outcome.cuts[0] = best.cut;
    if (depth == 1 || best.cut.column < 0) return outcome;
    for (const bool is_right : {false, true}) {
      const Part side = all_.of(rows_of(part, best.cut, is_right));
      outcome.cuts[is_right ? 2 : 1] = pairs_.depth1(side, plan_.min_rows_leaf, slack_).cut;
    }
    return outcome;
  }

  std::vector<uint32_t> rows_of(const Part& part, Cut cut, bool is_right) const {
    const uint8_t* codes = all_.columns[static_cast<size_t>(cut.column)].codes.data();
    std::vector<uint32_t> rows;
    for (uint32_t row : part.rows)
      if ((codes[row] > cut.code) == is_right) rows.push_back(row);
    return rows;
  }

  // Splits of a column between two that are solved; places 0 and n_codes are its ends, where one side has all rows.
  struct Interval {
    double bound;
    size_t column, low, high, middle;
    bool operator<(const Interval& other) const {  // the queue's top is the largest
      if (bound != other.bound) return bound > other.bound;
      return std::pair(column, low) > std::pair(other.column, other.low);
    }
  };

  class Branches {
   public:
    Branches(Search& search, const Part& part, size_t depth, double cutoff)
        : search_(search), part_(part), depth_(depth), best_(search.solve(part, depth - 1, cutoff)) {
      best_.cuts.resize((size_t{1} << depth) - 1);
      cutoff_ = std::min(cutoff, best_.upper);
      lower_ = relaxed_ = infinite;
    }

    Outcome run() {
      const double whole = best_.relaxed;
      const bool can_win = whole > 0 || search_.plan_.min_rows_leaf > 1;  // a loss below 0 is none
      if (can_win && cutoff_ > search_.slack_) {
        begin(whole);
        refine();
        best_.lower = std::min({lower_, cutoff_, best_.upper});
        best_.relaxed = std::min({relaxed_, cutoff_, whole});
      } else {
        best_.lower = best_.relaxed = 0;
      }
      return std::move(best_);
    }

   private:
    void begin(double whole) {
      const size_t d = search_.all_.columns.size();
      left_.resize(d);
      right_.resize(d);
      weight_.resize(d);
      for (size_t j = 0; j < d; ++j) {
        const size_t n = part_.n_codes(j);
        left_[j].assign(n + 1, 0.0);
        right_[j].assign(n + 1, 0.0);
        left_[j][n] = right_[j][0] = whole;
        weight_[j].assign(n + 1, 0.0);
        for (size_t k = 0; k < part_.n_rows; ++k) weight_[j][part_.column(j)[k] + 1] += part_.weight[k];
        for (size_t s = 0; s < n; ++s) weight_[j][s + 1] += weight_[j][s];
      }
      const Cut root = best_.cuts[0];
      for (size_t j = 0; j < d; ++j) {
        if (root.column == static_cast<int32_t>(j)) {
          const auto& codes = part_.is_code[j];
          const size_t s = std::find(codes.begin(), codes.end(), root.code) - codes.begin() + 1;
          split({0, j, 0, part_.n_codes(j), s});
        } else {
          push(j, 0, part_.n_codes(j));
        }
      }
    }

    void refine() {
      while (!open_.empty()) {
        const Interval at = open_.top();
        if (search_.is_spent() || at.bound >= cutoff_ - search_.slack_) {
          drop(at.bound);
          return;
        }
        open_.pop();
        split(at);
      }
    }

    void drop(double bound) {
      lower_ = std::min(lower_, bound);
      relaxed_ = std::min(relaxed_, bound);
    }

    struct Bound {
      double left, right;
      double sum() const { return left + right; }
    };

    Bound bound(size_t j, size_t low, size_t high, size_t s) const {
      Bound bound{left_[j][low], right_[j][high]};
      if (search_.plan_.n_classes == 0) return bound;
      bound.left = std::max(bound.left, left_[j][high] - (weight_[j][high] - weight_[j][s]));
      bound.right = std::max(bound.right, right_[j][low] - (weight_[j][s] - weight_[j][low]));
      return bound;
    }

    // The middle, by weight, of the splits that can still win.
    void push(size_t j, size_t low, size_t high) {
      if (high - low < 2) return;
      double least = infinite;
      size_t first = 0, last = 0;
      for (size_t s = low + 1; s < high; ++s) {
        const double at = bound(j, low, high, s).sum();
        least = std::min(least, at);
        if (at >= cutoff_ - search_.slack_) continue;
        if (first == 0) first = s;
        last = s;
      }
      if (first == 0) return drop(least);
      const double half = (weight_[j][first] + weight_[j][last]) / 2;
      size_t middle = first;
      while (middle < last && weight_[j][middle] < half) ++middle;
      open_.push({least, j, low, high, middle});
    }

    // Solves the split in the middle: the side of fewer rows first, the other only while it can still win.
    void split(const Interval& at) {
      const Bound known = bound(at.column, at.low, at.high, at.middle);
      double relaxed[2] = {known.left, known.right}, lower[2] = {known.left, known.right};
      if (known.sum() < cutoff_ - search_.slack_) solve(at, relaxed, lower);
      left_[at.column][at.middle] = relaxed[0];
      right_[at.column][at.middle] = relaxed[1];
      lower_ = std::min(lower_, lower[0] + lower[1]);
      relaxed_ = std::min(relaxed_, relaxed[0] + relaxed[1]);
      push(at.column, at.low, at.middle);
      push(at.column, at.middle, at.high);
    }

    void solve(const Interval& at, double (&relaxed)[2], double (&lower)[2]) {
      const Cut cut{static_cast<int32_t>(at.column), part_.is_code[at.column][at.middle - 1]};
      std::vector<uint32_t> rows[2] = {search_.rows_of(part_, cut, false), search_.rows_of(part_, cut, true)};
      const size_t first = rows[0].size() <= rows[1].size() ? 0 : 1;
      double upper = 0;
      Cuts cuts[2];
      for (const size_t side : {first, 1 - first}) {
        const double left_over = cutoff_ - lower[1 - side];
        if (lower[side] >= left_over - search_.slack_) return;
        Outcome outcome = search_.solve(search_.all_.of(std::move(rows[side])), depth_ - 1, left_over);
        relaxed[side] = std::max(relaxed[side], outcome.relaxed);
        lower[side] = std::max(lower[side], outcome.lower);
        upper += outcome.upper;
        cuts[side] = std::move(outcome.cuts);
      }
      if (upper < cutoff_ && !cuts[0].empty() && !cuts[1].empty()) take(cut, cuts, upper);
    }

    // The children's heaps become the lower levels of this one.
    void take(Cut cut, const Cuts (&cuts)[2], double upper) {
      best_.cuts[0] = cut;
      for (const size_t side : {size_t{0}, size_t{1}})
        for (size_t k = 0; k < cuts[side].size(); ++k) {
          const size_t level = std::bit_width(k + 1) - 1, before = (size_t{1} << level) - 1;
          best_.cuts[(size_t{2} << level) - 1 + (side << level) + (k - before)] = cuts[side][k];
        }
      best_.upper = cutoff_ = upper;
    }

    Search& search_;
    const Part& part_;
    size_t depth_;
    Outcome best_;
    double cutoff_, lower_, relaxed_;
    std::vector<std::vector<double>> left_, right_, weight_;
    std::priority_queue<Interval> open_;
  };

  const GridRows<S>& all_;
  const OptimalPlan& plan_;
  double slack_;
  Crew& crew_;
  Pairs<Loss> pairs_;
  uint64_t n_nodes_ = 0;
};

// Nodes of a heap of cuts, level by level.
class Emitter {
 public:
  Emitter(const std::vector<GridColumn>& columns, const Cuts& cuts) : columns_(columns), cuts_(cuts) {}

  std::vector<Node> nodes(size_t n_rows) {
    struct Open {
      size_t cut, node;
      std::vector<uint32_t> rows;
    };
    std::vector<Node> nodes(1);
    std::vector<uint32_t> all(n_rows);
    std::iota(all.begin(), all.end(), 0u);
    std::queue<Open> open;
    open.push({0, 0, std::move(all)});
    while (!open.empty()) {
      const Open at = std::move(open.front());
      open.pop();
      if (at.cut >= cuts_.size() || cuts_[at.cut].column < 0) continue;
      const Cut cut = cuts_[at.cut];
      const GridColumn& column = columns_[static_cast<size_t>(cut.column)];
      std::vector<uint32_t> sides[2];
      for (uint32_t row : at.rows) sides[column.codes[row] > cut.code].push_back(row);
      // Only missing values go left: the same split with its sides exchanged.
      const bool is_swapped = column.is_missing_low && cut.code == 0;
      const size_t left = nodes.size();
      set(nodes[at.node], column, cut, is_swapped, left, at.rows, sides[0].size() >= sides[1].size());
      nodes.resize(left + 2);
      for (const size_t place : {size_t{0}, size_t{1}}) {
        const size_t side = is_swapped ? 1 - place : place;
        open.push({2 * at.cut + 1 + side, left + place, std::move(sides[side])});
      }
    }
    return nodes;
  }

 private:
  void set(Node& node, const GridColumn& column, Cut cut, bool is_swapped, size_t left,
           const std::vector<uint32_t>& rows, bool is_left_larger) const {
    const size_t place = column.is_missing_low && !is_swapped ? cut.code - size_t{1} : cut.code;
    const bool is_known_alone = is_swapped || place >= column.edges.size();
    node.feature = static_cast<int32_t>(column.feature);
    node.left = static_cast<int32_t>(left);
    node.threshold = is_known_alone ? std::numeric_limits<double>::infinity() : column.edges[place];
    const size_t missing = column.is_missing_low ? 0 : column.edges.size() + 1;
    const bool has_missing =
        std::any_of(rows.begin(), rows.end(), [&](uint32_t i) { return column.codes[i] == missing; });
    node.is_missing_left = has_missing ? column.is_missing_low && !is_swapped : is_left_larger;
  }

  const std::vector<GridColumn>& columns_;
  const Cuts& cuts_;
};

// How far sums of n numbers may be off, as a share of the sum of their sizes, with room for their differences.
double share_of_rounding(size_t n) { return 4 * static_cast<double>(n + 1024) * 0x1p-53; }

template <class Loss>
BestTree searched(const GridRows<typename Loss::Sum>& all, const OptimalPlan& plan, double rounding, size_t n_rows,
                  Crew& crew) {
  Search<Loss> search(all, plan, rounding, crew);
  std::vector<uint32_t> rows(n_rows);
  std::iota(rows.begin(), rows.end(), 0u);
  const auto whole = all.of(std::move(rows));
  const Outcome outcome = search.solve(whole, plan.depth, std::numeric_limits<double>::infinity());
  BestTree best;
  best.lower = std::max(0.0, outcome.lower - rounding);
  best.upper = outcome.upper;
  best.rounding = rounding;
  best.n_nodes = search.n_nodes();
  best.is_closed = outcome.lower >= outcome.upper - std::ldexp(rounding, static_cast<int>(plan.depth));
  best.nodes = Emitter(all.columns, outcome.cuts).nodes(n_rows);
  for (const GridColumn& column : all.columns) best.n_thresholds += column.n_codes - 1;
  return best;
}

template <class S>
GridRows<S> grid_rows(const TreeRows& rows, const std::vector<GridColumn>& columns, size_t n_classes) {
  GridRows<S> all{columns, {}, std::vector<S>(rows.n_rows), {}, {}, n_classes, 0};
  for (size_t i = 0; i < rows.n_rows; ++i) all.weight[i] = static_cast<S>(rows.weight[i]);
  all.least_weight = *std::min_element(rows.weight.begin(), rows.weight.end());
  if (n_classes > 0)
    for (double code : rows.y) all.label.push_back(static_cast<uint32_t>(code));
  return all;
}

BestTree least_squares_tree(const TreeRows& rows, const std::vector<GridColumn>& columns, const OptimalPlan& plan,
                            double total, Crew& crew) {
  GridRows<double> all = grid_rows<double>(rows, columns, 0);
  double mean = 0, largest = 0, sizes = 0, squares = 0;
  for (size_t i = 0; i < rows.n_rows; ++i) mean += rows.weight[i] * rows.y[i] / total;
  for (size_t i = 0; i < rows.n_rows; ++i) {
    const double y = rows.y[i] - mean, moment = rows.weight[i] * y;
    all.moment.push_back(moment);
    all.square.push_back(moment * y);
    largest = std::max(largest, std::fabs(y));
    sizes += std::fabs(moment);
    squares += moment * y;
  }
  // A leaf's S^2 / N is off by less than 3 (a^2 dN + a dS) where dN < N / 4 and |S| <= a N; a tree has 2^depth leaves.
  const double share = share_of_rounding(rows.n_rows);
  const double of_leaf = 3 * share * (largest * largest * total + largest * sizes) + share * squares;
  return searched<Squares>(all, plan, std::ldexp(of_leaf, static_cast<int>(plan.depth)), rows.n_rows, crew);
}

}  // namespace

BestTree best_tree(const TreeRows& rows, const OptimalPlan& plan, Crew& crew) {
  const std::vector<GridColumn> columns = grid_of(rows, plan.n_thresholds, crew);
  double total = 0;
  bool is_whole = true;
  for (double w : rows.weight) {
    total += w;
    is_whole &= w == std::floor(w);
  }
  const double share = share_of_rounding(rows.n_rows);
  if (share * total > *std::min_element(rows.weight.begin(), rows.weight.end()) / 4) {
    BestTree none;
    none.is_in_range = false;
    return none;
  }
  if (plan.n_classes == 0) return least_squares_tree(rows, columns, plan, total, crew);
  if (is_whole && total < 0x1p26)
    return searched<Errors<int32_t>>(grid_rows<int32_t>(rows, columns, plan.n_classes), plan, 0, rows.n_rows, crew);
  const bool is_exact = is_whole && total < 0x1p52;
  const double rounding = is_exact ? 0 : std::ldexp(4 * share * total, static_cast<int>(plan.depth));
  return searched<Errors<double>>(grid_rows<double>(rows, columns, plan.n_classes), plan, rounding, rows.n_rows, crew);
}

}  // namespace certifit
