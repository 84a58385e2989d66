// What boosted trees add to the scores of rows.
#pragma once

#include "tree.hpp"

namespace certifit {

// A tree and what its leaves add.
struct AddedTree {
  Paths paths;
  const double* values;
};

// scores: rows x width, to which tree t adds in column (first + t) % width. Whether no value of a row is infinite.
bool add_trees(const Rows& rows, const std::vector<AddedTree>& trees, size_t first, size_t width, double* scores,
               Crew& crew);

}  // namespace certifit
