// One loss, one set of weights a training set: chord steps of all folds at once need one pass over the rows.
#pragma once

#include "../loss.hpp"
#include "score_weights.hpp"

namespace certifit {

// Score k is trained on the rows of cell c train[k, c] times and validated validation[k, c] times; rows of a negative
// cell neither. Both are K x cells.count.
struct Training {
  Cells cells;
  const double* train;
  const double* validation;
};

// y: one number a row; offset may be null. gradient: (n_columns + 1) x K. own, K numbers each: sums of the loss over
// the training rows, sums of the loss over the validating rows, their weights. Without values the first two are 0.
ManySums fold_scores(const Rows& rows, const double* y, const double* weight, const double* offset,
                     const Training& training, const Scaling& scaling, const ScoreWeights& state, Loss loss,
                     double parameter, bool with_value, size_t block_rows, Crew& crew);

}  // namespace certifit
