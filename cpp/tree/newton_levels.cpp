#include "newton_levels.hpp"

#include "newton_search.hpp"

namespace certifit {
namespace {

constexpr size_t beyond = 256;  // cells behind a histogram: a code that no bin has stays inside

Cell cell_at(const int64_t* words) { return {words[0], static_cast<uint64_t>(words[1])}; }

}  // namespace

bool NewtonSizes::is_finite() const { return std::isfinite(slopes) && std::isfinite(curvatures); }

void NewtonSizes::add(const NewtonSizes& other) {
  slopes += other.slopes;
  curvatures += other.curvatures;
  n_drawn += other.n_drawn;
}

void NewtonSizes::add(const NewtonPart& part) {
  const size_t size = summed_rows(1);
  for (size_t begin = 0; begin < part.n_rows; begin += size) {
    PackedSizes block;
    size_t n = 0;
    for (size_t i = begin; i < std::min(part.n_rows, begin + size); ++i)
      if (!part.is_drawn || part.is_drawn[i]) {
        block.add(part.slope[i], part.curvature[i]);
        ++n;
      }
    add({block.a, block.b, n});
  }
}

PackedUnits units_of(const NewtonSizes& sizes) { return {{sizes.slopes, sizes.curvatures}, sizes.n_drawn}; }

size_t summed_rows(size_t n_nodes) { return std::clamp<size_t>(std::bit_ceil(4 * n_nodes), 16384, 262144); }

size_t n_words(const NewtonColumns& columns) {
  size_t n = 0;
  for (size_t k = 0; k < columns.n_tried; ++k) n += 2 * (columns.n_bins[columns.tried[k]] + size_t{1});
  return n;
}

std::vector<int64_t> leaf_histograms(const uint8_t* codes, size_t n_columns, const NewtonColumns& columns,
                                     const NewtonPart& part, const NewtonSizes& sizes, const int32_t* slot,
                                     size_t n_slots, Crew& crew) {
  const PackedUnits packed = units_of(sizes);
  const NewtonPlan plan{};
  const NewtonSearch search(columns, plan, packed);
  const uint32_t* first = search.first();
  std::vector<std::vector<Cell>> cells(n_slots, std::vector<Cell>(search.n_cells() + beyond, Cell{}));
  for (size_t i = 0; i < part.n_rows; ++i) {
    if (i % 65536 == 0 && !crew.keep_going()) throw Interrupted();
    if (slot[i] < 0 || (part.is_drawn && !part.is_drawn[i])) continue;
    const Cell term = packed.term(part.slope[i], part.curvature[i]);
    const uint8_t* code = codes + i * n_columns;
    Cell* of_leaf = cells[static_cast<size_t>(slot[i])].data();
    for (size_t k = 0; k < columns.n_tried; ++k) of_leaf[first[k] + code[columns.tried[k]]] += term;
  }
  std::vector<int64_t> words;
  words.reserve(2 * n_slots * search.n_cells());
  for (const std::vector<Cell>& of_leaf : cells)
    for (size_t k = 0; k < search.n_cells(); ++k)
      words.insert(words.end(), {of_leaf[k].sum, static_cast<int64_t>(of_leaf[k].mass)});
  return words;
}

std::vector<LevelSplit> best_splits(const std::vector<LevelLeaf>& leaves, const NewtonColumns& columns,
                                    const NewtonPlan& plan, const NewtonSizes& sizes, Crew& crew) {
  const PackedUnits packed = units_of(sizes);
  NewtonSearch search(columns, plan, packed);
  std::vector<Cell> cells(search.n_cells() + beyond);
  std::vector<LevelSplit> out;
  for (const LevelLeaf& leaf : leaves) {
    for (size_t k = 0; k < search.n_cells(); ++k) cells[k] = cell_at(leaf.words + 2 * k);
    const Cell sum = cell_at(leaf.sum);
    const NewtonLeaf searched{sum, {leaf.low, leaf.high}, packed.rows(sum)};
    const NewtonSplit split = search.best({{cells.data(), searched}}, crew)[0];
    const Bounds left = search.bounds_of(searched, split, 0), right = search.bounds_of(searched, split, 1);
    out.push_back({split.is_found,
                   split.is_missing_left,
                   split.gain,
                   split.column,
                   split.bin,
                   split.levels,
                   {split.left.sum, static_cast<int64_t>(split.left.mass)},
                   {left.low, left.high, right.low, right.high}});
  }
  return out;
}

std::vector<int32_t> lead_codes(const uint8_t* codes, size_t n_rows, size_t n_columns, const NewtonColumns& columns,
                                const std::vector<NewtonNode>& nodes, const std::vector<Levels>& sets,
                                const int32_t* start, Crew& crew) {
  std::vector<int32_t> out(n_rows);
  const NewtonPaths paths(columns, nodes, sets);
  constexpr size_t block = 16384;
  crew.for_each_block((n_rows + block - 1) / block, [&](size_t b) {
    for (size_t i = b * block; i < std::min(n_rows, (b + 1) * block); ++i)
      out[i] = paths.leaf_of(codes + i * n_columns, start[i]);
  });
  return out;
}

void add_leaf_sums(const NewtonPart& part, const double* weight, const int32_t* leaves, std::vector<NewtonSums>& sums) {
  const size_t size = summed_rows(sums.size());
  for (size_t begin = 0; begin < part.n_rows; begin += size) {
    std::vector<NewtonSums> block(sums.size());
    for (size_t i = begin; i < std::min(part.n_rows, begin + size); ++i)
      if (!part.is_drawn || part.is_drawn[i])
        block[static_cast<size_t>(leaves[i])].add(part.slope[i], part.curvature[i], weight[i]);
    for (size_t node = 0; node < sums.size(); ++node) sums[node].add(block[node].g, block[node].h, block[node].weight);
  }
}

void settle_nodes(std::vector<NewtonNode>& nodes, std::vector<NewtonSums>& sums, const NewtonPlan& plan) {
  for (size_t node = sums.size(); node-- > 0;) {
    if (const auto left = static_cast<size_t>(nodes[node].left); left != 0)
      sums[node] = {sums[left].g + sums[left + 1].g, sums[left].h + sums[left + 1].h,
                    sums[left].weight + sums[left + 1].weight};
  }
  std::vector<Bounds> bounds(sums.size());
  const auto step = [&](size_t node, const Bounds& within) {
    const double mass = sums[node].h + plan.ridge;
    return mass > 0 ? std::clamp(-sums[node].g / mass, within.low, within.high) : 0.0;
  };
  const auto taken = [&](size_t node) {
    const double at = nodes[node].value;
    return -at * (2 * sums[node].g + (sums[node].h + plan.ridge) * at);
  };
  for (size_t node = 0; node < sums.size(); ++node) {
    NewtonNode& made = nodes[node];
    made.weight = sums[node].weight;
    made.value = step(node, bounds[node]);
    const auto left = static_cast<size_t>(made.left);
    if (left == 0) continue;
    const int direction = plan.direction ? plan.direction[made.feature] : 0;
    const double sides[2] = {step(left, bounds[node]), step(left + 1, bounds[node])};
    for (const size_t side : {size_t{0}, size_t{1}})
      bounds[left + side] = halved(bounds[node], direction, side, sides[0], sides[1]);
  }
  for (size_t node = 0; node < sums.size(); ++node)
    if (const auto left = static_cast<size_t>(nodes[node].left); left != 0)
      nodes[node].gain = std::max(0.0, taken(left) + taken(left + 1) - taken(node));
}

}  // namespace certifit
