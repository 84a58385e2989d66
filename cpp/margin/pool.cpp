#include "pool.hpp"

#include <algorithm>

#include "lanes.hpp"

namespace certifit::margin {
namespace {

constexpr size_t width = 256;   // columns of a tile
constexpr size_t height = 128;  // rows of a tile
constexpr size_t batch = 1024;  // rows that are made at a time
constexpr size_t group = 8;     // terms of a sum that are added before they join it in float64
constexpr size_t depth = 192;   // columns whose products are added before they join the others: less is lost
constexpr size_t slab_bytes = size_t{1} << 25;
constexpr uint32_t probes = 16;
constexpr size_t few_columns = 64;  // of points whose products stay in registers; a BLAS is faster with more

template <class Real>
Real whole_power(Real base, int degree) {
  Real result = 1;
  for (; degree > 0; degree >>= 1, base *= base)
    if (degree & 1) result *= base;
  return result;
}

inline void add_to(double* sum, Vec x) { store(sum, load(sum) + x); }
inline void add_to(double* sum, Floats x) {
  add_to(sum, low_half(x));
  add_to(sum + lanes, high_half(x));
}

// sum[k] += sum_t c[t] rows[t][k], k < n
template <class Real>
void add_multiples(const std::vector<const Real*>& rows, const double* c, double* sum, size_t n) {
  using L = Lanes<Real>;
  using V = typename L::V;
  for (size_t first = 0; first < rows.size(); first += group) {
    const Real* row[group];
    Real times[group];
    for (size_t t = 0; t < group; ++t) {
      const bool is_one = first + t < rows.size();
      row[t] = rows[is_one ? first + t : first];
      times[t] = is_one ? static_cast<Real>(c[first + t]) : Real(0);
    }
    size_t k = 0;
    for (; k + L::n <= n; k += L::n) {
      V total = all_lanes(times[0]) * load_lanes(row[0] + k);
      for (size_t t = 1; t < group; ++t) total = fused<Real>(all_lanes(times[t]), load_lanes(row[t] + k), total);
      add_to(sum + k, total);
    }
    for (; k < n; ++k) {
      Real total = 0;
      for (size_t t = 0; t < group; ++t) total += times[t] * row[t][k];
      sum[k] += static_cast<double>(total);
    }
  }
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
      points_(n * d),
      squares_(n),
      diagonal_(n),
      place_(n, -1) {
  const double scale = form.kind == KernelForm::Kind::gaussian ? scale_of_points<Real> : 1.0;
  for (size_t k = 0; k < n * d; ++k) points_[k] = static_cast<Real>(points[k] * scale);
  for (size_t i = 0; i < n; ++i) {
    double square = 0.0;
    for (size_t j = 0; j < d; ++j) square += static_cast<double>(points_[i * d + j]) * points_[i * d + j];
    squares_[i] = static_cast<Real>(square / 2);
    Real value = static_cast<Real>(square);
    if (form.kind == KernelForm::Kind::gaussian) value = 1;
    if (form.kind == KernelForm::Kind::polynomial)
      value = whole_power(static_cast<Real>(form.constant) + value, form.degree);
    diagonal_[i] = value;
  }
  if constexpr (sizeof(Real) == 4)
    if (form.kind == KernelForm::Kind::gaussian && most_rows_ == 0 && d <= few_columns)
      panels_.emplace(points_.data(), squares_.data(), n, d);
}

template <class Real>
KernelPool<Real>::KernelPool(const double* matrix, size_t n) : n_(n), given_(matrix, matrix + n * n), diagonal_(n) {
  for (size_t i = 0; i < n; ++i) diagonal_[i] = given_[i * n + i];
}

template <class Real>
KernelPool<Real>::KernelPool(KernelPool& all, const std::vector<uint32_t>& rows, Crew& crew)
    : gemm_(all.gemm_),
      form_(all.form_),
      n_(rows.size()),
      d_(all.d_),
      most_rows_(n_),
      diagonal_(n_),
      slabs_(std::move(all.memory_of_parts)) {
  for (size_t i = 0; i < n_; ++i) diagonal_[i] = all.diagonal_[rows[i]];
  if (!all.given_.empty()) {
    given_.resize(n_ * n_);
    for (size_t i = 0; i < n_; ++i)
      for (size_t j = 0; j < n_; ++j) given_[i * n_ + j] = all.given_[rows[i] * all.n_ + rows[j]];
    return;
  }
  place_.assign(n_, -1);
  for (uint32_t row : rows) {
    points_.insert(points_.end(), all.points_.begin() + row * d_, all.points_.begin() + (row + 1) * d_);
    squares_.push_back(all.squares_[row]);
  }
  std::vector<std::pair<const Real*, Real*>> kept;
  size_t n_busy = 0;
  for (uint32_t i = 0; i < n_; ++i)
    if (all.is_kept(rows[i])) kept.push_back({all.values_of(all.place_[rows[i]]), slot_for(i, n_busy)});
  constexpr size_t strip = 128;
  crew.for_each_block((kept.size() + strip - 1) / strip, [&](size_t block) {
    for (size_t i = block * strip; i < std::min(kept.size(), (block + 1) * strip); ++i)
      for (size_t t = 0; t < n_; ++t) kept[i].second[t] = kept[i].first[rows[t]];
  });
}

// Whether a row of the matrix is read faster than it is made: few columns are made faster.
template <class Real>
bool KernelPool<Real>::is_kept(uint32_t row) const {
  return d_ > few_columns && place_[row] >= 0;
}

template <class Real>
size_t KernelPool<Real>::rows_per_slab() const {
  return std::max<size_t>(slab_bytes / (n_ * sizeof(Real)), 1);
}

template <class Real>
void KernelPool<Real>::form_row(Real square, const Real* squares, Real* g, size_t n) const {
  using L = Lanes<Real>;
  using V = typename L::V;
  if (form_.kind == KernelForm::Kind::polynomial)
    for (size_t k = 0; k < n; ++k) g[k] = whole_power(static_cast<Real>(form_.constant) + g[k], form_.degree);
  if (form_.kind != KernelForm::Kind::gaussian) return;
  const V first = all_lanes(square);
  auto of = [&](V product, V other) { return gaussian(product - (first + other)); };
  size_t k = 0;
  for (; k + L::n <= n; k += L::n) store_lanes(g + k, of(load_lanes(g + k), load_lanes(squares + k)));
  if (k == n) return;
  Real product[L::n] = {}, other[L::n] = {};
  std::copy(g + k, g + n, product);
  std::copy(squares + k, squares + n, other);
  store_lanes(product, of(load_lanes(product), load_lanes(other)));
  std::copy(product, product + (n - k), g + k);
}

// C = A B', A of a rows and B of b, both of d columns.
template <class Real>
void KernelPool<Real>::multiply(const Real* A, size_t a, const Real* B, size_t b, Real* C, size_t stride) const {
  char transposed = 'T', plain = 'N';
  int m = static_cast<int>(b), n = static_cast<int>(a), ld = static_cast<int>(d_), ldc = static_cast<int>(stride);
  Real one = 1;
  for (size_t j = 0; j < std::max<size_t>(d_, 1); j += depth) {
    int k = static_cast<int>(std::min(depth, d_ - j));
    Real beta = j > 0 ? 1 : 0;
    gemm_(&transposed, &plain, &m, &n, &k, &one, const_cast<Real*>(B) + j, &ld, const_cast<Real*>(A) + j, &ld, &beta, C,
          &ldc);
  }
}

template <class Real>
const Real* KernelPool<Real>::among(const std::vector<uint32_t>& rows, size_t stride, Crew& crew) {
  const size_t q = rows.size();
  if (n_matrix_ < q * stride) {
    matrix_ = pages<Real>(q * stride);
    n_matrix_ = q * stride;
  }
  Real* K = matrix_.get();
  for (size_t s = 0; s < q; ++s) std::fill(K + s * stride + q, K + (s + 1) * stride, Real(0));
  if (!given_.empty()) {
    for (size_t s = 0; s < q; ++s)
      for (size_t t = 0; t < q; ++t) K[s * stride + t] = given_[rows[s] * n_ + rows[t]];
    return K;
  }
  // Rows of many columns that are kept are read: to make their products again takes longer.
  std::vector<const Real*> kept(q, nullptr);
  std::vector<uint32_t> fresh;  // places of the others
  std::vector<Real> chosen, squares;
  for (uint32_t s = 0; s < q; ++s) {
    if (is_kept(rows[s])) {
      kept[s] = values_of(place_[rows[s]]);
      continue;
    }
    fresh.push_back(s);
    chosen.insert(chosen.end(), points_.data() + rows[s] * d_, points_.data() + (rows[s] + 1) * d_);
    squares.push_back(squares_[rows[s]]);
  }
  constexpr size_t strip = 128;
  const size_t m = fresh.size();
  if (m < q)
    crew.for_each_block((q + strip - 1) / strip, [&](size_t block) {
      for (size_t s = block * strip; s < std::min(q, (block + 1) * strip); ++s)
        for (size_t t = 0; t < q && kept[s] != nullptr; ++t) K[s * stride + t] = kept[s][rows[t]];
    });
  crew.for_each_block((m + strip - 1) / strip, [&](size_t block) {
    const size_t first = block * strip, a = std::min(strip, m - first), length = m < q ? m : stride;
    std::vector<Real> own(m < q ? a * m : 0);
    Real* made = m < q ? own.data() : K + first * stride;
    multiply(chosen.data() + first * d_, a, chosen.data(), m, made, length);
    for (size_t s = 0; s < a; ++s) {
      form_row(squares[first + s], squares.data(), made + s * length, m);
      if (m == q) continue;
      const size_t at = fresh[first + s];
      for (size_t t = 0; t < q; ++t)
        if (kept[t] != nullptr) K[at * stride + t] = K[t * stride + at];
      for (size_t t = 0; t < m; ++t) K[at * stride + fresh[t]] = made[s * length + t];
    }
  });
  for (size_t s = 0; s < q; ++s) K[s * stride + s] = diagonal_[rows[s]];
  return K;
}

template <class Real>
Real* KernelPool<Real>::slot_for(uint32_t row, size_t& n_busy) {
  if (n_busy == most_rows_) return nullptr;  // every slot is asked for at this moment
  ++n_busy;
  uint32_t chosen = static_cast<uint32_t>(slots_.size());
  if (slots_.size() < most_rows_) {
    if (slots_.size() == slabs_.size() * rows_per_slab())
      slabs_.push_back(pages<Real>(std::max(slab_bytes / sizeof(Real), n_), false));
    slots_.emplace_back();
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
  return values_of(chosen);
}

// sums[k] += sum_t coefficient_t k(x_t, first + k), k < b, of all x of `fresh`.
template <class Real>
void KernelPool<Real>::add_new(const Fresh& fresh, size_t first, size_t b, double* sums) const {
  const std::unique_ptr<Real[]> tile(new Real[height * width]);
  std::vector<const Real*> parts;
  for (size_t top = 0; top < fresh.rows.size(); top += height) {
    const size_t a = std::min(height, fresh.rows.size() - top);
    multiply(fresh.points.data() + top * d_, a, points_.data() + first * d_, b, tile.get(), width);
    parts.clear();
    for (size_t t = 0; t < a; ++t) {
      Real *row = tile.get() + t * width, *kept = fresh.kept[top + t];
      const size_t own = fresh.rows[top + t];
      form_row(squares_[own], squares_.data() + first, row, b);
      // Of points far from 0 rounding may leave nothing of it, and steps would never be felt.
      if (form_.kind == KernelForm::Kind::gaussian && own - first < b) row[own - first] = diagonal_[own];
      if (kept != nullptr) std::copy_n(row, b, kept + first);
      parts.push_back(row);
    }
    add_multiples(parts, fresh.coefficients.data() + top, sums, b);
  }
}

template <class Real>
void KernelPool<Real>::add(const std::vector<uint32_t>& rows, const std::vector<double>& coefficients, double* f,
                           Crew& crew) {
  if constexpr (sizeof(Real) == 4)
    if (panels_) {
      n_made += rows.size();
      Terms terms(rows.size(), d_);
      for (size_t t = 0; t < rows.size(); ++t)
        terms.add(points_.data() + rows[t] * d_, squares_[rows[t]], static_cast<float>(coefficients[t]));
      return terms.add_sums(*panels_, f, crew);
    }
  for (size_t begin = 0; begin < rows.size(); begin += batch) {
    const size_t end = std::min(rows.size(), begin + batch);
    std::vector<const Real*> kept;
    std::vector<double> of_kept;
    Fresh fresh;
    ++clock_;
    size_t n_busy = 0;
    for (size_t t = begin; t < end; ++t) {
      if (given_.empty() && place_[rows[t]] < 0) continue;
      ++n_busy;
      if (given_.empty()) slots_[place_[rows[t]]].used = clock_;
      kept.push_back(given_.empty() ? values_of(place_[rows[t]]) : given_.data() + rows[t] * n_);
      of_kept.push_back(coefficients[t]);
    }
    for (size_t t = begin; t < end && given_.empty(); ++t) {
      if (place_[rows[t]] >= 0) continue;
      fresh.rows.push_back(rows[t]);
      fresh.kept.push_back(slot_for(rows[t], n_busy));
      fresh.coefficients.push_back(coefficients[t]);
      fresh.points.insert(fresh.points.end(), points_.data() + rows[t] * d_, points_.data() + (rows[t] + 1) * d_);
    }
    n_made += fresh.rows.size();
    n_reused += kept.size();
    auto work = [&](size_t block) {
      const size_t first = block * width, b = std::min(width, n_ - first);
      double sums[width] = {};
      if (!fresh.rows.empty()) add_new(fresh, first, b, sums);
      std::vector<const Real*> parts;
      for (const Real* row : kept) parts.push_back(row + first);
      add_multiples(parts, of_kept.data(), sums, b);
      for (size_t k = 0; k < b; ++k) f[first + k] += sums[k];
    };
    try {
      crew.for_each_block((n_ + width - 1) / width, work);
    } catch (...) {  // rows that were begun are not whole
      slots_.clear();
      slabs_.clear();
      std::fill(place_.begin(), place_.end(), -1);
      throw;
    }
  }
}

template class KernelPool<float>;
template class KernelPool<double>;

}  // namespace certifit::margin
