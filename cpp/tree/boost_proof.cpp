#include "boost_proof.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "../simd.hpp"
#include "../sorted.hpp"

namespace certifit {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

size_t padded(size_t n) { return (n + lanes - 1) / lanes * lanes; }

// Some columns of some rows, column after column; behind each come missing values up to a multiple of four.
class ColumnTile {
 public:
  ColumnTile(const Rows& rows, std::vector<size_t> columns) : rows_(rows), whole_(rows), columns_(std::move(columns)) {}

  void read(size_t first, size_t count) {
    const Tile tile = read_tile(rows_, first, count, scratch_);
    stride_ = padded(count);
    values_.assign(columns_.size() * stride_, std::numeric_limits<double>::quiet_NaN());
    for (size_t k = 0; k < count; ++k) {
      const double* row = whole_.row(tile, k, first + k);
      for (size_t c = 0; c < columns_.size(); ++c) values_[c * stride_ + k] = row[columns_[c]];
    }
  }
  const double* column(size_t c) const { return values_.data() + c * stride_; }

 private:
  const Rows& rows_;
  WholeRows whole_;
  std::vector<size_t> columns_;
  size_t stride_ = 0;
  std::vector<double> values_, scratch_;
};

// What is added over rows, of one round.
struct RoundSums {
  double wrong = 0, total = 0, lost = 0, drawn = 0, below = -infinity, above = infinity;
};

struct AllRounds {
  std::vector<RoundSums> rounds;
  void add(const AllRounds& other) {
    for (size_t j = 0; j < rounds.size(); ++j) {
      RoundSums& to = rounds[j];
      const RoundSums& from = other.rounds[j];
      to.wrong += from.wrong;
      to.total += from.total;
      to.lost += from.lost;
      to.drawn += from.drawn;
      to.below = std::max(to.below, from.below);
      to.above = std::min(to.above, from.above);
    }
  }
};

double sum_of(Vec v) { return v[0] + v[1] + (v[2] + v[3]); }

// Some rows on their way through all rounds. Behind them come rows of weight 0 up to a multiple of four.
class Part {
 public:
  Part(const double* y, const double* weight, size_t n, size_t n_classes) : n_(n), n_classes_(n_classes) {
    for (auto* of_rows : {&y_, &first_, &own_, &other_, &is_wrong_, &sum_, &since_}) of_rows->resize(padded(n));
    std::copy_n(y, n, y_.data());
    if (weight)
      std::copy_n(weight, n, first_.data());
    else
      std::fill_n(first_.data(), n, 1.0);
    weight_ = first_;
    if (n_classes > 2) votes_.resize(n * n_classes);
  }

  RoundSums play(const Stump& stump, const double* x, double near, bool is_new_stretch) {
    RoundSums sums;
    weigh(stump, x, is_new_stretch, sums);
    vote(stump, x);
    Vec lost{}, drawn{};
    for (size_t i = 0; i < own_.size(); i += lanes) {
      const Vec lead = load(&own_[i]) - load(&other_[i]), first = load(&first_[i]);
      lost += lead < -near ? first : Vec{};
      drawn += absolute(lead) <= near ? first : Vec{};
    }
    sums.lost = sum_of(lost);
    sums.drawn = sum_of(drawn);
    return sums;
  }

  void keep_weights(double* out) const { std::copy_n(weight_.data(), n_, out); }
  void keep(size_t begin, Replay& replay) const {
    std::copy_n(sum_.data(), n_, replay.sum.data() + begin);
    std::copy_n(since_.data(), n_, replay.since.data() + begin);
    keep_weights(replay.last.data() + begin);
    for (size_t i = 0; i < n_; ++i) replay.leads[begin + i] = own_[i] - other_[i];
  }

 private:
  // Adds weights up. Then rows that are called wrong weigh e^alpha times as much; with the error that is stated all
  // weigh together what they did.
  void weigh(const Stump& stump, const double* x, bool is_new_stretch, RoundSums& sums) {
    const double shrunk = std::exp(-stump.alpha), all = stump.error + (1 - stump.error) * shrunk;
    const double scale = all > 1e-300 ? 1 / all : 1.0;
    const Vec of_wrong = broadcast(scale), of_right = broadcast(scale * shrunk), one = broadcast(1.0);
    const Vec left = broadcast(static_cast<double>(stump.left)), right = broadcast(static_cast<double>(stump.right));
    const Vec most = broadcast(infinity), kept = broadcast(is_new_stretch ? 0.0 : 1.0);
    Vec wrong{}, total{}, below = -most, above = most;
    for (size_t i = 0; i < weight_.size(); i += lanes) {
      const Vec value = load(x + i), w = load(&weight_[i]);
      const auto is_left = value <= stump.threshold;
      const Vec on_left = is_left ? value : -most, on_right = is_left ? most : value;
      below = on_left > below ? on_left : below;
      above = on_right < above ? on_right : above;
      const auto is_wrong = (is_left ? left : right) != load(&y_[i]);
      store(&is_wrong_[i], is_wrong ? one : Vec{});
      wrong += is_wrong ? w : Vec{};
      total += w;
      store(&sum_[i], load(&sum_[i]) + w);
      store(&since_[i], load(&since_[i]) * kept + w);
      store(&weight_[i], w * (is_wrong ? of_wrong : of_right));
    }
    sums.wrong = sum_of(wrong);
    sums.total = sum_of(total);
    sums.below = std::max({below[0], below[1], below[2], below[3]});
    sums.above = std::min({above[0], above[1], above[2], above[3]});
  }

  void vote(const Stump& stump, const double* x) {
    const double alpha = stump.alpha;
    const Vec voice = broadcast(alpha);
    for (size_t i = 0; i < own_.size(); i += lanes)
      store(&own_[i], load(&own_[i]) + (load(&is_wrong_[i]) != 0.0 ? Vec{} : voice));
    if (n_classes_ == 2) {
      for (size_t i = 0; i < own_.size(); i += lanes)
        store(&other_[i], load(&other_[i]) + (load(&is_wrong_[i]) != 0.0 ? voice : Vec{}));
      return;
    }
    for (size_t i = 0; i < n_; ++i) {
      if (is_wrong_[i] == 0) continue;
      double* votes = votes_.data() + i * n_classes_;  // that of its own class stays 0
      const double raised = votes[x[i] <= stump.threshold ? stump.left : stump.right] += alpha;
      other_[i] = alpha >= 0 ? std::max(other_[i], raised) : *std::max_element(votes, votes + n_classes_);
    }
  }

  size_t n_, n_classes_;
  std::vector<double> y_, first_, own_, other_, is_wrong_, sum_, since_, weight_, votes_;
};

// The columns that stumps ask for, and the place of each among these.
struct Asked {
  std::vector<size_t> columns, places;

  explicit Asked(const std::vector<Stump>& stumps) {
    for (const Stump& stump : stumps) columns.push_back(stump.feature);
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    for (const Stump& stump : stumps)
      places.push_back(std::lower_bound(columns.begin(), columns.end(), stump.feature) - columns.begin());
  }
};

constexpr size_t tile_rows = 1024, tile_values = size_t{1} << 16;

}  // namespace

Replay replay_stumps(const Rows& rows, const double* y, const double* weight, const std::vector<Stump>& stumps,
                     const double* near, size_t chosen, size_t n_classes, Crew& crew) {
  const size_t n = rows.n_rows, n_rounds = stumps.size();
  const Asked asked(stumps);
  const size_t width = std::max({asked.columns.size(), n_classes, size_t{1}});
  const size_t size = std::clamp(tile_values / width, size_t{16}, tile_rows);
  const size_t n_parts = (n + size - 1) / size;
  Replay replay;
  for (auto* of_rows : {&replay.chosen, &replay.sum, &replay.since, &replay.last, &replay.leads}) of_rows->resize(n);
  SumTree<AllRounds> sums(n_parts);
  crew.for_each_block(n_parts, [&](size_t p) {
    const size_t begin = p * size, count = std::min(size, n - begin);
    ColumnTile tile(rows, asked.columns);
    tile.read(begin, count);
    Part part(y + begin, weight ? weight + begin : nullptr, count, n_classes);
    AllRounds all{std::vector<RoundSums>(n_rounds)};
    for (size_t j = 0; j < n_rounds; ++j) {
      if (j == chosen) part.keep_weights(replay.chosen.data() + begin);
      all.rounds[j] = part.play(stumps[j], tile.column(asked.places[j]), near[j], ((j + 1) & j) == 0);
    }
    part.keep(begin, replay);
    sums.add(p, std::move(all));
  });
  for (const RoundSums& round : sums.root().rounds) {
    replay.wrong.push_back(round.wrong);
    replay.total.push_back(round.total);
    replay.lost.push_back(round.lost);
    replay.drawn.push_back(round.drawn);
    replay.below.push_back(round.below);
    replay.above.push_back(round.above);
  }
  return replay;
}

namespace {

using Edges = std::array<double, n_edges>;

// Of a column whose rows are said to be in ascending order, which is looked at and not believed.
Edges largest_of(const std::vector<Key>& order, const double* x, size_t n, const double* signs, const Edges& total) {
  const Vec all = load(total.data());
  Vec sums{}, best{};
  std::vector<bool> is_met(n, false);
  bool is_order = order.size() == n;
  for (size_t k = 0; is_order && k < n; ++k) {
    const uint32_t row = order[k].row;
    is_order = row < n && !is_met[row] && order[k].bits == ordered_bits(x[row] + 0.0);
    if (!is_order) break;
    is_met[row] = true;
    sums += load(signs + row * n_edges);
    if (k + 1 == n || order[k].bits == order[k + 1].bits) continue;
    is_order = order[k].bits < order[k + 1].bits;
    const Vec edges = absolute(all - 2 * sums);
    best = edges > best ? edges : best;
  }
  if (!is_order) throw std::logic_error("a column is not in ascending order");
  Edges out;
  store(out.data(), best);
  return out;
}

}  // namespace

std::array<double, n_edges> largest_edges(const Rows& rows, const double* signs, Crew& crew) {
  constexpr size_t width = 8;  // columns that are read side by side
  const size_t n = rows.n_rows, n_groups = (rows.n_columns + width - 1) / width;
  Edges total{}, best;
  for (size_t i = 0; i < n; ++i)
    for (size_t e = 0; e < n_edges; ++e) total[e] += signs[i * n_edges + e];
  std::vector<Edges> of_columns(rows.n_columns);
  KeySorter sorter;
  crew.for_each_block(n_groups, [&](size_t group) {
    const size_t first = group * width, n_columns = std::min(width, rows.n_columns - first);
    std::vector<size_t> columns(n_columns);
    for (size_t c = 0; c < n_columns; ++c) columns[c] = first + c;
    ColumnTile tile(rows, columns);
    std::vector<double> values(n_columns * n);
    for (size_t begin = 0; begin < n; begin += tile_rows) {
      const size_t count = std::min(tile_rows, n - begin);
      tile.read(begin, count);
      for (size_t c = 0; c < n_columns; ++c) std::copy_n(tile.column(c), count, values.data() + c * n + begin);
    }
    for (size_t c = 0; c < n_columns; ++c) {
      const double* x = values.data() + c * n;
      const auto bits = [x](size_t i) { return ordered_bits(x[i] + 0.0); };
      sorter.sort(n, bits, [&](const std::vector<Key>& order) {
        of_columns[first + c] = largest_of(order, x, n, signs, total);
      });
    }
  });
  for (size_t e = 0; e < n_edges; ++e) best[e] = std::fabs(total[e]);
  for (const Edges& of_column : of_columns)
    for (size_t e = 0; e < n_edges; ++e) best[e] = std::max(best[e], of_column[e]);
  return best;
}

}  // namespace certifit
