// exp, log and log1p of four numbers at a time, within two units in the last place.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace certifit {

typedef int64_t Int __attribute__((vector_size(32)));
typedef uint64_t Wrapping __attribute__((vector_size(32)));  // wraps where Int may not

inline Vec choose(Int condition, Vec yes, Vec no) { return (Vec)((condition & (Int)yes) | (~condition & (Int)no)); }
inline Vec greater(Vec a, Vec b) { return choose(a > b, a, b); }  // b where a is NaN

// exp(x) = 2^n exp(r), n = round(x / log 2), |r| <= log(2) / 2. 2^n in two factors, so that results may be subnormal.
inline Vec exponential(Vec x) {
  x = choose(x > broadcast(800.0), broadcast(800.0), x);
  x = choose(x < broadcast(-800.0), broadcast(-800.0), x);
  const Vec magic = broadcast(0x1.8p52);  // adding it rounds to a whole number, which stands in the lowest bits
  const Vec t = multiply_add(x, broadcast(0x1.71547652b82fep0), magic);
  const Vec n = t - magic;
  Vec r = multiply_add(n, broadcast(-0x1.62e42fefa38p-1), x);  // log 2 in two parts: n times the first is exact
  r = multiply_add(n, broadcast(-0x1.ef35793c76730p-45), r);
  // sum r^k / k!, k = 0 .. 13
  const Vec r2 = r * r, r4 = r2 * r2;
  auto pair = [&](double even, double odd) { return multiply_add(r, broadcast(odd), broadcast(even)); };
  const Vec low = multiply_add(r2, pair(1.0 / 2, 1.0 / 6), pair(1.0, 1.0));
  const Vec middle = multiply_add(r2, pair(1.0 / 720, 1.0 / 5040), pair(1.0 / 24, 1.0 / 120));
  const Vec high = multiply_add(r2, pair(1.0 / 3628800, 1.0 / 39916800), pair(1.0 / 40320, 1.0 / 362880));
  const Vec top = pair(1.0 / 479001600, 1.0 / 6227020800);
  const Vec p = multiply_add(r4, multiply_add(r4, multiply_add(r4, top, high), middle), low);
  const Int power = (Int)t - (Int)magic, half = power >> 1;
  const Int bias = {1023, 1023, 1023, 1023};
  return p * (Vec)((half + bias) << 52) * (Vec)((power - half + bias) << 52);
}

// exp(x) for x <= 0, within two units in the last place; 0 below -708, where floats lose bits. Half the work of
// `exponential`: a polynomial that is exp at Chebyshev's points of |r| <= log(2) / 2, within 5e-18, and one power of 2.
inline Vec exponential_below_zero(Vec x) {
  const Int is_normal = x >= broadcast(-708.0);
  const Vec magic = broadcast(0x1.8p52);
  const Vec t = multiply_add(x, broadcast(0x1.71547652b82fep0), magic);
  const Vec n = t - magic;
  Vec r = multiply_add(n, broadcast(-0x1.62e42fefa38p-1), x);
  r = multiply_add(n, broadcast(-0x1.ef35793c76730p-45), r);
  const Vec r2 = r * r, r4 = r2 * r2;
  auto pair = [&](double even, double odd) { return multiply_add(r, broadcast(odd), broadcast(even)); };
  const Vec low = multiply_add(r2, pair(0x1.0000000000011p-1, 0x1.555555555555ap-3), pair(1.0, 1.0));
  const Vec middle = multiply_add(r2, pair(0x1.6c16c1880029fp-10, 0x1.a01a01b1461c5p-13),
                                  pair(0x1.555555554f0bap-5, 0x1.111111110f21ep-7));
  const Vec high = multiply_add(r2, pair(0x1.28b4101c77212p-22, 0x1.af632a0f7e2cep-26),
                                pair(0x1.a01991a10d9aep-16, 0x1.71ddf56d8deb5p-19));
  const Vec p = multiply_add(r4, multiply_add(r4, high, middle), low);
  // n stands in the lowest bits of t; moved to the exponent it multiplies by 2^n.
  return (Vec)(is_normal & (Int)((Wrapping)p + ((Wrapping)t << 52)));
}

// log(x), x > 0 and normal: x = 2^k m, m in [0.7, 1.42); log m = 2 artanh(s), s = (m - 1) / (m + 1).
inline Vec logarithm(Vec x) {
  const Int one = {0x3ff0000000000000, 0x3ff0000000000000, 0x3ff0000000000000, 0x3ff0000000000000};
  const Int root = {0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd};  // 1 / sqrt 2
  const Int away = (Int)((Wrapping)x - (Wrapping)root);
  const Int power = away >> 52;
  const Vec m = (Vec)((Wrapping)x - (Wrapping)(power << 52));
  const Vec magic = broadcast(0x1.8p52);
  const Vec k = (Vec)(power + (Int)magic) - magic;
  const Vec f = m - (Vec)one;
  const Vec s = f / (broadcast(2.0) + f), s2 = s * s;
  Vec sum = broadcast(1.0 / 23);
  for (int odd = 21; odd >= 3; odd -= 2) sum = multiply_add(sum, s2, broadcast(1.0 / odd));
  // f - s f = 2 s exactly in real numbers; the small terms are added first.
  const Vec small = multiply_add(k, broadcast(0x1.ef35793c76730p-45), multiply_add(s * s2, sum + sum, -s * f));
  return multiply_add(k, broadcast(0x1.62e42fefa38p-1), f + small);
}

// log(1 + x), x >= 0: what rounding 1 + x lost is put back.
inline Vec logarithm_of_one_plus(Vec x) {
  const Vec u = broadcast(1.0) + x;
  return logarithm(u) + (x - (u - broadcast(1.0))) / u;
}

}  // namespace certifit
