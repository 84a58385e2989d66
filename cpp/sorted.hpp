// A column in ascending order, with the row that each value came from.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace certifit {

// The values brought near 1 by a power of two: neither differences nor squares overflow.
struct Sorted {
  std::vector<double> values;
  std::vector<uint32_t> rows;
  size_t size() const { return values.size(); }
  bool is_constant() const { return values.empty() || values.front() == values.back(); }
};

// Unsigned integers in the order of the doubles.
inline uint64_t ordered_bits(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  return bits ^ ((bits >> 63) ? ~0ULL : 1ULL << 63);
}
inline double from_ordered_bits(uint64_t bits) {
  return std::bit_cast<double>(bits ^ ((bits >> 63) ? 1ULL << 63 : ~0ULL));
}

inline double power_near_one(const double* values, size_t n) {
  double largest = 0;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(values[i]));
  return largest > 0 ? std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000)) : 1.0;
}

struct Key {
  uint64_t bits;
  uint32_t row;
};

// Least significant digit first, eleven bits at a time; digits that all keys share are skipped.
inline void radix_sort(std::vector<Key>& keys) {
  constexpr size_t digit_bits = 11, n_digits = 6, n_values = 1 << digit_bits;
  std::vector<std::array<uint32_t, n_values>> counts(n_digits);
  auto digit = [](uint64_t bits, size_t d) { return (bits >> (d * digit_bits)) & (n_values - 1); };
  for (const Key& key : keys)
    for (size_t d = 0; d < n_digits; ++d) ++counts[d][digit(key.bits, d)];
  std::vector<Key> other(keys.size());
  for (size_t d = 0; d < n_digits; ++d) {
    auto& places = counts[d];
    if (keys.empty() || places[digit(keys[0].bits, d)] == keys.size()) continue;
    uint32_t begin = 0;
    for (uint32_t& place : places) begin += std::exchange(place, begin);
    for (const Key& key : keys) other[places[digit(key.bits, d)]++] = key;
    keys.swap(other);
  }
}

inline Sorted sorted(const double* values, size_t n) {
  const double power = power_near_one(values, n);
  std::vector<Key> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = {ordered_bits(values[i] * power + 0.0), static_cast<uint32_t>(i)};
  radix_sort(keys);
  Sorted column{std::vector<double>(n), std::vector<uint32_t>(n)};
  for (size_t i = 0; i < n; ++i) {
    column.values[i] = from_ordered_bits(keys[i].bits);
    column.rows[i] = keys[i].row;
  }
  return column;
}

// Summed in order of size, so that the order of the rows does not matter; about the median, so that nothing cancels.
inline double standard_deviation(const std::vector<double>& ascending) {
  const double n = static_cast<double>(ascending.size()), centre = ascending[ascending.size() / 2];
  double sum = 0, squares = 0;
  for (double x : ascending) sum += x - centre;
  const double mean = sum / n;
  for (double x : ascending) squares += (x - centre - mean) * (x - centre - mean);
  return std::sqrt(squares / n);
}

}  // namespace certifit
