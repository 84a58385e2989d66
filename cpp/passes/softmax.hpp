// Cross-entropy of classes, l = log sum_k e^(z_k) - z_y, with one score z_k a class: its sums over rows.
#pragma once

#include "score_weights.hpp"

namespace certifit {

// own: value sum_i w_i l_i; gradient: sum_i w_i (x_i, 1) (p_i - e_y)'. y are codes 0 .. K - 1.
ManySums softmax(const Rows& rows, const double* y, const double* weight, const Scaling& scaling,
                 const ScoreWeights& state, size_t block_rows, Crew& crew);

// gradient: sum_i w_i (x_i, 1) (p_i (q_i - p_i'q_i))', q_i the scores of `direction`: the Hessian times a direction.
ManySums softmax_product(const Rows& rows, const double* weight, const Scaling& scaling, const ScoreWeights& state,
                         const ScoreWeights& direction, size_t block_rows, Crew& crew);

// A point of the dual: q_i = (1 - share) p'_i + share mix, where p' are the chances after `lift` is added to the
// scores.
struct Mixture {
  const double* lift;
  const double* mix;
  double share;
};

// own: sum_i w_i KL(q_i, p_i), then sum_i w_i (diag(p'_i) - p'_i p'_i'), K x K; gradient: sum_i w_i (x_i, 1) (q_i -
// e_y)'.
ManySums softmax_dual(const Rows& rows, const double* y, const double* weight, const Scaling& scaling,
                      const ScoreWeights& state, const Mixture& mixture, size_t block_rows, Crew& crew);

// sum_i w_i p_ik p_il (x_i, 1)(x_i, 1)' for all classes k < l, pair after pair: the Hessian in K (K - 1) / 2 parts.
std::vector<double> softmax_pairs(const Rows& rows, const double* weight, const Scaling& scaling,
                                  const ScoreWeights& state, size_t block_rows, Crew& crew);

}  // namespace certifit
