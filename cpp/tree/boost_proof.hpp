// What a vote of stumps is on rows, derived again for its certificate. Nothing here is shared with the search.
#pragma once

#include <array>

#include "boost.hpp"

namespace certifit {

// Rounds played again with the stumps and alphas of a vote. Weights are known but for a factor per round.
struct Replay {
  // Per round: weights of the rows that are called wrong, and of all rows; first weights of the rows that have lost
  // after it, and of those whose lead is 0 but for rounding; the largest value on the left, the smallest on the right.
  std::vector<double> wrong, total, lost, drawn, below, above;
  // Per row: weights of one round, their sum over all rounds and over the rounds since the last power of two, those
  // after the last round; the vote for its class less the largest for another.
  std::vector<double> chosen, sum, since, last, leads;
};

// near: leads that are no further from 0 may be 0, per round. chosen: the round whose weights are kept.
Replay replay_stumps(const Rows& rows, const double* y, const double* weight, const std::vector<Stump>& stumps,
                     const double* near, size_t chosen, size_t n_classes, Crew& crew);

constexpr size_t n_edges = 4;  // weights of the rows that are tried side by side

// max |sum_i s_i f(x_i)| over all stumps f of -1 and 1, constants among them, for each of four s. signs: rows x 4.
std::array<double, n_edges> largest_edges(const Rows& rows, const double* signs, Crew& crew);

}  // namespace certifit
