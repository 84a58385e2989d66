#include "gaussian_sums.hpp"

#include <algorithm>

#include "lanes.hpp"

namespace certifit::margin {
namespace {

constexpr size_t six = 6;  // with two vectors of x, what sixteen registers hold
constexpr size_t panels_of_block = 16;
constexpr size_t terms_of_tile = 252;

// Sums at eight x.
struct Sums {
  Vec low, high;

  explicit Sums(const double* from) : low(load(from)), high(load(from + lanes)) {}
  void add(Floats x) {
    low += low_half(x);
    high += high_half(x);
  }
  void write(double* to) const {
    store(to, low);
    store(to + lanes, high);
  }
};

// sum += the sum over six z of c 2^(product - half - |z|^2 / 2). is_near: no exponent leaves the range of the power.
template <bool is_near>
inline void add_gaussians(const Floats* product, Floats half, const float* of_z, const float* c, Sums& sum) {
  Floats total{};
#pragma GCC unroll 6
  for (size_t j = 0; j < six; ++j) {
    const Floats exponent = product[j] - (half + all_lanes(of_z[j]));
    total = fused<float>(all_lanes(c[j]), is_near ? power_of_two(exponent) : gaussian(exponent), total);
  }
  sum.add(total);
}

// The sum over six z of c 2^(x'z - |x|^2 / 2 - |z|^2 / 2), of sixteen x. z: coordinate by coordinate.
template <bool is_near>
inline void add_six(const float* x, Floats half_a, Floats half_b, const float* z, const float* half, const float* c,
                    size_t d, Sums& sum_a, Sums& sum_b) {
  Floats a[six] = {}, b[six] = {};
  for (size_t k = 0; k < d; ++k, x += Panels::width, z += six) {
    const Floats first = load_lanes(x), second = load_lanes(x + Lanes<float>::n);
#pragma GCC unroll 6
    for (size_t j = 0; j < six; ++j) {
      const Floats times = all_lanes(z[j]);
      a[j] = fused<float>(times, first, a[j]);
      b[j] = fused<float>(times, second, b[j]);
    }
  }
  add_gaussians<is_near>(a, half_a, half, c, sum_a);
  add_gaussians<is_near>(b, half_b, half, c, sum_b);
}

// Rows in float32 as `Panels` wants them, and halves of their squares, which are those of the rounded rows.
struct Short {
  std::vector<float> points, halves;

  Short(const double* rows, size_t n, size_t d) : points(n * d), halves(n) {
    for (size_t k = 0; k < n * d; ++k) points[k] = static_cast<float>(rows[k] * scale_of_points<float>);
    for (size_t i = 0; i < n; ++i) {
      double square = 0.0;
      for (size_t k = 0; k < d; ++k) square += static_cast<double>(points[i * d + k]) * points[i * d + k];
      halves[i] = static_cast<float>(square / 2);
    }
  }
};

}  // namespace

Panels::Panels(const float* points, const float* of, size_t n, size_t d) : n(n), d(d) {
  const size_t padded = (n + width - 1) / width * width;
  values.resize(padded * d);
  halves.resize(padded);
  std::copy_n(of, n, halves.begin());
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, of[i]);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < d; ++k) values[(i / width * d + k) * width + i % width] = points[i * d + k];
}

Terms::Terms(size_t n, size_t d) : d_(d) {
  const size_t padded = (n + six - 1) / six * six;
  points_.resize(padded * d);
  halves_.resize(padded);
  coefficients_.resize(padded);
}

void Terms::add(const float* point, float half, float coefficient) {
  const size_t place = n_ % six;
  float* at = points_.data() + (n_ - place) * d_ + place;
  for (size_t k = 0; k < d_; ++k) at[k * six] = point[k];
  halves_[n_] = half;
  largest_ = std::max(largest_, half);
  coefficients_[n_++] = coefficient;
}

// sums[k] += of terms `first` to `last` at the sixteen points of a panel.
template <bool is_near>
void Terms::add_tile(const Panels& x, size_t panel, size_t first, size_t last, double* sums) const {
  constexpr size_t eight = Lanes<float>::n;
  const Floats half_a = load_lanes(&x.halves[panel * Panels::width]);
  const Floats half_b = load_lanes(&x.halves[panel * Panels::width + eight]);
  const float* values = x.values.data() + panel * Panels::width * d_;
  Sums sum_a(sums), sum_b(sums + eight);
  for (size_t j = first; j < last; j += six)
    add_six<is_near>(values, half_a, half_b, points_.data() + j * d_, halves_.data() + j, coefficients_.data() + j, d_,
                     sum_a, sum_b);
  sum_a.write(sums);
  sum_b.write(sums + eight);
}

void Terms::add_sums(const Panels& x, double* f, Crew& crew) const {
  const size_t n_panels = x.halves.size() / Panels::width;
  // |x - z|^2 <= 2 |x|^2 + 2 |z|^2
  const bool is_near = 2 * (x.largest + largest_) < -least_exponent;
  const auto add_tile = is_near ? &Terms::add_tile<true> : &Terms::add_tile<false>;
  crew.for_each_block((n_panels + panels_of_block - 1) / panels_of_block, [&](size_t block) {
    const size_t first = block * panels_of_block, last = std::min(n_panels, first + panels_of_block);
    double sums[panels_of_block * Panels::width] = {};
    for (size_t begin = 0; begin < n_ && crew.keep_going(); begin += terms_of_tile)
      for (size_t panel = first; panel < last; ++panel)
        (this->*add_tile)(x, panel, begin, std::min(n_, begin + terms_of_tile), sums + (panel - first) * Panels::width);
    const size_t begin = first * Panels::width, n = std::min(x.n - begin, (last - first) * Panels::width);
    for (size_t k = 0; k < n; ++k) f[begin + k] += sums[k];
  });
}

void gaussian_sums(const double* X, size_t n, const double* Z, size_t m, size_t d, const double* c, double* out,
                   Crew& crew) {
  const Short x(X, n, d), z(Z, m, d);
  Terms terms(m, d);
  for (size_t j = 0; j < m; ++j) terms.add(z.points.data() + j * d, z.halves[j], static_cast<float>(c[j]));
  std::fill(out, out + n, 0.0);
  terms.add_sums(Panels(x.points.data(), x.halves.data(), n, d), out, crew);
}

}  // namespace certifit::margin
