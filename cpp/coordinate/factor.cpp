#include "factor.hpp"

#include <algorithm>
#include <cmath>

#include "row_sums.hpp"

namespace certifit {
namespace {

constexpr size_t panel_rows = 32;

// Rows i .. i+3 of the matrix lose their products with the panel: C -= A'B, where A holds columns i .. i+3 of the
// panel and B its columns j .. j + 4 n_vectors - 1. Sums stay in registers.
template <size_t n_vectors>
void subtract_products(double* c, const double* a, const double* b, size_t stride) {
  Vec sum[4][n_vectors];
  for (size_t i = 0; i < 4; ++i)
    for (size_t v = 0; v < n_vectors; ++v) sum[i][v] = load(c + i * stride + v * lanes);
  for (size_t r = 0; r < panel_rows; ++r, a += stride, b += stride)
    for (size_t i = 0; i < 4; ++i)
      for (size_t v = 0; v < n_vectors; ++v) sum[i][v] = multiply_add(broadcast(-a[i]), load(b + v * lanes), sum[i][v]);
  for (size_t i = 0; i < 4; ++i)
    for (size_t v = 0; v < n_vectors; ++v) store(c + i * stride + v * lanes, sum[i][v]);
}

}  // namespace

bool ActiveFactor::append(const double* products, double square) {
  const size_t k = size_;
  reserve(k + 1);
  work_.assign(products, products + k);
  solve_transposed(work_.data());
  last_pivot_ = square - dot(work_.data(), work_.data(), k);
  if (!(last_pivot_ > safe * square) && is_dependent(square)) return false;
  for (size_t i = 0; i < k; ++i) row(i)[k] = work_[i];
  row(k)[k] = std::sqrt(last_pivot_);
  inverse_[k] = 1 / row(k)[k];
  roots_[k] = std::sqrt(square);
  ++size_;
  return true;
}

// The pivot is |x_j - X a|^2; with n = |x_j| + sum_i |a_i||x_i| its rounding is some 2^-50 n^2.
bool ActiveFactor::is_dependent(double square) const {
  std::vector<double> a = work_;
  solve_upper(a.data());
  double length = std::sqrt(square);
  for (size_t i = 0; i < size_; ++i) length += std::fabs(a[i]) * roots_[i];
  return !(last_pivot_ > std::max(floor * square, rounding * length * length));
}

// Without row p, the rows below hold U_33'U_33 + x x' with x = row p: one rotation a row takes x in.
void ActiveFactor::remove(size_t p) {
  const size_t k = --size_;
  std::copy(roots_.begin() + static_cast<ptrdiff_t>(p + 1), roots_.begin() + static_cast<ptrdiff_t>(k + 1),
            roots_.begin() + static_cast<ptrdiff_t>(p));
  for (size_t i = 0; i < p; ++i) std::copy(row(i) + p + 1, row(i) + k + 1, row(i) + p);
  work_.assign(row(p) + p + 1, row(p) + k + 1);
  for (size_t i = p; i < k; ++i) {
    const double* from = row(i + 1) + i + 1;
    double* to = row(i) + i;
    double* x = work_.data() + (i - p);
    const double length = std::sqrt(from[0] * from[0] + x[0] * x[0]);
    const double cosine = from[0] / length, sine = x[0] / length;
    to[0] = length;
    inverse_[i] = 1 / length;
    const size_t n = k - i;
    size_t j = 1;
    const Vec c = broadcast(cosine), s = broadcast(sine);
    for (; j + lanes <= n; j += lanes) {
      const Vec u = load(from + j), v = load(x + j);
      store(to + j, multiply_add(c, u, s * v));
      store(x + j, multiply_add(c, v, -(s * u)));
    }
    for (; j < n; ++j) {
      const double u = from[j], v = x[j];
      to[j] = multiply_add(cosine, u, sine * v);
      x[j] = multiply_add(cosine, v, -(sine * u));
    }
  }
}

// Panels of rows: factor the panel, then take its products from the rows below while it stays in cache. Of the rows
// that were there before only the new columns change.
bool ActiveFactor::extend(const std::vector<double>& entries, size_t count, Crew& crew) {
  const size_t old = size_, k = old + count;
  reserve(k);
  for (size_t a = 0; a < count; ++a) {
    const double* from = &entries[a * k];
    for (size_t i = 0; i < old; ++i) row(i)[old + a] = from[i];
    std::copy(from + old + a, from + k, row(old + a) + old + a);
    roots_[old + a] = std::sqrt(from[old + a]);
  }
  size_ = k;
  for (size_t begin = 0; begin < k; begin += panel_rows) {
    if (!crew.keep_going()) throw Interrupted();
    const size_t end = std::min(begin + panel_rows, k);
    if (!factor_panel(begin, end, old)) {
      size_ = old;
      return false;
    }
    for (size_t i = end; i < k; i += 4) update_rows(begin, i, old);
  }
  return true;
}

// Storage has room for whole vectors and groups of four rows past the end; what lands there is never read.
void ActiveFactor::update_rows(size_t begin, size_t i, size_t old) {
  size_t j = std::max(i, old);
  for (; j + 3 * lanes <= size_; j += 3 * lanes)
    subtract_products<3>(row(i) + j, row(begin) + i, row(begin) + j, stride_);
  for (; j < size_; j += lanes) subtract_products<1>(row(i) + j, row(begin) + i, row(begin) + j, stride_);
}

bool ActiveFactor::factor_panel(size_t begin, size_t end, size_t old) {
  const size_t k = size_;
  for (size_t i = begin; i < end; ++i) {
    if (i >= old) {
      const double pivot = row(i)[i];
      if (!(pivot > safe * roots_[i] * roots_[i])) return false;
      row(i)[i] = std::sqrt(pivot);
      inverse_[i] = 1 / row(i)[i];
    }
    for (size_t j = std::max(i + 1, old); j < k; ++j) row(i)[j] *= inverse_[i];
    for (size_t r = i + 1; r < end; ++r) {
      const size_t from = std::max(r, old);
      subtract_row(row(r) + from, row(i) + from, row(i)[r], k - from);
    }
  }
  return true;
}

void ActiveFactor::solve(double* b) const {
  solve_transposed(b);
  solve_upper(b);
}

void ActiveFactor::solve_transposed(double* b) const {
  const size_t k = size_;
  size_t i = 0;
  for (; i + 4 <= k; i += 4) {
    double x[4];
    for (size_t r = 0; r < 4; ++r) {
      x[r] = b[i + r];
      for (size_t s = 0; s < r; ++s) x[r] = multiply_add(-x[s], row(i + s)[i + r], x[r]);
      x[r] *= inverse_[i + r];
      b[i + r] = x[r];
    }
    const size_t at = i + 4;
    subtract_rows(b + at, {row(i) + at, row(i + 1) + at, row(i + 2) + at, row(i + 3) + at}, x, k - at);
  }
  for (; i < k; ++i) {
    b[i] *= inverse_[i];
    subtract_row(b + i + 1, row(i) + i + 1, b[i], k - i - 1);
  }
}

void ActiveFactor::solve_upper(double* b) const {
  const size_t k = size_;
  size_t end = k;
  for (; end % 4 != 0; --end) {
    const size_t i = end - 1;
    b[i] = (b[i] - dot(row(i) + end, b + end, k - end)) * inverse_[i];
  }
  for (; end > 0; end -= 4) {
    const size_t i = end - 4;
    double products[4];
    dot_rows(products, {row(i) + end, row(i + 1) + end, row(i + 2) + end, row(i + 3) + end}, b + end, k - end);
    for (size_t r = 4; r-- > 0;) {
      double rest = b[i + r] - products[r];
      for (size_t s = r + 1; s < 4; ++s) rest = multiply_add(-row(i + r)[i + s], b[i + s], rest);
      b[i + r] = rest * inverse_[i + r];
    }
  }
}

void ActiveFactor::reserve(size_t k) {
  if (k + 4 <= stride_) return;
  // Eight more than a multiple of 64: rows of a panel do not share the same few cache sets.
  const size_t wider = (std::max(stride_ + stride_ / 2, k + 4) + 63) / 64 * 64 + 8;
  std::vector<double> upper(wider * wider);
  for (size_t i = 0; i < size_; ++i) std::copy(row(i) + i, row(i) + size_, &upper[i * wider + i]);
  upper_ = std::move(upper);
  stride_ = wider;
  inverse_.resize(wider);
  roots_.resize(wider);
}

}  // namespace certifit
