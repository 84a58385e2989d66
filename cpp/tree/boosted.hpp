// What rows say about a tree of boosting: where each of them ends, and what slopes, curvatures and weights add up to.
#pragma once

#include "tree.hpp"

namespace certifit {

// Per leaf: sums of slopes, of curvatures, of sizes of slopes and of weights over the rows that are drawn.
struct LeafSums {
  std::vector<double> sums;  // four per node, zeros at nodes that are no leaves
  std::vector<int32_t> leaves;
  void add(const LeafSums& other) {
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += other.sums[k];
  }
};

// X: row after row, values or ranks. is_drawn: of every row, or null where all are.
template <class Number>
LeafSums sum_leaves(const Number* X, size_t n_rows, size_t n_columns, const Paths& paths, const double* slope,
                    const double* curvature, const double* weight, const uint8_t* is_drawn, Crew& crew);

}  // namespace certifit
