// What goes into a pass of many scores per row, and what comes out of it.
#pragma once

#include "gram.hpp"

namespace certifit {

// K scores a row: weights of the scaled columns, n_columns x K, and K intercepts.
struct ScoreWeights {
  const double* weights;
  const double* intercepts;
  size_t n_scores;
};

struct ManySums {
  std::vector<double> gradient;  // (n_columns + 1) x n_slopes, the intercepts' last
  std::vector<double> own;       // what the rule sums

  void add(const ManySums& other) {
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += other.gradient[i];
    for (size_t i = 0; i < own.size(); ++i) own[i] += other.own[i];
  }
};

}  // namespace certifit
