#include "dual_descent.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "philox.hpp"
#include "single_rows.hpp"

namespace certifit {
namespace {

// A function that only prefetches is inlined by force: GCC takes a call of it for one without effect and drops it.
constexpr double longer = 1.4;    // than the step to the best value: rows that pull together need fewer passes
constexpr size_t mean_share = 8;  // visits per column that a state in the mean must have cost
constexpr size_t polled_rows = 256;

// Rows of any storage.
class AnyRows {
 public:
  AnyRows(const Rows& rows, std::vector<double>& weights) : rows_(rows), weights_(rows, weights) {}

  Segment::Range place(size_t row) const {
    const auto number = static_cast<int64_t>(row);
    return {number, number + 1};
  }
  double times(Segment::Range at) {
    x_ = read_tile(rows_, static_cast<size_t>(at.begin), 1, scratch_).data;
    return weights_.times(static_cast<size_t>(at.begin), x_);
  }
  // Of the row that was multiplied last.
  void add(Segment::Range at, double amount) { weights_.add(static_cast<size_t>(at.begin), x_, amount); }
  void finish() { weights_.finish(); }
  [[gnu::always_inline]] void fetch(Segment::Range at) const {
    if (!rows_.is_plain) return;
    const Segment& s = rows_.dense[0];
    const double* x = static_cast<const double*>(s.values) + at.begin * s.row_stride;
    for (size_t j = 0; j < s.n_columns; j += 8) __builtin_prefetch(x + j, 0, 2);
  }

 private:
  const Rows& rows_;
  RowWeights weights_;
  std::vector<double> scratch_;
  const double* x_ = nullptr;
};

// Rows of one CSR segment, its types settled once.
template <class Index, class Value>
class CsrRows {
 public:
  CsrRows(const Segment& segment, const Index* indices, const Value* values, std::vector<double>& weights)
      : segment_(segment), indices_(indices), values_(values), weights_(weights.data() + segment.first_column) {}

  // The entries of a row, checked.
  Segment::Range place(size_t row) const {
    const Segment::Range at = segment_.entries(row);
    segment_.check_columns(indices_ + at.begin, static_cast<size_t>(at.end - at.begin));
    return at;
  }
  // Four sums side by side: one would wait for every multiply-add before the next.
  double times(Segment::Range at) const {
    double sums[4] = {};
    int64_t e = at.begin;
    for (; e + 4 <= at.end; e += 4)
      for (size_t k = 0; k < 4; ++k) sums[k] = multiply_add(double(values_[e + k]), weights_[indices_[e + k]], sums[k]);
    for (; e < at.end; ++e) sums[0] = multiply_add(double(values_[e]), weights_[indices_[e]], sums[0]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  void add(Segment::Range at, double amount) {
    for (int64_t e = at.begin; e < at.end; ++e) {
      double& weight = weights_[indices_[e]];
      weight = multiply_add(amount, double(values_[e]), weight);
    }
  }
  void finish() {}
  [[gnu::always_inline]] void fetch(Segment::Range at) const {
    const int64_t end = std::min(at.end, at.begin + most_fetched);
    for (int64_t e = at.begin; e < end; e += 64 / sizeof(Index)) __builtin_prefetch(indices_ + e, 0, 2);
    for (int64_t e = at.begin; e < end; e += 64 / sizeof(Value)) __builtin_prefetch(values_ + e, 0, 2);
  }

 private:
  static constexpr int64_t most_fetched = 64;  // of longer rows the processor foresees the rest
  const Segment& segment_;
  const Index* indices_;
  const Value* values_;
  double* weights_;
};

template <class Columns>
class Descent {
 public:
  Descent(size_t n_rows, const DualTask& task, uint64_t seed, DualState& state, Columns& columns)
      : state_(state), columns_(columns), ridge_(task.ridge), random_(seed, 0), rows_(n_rows) {
    for (size_t i = 0; i < n_rows; ++i) {
      const double curve = task.squares[i] + task.ridge + task.diagonal[i];
      rows_[i] = {task.y[i], task.bound[i], task.diagonal[i], curve, state.a[i], columns.place(i), state.wait[i]};
      turns_[state.due[i]].push_back(static_cast<uint32_t>(i));
      total_ += task.y[i] * state.a[i];
    }
  }

  void pass(DualRound& round, Crew& crew) {
    std::vector<uint32_t>& turn = turns_[now_];
    const size_t n = turn.size();
    for (size_t k = n; k > 1; --k) std::swap(turn[k - 1], turn[random_.below(static_cast<uint32_t>(k))]);
    for (size_t k = 0; k < n; ++k) {
      if (k % polled_rows == 0 && !crew.keep_going()) throw Interrupted();
      if (k + 2 * ahead_rows < n) __builtin_prefetch(&rows_[turn[k + 2 * ahead_rows]], 1, 2);
      if (k + ahead_rows < n) columns_.fetch(rows_[turn[k + ahead_rows]].at);
      Row& row = rows_[turn[k]];
      const double violation = step(row);
      round.worst = std::max(round.worst, violation);
      const size_t until = violation > 0 ? 1 : row.wait;
      row.wait = violation > 0 ? 1 : std::min<size_t>(2 * until, longest_wait);
      turns_[(now_ + until) % turns_.size()].push_back(turn[k]);
    }
    round.n_visits += n;
    turn.clear();
    now_ = (now_ + 1) % turns_.size();
    state_.intercept += ridge_ * total_;  // the centre follows the intercept
  }

  void add_to(std::vector<double>& sum) {
    columns_.finish();
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += state_.weights[j];
  }

  void finish() {
    columns_.finish();
    for (size_t k = 0; k < turns_.size(); ++k)
      for (const uint32_t row : turns_[(now_ + k) % turns_.size()]) state_.due[row] = static_cast<uint8_t>(k);
    for (size_t i = 0; i < rows_.size(); ++i) {
      state_.a[i] = rows_[i].a;
      state_.wait[i] = static_cast<uint8_t>(rows_[i].wait);
    }
  }

 private:
  struct alignas(64) Row {  // what a step needs of it, in one line of the cache
    double y, bound, diagonal, curve, a;
    Segment::Range at;
    size_t wait;
  };

  // How far the slope of the row is off the conditions; 0 where it rests.
  double step(Row& row) {
    const double slope = row.y * (state_.intercept + columns_.times(row.at)) - 1 + row.diagonal * row.a;
    if ((slope >= 0 && row.a <= 0) || (slope <= 0 && row.a >= row.bound) || !std::isfinite(slope)) return 0;
    const double best = row.curve > 0 ? row.a - longer * slope / row.curve : slope < 0 ? row.bound : 0.0;
    const double next = std::min(std::max(best, 0.0), row.bound), amount = row.y * (next - row.a);
    if (amount == 0 || !std::isfinite(amount)) return 0;
    row.a = next;
    columns_.add(row.at, amount);
    total_ += amount;
    state_.intercept += ridge_ * amount;
    return std::fabs(slope);
  }

  DualState& state_;
  Columns& columns_;
  double ridge_;
  Philox random_;
  std::vector<Row> rows_;
  std::array<std::vector<uint32_t>, longest_wait + 1> turns_;  // rows by the pass of their next turn, round and round
  size_t now_ = 0;
  double total_ = 0;  // sum_i y_i a_i
};

template <class Columns>
DualRound descend(const Rows& rows, const DualTask& task, size_t n_visits, uint64_t seed, DualState& state,
                  Columns columns, Crew& crew) {
  DualRound round;
  round.mean.assign(rows.n_columns, 0.0);
  Descent<Columns> descent(rows.n_rows, task, seed, state, columns);
  size_t n_added = 0, last = 0;
  while (round.n_visits < n_visits && rows.n_rows > 0) {
    if (!crew.keep_going()) throw Interrupted();
    descent.pass(round, crew);
    if (mean_share * (round.n_visits - last) < rows.n_columns && round.n_visits < n_visits) continue;
    descent.add_to(round.mean);
    ++n_added;
    last = round.n_visits;
  }
  for (double& weight : round.mean) weight /= static_cast<double>(std::max<size_t>(n_added, 1));
  descent.finish();
  return round;
}

}  // namespace

DualRound dual_descent(const Rows& rows, const DualTask& task, size_t n_visits, uint64_t seed, DualState& state,
                       Crew& crew) {
  DualRound round;
  if (!is_one_csr(rows) || rows.n_dense > 0)
    return descend(rows, task, n_visits, seed, state, AnyRows(rows, state.weights), crew);
  const Segment& s = rows.thin[0];
  with_csr(s, [&](const auto* indices, const auto* values) {
    CsrRows columns(s, indices, values, state.weights);
    round = descend(rows, task, n_visits, seed, state, std::move(columns), crew);
  });
  return round;
}

}  // namespace certifit
