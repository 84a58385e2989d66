#include "draws.hpp"

#include <algorithm>
#include <functional>

namespace certifit {
namespace {

// A place on [0, total).
double place_of(Philox& random, double total) {
  const double high = random.next() * 0x1p-32;
  return (high + random.next() * 0x1p-64) * total;
}

// The first one whose end is above a place.
size_t index_of(const std::vector<double>& ends, double place) {
  const auto at = std::upper_bound(ends.begin(), ends.end(), place);
  return std::min(static_cast<size_t>(at - ends.begin()), ends.size() - 1);
}

// draw() so many times; a stop is answered.
template <class Draw>
void repeat(size_t n_draws, Crew& crew, const Draw& draw) {
  constexpr size_t at_once = size_t{1} << 16;
  for (size_t begin = 0; begin < n_draws; begin += at_once) {
    if (!crew.keep_going()) throw Interrupted();
    for (size_t k = begin; k < std::min(n_draws, begin + at_once); ++k) draw();
  }
}

}  // namespace

DrawnRows drawn_rows(const TreeRows& rows) {
  DrawnRows out{rows.n_rows, {}};
  const auto& weight = rows.weight;
  if (std::adjacent_find(weight.begin(), weight.end(), std::not_equal_to<>()) == weight.end()) return out;
  for (size_t begin = 0; begin < rows.n_rows; begin += summed_block) {
    double total = 0;
    for (size_t i = begin; i < std::min(rows.n_rows, begin + summed_block); ++i) total += weight[i];
    out.block_weights.push_back(total);
  }
  return out;
}

std::vector<uint32_t> draws_of_blocks(const DrawnRows& rows, uint64_t seed, size_t tree, Crew& crew) {
  std::vector<double> ends;
  double total = 0;
  for (const double weight : rows.block_weights) ends.push_back(total += weight);
  std::vector<uint32_t> draws(rows.n_blocks(), 0);
  if (draws.size() == 1) return {static_cast<uint32_t>(rows.n_rows)};
  Philox random(seed, 2 * tree + 1);
  repeat(rows.n_rows, crew, [&] {
    const size_t block = rows.is_weighted() ? index_of(ends, place_of(random, total))
                                            : random.below(static_cast<uint32_t>(rows.n_rows)) / summed_block;
    ++draws[block];
  });
  return draws;
}

void draw_block(const double* weight, size_t n, uint32_t n_draws, uint64_t seed, size_t tree, size_t block,
                uint32_t* draws, Crew& crew) {
  Philox random(seed, 2 * tree + (uint64_t{block} << 32));
  if (!weight) {
    repeat(n_draws, crew, [&] { ++draws[random.below(static_cast<uint32_t>(n))]; });
    return;
  }
  std::vector<double> ends(n);
  double total = 0;
  for (size_t i = 0; i < n; ++i) ends[i] = total += weight[i];
  repeat(n_draws, crew, [&] { ++draws[index_of(ends, place_of(random, total))]; });
}

std::vector<uint32_t> drawn(const TreeRows& rows, uint64_t seed, size_t tree, Crew& crew) {
  const DrawnRows all = drawn_rows(rows);
  const std::vector<uint32_t> of_blocks = draws_of_blocks(all, seed, tree, crew);
  std::vector<uint32_t> draws(rows.n_rows, 0);
  for (size_t block = 0; block < of_blocks.size(); ++block) {
    const size_t begin = block * summed_block, n = std::min(summed_block, rows.n_rows - begin);
    draw_block(all.is_weighted() ? rows.weight.data() + begin : nullptr, n, of_blocks[block], seed, tree, block,
               draws.data() + begin, crew);
  }
  return draws;
}

}  // namespace certifit
