#include "stochastic.hpp"

#include <map>

#include "losses.hpp"
#include "single_rows.hpp"

namespace certifit {
namespace {

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
    double z = state_.intercept + row_product(reader_.at(row), weights_.data(), rows_.n_dense);
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
      double z = state.intercept + row_product(x, weights.data(), rows.n_dense);
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
    double sum = row_product(x, x, rows.n_dense);
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
