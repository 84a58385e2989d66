// The best trees of depth 1 and 2 from histograms of columns and of pairs of columns.
//
// Depth 2: the table of a pair (a, b) summed up from its corner gives, for a split of a at s and of b at t, the losses
// of four leaves q00, q01, q10, q11. Every pair lowers L_a(s) = min_t (q00 + q01), R_a(s) = min_t (q10 + q11),
// L_b(t) = min_s (q00 + q10), R_b(t) = min_s (q01 + q11): the best losses of depth 1 on the sides of a split. The best
// tree of depth 2 has min over a, s of L_a(s) + R_a(s).
#pragma once

#include <mutex>

#include "leaf_costs.hpp"

namespace certifit {

// A split of a grid column after one of its codes; column -1: none.
struct Cut {
  int32_t column = -1;
  uint8_t code = 0;
};

struct Valued {
  double loss;
  Cut cut;
};

template <class Loss>
class Pairs {
 public:
  using S = typename Loss::Sum;
  using Part = Subset<S>;

  Pairs(const GridRows<S>& all, Crew& crew) : all_(all), crew_(crew), half_(all.least_weight / 2) {}

  // The best tree of depth 1; a leaf of fewer than min_rows rows costs `infinite`. slack: a split must gain more.
  Valued depth1(const Part& part, size_t min_rows, double slack) const {
    Table table;
    Quadrants<S> q;
    Valued best{leaf(part, min_rows), {}};
    for (size_t b = 0; b < all_.columns.size(); ++b) {
      const size_t n_b = part.n_codes(b);
      if (n_b < 2) continue;
      table.begin(1, n_b, Loss::n_planes(all_), min_rows > 1);
      const uint8_t* codes = part.column(b);
      for (size_t k = 0; k < part.n_rows; ++k) table.add(part, codes[k], k);
      table.sum_up();
      costs(table, 0, min_rows, q);
      for (size_t j = 0; j + 1 < n_b; ++j) {
        const double loss = total(q.q00[j], q.q01[j]) + Loss::offset(part);
        if (loss < best.loss - slack) best = {loss, {static_cast<int32_t>(b), part.is_code[b][j]}};
      }
    }
    return best;
  }

  // The loss of the best tree of depth 2 and its root; the lowest column and code of equal ones.
  Valued depth2(const Part& part, size_t min_rows, double slack) const {
    const size_t d = all_.columns.size();
    const Margins margins = margins_of(part, min_rows > 1);
    Sides sides(part, d);
    std::mutex lock;
    double work = 0;
    for (size_t j = 0; j < d; ++j) work += static_cast<double>(n_visited(part, j) * d);
    const auto pairs_of = [&](size_t a) {
      if (part.n_codes(a) < 2) return;
      Sides of_column(part, d, a);
      Table table;
      Quadrants<S> q;
      for (size_t b = a; b < d; ++b)
        if (part.n_codes(b) > 1) lower_sides(part, a, b, min_rows, margins, table, q, of_column);
      std::lock_guard<std::mutex> hold(lock);
      sides.lower(of_column, a);
    };
    if (work > 2e6) {
      crew_.for_each_block(d, pairs_of);
    } else {
      for (size_t a = 0; a < d; ++a) pairs_of(a);
    }
    Valued best = {leaf(part, min_rows), {}};
    for (size_t a = 0; a < d; ++a)
      for (size_t s = 0; s + 1 < part.n_codes(a); ++s) {
        const double loss = total(sides.left[a][s], sides.right[a][s]) + Loss::offset(part);
        if (loss < best.loss - slack) best = {loss, {static_cast<int32_t>(a), part.is_code[a][s]}};
      }
    return best;
  }

  double leaf(const Part& part, size_t min_rows) const {
    if (part.n_rows == 0) return 0;
    Table table;
    Quadrants<S> q;
    table.begin(1, 1, Loss::n_planes(all_), min_rows > 1);
    for (size_t k = 0; k < part.n_rows; ++k) table.add(part, 0, k);
    costs(table, 0, min_rows, q);
    return q.q00[0] >= none ? infinite : static_cast<double>(q.q00[0]) + Loss::offset(part);
  }

  static constexpr double infinite = std::numeric_limits<double>::infinity();

 private:
  // What a leaf of too few rows costs: sums of four do not overflow.
  static constexpr S none = static_cast<S>(std::is_integral_v<S> ? 0x1p28 : 0x1p900);

  static double total(S first, S second) {
    return first >= none || second >= none ? infinite : static_cast<double>(first) + static_cast<double>(second);
  }

  struct Table {
    size_t n_a = 0, n_b = 0, n_planes = 0;
    bool is_counted = false;
    std::vector<S> sums;
    std::vector<int32_t> counts;

    void begin(size_t a, size_t b, size_t planes, bool counted) {
      n_a = a;
      n_b = b;
      n_planes = planes;
      is_counted = counted;
      sums.assign(planes * a * b, S{0});
      counts.assign(counted ? a * b : 0, 0);
    }
    void add(const Part& part, size_t cell, size_t k) {
      Loss::add(sums.data(), n_a * n_b, cell, part, k);
      if (is_counted) ++counts[cell];
    }
    void sum_up() {
      for (size_t c = 0; c < n_planes; ++c) sum_up(sums.data() + c * n_a * n_b);
      if (is_counted) sum_up(counts.data());
    }
    template <class T>
    void sum_up(T* plane) const {
      for (size_t i = 0; i < n_a; ++i) {
        T run = 0, *row = plane + i * n_b;
        for (size_t j = 0; j < n_b; ++j) row[j] = run += row[j];
        if (i > 0)
          for (size_t j = 0; j < n_b; ++j) row[j] += row[j - n_b];
      }
    }
    // The line of the common code of a column is what the other lines leave of the sums of the other column.
    template <class T>
    void complete(T* plane, const T* of_b, size_t line) const {
      T* missing = plane + line * n_b;
      for (size_t j = 0; j < n_b; ++j) missing[j] = of_b[j];
      for (size_t i = 0; i < n_a; ++i)
        if (i != line)
          for (size_t j = 0; j < n_b; ++j) missing[j] -= plane[i * n_b + j];
    }
  };

  // Per column and split: the least loss of a tree of depth 1 on its left and on its right side.
  struct Sides {
    std::vector<std::vector<S>> left, right;
    Sides(const Part& part, size_t d, size_t first = 0) : left(d), right(d) {
      for (size_t j = first; j < d; ++j) {
        left[j].assign(part.n_codes(j), 2 * none);
        right[j].assign(part.n_codes(j), 2 * none);
      }
    }
    void lower(const Sides& other, size_t first) {
      for (size_t j = first; j < left.size(); ++j)
        for (size_t s = 0; s < left[j].size(); ++s) {
          left[j][s] = std::min(left[j][s], other.left[j][s]);
          right[j][s] = std::min(right[j][s], other.right[j][s]);
        }
    }
  };

  void costs(const Table& table, size_t i, size_t min_rows, Quadrants<S>& q) const {
    Loss::quadrants({table.sums.data(), table.n_a, table.n_b, table.n_planes}, i, half_, q);
    if (!table.is_counted) return;
    const size_t n_b = table.n_b;
    const auto least = static_cast<int32_t>(std::min<size_t>(min_rows, size_t{1} << 30));
    const auto refuse = [&](S& cost, int32_t n) {
      if (n > 0 && n < least) cost = none;
    };
    const int32_t *up = table.counts.data() + i * n_b, *whole = table.counts.data() + (table.n_a - 1) * n_b;
    const int32_t up_all = up[n_b - 1], down_all = whole[n_b - 1] - up_all;
    for (size_t j = 0; j < n_b; ++j) {
      const int32_t down = whole[j] - up[j];
      refuse(q.q00[j], up[j]);
      refuse(q.q01[j], up_all - up[j]);
      refuse(q.q10[j], down);
      refuse(q.q11[j], down_all - down);
    }
  }

  // Sums of every column alone.
  struct Margins {
    std::vector<std::vector<S>> sums;
    std::vector<std::vector<int32_t>> counts;
  };

  Margins margins_of(const Part& part, bool is_counted) const {
    const size_t d = all_.columns.size();
    Margins margins{std::vector<std::vector<S>>(d), std::vector<std::vector<int32_t>>(d)};
    Table table;
    for (size_t j = 0; j < d; ++j) {
      table.begin(1, part.n_codes(j), Loss::n_planes(all_), is_counted);
      const uint8_t* codes = part.column(j);
      for (size_t k = 0; k < part.n_rows; ++k) table.add(part, codes[k], k);
      margins.sums[j] = table.sums;
      margins.counts[j] = table.counts;
    }
    return margins;
  }

  static size_t n_visited(const Part& part, size_t j) {
    return part.rare[j].empty() ? part.n_rows : part.rare[j].size();
  }

  // The table of two columns, from the rows where the first has not its common code.
  void fill(const Part& part, size_t a, size_t b, const Margins& margins, Table& table) const {
    const size_t n_a = part.n_codes(a), n_b = part.n_codes(b);
    const uint8_t *of_a = part.column(a), *of_b = part.column(b);
    if (part.rare[a].empty()) {
      for (size_t k = 0; k < part.n_rows; ++k) table.add(part, of_a[k] * n_b + of_b[k], k);
    } else {
      for (uint32_t k : part.rare[a]) table.add(part, of_a[k] * n_b + of_b[k], k);
      for (size_t c = 0; c < table.n_planes; ++c)
        table.complete(table.sums.data() + c * n_a * n_b, margins.sums[b].data() + c * n_b, part.common[a]);
      if (table.is_counted) table.complete(table.counts.data(), margins.counts[b].data(), part.common[a]);
    }
    table.sum_up();
  }

  // Lowers the sides of two columns by their splits together. The column of fewer rare rows is the first of the table.
  void lower_sides(const Part& part, size_t a, size_t b, size_t min_rows, const Margins& margins, Table& table,
                   Quadrants<S>& q, Sides& sides) const {
    if (n_visited(part, b) < n_visited(part, a)) std::swap(a, b);
    table.begin(part.n_codes(a), part.n_codes(b), Loss::n_planes(all_), min_rows > 1);
    fill(part, a, b, margins, table);
    S *left = sides.left[b].data(), *right = sides.right[b].data();
    for (size_t i = 0; i < table.n_a; ++i) {
      costs(table, i, min_rows, q);
      S up = 2 * none, down = 2 * none;
      for (size_t j = 0; j < table.n_b; ++j) {
        up = std::min<S>(up, q.q00[j] + q.q01[j]);
        down = std::min<S>(down, q.q10[j] + q.q11[j]);
        left[j] = std::min<S>(left[j], q.q00[j] + q.q10[j]);
        right[j] = std::min<S>(right[j], q.q01[j] + q.q11[j]);
      }
      sides.left[a][i] = std::min(sides.left[a][i], up);
      sides.right[a][i] = std::min(sides.right[a][i], down);
    }
  }

  const GridRows<S>& all_;
  Crew& crew_;
  double half_;
};

}  // namespace certifit
