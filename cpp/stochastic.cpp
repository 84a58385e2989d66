#include "stochastic.hpp"

#include <map>

#include "losses.hpp"
#include "passes/entries.hpp"

namespace certifit {
namespace {

constexpr size_t most_fetched = 64;  // entries of a sparse row: of longer ones the processor foresees the rest
constexpr size_t ahead_rows = 6;     // rows asked for before their turn: their order is not one the processor foresees

double dot(const double* x, const double* w, size_t d) {
  Vec sum[2] = {};
  size_t j = 0;
  for (; j + 2 * lanes <= d; j += 2 * lanes) {
    sum[0] = multiply_add(load(x + j), load(w + j), sum[0]);
    sum[1] = multiply_add(load(x + j + lanes), load(w + j + lanes), sum[1]);
  }
  const Vec both = sum[0] + sum[1];
  double total = (both[0] + both[1]) + (both[2] + both[3]);
  for (; j < d; ++j) total = multiply_add(x[j], w[j], total);
  return total;
}

void add_multiple(double a, const double* x, double* w, size_t d) {
  size_t j = 0;
  for (; j + lanes <= d; j += lanes) store(w + j, multiply_add(broadcast(a), load(x + j), load(w + j)));
  for (; j < d; ++j) w[j] = multiply_add(a, x[j], w[j]);
}

// Dense columns of single rows, in any order.
class RowReader {
 public:
  RowReader(const Rows& rows, const Order& order) : rows_(rows), order_(order) {}

  const double* at(size_t row) { return read_tile(rows_, row, 1, scratch_).data; }

  void fetch(size_t k) const {
    if (!order_.rows || k + ahead_rows >= order_.count) return;
    if (is_one_csr(rows_)) fetch_entries(k);
    if (!rows_.is_plain) return;
    const Segment& s = rows_.dense[0];
    const auto* begin = static_cast<const char*>(s.values) +
                        static_cast<ptrdiff_t>(order_[k + ahead_rows] * sizeof(double)) * s.row_stride;
    for (size_t line = 0; line < s.n_columns * sizeof(double); line += 64) __builtin_prefetch(begin + line, 0, 2);
  }

 private:
  // The entries of the row that comes soon, and the place of those of the row after it; values of 8 bytes at most.
  void fetch_entries(size_t k) const {
    const Segment& s = rows_.thin[0];
    const size_t index_size = s.wide_index ? 8 : 4, value_size = s.dtype == Dtype::f64 ? 8 : 4;
    if (k + 2 * ahead_rows < order_.count)
      __builtin_prefetch(static_cast<const char*>(s.offsets) + order_[k + 2 * ahead_rows] * index_size, 0, 2);
    const auto [begin, end] = s.entries(order_[k + ahead_rows]);
    const auto first = static_cast<size_t>(begin), last = std::min<size_t>(end, first + most_fetched);
    const char *indices = static_cast<const char*>(s.indices), *values = static_cast<const char*>(s.values);
    for (size_t at = first * index_size; at < last * index_size; at += 64) __builtin_prefetch(indices + at, 0, 2);
    for (size_t at = first * value_size; at < last * value_size; at += 64) __builtin_prefetch(values + at, 0, 2);
  }

  const Rows& rows_;
  const Order& order_;
  std::vector<double> scratch_;
};

// Weights of columns stored thinly: a step touches only those of the row. Columns of one strength shrink together,
// w_j = scale_k v_j. The sum of all states so far is sums_j + total_k v_j - late_j: `late` is what v_j gained after the
// states that `total` counts.
class ThinWeights {
 public:
  ThinWeights(const Rows& rows, const double* strengths, Learned& state)
      : state_(state), is_averaged_(!state.sums.empty()), group_of_(rows.n_columns, 0) {
    std::map<double, uint32_t> found;
    for (const Segment& s : rows.thin)
      for (size_t j = s.first_column; j < s.first_column + s.n_columns; ++j) {
        const auto [place, is_new] = found.try_emplace(strengths[j], static_cast<uint32_t>(found.size()));
        if (is_new) groups_.push_back({strengths[j]});
        group_of_[j] = place->second;
        columns_.push_back(j);
      }
    if (is_averaged_ && !columns_.empty()) late_.assign(rows.n_columns, 0.0);
  }

  double at(size_t j) const { return groups_[group_of_[j]].scale * state_.weights[j]; }

  void shrink(double step) {
    bool is_extreme = false;
    for (Group& group : groups_) {
      if (group.strength == 0) continue;
      group.scale *= 1 - step * group.strength;
      const double size = std::fabs(group.scale);
      is_extreme = is_extreme || !(size > 0x1p-16 && size < 0x1p16);
    }
    if (is_extreme) settle();
  }

  void add(size_t j, double amount) {
    const Group& group = groups_[group_of_[j]];
    const double change = amount / group.scale;
    state_.weights[j] += change;
    if (is_averaged_) late_[j] = multiply_add(group.total, change, late_[j]);
  }

  void count_state() {
    for (Group& group : groups_) group.total += group.scale;
  }

  void settle() {
    for (const size_t j : columns_) {
      const Group& group = groups_[group_of_[j]];
      if (is_averaged_) {
        state_.sums[j] += multiply_add(group.total, state_.weights[j], -late_[j]);
        late_[j] = 0;
      }
      state_.weights[j] *= group.scale;
    }
    for (Group& group : groups_) group.scale = 1, group.total = 0;
  }

 private:
  struct Group {
    double strength;
    double scale = 1, total = 0;
  };
  Learned& state_;
  bool is_averaged_;
  std::vector<uint32_t> group_of_;
  std::vector<size_t> columns_;
  std::vector<Group> groups_;
  std::vector<double> late_;
};

template <class LossOf>
class Learner {
 public:
  Learner(const Rows& rows, const StochasticTask& task, const Order& order, Learned& state, LossOf loss)
      : rows_(rows),
        task_(task),
        order_(order),
        state_(state),
        loss_(loss),
        reader_(rows, order),
        thin_(rows, task.strengths, state),
        weights_(of_dense(rows, state.weights.data())),
        strengths_(of_dense(rows, task.strengths)),
        sums_(rows.n_dense, 0.0),
        slopes_(std::min(task.batch_rows, order.count)) {
    for (const double strength : strengths_) is_shrunk_ = is_shrunk_ || strength != 0;
  }

  // False where a score is not finite: no step is taken then.
  bool step(size_t begin, size_t end) {
    if (!evaluate(begin, end)) return false;
    const double size = task_.schedule.at(state_.n_steps), share = -size / static_cast<double>(end - begin);
    if (is_shrunk_)
      for (size_t j = 0; j < rows_.n_dense; ++j) weights_[j] *= 1 - size * strengths_[j];
    thin_.shrink(size);
    for (size_t k = begin; k < end; ++k) {
      const double amount = share * slopes_[k - begin];
      add_multiple(amount, reader_.at(order_[k]), weights_.data(), rows_.n_dense);
      if (!rows_.thin.empty())
        rows_.for_each_entry(order_[k], [&](size_t j, double value) { thin_.add(j, amount * value); });
      if (task_.fit_intercept) state_.intercept += amount;
    }
    ++state_.n_steps;
    if (state_.sums.empty()) return true;
    for (size_t j = 0; j < rows_.n_dense; ++j) sums_[j] += weights_[j];
    state_.sum_intercept += state_.intercept;
    thin_.count_state();
    return true;
  }

  void finish() {
    thin_.settle();
    for (size_t j = 0; j < rows_.n_dense; ++j) {
      state_.weights[rows_.dense_columns[j]] = weights_[j];
      if (!state_.sums.empty()) state_.sums[rows_.dense_columns[j]] += sums_[j];
    }
  }

 private:
  bool evaluate(size_t begin, size_t end) {
    bool is_finite = true;
    for (size_t first = begin; first < end; first += lanes) {
      double z[lanes], y[lanes], slope[lanes];
      for (size_t k = 0; k < lanes; ++k) {
        const bool is_there = first + k < end;  // the row before stands in for one that is missing
        y[k] = is_there ? task_.y[order_[first + k]] : y[k - 1];
        z[k] = is_there ? score(first + k) : z[k - 1];
        is_finite = is_finite && std::isfinite(z[k]);
      }
      store(slope, loss_(load(y), load(z)).slope);
      for (size_t k = 0; k < lanes && first + k < end; ++k) {
        slopes_[first + k - begin] = slope[k];
        is_finite = is_finite && std::isfinite(slope[k]);
      }
    }
    return is_finite;
  }

  double score(size_t k) {
    reader_.fetch(k);
    const size_t row = order_[k];
    double z = state_.intercept + dot(reader_.at(row), weights_.data(), rows_.n_dense);
    if (task_.offset) z += task_.offset[row];
    if (!rows_.thin.empty())
      rows_.for_each_entry(row, [&](size_t j, double value) { z = multiply_add(value, thin_.at(j), z); });
    return z;
  }

  const Rows& rows_;
  const StochasticTask& task_;
  const Order& order_;
  Learned& state_;
  LossOf loss_;
  RowReader reader_;
  ThinWeights thin_;
  std::vector<double> weights_, strengths_, sums_, slopes_;
  bool is_shrunk_ = false;
};

}  // namespace

void stochastic_pass(const Rows& rows, const StochasticTask& task, const Order& order, Learned& state, Crew& crew) {
  with_loss(task.loss, task.parameter, [&](auto loss) {
    crew.for_each_block(1, [&](size_t) {
      Learner learner(rows, task, order, state, loss);
      for (size_t begin = 0; begin < order.count && state.is_finite; begin += task.batch_rows) {
        if (!crew.keep_going()) return;
        state.is_finite = learner.step(begin, std::min(begin + task.batch_rows, order.count));
      }
      learner.finish();
    });
  });
}

Mistakes perceptron_pass(const Rows& rows, const double* y, const Order& order, double threshold, double step,
                         bool fit_intercept, Learned& state, Crew& crew) {
  Mistakes mistakes;
  crew.for_each_block(1, [&](size_t) {
    RowReader reader(rows, order);
    std::vector<double> weights = of_dense(rows, state.weights.data());
    for (size_t k = 0; k < order.count; ++k) {
      if (k % 256 == 0 && !crew.keep_going()) return;
      reader.fetch(k);
      const size_t row = order[k];
      const double* x = reader.at(row);
      double z = state.intercept + dot(x, weights.data(), rows.n_dense);
      if (!rows.thin.empty())
        rows.for_each_entry(row, [&](size_t j, double value) { z = multiply_add(value, state.weights[j], z); });
      if (y[row] * z > threshold) continue;
      mistakes.is_finite = std::isfinite(z);
      if (!mistakes.is_finite) break;
      const double amount = step * y[row];
      add_multiple(amount, x, weights.data(), rows.n_dense);
      if (!rows.thin.empty())
        rows.for_each_entry(
            row, [&](size_t j, double value) { state.weights[j] = multiply_add(amount, value, state.weights[j]); });
      if (fit_intercept) state.intercept += amount;
      ++mistakes.count;
    }
    for (size_t j = 0; j < rows.n_dense; ++j) state.weights[rows.dense_columns[j]] = weights[j];
  });
  return mistakes;
}

namespace {

// Weights of single rows: those of dense columns side by side, the others in place.
class RowWeights {
 public:
  RowWeights(const Rows& rows, std::vector<double>& all) : rows_(rows), all_(all), dense_(of_dense(rows, all.data())) {}

  double times(size_t row, const double* x) const {
    double z = dot(x, dense_.data(), rows_.n_dense);
    if (is_one_csr(rows_)) return z + times_csr(row);
    if (!rows_.thin.empty())
      for_each_entry(rows_, row, [&](size_t j, double value) { z = multiply_add(value, all_[j], z); });
    return z;
  }

  void add(size_t row, const double* x, double amount) {
    add_multiple(amount, x, dense_.data(), rows_.n_dense);
    if (!rows_.thin.empty())
      for_each_entry(rows_, row, [&](size_t j, double value) { all_[j] = multiply_add(amount, value, all_[j]); });
  }

  void finish() {
    for (size_t j = 0; j < rows_.n_dense; ++j) all_[rows_.dense_columns[j]] = dense_[j];
  }

 private:
  // Four sums side by side: one would wait for every multiply-add before the next.
  double times_csr(size_t row) const {
    const Segment& s = rows_.thin[0];
    double sums[4] = {};
    with_csr(s, [&](const auto* indices, const auto* values) {
      const auto [begin, end] = s.entries(row);
      s.check_columns(indices + begin, static_cast<size_t>(end - begin));
      const double* w = all_.data() + s.first_column;
      int64_t e = begin;
      for (; e + 4 <= end; e += 4)
        for (size_t k = 0; k < 4; ++k) sums[k] = multiply_add(double(values[e + k]), w[indices[e + k]], sums[k]);
      for (; e < end; ++e) sums[0] = multiply_add(double(values[e]), w[indices[e]], sums[0]);
    });
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  const Rows& rows_;
  std::vector<double>& all_;
  std::vector<double> dense_;
};

}  // namespace

DualPass dual_pass(const Rows& rows, const DualTask& task, const Order& order, std::vector<double>& a, Learned& state,
                   Crew& crew) {
  DualPass pass;
  crew.for_each_block(1, [&](size_t) {
    RowReader reader(rows, order);
    RowWeights weights(rows, state.weights);
    for (size_t k = 0; k < order.count; ++k) {
      if (k % 256 == 0 && !crew.keep_going()) return;
      reader.fetch(k);
      if (k + ahead_rows < order.count) task.fetch(order[k + ahead_rows], a.data());
      const size_t row = order[k];
      const double* x = reader.at(row);
      const double y = task.y[row], bound = task.bound[row], last = a[row];
      const double slope = y * (state.intercept + weights.times(row, x)) - 1 + task.diagonal[row] * last;
      const double curve = task.squares[row] + task.ridge + task.diagonal[row];
      const bool rests = (last <= 0 && slope > task.above) || (last >= bound && slope < -task.below);
      if (!rests) pass.open.push_back(static_cast<int64_t>(row));
      if ((slope >= 0 && last <= 0) || (slope <= 0 && last >= bound) || !std::isfinite(slope)) continue;
      pass.above = std::max(pass.above, slope);
      pass.below = std::max(pass.below, -slope);
      const double best = curve > 0 ? last - slope / curve : slope < 0 ? bound : 0.0;
      const double next = std::min(std::max(best, 0.0), bound), amount = y * (next - last);
      if (amount == 0 || !std::isfinite(amount)) continue;
      a[row] = next;
      weights.add(row, x, amount);
      state.intercept += task.ridge * amount;
    }
    weights.finish();
  });
  return pass;
}

void margin_steps(const Rows& rows, const double* y, const Order& order, const double* factor, const double* late,
                  Learned& state, Crew& crew) {
  crew.for_each_block(1, [&](size_t) {
    RowReader reader(rows, order);
    RowWeights weights(rows, state.weights), sums(rows, state.sums);
    for (size_t k = 0; k < order.count; ++k) {
      if (k % 256 == 0 && !crew.keep_going()) return;
      reader.fetch(k);
      const size_t row = order[k];
      const double* x = reader.at(row);
      if (!(y[row] * weights.times(row, x) * factor[k] < 1)) continue;
      weights.add(row, x, y[row]);
      sums.add(row, x, late[k] * y[row]);
    }
    weights.finish();
    sums.finish();
  });
}

namespace {

constexpr size_t chunk_rows = 1024, chunk_numbers = 1 << 15;  // converted at a time: they stay near the processor

// use(row, its dense columns) for all rows, on all threads.
template <class Use>
void for_each_row(const Rows& rows, Crew& crew, Use use) {
  const size_t most = std::clamp<size_t>(chunk_numbers / std::max<size_t>(rows.n_dense, 1), 1, chunk_rows);
  crew.for_each_block((rows.n_rows + chunk_rows - 1) / chunk_rows, [&](size_t block) {
    std::vector<double> scratch;
    const size_t end = std::min(rows.n_rows, (block + 1) * chunk_rows);
    for (size_t begin = block * chunk_rows; begin < end; begin += most) {
      const size_t count = std::min(most, end - begin);
      const Tile tile = read_tile(rows, begin, count, scratch);
      for (size_t k = 0; k < count; ++k) use(begin + k, tile.row(k));
    }
  });
}

// The finaliser of SplitMix64, which spreads every bit over all.
uint64_t mixed(uint64_t h) {
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

uint64_t hashed(uint64_t salt, double value) {
  if (value == 0) return 0;  // a zero that is stored, or negative, is none
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return mixed(bits + salt);
}

}  // namespace

std::vector<double> row_squares(const Rows& rows, Crew& crew) {
  std::vector<double> out(rows.n_rows);
  for_each_row(rows, crew, [&](size_t row, const double* x) {
    double sum = dot(x, x, rows.n_dense);
    rows.for_each_entry(row, [&](size_t, double value) { sum = multiply_add(value, value, sum); });
    out[row] = sum;
  });
  return out;
}

std::vector<uint64_t> row_hashes(const Rows& rows, std::span<const double* const> beside, Crew& crew) {
  std::vector<uint64_t> out(rows.n_rows), salts(rows.n_columns + beside.size());
  for (size_t j = 0; j < salts.size(); ++j) salts[j] = mixed(j + 0x9e3779b97f4a7c15ULL);
  for_each_row(rows, crew, [&](size_t row, const double* x) {
    uint64_t sum = 0;  // of the entries, so that their storage does not matter
    for (size_t j = 0; j < rows.n_dense; ++j) sum += hashed(salts[rows.dense_columns[j]], x[j]);
    rows.for_each_entry(row, [&](size_t j, double value) { sum += hashed(salts[j], value); });
    for (size_t k = 0; k < beside.size(); ++k)
      if (beside[k]) sum += hashed(salts[rows.n_columns + k], beside[k][row]);
    out[row] = mixed(sum);
  });
  return out;
}

}  // namespace certifit
