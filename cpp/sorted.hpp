// A column in ascending order, with the row that each value came from.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
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

// Between two neighbours of a column: the lower one where float64 has nothing between them.
inline double halfway(double low, double high) {
  const double middle = low / 2 + high / 2;
  return middle >= low && middle < high ? middle : low;
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

constexpr size_t digit_bits = 11, n_digits = 6;

// By digits [first, end), least significant first; keys that are equal in them stay in order. Digits that all keys
// share are skipped.
template <size_t first, size_t end>
void sort_by_digits(std::vector<Key>& keys, std::vector<Key>& other) {
  constexpr size_t n_values = 1 << digit_bits;
  std::vector<std::array<uint32_t, n_values>> counts(end - first);
  auto digit = [](uint64_t bits, size_t d) { return (bits >> (d * digit_bits)) & (n_values - 1); };
  for (const Key& key : keys)
    for (size_t d = first; d < end; ++d) ++counts[d - first][digit(key.bits, d)];
  other.resize(keys.size());
  for (size_t d = first; d < end; ++d) {
    auto& places = counts[d - first];
    if (keys.empty() || places[digit(keys[0].bits, d)] == keys.size()) continue;
    uint32_t begin = 0;
    for (uint32_t& place : places) begin += std::exchange(place, begin);
    for (const Key& key : keys) other[places[digit(key.bits, d)]++] = key;
    keys.swap(other);
  }
}

// Insertion, where no key is far from its place; false where one is, and the keys are in some order.
inline bool is_sorted_nearby(std::vector<Key>& keys) {
  constexpr size_t most_steps = 16;
  for (size_t k = 1; k < keys.size(); ++k) {
    if (keys[k].bits >= keys[k - 1].bits) continue;
    const Key key = keys[k];
    size_t place = k;
    for (; place > 0 && keys[place - 1].bits > key.bits; --place) {
      if (k - place == most_steps) {
        keys[place] = key;
        return false;
      }
      keys[place] = keys[place - 1];
    }
    keys[place] = key;
  }
  return true;
}

// Stable. The upper half of the bits tells most keys apart: it is sorted by digits, the rest by insertion. Where keys
// are too many for that, all digits are.
inline void radix_sort(std::vector<Key>& keys, std::vector<Key>& other) {
  sort_by_digits<n_digits / 2, n_digits>(keys, other);
  if (!is_sorted_nearby(keys)) sort_by_digits<0, n_digits>(keys, other);
}

inline void radix_sort(std::vector<Key>& keys) {
  std::vector<Key> other;
  radix_sort(keys, other);
}

// Keys of one column after the other, in memory that threads hand on: fresh pages cost as much as a sort.
class KeySorter {
 public:
  // use(keys) of n keys in ascending order; bits(i): of row i.
  template <class Bits, class Use>
  void sort(size_t n, Bits bits, Use use) {
    auto [keys, other] = taken();
    keys.resize(n);
    for (size_t i = 0; i < n; ++i) keys[i] = {bits(i), static_cast<uint32_t>(i)};
    radix_sort(keys, other);
    use(keys);
    std::lock_guard<std::mutex> hold(lock_);
    free_.emplace_back(std::move(keys), std::move(other));
  }

 private:
  using Pair = std::pair<std::vector<Key>, std::vector<Key>>;
  Pair taken() {
    std::lock_guard<std::mutex> hold(lock_);
    if (free_.empty()) return {};
    Pair pair = std::move(free_.back());
    free_.pop_back();
    return pair;
  }
  std::mutex lock_;
  std::vector<Pair> free_;
};

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
