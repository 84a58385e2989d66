// Losses of rows at their scores, one by one.
#pragma once

#include <memory>
#include <vector>

#include "../loss.hpp"
#include "../parallel.hpp"

namespace certifit {

// Rows and their scores z. is_trained: null, all are. leaf: of every row, a number of `value`, which is added to its
// score before anything else; null: scores stay.
struct ScoredRows {
  size_t n_rows;
  const double *y, *weight, *z;
  const uint8_t* is_trained;
  const int32_t* leaf;
  const double* value;
};

// Slopes and curvatures by z times the rows' weights. score: where leaves moved it. sums: of every block of rows, its
// weighted losses, of the rows trained on and of the others.
struct RowLosses {
  std::unique_ptr<double[]> score, slope, curvature;
  std::vector<double> sums;
};

constexpr size_t loss_block = 16384;

RowLosses row_losses(Loss loss, double parameter, const ScoredRows& rows, Crew& crew);

}  // namespace certifit
