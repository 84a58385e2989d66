// What a forest leaves to chance, as functions of numbers that every part of the rows knows: draws of rows by (seed,
// tree, block of rows), columns that a node tries by (seed, tree, way from the root). So rows in parts, and trees that
// are grown level by level, give the forest of rows in memory.
#pragma once

#include <numeric>

#include "../philox.hpp"
#include "tree.hpp"

namespace certifit {

// What draws must know of all rows. block_weights: of every block of `summed_block` rows; empty where all rows weigh
// the same.
struct DrawnRows {
  size_t n_rows = 0;
  std::vector<double> block_weights;

  bool is_weighted() const { return !block_weights.empty(); }
  size_t n_blocks() const { return (n_rows + summed_block - 1) / summed_block; }
};

DrawnRows drawn_rows(const TreeRows& rows);

// How many draws fall into every block, of as many as there are rows: neither the unit of the weights nor copies in
// place of weights change their number.
std::vector<uint32_t> draws_of_blocks(const DrawnRows& rows, uint64_t seed, size_t tree, Crew& crew);

// Which of the n rows of a block they fall on, each with a chance in proportion to its weight: adds to `draws`.
// weight: of these rows, null where all rows weigh the same.
void draw_block(const double* weight, size_t n, uint32_t n_draws, uint64_t seed, size_t tree, size_t block,
                uint32_t* draws, Crew& crew);

// How often each row is drawn for a tree.
std::vector<uint32_t> drawn(const TreeRows& rows, uint64_t seed, size_t tree, Crew& crew);

// The finaliser of SplitMix64.
inline uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// A number for every node of every tree.
inline uint64_t root_key(uint64_t seed, size_t tree) {
  return mixed(mixed(seed + 0x9E3779B97F4A7C15ULL) + 0xD1B54A32D192ED03ULL * (tree + 1));
}
inline uint64_t child_key(uint64_t key, bool is_right) {
  return mixed(key ^ (is_right ? 0xA0761D6478BD642FULL : 0xE7037ED1A0B428DBULL));
}

// Columns in the random order of a node.
class ColumnDraws {
 public:
  explicit ColumnDraws(size_t n_columns) : columns_(n_columns), n_left_(n_columns) {
    std::iota(columns_.begin(), columns_.end(), size_t{0});
  }

  // Columns are put back first: the order of a node does not hang on the node before.
  void begin(uint64_t key) {
    for (; !places_.empty(); places_.pop_back()) std::swap(columns_[places_.back()], columns_[n_left_++]);
    state_ = key;
  }
  size_t n_left() const { return n_left_; }
  size_t next() {
    places_.push_back(below(static_cast<uint32_t>(n_left_)));
    std::swap(columns_[places_.back()], columns_[--n_left_]);
    return columns_[n_left_];
  }

 private:
  // As for Philox.
  uint32_t below(uint32_t bound) {
    for (;;) {
      const uint64_t product = (mixed(state_ += 0x9E3779B97F4A7C15ULL) >> 32) * bound;
      const auto low = static_cast<uint32_t>(product);
      if (low >= bound || low >= -bound % bound) return static_cast<uint32_t>(product >> 32);
    }
  }

  std::vector<size_t> columns_;
  std::vector<uint32_t> places_;
  size_t n_left_;
  uint64_t state_ = 0;
};

}  // namespace certifit
