// AdaBoost of stumps: in every round the stump of the least weighted error, over all columns and thresholds.
#pragma once

#include <functional>

#include "tree.hpp"

namespace certifit {

// Rows with x <= threshold are called `left`, the others `right`: codes of classes. A stump that calls all rows the
// same has the threshold infinity.
struct Stump {
  size_t feature = 0;
  double threshold = 0;
  size_t left = 0, right = 0;
  double error = 0;           // weighted, of weights that add up to 1
  double alpha = 0;           // its weight in the vote: rate (log((1 - error) / error) + log(K - 1))
  double training_error = 0;  // of the vote so far, by the first weights; a draw is an error
};

// tell: is told every round by the calling thread, where it is set; true ends the rounds.
std::vector<Stump> boost_stumps(TreeRows&& rows, size_t n_classes, size_t n_rounds, double rate, Crew& crew,
                                const std::function<bool(const Stump&)>& tell);

struct Votes {
  std::vector<double> scores;  // rows x classes: the sum of the alphas of the stumps that call a row so
  bool is_finite = true;       // no value of the rows is NaN or infinite
};

Votes vote(const Rows& rows, const std::vector<Stump>& stumps, size_t n_classes, Crew& crew);

}  // namespace certifit
