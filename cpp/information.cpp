#include "information.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "neighbours.hpp"
#include "sorted.hpp"

namespace certifit {
namespace {

// "Nearer than this" holds for the rows inside the ball of a row whose k-th neighbour is at distance d. Distances that
// agree to nine digits tie: differences of decimals do not come out equal in binary. At d = 0 rows that coincide
// remain.
double open_radius(double d) { return d > 0 ? d * (1 - 0x1p-30) : std::numeric_limits<double>::denorm_min(); }

// ---------------------------------------------------------------------------------------------------------------
// Counts and their digammas

// How often psi(m) is added, less how often it is subtracted: whole numbers, so the order of the rows is no matter.
class PsiSum {
 public:
  explicit PsiSum(size_t n_rows) : times_(n_rows + 1) {}
  void add(size_t m, int64_t times) { times_[m] += times; }

  // psi(n) + the mean over n rows.
  double information(size_t n, const double* psi) const {
    double sum = 0;
    for (size_t m = 1; m < times_.size(); ++m)
      if (times_[m]) sum += static_cast<double>(times_[m]) * psi[m - 1];
    return std::max(0.0, psi[n - 1] + sum / static_cast<double>(n));
  }

 private:
  std::vector<int64_t> times_;
};

// ---------------------------------------------------------------------------------------------------------------
// A number and a class

// Rows in order of their number, those of classes with one row left out, and where each class has its rows.
struct ClassRows {
  std::vector<double> values;
  std::vector<size_t> begins;    // of class c in `places`
  std::vector<uint32_t> places;  // in `values`, class after class

  ClassRows(const std::vector<double>& ascending, const std::vector<uint32_t>& rows, const int32_t* classes,
            size_t n_classes)
      : begins(n_classes + 1) {
    std::vector<size_t> counts(n_classes);
    for (uint32_t row : rows) ++counts[classes[row]];
    for (size_t c = 0; c < n_classes; ++c) begins[c + 1] = begins[c] + (counts[c] > 1 ? counts[c] : 0);
    std::vector<size_t> next(begins.begin(), begins.end() - 1);
    values.reserve(begins.back());
    places.resize(begins.back());
    for (size_t i = 0; i < rows.size(); ++i) {
      const int32_t c = classes[rows[i]];
      if (counts[c] < 2) continue;
      places[next[c]++] = static_cast<uint32_t>(values.size());
      values.push_back(ascending[i]);
    }
  }
};

// Adds psi(rows of the class in the ball) - psi(rows in the ball) for every row of one class.
// The k nearest neighbours of a row and the row itself are k + 1 consecutive rows of its class; as the row moves up,
// so does that window. Differences are compared, never sums: x >= z - r may hold where z - x > r in floating point.
void add_class(const ClassRows& all, size_t c, size_t n_neighbours, PsiSum& sum, Crew& crew) {
  const uint32_t* place = all.places.data() + all.begins[c];
  const double* value = all.values.data();
  const size_t n = all.begins[c + 1] - all.begins[c], n_all = all.values.size();
  const size_t k = std::min(n_neighbours, n - 1);
  for (size_t i = 0, first = 0, next; i < n; i = next) {
    if (i % 64 == 0 && !crew.keep_going()) return;
    const double x = value[place[i]];
    auto below = [&](size_t t) { return x - value[place[t]]; };
    auto above = [&](size_t t) { return value[place[t]] - x; };
    while (first + k + 1 < n && above(first + k + 1) < below(first)) ++first;
    const double distance = std::max(below(first), above(first + k)), radius = open_radius(distance);
    size_t begin = first, end = first + k + 1;
    if (distance == 0) {  // k rows or more coincide with this one, the first of them: they are counted at once
      begin = i;
      for (end = i + 1; end < n && above(end) == 0;) ++end;
    }
    while (below(begin) >= radius) ++begin;
    while (above(end - 1) >= radius) --end;
    next = distance == 0 ? end : i + 1;
    const double* low = std::partition_point(value + (begin ? place[begin - 1] + 1 : 0), value + place[begin],
                                             [&](double v) { return x - v >= radius; });
    const double* high = std::partition_point(value + place[end - 1] + 1, value + (end < n ? place[end] : n_all),
                                              [&](double v) { return v - x < radius; });
    const auto times = static_cast<int64_t>(next - i);
    sum.add(end - begin, times);
    sum.add(static_cast<size_t>(high - low), -times);
  }
}

double information_of_number_and_class(const Sorted& number, const int32_t* classes, size_t n_classes,
                                       Neighbours neighbours, Crew& crew) {
  if (number.is_constant()) return 0.0;
  const ClassRows rows(number.values, number.rows, classes, n_classes);
  const size_t n = rows.values.size();
  if (n == 0) return 0.0;
  PsiSum sum(n);
  for (size_t c = 0; c < n_classes; ++c) {
    const size_t count = rows.begins[c + 1] - rows.begins[c];
    if (count == 0) continue;
    if (count == n) return 0.0;  // one class tells nothing
    add_class(rows, c, neighbours.k, sum, crew);
    sum.add(count, -static_cast<int64_t>(count));
  }
  return sum.information(n, neighbours.psi);
}

// ---------------------------------------------------------------------------------------------------------------
// Two numbers

using LeafPlaces = std::array<uint32_t, leaf_size>;

// For each point of a leaf the first of the ascending values for which `is_before`, true and then false, does not
// hold. Bisection in step for all points: no branch to guess, and their reads overlap.
template <class Claim>
LeafPlaces boundaries(const std::vector<double>& ascending, Claim is_before) {
  LeafPlaces places{};
  const double* values = ascending.data();
  for (size_t length = ascending.size(); length > 0;) {
    const size_t half = (length + 1) / 2;
    for (size_t i = 0; i < leaf_size; ++i) {
      const double value = values[places[i] + half - 1];
      places[i] += is_before(i, value) ? static_cast<uint32_t>(half) : 0;
    }
    length -= half;
  }
  return places;
}

// Ascending values nearer than radius[i] to at[i], distances in units of 1 / factor: the first, and one past the last.
struct Range {
  LeafPlaces first, end;
  Range(const std::vector<double>& ascending, const Leaf& at, double factor, const Leaf& radius)
      : first(boundaries(ascending, [&](size_t i, double v) { return (at[i] - v) * factor >= radius[i]; })),
        end(boundaries(ascending, [&](size_t i, double v) { return (v - at[i]) * factor < radius[i]; })) {}
  size_t count(size_t i) const { return end[i] - first[i]; }
};

// The target in order, shared by all columns.
struct Target {
  Sorted sorted;
  std::vector<uint32_t> ranks;  // of every row
  double deviation;

  Target(const double* values, size_t n)
      : sorted(certifit::sorted(values, n)), ranks(n), deviation(standard_deviation(sorted.values)) {
    for (size_t rank = 0; rank < n; ++rank) ranks[sorted.rows[rank]] = static_cast<uint32_t>(rank);
  }
};

// Points named by where their x and their y first occur: equal names are equal points, and each counts all of them.
void add_coincident(std::vector<std::pair<uint32_t, uint32_t>> points, PsiSum& sum) {
  std::sort(points.begin(), points.end());
  for (auto run = points.begin(); run != points.end();) {
    const auto end = std::upper_bound(run, points.end(), *run);
    sum.add(static_cast<size_t>(end - run), end - run);
    run = end;
  }
}

double information_of_two_numbers(const Sorted& column, const Target& target, Neighbours neighbours, Crew& crew) {
  if (column.is_constant() || target.sorted.is_constant()) return 0.0;
  const size_t n = column.size();
  std::vector<uint32_t> y_rank(n);
  for (size_t i = 0; i < n; ++i) y_rank[i] = target.ranks[column.rows[i]];
  // Distances in units of x: differences of x stay exact, and so do their ties.
  const double y_factor = standard_deviation(column.values) / target.deviation;
  const Tree tree(column.values, target.sorted.values, std::move(y_rank), y_factor);
  Nearest nearest(tree, neighbours.k);
  PsiSum sum(n);
  std::vector<std::pair<uint32_t, uint32_t>> coincident;
  for (size_t leaf = 0; leaf < tree.n_leaves(); ++leaf) {
    if (!crew.keep_going()) return 0.0;
    nearest.search(leaf);
    Leaf x, y, radius;
    for (size_t i = 0; i < leaf_size; ++i) {
      x[i] = tree.x[leaf * leaf_size + i];
      y[i] = tree.y[leaf * leaf_size + i];
      radius[i] = open_radius(nearest.kth(i));
    }
    const Range x_range(column.values, x, 1.0, radius), y_range(target.sorted.values, y, y_factor, radius);
    for (size_t i = 0; i < leaf_size && leaf * leaf_size + i < n; ++i) {
      sum.add(x_range.count(i), -1);
      sum.add(y_range.count(i), -1);
      if (nearest.kth(i) > 0)
        sum.add(nearest.inside(i, radius[i]), 1);
      else
        coincident.push_back({x_range.first[i], y_range.first[i]});
    }
  }
  add_coincident(std::move(coincident), sum);
  return sum.information(n, neighbours.psi);
}

}  // namespace

std::vector<double> information_of_numbers_and_classes(ColumnsOf<double> numbers, const int32_t* classes,
                                                       size_t n_classes, Neighbours neighbours, Crew& crew) {
  std::vector<double> information(numbers.n_columns);
  crew.for_each_block(numbers.n_columns, [&](size_t j) {
    information[j] = information_of_number_and_class(sorted(numbers.column(j), numbers.n_rows), classes, n_classes,
                                                     neighbours, crew);
  });
  return information;
}

std::vector<double> information_of_classes_and_number(ColumnsOf<int32_t> classes, const int64_t* n_classes,
                                                      const double* number, Neighbours neighbours, Crew& crew) {
  const Sorted target = sorted(number, classes.n_rows);
  std::vector<double> information(classes.n_columns);
  crew.for_each_block(classes.n_columns, [&](size_t j) {
    information[j] =
        information_of_number_and_class(target, classes.column(j), static_cast<size_t>(n_classes[j]), neighbours, crew);
  });
  return information;
}

std::vector<double> information_of_numbers(ColumnsOf<double> numbers, const double* target, Neighbours neighbours,
                                           Crew& crew) {
  const Target shared(target, numbers.n_rows);
  std::vector<double> information(numbers.n_columns);
  crew.for_each_block(numbers.n_columns, [&](size_t j) {
    information[j] = information_of_two_numbers(sorted(numbers.column(j), numbers.n_rows), shared, neighbours, crew);
  });
  return information;
}

}  // namespace certifit
