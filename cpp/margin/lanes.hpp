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

// The first four and the last four floats as doubles. One vector of all eight is more than a register of AVX2, and GCC
// moves its parts through memory.
inline Vec low_half(Floats x) { return __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1, 2, 3), Vec); }
inline Vec high_half(Floats x) { return __builtin_convertvector(__builtin_shufflevector(x, x, 4, 5, 6, 7), Vec); }

// Points of a Gaussian kernel are multiplied by this: those in float32 so that the exponent is one of 2, which is cut
// into whole number and rest without a product.
template <class Real>
inline constexpr double scale_of_points = sizeof(Real) == 4 ? 0x1.337cc2183b05p0 : 1.0;  // sqrt(log2(e))

constexpr float least_exponent = -125.0f;  // 2 to less is not normal

// 2^x for x from `least_exponent` to 1, within 5 units of 2^-24.
inline Floats power_of_two(Floats x) {
  const Floats magic = all_lanes(0x1.8p23f);  // adding it rounds to a whole number, which stands in the lowest bits
  const Floats t = x + magic, r = x - (t - magic);
  // Nearest to 2^r for |r| <= 1/2 among the polynomials of degree 5 that are 1 at 0.
  Floats p = fused<float>(r, all_lanes(0x1.5b4ddap-10f), all_lanes(0x1.3ce34p-7f));
  p = fused<float>(r, p, all_lanes(0x1.c6b836p-5f));
  p = fused<float>(r, p, all_lanes(0x1.ebf9dep-3f));
  p = fused<float>(r, p, all_lanes(0x1.62e42ap-1f));
  p = fused<float>(r, p, all_lanes(1.0f));
  // Moved to the exponent the whole number multiplies by its power of 2.
  return (Floats)((Int32s)p + ((Int32s)t << 23));
}

// The Gaussian kernel of an exponent; what rounding made positive is 0.
inline Floats gaussian(Floats exponent) {
  return power_of_two(most_of(least_of(exponent, Floats{}), all_lanes(least_exponent)));
}
inline Vec gaussian(Vec exponent) { return exponential_below_zero(choose(exponent < Vec{}, exponent, Vec{})); }

}  // namespace certifit::margin
