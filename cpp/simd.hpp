// Four doubles at a time. The same source compiles to AVX2 + FMA or to the baseline instruction set;
// the multiply-add is explicit because the compiler is told never to fuse on its own.
// GCC 12 gets sums of `c ? p[i] : 0.0` in lanes wrong with AVX (its masked loads: 5 where 8 is right): read p[i] first,
// then choose. No such load is in the core as it is (`objdump -d _core_avx2*.so | grep -c maskmov` gives 0).
#pragma once

#ifdef CERTIFIT_ANY_PROCESSOR
#error "This file is compiled once for all processors: compute with vectors in a file of VECTORISED (CMakeLists.txt)."
#endif

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define CERTIFIT_HAS_FMA 1
#else
#define CERTIFIT_HAS_FMA 0
#endif

#include <cmath>
#include <cstddef>
#include <cstring>

namespace certifit {

typedef double Vec __attribute__((vector_size(32)));
inline constexpr size_t lanes = 4;

inline Vec load(const double* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(double* p, Vec v) { std::memcpy(p, &v, sizeof v); }
inline Vec broadcast(double x) { return Vec{x, x, x, x}; }

// a b + c: one rounding with FMA, two without.
inline double multiply_add(double a, double b, double c) {
#if CERTIFIT_HAS_FMA
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
inline Vec multiply_add(Vec a, Vec b, Vec c) {
#if CERTIFIT_HAS_FMA
  return (Vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

inline double absolute(double a) { return std::fabs(a); }
inline Vec absolute(Vec a) {
  typedef long long Bits __attribute__((vector_size(32)));
  constexpr long long mask = 0x7fffffffffffffffLL;
  return (Vec)((Bits)a & Bits{mask, mask, mask, mask});
}

}  // namespace certifit
