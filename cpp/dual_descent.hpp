// A linear support vector machine by its multipliers, one at a time: each moves towards its best while the others stay.
//
//   maximise  sum_i a_i - sum_i diagonal_i a_i^2 / 2 - | sum_i y_i a_i x_i |^2 / 2,   0 <= a_i <= bound_i
//
// weights = sum_i y_i a_i x_i. The constraint sum_i y_i a_i = 0 of an intercept is met by the method of multipliers:
// intercept = centre + ridge sum_i y_i a_i, and after every pass the centre follows it.
//
// A row at a bound whose condition holds rests: it waits for one pass, then for two, four, up to `longest_wait`, until
// it moves again. Most rows of most problems end so.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "tile.hpp"

namespace certifit {

inline constexpr uint8_t longest_wait = 128;

struct DualTask {
  const double* y;
  const double* bound;
  const double* diagonal;
  const double* squares;  // |x|^2
  double ridge;
};

struct DualState {
  std::vector<double> a, weights;
  double intercept = 0;
  std::vector<uint8_t> wait;  // passes that a row waits when it rests again: 1 .. longest_wait
  std::vector<uint8_t> due;   // passes until its turn: 0 .. longest_wait
};

struct DualRound {
  std::vector<double> mean;  // of the weights after the passes
  double worst = 0;          // violation of the conditions of the optimum that was met
  size_t n_visits = 0;       // of single rows
};

// Passes in random orders, numbers `seed`, until rows were visited `n_visits` times.
DualRound dual_descent(const Rows& rows, const DualTask& task, size_t n_visits, uint64_t seed, DualState& state,
                       Crew& crew);

}  // namespace certifit
