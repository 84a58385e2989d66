// Rounds of boosting: the stump of the least error, then more weight for the rows that it calls wrong.
#include "boost.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "stump_search.hpp"

namespace certifit {
namespace {

constexpr size_t block_rows = 8192, n_sums = 8;

// Where the rows of every class end, when those of the first stand before those of the second.
std::vector<size_t> ends_of(const std::vector<double>& y, size_t n_classes) {
  std::vector<size_t> ends(n_classes, 0);
  for (double label : y) ++ends[static_cast<size_t>(label)];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  return ends;
}

// Rows in the order of their classes: what is summed by class is summed by stretches of rows.
TreeRows by_class(TreeRows rows, std::vector<size_t> ends, Crew& crew) {
  std::vector<uint32_t> order(rows.n_rows);
  for (size_t i = rows.n_rows; i-- > 0;) order[--ends[static_cast<size_t>(rows.y[i])]] = static_cast<uint32_t>(i);
  const auto arrange = [&](double* values) {
    std::vector<double> arranged(rows.n_rows);
    for (size_t i = 0; i < rows.n_rows; ++i) arranged[i] = values[order[i]];
    std::copy(arranged.begin(), arranged.end(), values);
  };
  crew.for_each_block(rows.n_columns, [&](size_t j) { arrange(rows.columns.data() + j * rows.n_rows); });
  arrange(rows.y.data());
  arrange(rows.weight.data());
  return rows;
}

// Rows of one class, for one thread.
struct Stretch {
  size_t label, begin, end;
};

class Booster {
 public:
  Booster(TreeRows&& rows, size_t n_classes, Crew& crew)
      : ends_(ends_of(rows.y, n_classes)),
        rows_(by_class(std::move(rows), ends_, crew)),
        crew_(crew),
        search_(rows_, ends_, crew),
        weight_(rows_.weight),
        own_(rows_.n_rows, 0.0),
        most_other_(rows_.n_rows, 0.0),
        scores_(n_classes > 2 ? rows_.n_rows * n_classes : 0, 0.0) {
    for (size_t label = 0, begin = 0; label < n_classes; begin = ends_[label++])
      for (; begin < ends_[label]; begin += block_rows)
        stretches_.push_back({label, begin, std::min(begin + block_rows, ends_[label])});
    const double total = std::accumulate(weight_.begin(), weight_.end(), 0.0);
    for (double& w : weight_) w /= total;
    first_ = weight_;
  }

  Stump best() {
    const StumpSearch::Place place = search_.best(weight_.data());
    Stump stump;
    stump.feature = place.feature;
    stump.threshold = search_.threshold(place);
    call_sides(stump);
    return stump;
  }

  // The stump votes, and rows that it calls wrong weigh e^alpha times as much; all weigh 1 together.
  void learn(Stump& stump) {
    const double shrunk = std::exp(-stump.alpha), sum = stump.error + (1 - stump.error) * shrunk;
    std::vector<double> lost(stretches_.size());
    crew_.for_each_block(stretches_.size(), [&](size_t k) {
      vote(stump, stretches_[k], shrunk, sum > 0 ? sum : 1.0);
      lost[k] = lost_of(stretches_[k]);
    });
    stump.training_error = std::accumulate(lost.begin(), lost.end(), 0.0);
  }

 private:
  // The heaviest class of either side, and the weight of all others.
  void call_sides(Stump& stump) {
    std::vector<std::array<double, 2>> sums(stretches_.size());
    crew_.for_each_block(stretches_.size(), [&](size_t k) { sums[k] = sides_of(stump, stretches_[k]); });
    std::vector<double> left(ends_.size(), 0.0), right = left;
    for (size_t k = 0; k < sums.size(); ++k) {
      left[stretches_[k].label] += sums[k][0];
      right[stretches_[k].label] += sums[k][1];
    }
    stump.left = std::max_element(left.begin(), left.end()) - left.begin();
    const bool is_constant = stump.threshold == std::numeric_limits<double>::infinity();
    stump.right = is_constant ? stump.left : std::max_element(right.begin(), right.end()) - right.begin();
    for (size_t label = 0; label < left.size(); ++label) {
      if (label != stump.left) stump.error += left[label];
      if (label != stump.right) stump.error += right[label];
    }
  }

  // Weights on the left and on the right, in several sums that do not wait for each other.
  std::array<double, 2> sides_of(const Stump& stump, const Stretch& stretch) const {
    const double *x = rows_.column(stump.feature) + stretch.begin, *w = weight_.data() + stretch.begin;
    double left[n_sums] = {}, right[n_sums] = {};
    const size_t n = stretch.end - stretch.begin;
    const auto add = [&](size_t i, size_t lane) {
      const double is_left = x[i] <= stump.threshold ? 1.0 : 0.0;
      left[lane] += is_left * w[i];
      right[lane] += (1 - is_left) * w[i];
    };
    size_t i = 0;
    for (; i + n_sums <= n; i += n_sums)
      for (size_t lane = 0; lane < n_sums; ++lane) add(i + lane, lane);
    for (; i < n; ++i) add(i, i % n_sums);
    return {std::accumulate(left, left + n_sums, 0.0), std::accumulate(right, right + n_sums, 0.0)};
  }

  void vote(const Stump& stump, const Stretch& stretch, double shrunk, double sum) {
    const bool left_is_wrong = stump.left != stretch.label, right_is_wrong = stump.right != stretch.label;
    const double *x = rows_.column(stump.feature), threshold = stump.threshold, alpha = stump.alpha;
    const double left_share = left_is_wrong ? 1.0 : shrunk, right_share = right_is_wrong ? 1.0 : shrunk;
    const double left_own = left_is_wrong ? 0.0 : alpha, right_own = right_is_wrong ? 0.0 : alpha;
    for (size_t i = stretch.begin; i < stretch.end; ++i) {
      weight_[i] = weight_[i] * (x[i] <= threshold ? left_share : right_share) / sum;
      own_[i] += x[i] <= threshold ? left_own : right_own;
    }
    if (ends_.size() == 2) {
      for (size_t i = stretch.begin; i < stretch.end; ++i)
        most_other_[i] += x[i] <= threshold ? alpha - left_own : alpha - right_own;
      return;
    }
    for (size_t i = stretch.begin; i < stretch.end; ++i) {
      const size_t called = x[i] <= threshold ? stump.left : stump.right;
      if (called == stretch.label) continue;
      double& score = scores_[i * ends_.size() + called];
      score += alpha;  // scores do not fall: the largest is this one, or what it was
      most_other_[i] = std::max(most_other_[i], score);
    }
  }

  double lost_of(const Stretch& stretch) const {
    double lost = 0;
    for (size_t i = stretch.begin; i < stretch.end; ++i) lost += first_[i] * (own_[i] > most_other_[i] ? 0.0 : 1.0);
    return lost;
  }

  const std::vector<size_t> ends_;  // behind the last row of every class
  const TreeRows rows_;
  Crew& crew_;
  StumpSearch search_;
  std::vector<Stretch> stretches_;
  std::vector<double> weight_, first_;
  std::vector<double> own_, most_other_;  // the vote for the row's class, and the largest for another
  std::vector<double> scores_;            // of more than two classes: rows x classes, but for the row's own
};

}  // namespace

std::vector<Stump> boost_stumps(TreeRows&& rows, size_t n_classes, size_t n_rounds, double rate, Crew& crew,
                                const std::function<bool(const Stump&)>& tell) {
  Booster booster(std::move(rows), n_classes, crew);
  const double classes = static_cast<double>(n_classes), chance = 1 - 1 / classes;
  std::vector<Stump> stumps;
  while (stumps.size() < n_rounds) {
    Stump stump = booster.best();
    const bool is_perfect = stump.error <= 0, is_chance = stump.error >= chance * (1 - stump_tie);
    if (is_perfect || is_chance) {
      stump.alpha = is_perfect ? rate : 0.0;
      if (!stumps.empty()) break;
      booster.learn(stump);
      stumps.push_back(stump);
      break;
    }
    const double odds = (1 - stump.error) / stump.error;  // infinite where the error is below 1 / the largest number
    stump.alpha = rate * ((std::isinf(odds) ? -std::log(stump.error) : std::log(odds)) + std::log(classes - 1));
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
