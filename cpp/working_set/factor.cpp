#include "factor.hpp"

#include <algorithm>
#include <cmath>

#include "../simd.hpp"
#include "columns.hpp"

namespace certifit {
namespace {

// A column whose squared distance to the span of the others is below this part of its own square depends on them.
constexpr double least_distance = 1e-12;

// columns[c][j] -= sum_a columns[c][i + a] rows[a][j] for j >= i + 4
void subtract_products(double* const* columns, size_t count, const double* const (&rows)[4], size_t i, size_t k) {
  size_t j = i + 4;
  for (; j + lanes <= k; j += lanes) {
    const Vec u0 = load(rows[0] + j), u1 = load(rows[1] + j), u2 = load(rows[2] + j), u3 = load(rows[3] + j);
    for (size_t c = 0; c < count; ++c) {
      double* column = columns[c];
      const Vec two =
          multiply_add(broadcast(-column[i]), u0, multiply_add(broadcast(-column[i + 1]), u1, load(column + j)));
      store(column + j, multiply_add(broadcast(-column[i + 2]), u2, multiply_add(broadcast(-column[i + 3]), u3, two)));
    }
  }
  for (; j < k; ++j)
    for (size_t c = 0; c < count; ++c)
      for (size_t a = 0; a < 4; ++a) columns[c][j] = multiply_add(-columns[c][i + a], rows[a][j], columns[c][j]);
}

// (a, b) -> (c a + s b, c b - s a)
void rotate(double* a, double* b, double c, double s, size_t n) {
  const Vec cosine = broadcast(c), sine = broadcast(s);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec x = load(a + i), y = load(b + i);
    store(a + i, multiply_add(cosine, x, sine * y));
    store(b + i, multiply_add(cosine, y, -sine * x));
  }
  for (; i < n; ++i) {
    const double x = a[i], y = b[i];
    a[i] = multiply_add(c, x, s * y);
    b[i] = multiply_add(c, y, -s * x);
  }
}

}  // namespace

std::vector<size_t> ChangingFactor::make(const std::vector<size_t>& wanted, const Products& products,
                                         const std::function<double(size_t)>& diagonal, Crew& crew) {
  remove_all_but(wanted);
  std::vector<size_t> members = members_, fresh, dependent;
  std::sort(members.begin(), members.end());
  for (size_t p : wanted)
    if (!std::binary_search(members.begin(), members.end(), p)) fresh.push_back(p);
  std::vector<double> columns;
  for (size_t begin = 0; begin < fresh.size(); begin += at_once) {
    if (!crew.keep_going()) throw Interrupted();
    Group group;
    group.size = std::min(at_once, fresh.size() - begin);
    const size_t length = members_.size() + at_once;
    columns.resize(at_once * length);
    for (size_t c = 0; c < group.size; ++c) {
      group.ids[c] = fresh[begin + c];
      group.columns[c] = &columns[c * length];
      products(group.ids[c], members_, group.columns[c]);
      const std::vector<size_t> before(group.ids, group.ids + c);
      products(group.ids[c], before, group.columns[c] + members_.size());
    }
    append(group, diagonal, dependent);
  }
  return dependent;
}

void ChangingFactor::remove_all_but(const std::vector<size_t>& wanted) {
  std::vector<size_t> sorted = wanted;
  std::sort(sorted.begin(), sorted.end());
  auto leaves = [&](size_t p) { return !std::binary_search(sorted.begin(), sorted.end(), p); };
  const auto leaving = static_cast<size_t>(std::count_if(members_.begin(), members_.end(), leaves));
  if (3 * leaving > members_.size()) members_.clear();  // cheaper to begin anew
  for (size_t at = members_.size(); at-- > 0;)
    if (leaves(members_[at])) remove(at);
}

// U' x = column for all columns of the group over the members there are, then one by one within the group.
void ChangingFactor::append(Group group, const std::function<double(size_t)>& diagonal,
                            std::vector<size_t>& dependent) {
  const size_t old = members_.size();
  reserve(old + group.size);
  forward(group.columns, group.size);
  size_t accepted[at_once], n_accepted = 0;
  for (size_t c = 0; c < group.size; ++c) {
    double* column = group.columns[c];
    const double whole = diagonal(group.ids[c]);
    double left = whole - dot(column, column, old);
    double inside[at_once];
    for (size_t a = 0; a < n_accepted; ++a) {
      double x = column[old + accepted[a]] - dot(group.columns[accepted[a]], column, old);
      for (size_t b = 0; b < a; ++b) x -= row(old + b)[old + a] * inside[b];
      inside[a] = x / row(old + a)[old + a];
      left -= inside[a] * inside[a];
    }
    if (!(left > least_distance * whole)) {
      dependent.push_back(group.ids[c]);
      continue;
    }
    const size_t at = old + n_accepted;
    for (size_t i = 0; i < old; ++i) row(i)[at] = column[i];
    for (size_t a = 0; a < n_accepted; ++a) row(old + a)[at] = inside[a];
    row(at)[at] = std::sqrt(left);
    members_.push_back(group.ids[c]);
    accepted[n_accepted++] = c;
  }
}

// Solves U' x = column: four rows of U are read once for all columns.
void ChangingFactor::forward(double* const* columns, size_t count) const {
  const size_t k = members_.size();
  size_t i = 0;
  for (; i + at_once <= k; i += at_once) {
    const double* const rows[at_once] = {row(i), row(i + 1), row(i + 2), row(i + 3)};
    for (size_t c = 0; c < count; ++c)
      for (size_t a = 0; a < at_once; ++a) {
        double x = columns[c][i + a];
        for (size_t b = 0; b < a; ++b) x -= rows[b][i + a] * columns[c][i + b];
        columns[c][i + a] = x / rows[a][i + a];
      }
    subtract_products(columns, count, rows, i, k);
  }
  for (; i < k; ++i)
    for (size_t c = 0; c < count; ++c) {
      columns[c][i] /= row(i)[i];
      for (size_t j = i + 1; j < k; ++j) columns[c][j] -= columns[c][i] * row(i)[j];
    }
}

// Without its column, the rows below are one entry too long; a rotation of neighbouring rows clears each.
void ChangingFactor::remove(size_t at) {
  const size_t k = members_.size();
  for (size_t i = 0; i < k; ++i) {
    const size_t from = std::max(at, i > 0 ? i - 1 : 0);
    std::copy(row(i) + from + 1, row(i) + k, row(i) + from);
  }
  for (size_t i = at; i + 1 < k; ++i) {
    double *upper = row(i), *lower = row(i + 1);
    const double size = std::hypot(upper[i], lower[i]);
    rotate(upper + i, lower + i, upper[i] / size, lower[i] / size, k - 1 - i);
  }
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
}

void ChangingFactor::solve(double* b) const {
  const size_t k = members_.size();
  forward(&b, 1);
  for (size_t i = k; i-- > 0;) b[i] = (b[i] - dot(row(i) + i + 1, b + i + 1, k - i - 1)) / row(i)[i];
}

void ChangingFactor::rename(const std::vector<size_t>& place) {
  for (size_t& p : members_) p = place[p];
}

void ChangingFactor::reserve(size_t size) {
  if (size <= room_) return;
  const size_t room = std::max<size_t>(64, size + size / 2), k = members_.size();
  auto grown = std::make_unique_for_overwrite<double[]>(room * room);
  for (size_t i = 0; i < k; ++i) std::copy(row(i) + i, row(i) + k, &grown[i * room + i]);
  u_ = std::move(grown);
  room_ = room;
}

}  // namespace certifit
