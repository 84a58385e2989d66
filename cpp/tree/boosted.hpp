// What rows say about a tree of boosting: where each of them ends, and what slopes, curvatures and weights add up to.
#pragma once

#include "../loss.hpp"
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

// Rows with their scores before some rounds. X: row after row, values or ranks. is_trained: null where all are.
template <class Number>
struct BoostedRows {
  size_t n_rows, n_columns;
  const Number* X;
  const double *y, *weight, *score;
  const uint8_t* is_trained;
  Loss loss;
  double parameter;
};

// What rows say about rounds of one tree each: sums over the leaves as above, of the slopes and curvatures at the
// scores before each round. losses: weighted, before every round and after the last one, of the rows trained on and of
// the others, two numbers each. scores: after the last round.
struct DerivedRounds {
  std::vector<double> sums, losses, scores;
  void add(const DerivedRounds& other) {
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += other.sums[k];
    for (size_t k = 0; k < losses.size(); ++k) losses[k] += other.losses[k];
  }
};

// values: of all nodes, what a leaf adds to a score. A tile of rows goes through all rounds while it is near.
template <class Number>
DerivedRounds derive_rounds(const BoostedRows<Number>& rows, const std::vector<Paths>& trees, const double* values,
                            Crew& crew);

}  // namespace certifit
