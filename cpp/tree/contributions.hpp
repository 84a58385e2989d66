// How much each column of a row moves what a tree says away from its mean: Shapley values of the game in which columns
// that do not take part send a row down both sides, by the shares of the weight that went there.
#pragma once

#include "tree.hpp"

namespace certifit {

// weight: of every node. values: n_values per node, read at leaves.
struct WeightedTree {
  Paths paths;
  const double *weight, *values;
  size_t n_values;
};

constexpr size_t deepest = 4096;  // most levels: every level is a call inside a call
size_t depth_of(const Paths& paths);

// Adds the contributions for one row to out: columns x width, those of value k at column * width + k.
void add_contributions(const WeightedTree& tree, const double* row, size_t width, double* out);

// The mean over the leaves by their weights, value by value.
std::vector<double> mean_of(const WeightedTree& tree);

}  // namespace certifit
