#include "pool.hpp"

#include <algorithm>
#include <cstring>

#include "lanes.hpp"

namespace certifit::margin {
namespace {

constexpr size_t width = 256;   // columns of a tile
constexpr size_t batch = 1024;  // rows that are made at a time
constexpr uint32_t probes = 16;

template <class Real>
Real whole_power(Real base, int degree) {
  Real result = 1;
  for (; degree > 0; degree >>= 1, base *= base)
    if (degree & 1) result *= base;
  return result;
}

// sum[k] += c row[k]
template <class Real>
void add_multiple(double c, const Real* row, double* sum, size_t n) {
  for (size_t k = 0; k < n; ++k) sum[k] += c * static_cast<double>(row[k]);
}

}  // namespace

template <class Real>
KernelPool<Real>::KernelPool(GemmOf<Real> gemm, const KernelForm& form, const double* points, size_t n, size_t d,
                             size_t most_rows)
    : gemm_(gemm),
      form_(form),
      n_(n),
      d_(d),
      most_rows_(std::min(n, most_rows)),
      points_(points, points + n * d),
      squares_(n),
      diagonal_(n),
      place_(n, -1) {
  for (size_t i = 0; i < n; ++i) {
    double square = 0.0;
    for (size_t j = 0; j < d; ++j) square += static_cast<double>(points_[i * d + j]) * points_[i * d + j];
    squares_[i] = static_cast<Real>(square);
    Real value = squares_[i];
    if (form.kind == KernelForm::Kind::gaussian) value = 1;
    if (form.kind == KernelForm::Kind::polynomial)
      value = whole_power(static_cast<Real>(form.constant) + value, form.degree);
    diagonal_[i] = value;
  }
}

template <class Real>
KernelPool<Real>::KernelPool(const double* matrix, size_t n) : n_(n), given_(matrix, matrix + n * n), diagonal_(n) {
  for (size_t i = 0; i < n; ++i) diagonal_[i] = given_[i * n + i];
}

template <class Real>
void KernelPool<Real>::form_row(Real square, const Real* squares, Real* g, size_t n) const {
  using L = Lanes<Real>;
  using V = typename L::V;
  if (form_.kind == KernelForm::Kind::polynomial)
    for (size_t k = 0; k < n; ++k) g[k] = whole_power(static_cast<Real>(form_.constant) + g[k], form_.degree);
  if (form_.kind != KernelForm::Kind::gaussian) return;
  const V zero{}, half = all_lanes(Real(-0.5)), first = all_lanes(square);
  auto of = [&](V product, V other) {
    const V distance = fused<Real>(all_lanes(Real(-2)), product, first + other);
    return exponential(half * (distance > zero ? distance : zero));
  };
  size_t k = 0;
  for (; k + L::n <= n; k += L::n) store_lanes(g + k, of(load_lanes(g + k), load_lanes(squares + k)));
  if (k == n) return;
  Real product[L::n] = {}, other[L::n] = {};
  std::copy(g + k, g + n, product);
  std::copy(squares + k, squares + n, other);
  store_lanes(product, of(load_lanes(product), load_lanes(other)));
  std::copy(product, product + (n - k), g + k);
}

// C = A B', A of a rows, B the points from `first`; both have d columns.
template <class Real>
void KernelPool<Real>::products(const Real* A, size_t a, size_t first, size_t b, Real* C, size_t stride) const {
  char transposed = 'T', plain = 'N';
  int m = static_cast<int>(b), n = static_cast<int>(a), k = static_cast<int>(d_), ld = static_cast<int>(d_);
  int ldc = static_cast<int>(stride);
  Real one = 1, zero = 0;
  gemm_(&transposed, &plain, &m, &n, &k, &one, const_cast<Real*>(points_.data() + first * d_), &ld,
        const_cast<Real*>(A), &ld, &zero, C, &ldc);
}

template <class Real>
void KernelPool<Real>::among(const std::vector<uint32_t>& rows, Real* K, size_t stride, Crew& crew) const {
  const size_t q = rows.size();
  if (!given_.empty()) {
    for (size_t s = 0; s < q; ++s)
      for (size_t t = 0; t < q; ++t) K[s * stride + t] = given_[rows[s] * n_ + rows[t]];
    return;
  }
  std::vector<Real> chosen(q * d_), squares(q);
  for (size_t s = 0; s < q; ++s) {
    std::copy_n(points_.data() + rows[s] * d_, d_, chosen.data() + s * d_);
    squares[s] = squares_[rows[s]];
  }
  constexpr size_t strip = 128;
  crew.for_each_block((q + strip - 1) / strip, [&](size_t block) {
    const size_t first = block * strip, a = std::min(strip, q - first);
    char transposed = 'T', plain = 'N';
    int m = static_cast<int>(q), n = static_cast<int>(a), k = static_cast<int>(d_), ld = static_cast<int>(d_);
    int ldc = static_cast<int>(stride);
    Real one = 1, zero = 0;
    gemm_(&transposed, &plain, &m, &n, &k, &one, chosen.data(), &ld, chosen.data() + first * d_, &ld, &zero,
          K + first * stride, &ldc);
    for (size_t s = first; s < first + a; ++s) form_row(squares[s], squares.data(), K + s * stride, q);
  });
  for (size_t s = 0; s < q; ++s) K[s * stride + s] = diagonal_[rows[s]];
}

template <class Real>
Real* KernelPool<Real>::slot_for(uint32_t row, size_t& n_busy) {
  if (n_busy == most_rows_) return nullptr;  // every slot is asked for at this moment
  ++n_busy;
  uint32_t chosen = static_cast<uint32_t>(slots_.size());
  if (slots_.size() < most_rows_) {
    slots_.emplace_back();
    slots_.back().values.reset(new Real[n_]);
  } else {
    // The oldest of a few: an order of all of them would have to be kept.
    for (uint32_t tried = 0; tried < probes || chosen == slots_.size(); ++tried) {
      probe_ = probe_ * 6364136223846793005ULL + 1442695040888963407ULL;
      const uint32_t slot = static_cast<uint32_t>((probe_ >> 33) % slots_.size());
      if (slots_[slot].used == clock_) continue;
      if (chosen == slots_.size() || slots_[slot].used < slots_[chosen].used) chosen = slot;
    }
    place_[slots_[chosen].row] = -1;
  }
  slots_[chosen].row = row;
  slots_[chosen].used = clock_;
  place_[row] = chosen;
  return slots_[chosen].values.get();
}

template <class Real>
void KernelPool<Real>::add(const std::vector<uint32_t>& rows, const std::vector<double>& coefficients, double* f,
                           Crew& crew) {
  for (size_t begin = 0; begin < rows.size(); begin += batch) {
    const size_t end = std::min(rows.size(), begin + batch);
    std::vector<const Real*> kept;
    std::vector<Real*> made;
    std::vector<double> of_kept, of_made;
    std::vector<Real> chosen, squares;
    ++clock_;
    size_t n_busy = 0;
    for (size_t t = begin; t < end; ++t) {
      if (given_.empty() && place_[rows[t]] < 0) continue;
      ++n_busy;
      if (given_.empty()) slots_[place_[rows[t]]].used = clock_;
      kept.push_back(given_.empty() ? slots_[place_[rows[t]]].values.get() : given_.data() + rows[t] * n_);
      of_kept.push_back(coefficients[t]);
    }
    for (size_t t = begin; t < end && given_.empty(); ++t) {
      if (place_[rows[t]] >= 0) continue;
      made.push_back(slot_for(rows[t], n_busy));
      of_made.push_back(coefficients[t]);
      chosen.insert(chosen.end(), points_.begin() + rows[t] * d_, points_.begin() + (rows[t] + 1) * d_);
      squares.push_back(squares_[rows[t]]);
    }
    n_made += made.size();
    n_reused += kept.size();
    auto work = [&](size_t block) {
      const size_t first = block * width, b = std::min(width, n_ - first);
      double sums[width] = {};
      std::vector<Real> tile(made.size() * width);
      if (!made.empty()) products(chosen.data(), made.size(), first, b, tile.data(), width);
      for (size_t t = 0; t < made.size(); ++t) {
        Real* row = tile.data() + t * width;
        form_row(squares[t], squares_.data() + first, row, b);
        if (made[t] != nullptr) std::copy_n(row, b, made[t] + first);
        add_multiple(of_made[t], row, sums, b);
      }
      for (size_t t = 0; t < kept.size(); ++t) add_multiple(of_kept[t], kept[t] + first, sums, b);
      for (size_t k = 0; k < b; ++k) f[first + k] += sums[k];
    };
    try {
      crew.for_each_block((n_ + width - 1) / width, work);
    } catch (...) {  // rows that were begun are not whole
      slots_.clear();
      std::fill(place_.begin(), place_.end(), -1);
      throw;
    }
  }
}

template class KernelPool<float>;
template class KernelPool<double>;

}  // namespace certifit::margin
