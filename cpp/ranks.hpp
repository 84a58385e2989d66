// What ranks tell about scores of two classes: the area under the ROC curve, the counts behind ROC and
// precision-recall curves, placements, and bootstrap replicates. Equal scores count half.
//
//   AUC = P(score of a positive > score of a negative) + P(equal) / 2
//
// Every function throws NotANumber for a NaN, naming its first row. Infinities are scores like any other.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "sorted_scores.hpp"

namespace certifit {

__extension__ typedef unsigned __int128 Wide;

// t of a positive: twice the negatives below it, plus those equal to it. t of a negative: twice the positives above it,
// plus those equal to it. Both sum to `twice`, and AUC = twice / (2 n_negatives n_positives). All exact integers.
struct PlacementSums {
  uint64_t n_negatives = 0, n_positives = 0, twice = 0;
  Wide positive_squares = 0, negative_squares = 0;  // sums of t^2
};
PlacementSums placement_sums(const Scores& scores, Crew& crew);

// t / (2 n) of every row, n the number of rows of the other class: the share of the other class that the row beats.
std::vector<double> placements(const Scores& scores, Crew& crew);

// AUC with a weight a row. The weights of each class must have a positive sum.
double weighted_auc(const Scores& scores, const double* weight, Crew& crew);

// The distinct scores in descending order, and the weight (or the number, without weights) of each class that has them.
struct ScoreGroups {
  std::vector<double> score, positives, negatives;
};
ScoreGroups score_groups(const Scores& scores, const double* weight, Crew& crew);

// AUC or average precision of samples of n_rows rows drawn with repetition; a weight stays with its row. Replicate b
// draws the same rows for any scores: it depends on (n_rows, seed, b) alone, or on the labels and weights too where a
// draw has one class only. Such a draw is thrown away and drawn anew; `redrawn` counts them.
// After one sort a replicate takes O(n) time and 6 n bytes (10 n with weights) a thread.
enum class Measure { auc, average_precision };
struct Replicates {
  std::vector<double> values;
  uint64_t redrawn = 0;
};
Replicates bootstrap(const Scores& scores, const double* weight, Measure measure, size_t n_replicates, uint64_t seed,
                     Crew& crew);

}  // namespace certifit
