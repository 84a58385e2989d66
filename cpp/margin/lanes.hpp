// Numbers of a vector of 32 bytes: eight floats or four doubles, with what the pair selection and the kernels need.
#pragma once

#include <cstdint>
#include <limits>

#include "../elementary.hpp"

namespace certifit::margin {

typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Int32s __attribute__((vector_size(32)));

template <class Real>
struct Lanes;

template <>
struct Lanes<float> {
  using V = Floats;
  using I = Int32s;
  using Index = int32_t;
  static constexpr size_t n = 8;
  static constexpr I first{0, 1, 2, 3, 4, 5, 6, 7};
};

template <>
struct Lanes<double> {
  using V = Vec;
  using I = Int;
  using Index = int64_t;
  static constexpr size_t n = 4;
  static constexpr I first{0, 1, 2, 3};
};

template <class Real>
inline typename Lanes<Real>::V load_lanes(const Real* p) {
  typename Lanes<Real>::V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class Real>
inline void store_lanes(Real* p, typename Lanes<Real>::V v) {
  std::memcpy(p, &v, sizeof v);
}

template <class Real>
inline typename Lanes<Real>::V all_lanes(Real x) {
  return x - typename Lanes<Real>::V{};
}

template <class Real>
inline typename Lanes<Real>::V fused(typename Lanes<Real>::V a, typename Lanes<Real>::V b, typename Lanes<Real>::V c) {
#if CERTIFIT_HAS_FMA
  if constexpr (sizeof(Real) == 4)
    return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  else
    return multiply_add(a, b, c);
#else
  return a * b + c;
#endif
}

// a < b ? a : b and a > b ? a : b, so b where one is not a number.
inline Floats least_of(Floats a, Floats b) {
#if CERTIFIT_HAS_FMA
  return (Floats)_mm256_min_ps((__m256)a, (__m256)b);
#else
  return a < b ? a : b;
#endif
}
inline Floats most_of(Floats a, Floats b) {
#if CERTIFIT_HAS_FMA
  return (Floats)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return a > b ? a : b;
#endif
}

// exp(x) for x <= 0, within some units in the last place; below -87 it is that of -87.
inline Floats exponential_below_zero(Floats x) {
  x = most_of(x, all_lanes(-87.0f));
  const Floats magic = all_lanes(0x1.8p23f);
  const Floats t = fused<float>(x, all_lanes(0x1.715476p0f), magic);
  const Floats n = t - magic;
  Floats r = fused<float>(n, all_lanes(-0x1.62e4p-1f), x);
  r = fused<float>(n, all_lanes(-0x1.7f7d1cp-20f), r);
  const Floats r2 = r * r;
  auto pair = [&](float even, float odd) { return fused<float>(r, all_lanes(odd), all_lanes(even)); };
  const Floats high = fused<float>(r2, all_lanes(1.0f / 720), pair(1.0f / 24, 1.0f / 120));
  const Floats p = fused<float>(r2, fused<float>(r2, high, pair(0.5f, 1.0f / 6)), pair(1.0f, 1.0f));
  // n stands in the lowest bits of t; moved to the exponent it multiplies by 2^n.
  return (Floats)((Int32s)p + ((Int32s)t << 23));
}
using certifit::exponential_below_zero;

}  // namespace certifit::margin
