// The trees of newton.hpp on rows that are in parts, grown level by level: a part gives histograms of whole numbers,
// which add up to those of all rows, bit by bit; sums that are rounded go from part to part, in the order of the rows.
#pragma once

#include "newton.hpp"
#include "packed.hpp"

namespace certifit {

// Rows of a block whose sums, of so many nodes, are rounded: a power of two, so that parts are cut between blocks
// (models/trees/passes.py). Sums of blocks are added in the order of the rows.
size_t summed_rows(size_t n_nodes);

// Slopes and curvatures of the rows of a part, and which of them the tree is grown on; null: all.
struct NewtonPart {
  size_t n_rows;
  const double *slope, *curvature;
  const uint8_t* is_drawn;
};

// Of all rows that a tree is grown on: how many they are, and sums of |slopes| and of curvatures.
struct NewtonSizes {
  double slopes = 0, curvatures = 0;
  size_t n_drawn = 0;
  bool is_finite() const;
  void add(const NewtonSizes& other);
  void add(const NewtonPart& part);
};

PackedUnits units_of(const NewtonSizes& sizes);

// Words of a histogram: two per cell, {sum, mass}; cells of a column are its bins and the missing values.
size_t n_words(const NewtonColumns& columns);

// Histograms of some leaves, one after the other. slot: of every row the number of its leaf's histogram, or -1.
std::vector<int64_t> leaf_histograms(const uint8_t* codes, size_t n_columns, const NewtonColumns& columns,
                                     const NewtonPart& part, const NewtonSizes& sizes, const int32_t* slot,
                                     size_t n_slots, Crew& crew);

// A leaf to be split: words of its histogram and of its rows, bounds of its value.
struct LevelLeaf {
  const int64_t *words, *sum;
  double low, high;
};

// Its best split. left: words of the rows that go left; bounds: low and high of the left side, and of the right one.
struct LevelSplit {
  bool is_found, is_missing_left;
  double gain;
  size_t column, bin;
  Levels levels;
  int64_t left[2];
  double bounds[4];
};

std::vector<LevelSplit> best_splits(const std::vector<LevelLeaf>& leaves, const NewtonColumns& columns,
                                    const NewtonPlan& plan, const NewtonSizes& sizes, Crew& crew);

// Rows led on by their codes from the nodes where they are.
std::vector<int32_t> lead_codes(const uint8_t* codes, size_t n_rows, size_t n_columns, const NewtonColumns& columns,
                                const std::vector<NewtonNode>& nodes, const std::vector<Levels>& sets,
                                const int32_t* start, Crew& crew);

// Slopes, curvatures and weights of the rows of a leaf.
struct NewtonSums {
  double g = 0, h = 0, weight = 0;
  void add(double of_g, double of_h, double of_weight) {
    g += of_g;
    h += of_h;
    weight += of_weight;
  }
};

// Sums over the rows of a part added to those of the parts before it. leaves: of every row, numbers of `sums`.
void add_leaf_sums(const NewtonPart& part, const double* weight, const int32_t* leaves, std::vector<NewtonSums>& sums);

// Values, gains and weights of all nodes from sums of leaves, which are added up to those of the nodes above them.
void settle_nodes(std::vector<NewtonNode>& nodes, std::vector<NewtonSums>& sums, const NewtonPlan& plan);

}  // namespace certifit
