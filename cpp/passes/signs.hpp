// The sign of b + x'w of every row, exactly: what the rounding of a sum leaves open is summed without rounding.
#pragma once

#include <cstdint>
#include <vector>

#include "../parallel.hpp"
#include "../tile.hpp"

namespace certifit {

struct Signs {
  static constexpr int8_t unknown = 2;  // of a row whose products leave the range of float64
  std::vector<int8_t> sign;             // -1, 0, 1 or unknown
  std::vector<double> ratio;            // (b + x'w) / (|b| + |x|'|w|), from -1 to 1; 0 for 0 / 0
};

Signs exact_signs(const Rows& rows, const double* weights, double intercept, Crew& crew);

}  // namespace certifit
