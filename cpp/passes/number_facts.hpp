// What a survey of a table adds up about columns of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace certifit {

struct NumberFacts {
  std::vector<double> lower, upper, mean, squares;  // squares about the mean; a mean that overflows is not finite
  std::vector<uint64_t> fingerprint;                // sum_i h(x_i) key_i mod 2^64
};

// Of n lines of m finite numbers, m >= 1. keys: m of every line, `key_stride` apart (0: the same for all lines).
NumberFacts number_facts(const double* x, size_t n, size_t m, const uint64_t* keys, size_t key_stride);

}  // namespace certifit
