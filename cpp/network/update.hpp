// Steps of a stretch of parameters. Every number is rounded on its own, so any cut into stretches gives the same bits.
#pragma once

#include <cmath>
#include <cstring>

#include "../simd.hpp"

namespace certifit {

template <class T>
using Pack __attribute__((vector_size(32))) = T;

inline Pack<float> square_root(Pack<float> x) {
#if CERTIFIT_HAS_FMA
  return (Pack<float>)_mm256_sqrt_ps((__m256)x);
#else
  for (size_t j = 0; j < 8; ++j) x[j] = std::sqrt(x[j]);
  return x;
#endif
}
inline Pack<double> square_root(Pack<double> x) {
#if CERTIFIT_HAS_FMA
  return (Pack<double>)_mm256_sqrt_pd((__m256d)x);
#else
  for (size_t j = 0; j < 4; ++j) x[j] = std::sqrt(x[j]);
  return x;
#endif
}
inline float square_root(float x) { return std::sqrt(x); }
inline double square_root(double x) { return std::sqrt(x); }

// v = momentum v - step g,  w = w + v.
template <class T>
void descend(T momentum, T step, size_t n, const T* g, T* w, T* velocity) {
  for (size_t i = 0; i < n; ++i) {
    velocity[i] = momentum * velocity[i] - step * g[i];
    w[i] += velocity[i];
  }
}

// m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,  w = w - rate m / (sqrt(v grown) + epsilon); `rate` and
// `grown` undo the start of m and v at 0.
template <class T>
struct Adam {
  T beta1, beta2, rate, grown, epsilon;

  template <class V>
  void step(V g, V& w, V& m, V& v) const {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w = w - rate * m / (square_root(v * grown) + epsilon);
  }

  void operator()(size_t n, const T* g, T* w, T* m, T* v) const {
    constexpr size_t width = sizeof(Pack<T>) / sizeof(T);
    size_t i = 0;
    for (; i + width <= n; i += width) {
      Pack<T> slope, at, first, second;
      std::memcpy(&slope, g + i, sizeof slope);
      std::memcpy(&at, w + i, sizeof at);
      std::memcpy(&first, m + i, sizeof first);
      std::memcpy(&second, v + i, sizeof second);
      step(slope, at, first, second);
      std::memcpy(w + i, &at, sizeof at);
      std::memcpy(m + i, &first, sizeof first);
      std::memcpy(v + i, &second, sizeof second);
    }
    for (; i < n; ++i) step(g[i], w[i], m[i], v[i]);
  }
};

}  // namespace certifit
