// The best stump has the least of W - max_k L_k - max_k R_k, of the weights L_k and R_k of class k on its two sides.
// Columns are sorted once and cut into buckets of neighbouring values. The weights of the buckets say how small an
// error can be within each; only buckets where it can be the least are looked at row by row.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "../sorted.hpp"
#include "tree.hpp"

namespace certifit {

constexpr double stump_tie = 1e-12;  // errors that differ by less are equal: the lowest column, the lowest threshold

// Rows in ascending order of a column. The highest bit marks the last row of those with its value.
constexpr uint32_t last_of_value = 1u << 31, row_bits = last_of_value - 1;

struct SortedColumn {
  std::vector<uint32_t> order;
  std::vector<uint32_t> ends;     // of the buckets: each is behind the last row of a value
  std::vector<uint8_t> has_cuts;  // whether a bucket has more than one value
};

inline std::vector<uint32_t> sorted_rows(const double* x, size_t n, KeySorter& sorter) {
  std::vector<uint32_t> order(n);
  const auto bits = [x](size_t i) { return ordered_bits(x[i]); };
  sorter.sort(n, bits, [&](const std::vector<Key>& keys) {
    for (size_t k = 0; k < n; ++k)
      order[k] = keys[k].row | (k + 1 == n || keys[k].bits != keys[k + 1].bits ? last_of_value : 0);
  });
  return order;
}

// Buckets of so many rows at least, but for those before a value of as many rows: it has a bucket of its own.
inline void cut_buckets(SortedColumn& column, size_t least) {
  column.ends.clear();
  column.has_cuts.clear();
  size_t begin = 0, n_values = 0, first = 0;  // of the bucket; first: of the value
  const auto close = [&](size_t end) {
    column.ends.push_back(static_cast<uint32_t>(end));
    column.has_cuts.push_back(n_values > 1);
    begin = end;
    n_values = 0;
  };
  for (size_t k = 0; k < column.order.size(); ++k) {
    if (!(column.order[k] & last_of_value)) continue;
    const size_t end = k + 1;
    if (n_values > 0 && end - first >= least) close(first);
    ++n_values;
    if (end - begin >= least || end == column.order.size()) close(end);
    first = end;
  }
}

inline SortedColumn sorted_column(const double* x, size_t n, size_t n_buckets, KeySorter& sorter) {
  SortedColumn column{sorted_rows(x, n, sorter), {}, {}};
  for (size_t least = (n + n_buckets - 1) / n_buckets; column.ends.empty() || column.ends.size() > n_buckets;
       least *= 2)
    cut_buckets(column, least);
  return column;
}

// Adds the weights of rows to the buckets of some columns, whose codes lie side by side.
template <size_t width>
void add_to_buckets(const uint16_t* codes, const double* weight, size_t n, double* sums, size_t n_buckets) {
  for (size_t i = 0; i < n; ++i, codes += width)
    for (size_t c = 0; c < width; ++c) sums[c * n_buckets + codes[c]] += weight[i];
}

// Weights of the classes on both sides of a cut.
struct Sides {
  std::vector<double> left, right;
  double total;
  double error() const { return error(left, right); }
  // Of two classes each side is called one of them: one call for both is the stump that cuts behind all rows.
  double error(const std::vector<double>& l, const std::vector<double>& r) const {
    if (l.size() == 2) return total - std::max(l[0] + r[1], l[1] + r[0]);
    return total - *std::max_element(l.begin(), l.end()) - *std::max_element(r.begin(), r.end());
  }
};

class StumpSearch {
 public:
  // Rows are in the order of their classes; ends: behind the last row of every class.
  StumpSearch(const TreeRows& rows, const std::vector<size_t>& ends, Crew& crew)
      : rows_(rows),
        ends_(ends),
        n_classes_(ends.size()),
        n_buckets_(std::clamp(rows.n_rows / (4 * n_classes_), size_t{1}, most_buckets)),
        width_(std::clamp((rows.n_columns + 3) / 4, size_t{1}, most_width)),
        crew_(crew),
        columns_(rows.n_columns),
        codes_(rows.n_rows * rows.n_columns),
        signed_(n_classes_ == 2 ? rows.n_rows : 0),
        sums_(rows.n_columns * n_classes_ * n_buckets_) {
    KeySorter sorter;
    crew.for_each_block(n_groups(), [&](size_t group) {
      const size_t first = group * width_, width = width_of(group);
      uint16_t* codes = codes_.data() + first * rows.n_rows;
      for (size_t c = 0; c < width; ++c) {
        columns_[first + c] = sorted_column(rows.column(first + c), rows.n_rows, n_buckets_, sorter);
        const SortedColumn& column = columns_[first + c];
        for (size_t b = 0, k = 0; b < column.ends.size(); ++b)
          for (; k < column.ends[b]; ++k) codes[(column.order[k] & row_bits) * width + c] = static_cast<uint16_t>(b);
      }
    });
  }

  struct Place {
    size_t feature, n_left;
  };

  Place best(const double* weight) {
    const size_t d = rows_.n_columns;
    std::vector<double> at_ends(d), bounds(d), least(d, infinity);
    for (size_t i = 0; i < signed_.size(); ++i) signed_[i] = i < ends_[0] ? -weight[i] : weight[i];
    crew_.for_each_block(n_groups(), [&](size_t group) {
      add_up(group, weight);
      for (size_t j = group * width_; j < group * width_ + width_of(group); ++j)
        std::tie(at_ends[j], bounds[j]) = bounds_of(j);
    });
    const double bar = *std::min_element(at_ends.begin(), at_ends.end()) + 2 * stump_tie;
    std::vector<size_t> tried;
    for (size_t j = 0; j < d; ++j)
      if (bounds[j] <= bar) tried.push_back(j);
    crew_.for_each_block(tried.size(), [&](size_t k) {
      for_each_cut(tried[k], weight, bar, [&](double error, size_t) {
        least[tried[k]] = std::min(least[tried[k]], error);
        return true;
      });
    });
    const double lowest = *std::min_element(least.begin(), least.end());
    const auto is_best = [&](double error) { return error <= lowest + stump_tie; };
    Place place{static_cast<size_t>(std::find_if(least.begin(), least.end(), is_best) - least.begin()), 0};
    for_each_cut(place.feature, weight, lowest + 2 * stump_tie, [&](double error, size_t n_left) {
      place.n_left = n_left;
      return error > least[place.feature] + stump_tie;
    });
    return place;
  }

  double threshold(const Place& place) const {
    if (place.n_left == rows_.n_rows) return infinity;
    const std::vector<uint32_t>& order = columns_[place.feature].order;
    const double* x = rows_.column(place.feature);
    return halfway(x[order[place.n_left - 1] & row_bits], x[order[place.n_left] & row_bits]);
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr size_t most_buckets = 1024, most_width = 8;  // of columns that are summed side by side

  size_t n_groups() const { return (rows_.n_columns + width_ - 1) / width_; }
  size_t width_of(size_t group) const { return std::min(width_, rows_.n_columns - group * width_); }

  // Sums of the buckets: group after group, of each class after class, of that column after column.
  double* sums_of(size_t group, size_t label) {
    return sums_.data() + (group * width_ * n_classes_ + label * width_of(group)) * n_buckets_;
  }

  void add_up(size_t group, const double* weight) {
    using Add = void (*)(const uint16_t*, const double*, size_t, double*, size_t);
    static constexpr Add add[most_width] = {add_to_buckets<1>, add_to_buckets<2>, add_to_buckets<3>, add_to_buckets<4>,
                                            add_to_buckets<5>, add_to_buckets<6>, add_to_buckets<7>, add_to_buckets<8>};
    const size_t width = width_of(group);
    const uint16_t* codes = codes_.data() + group * width_ * rows_.n_rows;
    std::fill_n(sums_of(group, 0), width * n_classes_ * n_buckets_, 0.0);
    for (size_t label = 0, begin = 0; label < n_classes_; begin = ends_[label++])
      add[width - 1](codes + begin * width, weight + begin, ends_[label] - begin, sums_of(group, label), n_buckets_);
  }

  Sides start(size_t j) {
    Sides sides{std::vector<double>(n_classes_, 0.0), std::vector<double>(n_classes_), 0};
    for (size_t label = 0; label < n_classes_; ++label) {
      const double* sums = sums_of(j / width_, label) + (j % width_) * n_buckets_;
      sides.right[label] = std::accumulate(sums, sums + n_buckets_, 0.0);
      sides.total += sides.right[label];
    }
    return sides;
  }

  // Puts a bucket on the left.
  void move(size_t j, size_t bucket, Sides& sides) {
    for (size_t label = 0; label < n_classes_; ++label) {
      const double sum = sums_of(j / width_, label)[(j % width_) * n_buckets_ + bucket];
      sides.left[label] += sum;
      sides.right[label] -= sum;
    }
  }

  // The least error at the end of a bucket, and what no error of the column is below: within a bucket the left has at
  // most the weights of its end, the right those of its start.
  std::pair<double, double> bounds_of(size_t j) {
    double at_ends = infinity, bound = infinity;
    Sides sides = start(j);
    std::vector<double> right = sides.right;
    for (size_t b = 0; b < columns_[j].ends.size(); ++b, right = sides.right) {
      move(j, b, sides);
      if (columns_[j].has_cuts[b]) bound = std::min(bound, sides.error(sides.left, right));
      at_ends = std::min(at_ends, sides.error());
    }
    return {at_ends, std::min(at_ends, bound)};
  }

  // use(error, rows on the left) of cuts in ascending order, among them all of errors up to `bar`; false ends it.
  template <class Use>
  void for_each_cut(size_t j, const double* weight, double bar, Use use) {
    const SortedColumn& column = columns_[j];
    const uint32_t* order = column.order.data();
    Sides sides = start(j), before = sides;
    for (size_t b = 0, begin = 0; b < column.ends.size(); begin = column.ends[b++], before = sides) {
      const size_t end = column.ends[b];
      move(j, b, sides);
      if (column.has_cuts[b] && sides.error(sides.left, before.right) <= bar) {
        if (n_classes_ == 2 ? !try_two(order, begin, end, before, bar, use)
                            : !try_many(order, begin, end, weight, before, use))
          return;
      }
      if (!use(sides.error(), end)) return;
    }
  }

  // Cuts within a bucket, of two classes: T the sum of w y, A that of the rows on the left, y = -1 or 1.
  template <class Use>
  bool try_two(const uint32_t* order, size_t begin, size_t end, const Sides& sides, double bar, Use use) {
    const double total = sides.left[1] + sides.right[1] - sides.left[0] - sides.right[0];
    const double enough = sides.total - 2 * bar;
    double sum = sides.left[1] - sides.left[0];
    for (size_t k = begin; k + 1 < end; ++k) {
      sum += signed_[order[k] & row_bits];
      const double edge = std::fabs(total - 2 * sum);
      if (edge >= enough && (order[k] & last_of_value) && !use((sides.total - edge) / 2, k + 1)) return false;
    }
    return true;
  }

  template <class Use>
  bool try_many(const uint32_t* order, size_t begin, size_t end, const double* weight, Sides sides, Use use) {
    for (size_t k = begin; k + 1 < end; ++k) {
      const uint32_t row = order[k] & row_bits;
      const auto label = static_cast<size_t>(rows_.y[row]);
      sides.left[label] += weight[row];
      sides.right[label] -= weight[row];
      if ((order[k] & last_of_value) && !use(sides.error(), k + 1)) return false;
    }
    return true;
  }

  const TreeRows& rows_;
  const std::vector<size_t>& ends_;
  const size_t n_classes_, n_buckets_, width_;
  Crew& crew_;
  std::vector<SortedColumn> columns_;
  std::vector<uint16_t> codes_;  // buckets of the rows: group after group, of each row after row
  std::vector<double> signed_;   // of two classes: the weights of the first are negative
  std::vector<double> sums_;
};

}  // namespace certifit
