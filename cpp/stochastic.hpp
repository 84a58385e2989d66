// Learning row by row, in a given order of the rows.
// A step:  w -= step_t (mean over a batch of l'(y, z) x  +  strengths w),  z = offset + b + x'w; b alike, unpenalised.
// Of the squared loss and single rows it is the rule of Widrow and Hoff: w += step (y - z) x.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "loss.hpp"
#include "parallel.hpp"
#include "tile.hpp"

namespace certifit {

struct Schedule {
  enum class Kind { constant, inverse, inverse_root };
  Kind kind = Kind::constant;
  double step = 0, decay = 0;

  double at(uint64_t t) const {  // t steps were taken before
    switch (kind) {
      case Kind::inverse: return step / (1 + decay * static_cast<double>(t));
      case Kind::inverse_root: return step / std::sqrt(1 + decay * static_cast<double>(t));
      default: return step;
    }
  }
};
inline constexpr int n_schedules = 3;

struct Learned {
  std::vector<double> weights;  // n_columns
  double intercept = 0;
  std::vector<double> sums;  // of the weights after every step; empty where they are not averaged
  double sum_intercept = 0;
  uint64_t n_steps = 0;
  bool is_finite = true;  // steps end where a score no longer is
};

// Row numbers in the order of their visits; nullptr: all rows as they stand.
struct Order {
  const int64_t* rows = nullptr;
  size_t count = 0;
  size_t operator[](size_t k) const { return rows ? static_cast<size_t>(rows[k]) : k; }
};

struct StochasticTask {
  const double* y;
  const double* offset;     // may be null
  const double* strengths;  // of the penalty, one a column
  bool fit_intercept;
  Loss loss;
  double parameter;
  size_t batch_rows;
  Schedule schedule;
};

// One pass over the rows of `order`.
void stochastic_pass(const Rows& rows, const StochasticTask& task, const Order& order, Learned& state, Crew& crew);

struct Mistakes {
  uint64_t count = 0;
  bool is_finite = true;
};

// One pass of the perceptron: w += step y x, b += step y where y (b + x'w) <= threshold, y = -1 or 1.
Mistakes perceptron_pass(const Rows& rows, const double* y, const Order& order, double threshold, double step,
                         bool fit_intercept, Learned& state, Crew& crew);

// Steps of the primal: theta += y x where y x'theta factor_k < 1. sums += late_k y x beside it: what is left of a step
// in the average of all states.
void margin_steps(const Rows& rows, const double* y, const Order& order, const double* factor, const double* late,
                  Learned& state, Crew& crew);

// |x|^2 of every row.
std::vector<double> row_squares(const Rows& rows, Crew& crew);

// A number of 64 bits for each row's values and those beside it (y, offset): equal for equal rows.
std::vector<uint64_t> row_hashes(const Rows& rows, std::span<const double* const> beside, Crew& crew);

}  // namespace certifit
