// Four vectors of four numbers as a square that is turned.
#pragma once

#include "simd.hpp"

namespace certifit {

// Four rows of a square as its columns, which are so many numbers apart.
inline void store_turned(Vec a, Vec b, Vec c, Vec d, double* out, size_t stride) {
  const Vec even_ab = __builtin_shufflevector(a, b, 0, 4, 2, 6), odd_ab = __builtin_shufflevector(a, b, 1, 5, 3, 7);
  const Vec even_cd = __builtin_shufflevector(c, d, 0, 4, 2, 6), odd_cd = __builtin_shufflevector(c, d, 1, 5, 3, 7);
  store(out, __builtin_shufflevector(even_ab, even_cd, 0, 1, 4, 5));
  store(out + stride, __builtin_shufflevector(odd_ab, odd_cd, 0, 1, 4, 5));
  store(out + 2 * stride, __builtin_shufflevector(even_ab, even_cd, 2, 3, 6, 7));
  store(out + 3 * stride, __builtin_shufflevector(odd_ab, odd_cd, 2, 3, 6, 7));
}

}  // namespace certifit
