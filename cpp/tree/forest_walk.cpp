// Forests on rows: what they say, and what the rows that were drawn say of them. Nothing here knows how trees grow.
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>

#include "forest.hpp"

namespace certifit {
namespace {

// Rows that go through a tree one after the other: many, as it is read from memory once for all of them, but every
// thread has some. What a row gets does not depend on them.
size_t block_of(size_t n, const Crew& crew) { return std::clamp<size_t>(n / (4 * crew.n_threads()), 1024, 65536); }

size_t blocks_of(size_t n, size_t block_rows) { return (n + block_rows - 1) / block_rows; }

// Rows of a block, one after the other, all columns in their places.
std::vector<double> dense_block(const Rows& rows, size_t first, size_t count) {
  std::vector<double> scratch, block(count * rows.n_columns);
  WholeRows whole(rows);
  const Tile tile = read_tile(rows, first, count, scratch);
  for (size_t k = 0; k < count; ++k)
    std::copy_n(whole.row(tile, k, first + k), rows.n_columns, block.data() + k * rows.n_columns);
  return block;
}

// Values, or ranks, row after row. has_missing: of ranks, whether one of them is that of a missing value.
template <class Number>
struct LedRows {
  const Number* x;
  size_t n_columns;
  bool has_missing = true;

  LedRows(const Number* all, size_t p, size_t n_rows) : x(all), n_columns(p) {
    if constexpr (std::is_same_v<Number, uint8_t>) has_missing = std::memchr(all, Bins::missing, p * n_rows) != nullptr;
  }
};

// use(place, number of its leaf in one tree) of the rows of `places`.
template <class Number, class Use>
void lead(const LedRows<Number>& rows, const ForestPaths& forest, size_t tree, const std::vector<uint32_t>& places,
          Use use) {
  const Number* x = rows.x;
  const size_t n_columns = rows.n_columns;
  if constexpr (std::is_same_v<Number, uint8_t>)
    if (!forest.ranked.empty())
      return forest.ranked[tree].lead(x, n_columns, rows.has_missing, places.data(), places.size(), use);
  const Step* steps = forest.trees[tree].data();
  const auto use_node = [&](uint32_t place, int32_t node) { use(place, steps[node].feature); };
  if (!forest.n_levels) return for_each_leaf(x, n_columns, steps, places.data(), places.size(), use_node);
  Paths paths{};
  paths.n_levels = forest.n_levels;
  paths.sets = forest.sets;
  for (const uint32_t place : places) use_node(place, leaf_among_levels(x + place * n_columns, steps, paths));
}

size_t n_leaves_of(const ForestPaths& forest, size_t tree) {
  if (!forest.ranked.empty()) return forest.ranked[tree].n_leaves();
  size_t n_leaves = 0;
  for (const Step& step : forest.trees[tree]) n_leaves += step.left == 0;
  return n_leaves;
}

// Marks the levels that the nodes of a tree meet in some rows.
template <class Number>
void mark_levels(const LedRows<Number>& led, const ForestPaths& forest, size_t tree,
                 const std::vector<uint32_t>& places, Levels* seen) {
  const std::vector<Step>& steps = forest.trees[tree];
  for (const uint32_t place : places) {
    const Number* row = led.x + place * led.n_columns;
    for (size_t node = 0; steps[node].left != 0;) {
      const Step& step = steps[node];
      const uint8_t n_levels = forest.n_levels[step.feature];
      const double x = value_of(row[step.feature]);
      bool left = step.goes_left(x);
      if (n_levels != 0) {
        left = step.goes_left(x, n_levels, forest.sets);
        if (const size_t level = level_of(x, n_levels); level < n_levels)
          seen[node][level >> 6] |= uint64_t{1} << (level & 63);
      }
      node = static_cast<size_t>(step.left + (left ? 0 : 1));
    }
  }
}

// Whether a node sends some of the levels that none of its drawn rows has left, and others right.
bool divides_unseen_levels(const ForestPaths& forest, size_t tree, const Levels* seen) {
  const std::vector<Step>& steps = forest.trees[tree];
  for (size_t node = 0; node < steps.size(); ++node) {
    const size_t n_levels = steps[node].left != 0 ? forest.n_levels[steps[node].feature] : 0;
    if (n_levels == 0) continue;
    const uint64_t* set = forest.sets + 4 * static_cast<size_t>(steps[node].threshold);
    bool is_left = false, is_right = false;
    for (size_t level = 0; level < n_levels; ++level)
      if (!has_level(seen[node], level)) ((set[level >> 6] >> (level & 63)) & 1 ? is_left : is_right) = true;
    if (is_left && is_right) return true;
  }
  return false;
}

// Where the sums of a tree are.
struct SumsOfTree {
  double *sums, *mass;
  Levels* seen;
};

// Adds the rows that were drawn for one tree to its leaves.
template <class Number>
void add_leaves(const TreeRows& rows, const LedRows<Number>& led, const ForestPaths& forest, size_t tree,
                const std::vector<uint32_t>& draws, size_t n_classes, const SumsOfTree& to) {
  std::vector<uint32_t> places;
  for (size_t i = 0; i < rows.n_rows; ++i)
    if (draws[i] > 0) places.push_back(static_cast<uint32_t>(i));
  lead(led, forest, tree, places, [&](uint32_t i, size_t leaf) {
    to.mass[leaf] += draws[i];
    if (n_classes > 0)
      to.sums[leaf * forest.width + static_cast<size_t>(rows.y[i])] += draws[i];
    else
      to.sums[leaf] += draws[i] * rows.y[i];
  });
  if (forest.n_levels) mark_levels(led, forest, tree, places, to.seen);
}

// The largest deviation of the leaves of one tree from the rows that were drawn into them.
template <class Number>
double leaf_deviation(const TreeRows& rows, const LedRows<Number>& led, const ForestPaths& forest, size_t tree,
                      const std::vector<uint32_t>& draws, size_t n_classes, double size) {
  const size_t n_leaves = n_leaves_of(forest, tree);
  std::vector<double> sums(n_leaves * forest.width, 0.0), mass(n_leaves, 0.0);
  std::vector<Levels> seen(forest.n_levels ? forest.trees[tree].size() : 0, Levels{});
  add_leaves(rows, led, forest, tree, draws, n_classes, {sums.data(), mass.data(), seen.data()});
  if (forest.n_levels && divides_unseen_levels(forest, tree, seen.data()))
    return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t leaf = 0; leaf < n_leaves; ++leaf)
    for (size_t c = 0; c < forest.width; ++c) {
      const double off =
          std::fabs(sums[leaf * forest.width + c] / mass[leaf] - forest.values[tree][leaf * forest.width + c]);
      worst = std::max(worst, std::isnan(off) ? std::numeric_limits<double>::infinity() : off / size);
    }
  return worst;
}

using DrawnByTree = std::vector<std::vector<bool>>;

// What the trees that did not draw a row say of it.
template <class Number>
OutOfBag out_of_bag(const TreeRows& rows, const LedRows<Number>& led, const ForestPaths& forest,
                    const DrawnByTree& is_drawn, Crew& crew) {
  const size_t n = rows.n_rows, width = forest.width, block_rows = block_of(n, crew);
  OutOfBag out{std::vector<double>(n * width, 0.0), std::vector<double>(n, 0.0)};
  crew.for_each_block(blocks_of(n, block_rows), [&](size_t block) {
    const size_t end = std::min(n, (block + 1) * block_rows);
    std::vector<uint32_t> places;
    for (size_t t = 0; t < forest.n_trees(); ++t) {
      places.clear();
      for (size_t i = block * block_rows; i < end; ++i)
        if (!is_drawn[t][i]) places.push_back(static_cast<uint32_t>(i));
      lead(led, forest, t, places, [&](uint32_t i, size_t leaf) {
        const double* values = forest.values[t] + leaf * width;
        for (size_t c = 0; c < width; ++c) out.means[i * width + c] += values[c];
        ++out.n_trees[i];
      });
    }
    for (size_t i = block * block_rows; i < end; ++i)
      for (size_t c = 0; c < width && out.n_trees[i] > 0; ++c) out.means[i * width + c] /= out.n_trees[i];
  });
  return out;
}

// Whether codes are ranks, by comparison with the edges on both sides: nothing of how they were found is trusted.
bool are_ranks(const double* x, const uint8_t* codes, size_t n, const std::vector<double>& edges, uint8_t n_levels) {
  std::vector<double> ends{-std::numeric_limits<double>::infinity()};
  ends.insert(ends.end(), edges.begin(), edges.end());
  ends.resize(256, std::numeric_limits<double>::infinity());
  bool is_right = true;
  for (size_t i = 0; i < n; ++i) {
    const size_t code = codes[i];
    const bool is_rank = (code <= edges.size()) & (ends[code] < x[i]) & (code == 255 || x[i] <= ends[code + 1]);
    const bool is_missing = (code == Bins::missing) & (x[i] != x[i]);
    is_right &= n_levels != 0 ? code == level_of(x[i], n_levels) : is_rank | is_missing;
  }
  return is_right;
}

}  // namespace

std::optional<size_t> rank_of(double threshold, const std::vector<double>& edges) {
  size_t place = 0;  // halves are taken without a branch
  for (size_t n = edges.size(); n > 0; n -= (n + 1) / 2)
    place += edges[place + (n - 1) / 2] < threshold ? (n + 1) / 2 : 0;
  const bool is_behind_all = threshold == std::numeric_limits<double>::infinity();
  if (!is_behind_all && (place == edges.size() || edges[place] != threshold)) return std::nullopt;
  return place;
}

std::optional<RankedTree> ranked_tree(const std::vector<Step>& steps, const Edges& edges) {
  return RankedTree::of(steps, [&](const Step& step) { return rank_of(step.threshold, edges[step.feature]); });
}

std::optional<RankedTree> ranked_tree(const std::vector<Step>& steps) {
  return RankedTree::of(steps, [](const Step& step) -> std::optional<size_t> {
    if (!(step.threshold >= 0)) return std::nullopt;
    return static_cast<size_t>(std::min(step.threshold, 254.0));
  });
}

bool rank_thresholds(ForestPaths& forest, const Edges& edges, const ColumnRules& columns, Crew& crew) {
  const auto is_ranked = [&](const Step& step) { return step.left != 0 && !columns.is_levels(step.feature); };
  std::atomic<bool> is_right{true};
  crew.for_each_block(forest.trees.size(), [&](size_t t) {
    for (const Step& step : forest.trees[t])
      if (is_ranked(step) && !rank_of(step.threshold, edges[step.feature])) is_right = false;
  });
  if (!is_right) return false;
  crew.for_each_block(forest.trees.size(), [&](size_t t) {
    for (Step& step : forest.trees[t])
      if (is_ranked(step)) step.threshold = static_cast<double>(*rank_of(step.threshold, edges[step.feature]));
  });
  return true;
}

std::vector<uint8_t> ranked_rows(const TreeRows& rows, const Edges& edges, const ColumnRules& columns, Crew& crew) {
  const Bins bins = binned(rows, edges, columns, crew);
  std::atomic<bool> is_right{true};
  crew.for_each_block(rows.n_columns, [&](size_t j) {
    const uint8_t n_levels = columns.is_levels(j) ? columns.n_levels[j] : 0;
    if (!are_ranks(rows.column(j), bins.column(j), rows.n_rows, edges[j], n_levels)) is_right = false;
  });
  return is_right ? by_row(bins, crew) : std::vector<uint8_t>{};
}

namespace {

// Adds thresholds to those of their columns; false where a column has more than rows of bytes can tell apart, or one is
// no number.
bool add_thresholds(const std::vector<Step>& steps, Edges& edges) {
  for (const Step& step : steps) {
    if (rank_of(step.threshold, edges[step.feature])) continue;
    std::vector<double>& known = edges[step.feature];
    if (std::isnan(step.threshold) || known.size() == Bins::missing - 1) return false;
    known.insert(std::lower_bound(known.begin(), known.end(), step.threshold), step.threshold);
  }
  return true;
}

// The thresholds of every column; none where they are too many. Most of them are in the first tree: of the others only
// those that are not are gathered.
std::optional<Edges> thresholds_of(const ForestPaths& forest, size_t n_columns, Crew& crew) {
  const auto splits_of = [&](size_t t, const Edges& known) {
    std::vector<Step> splits;
    for (const Step& step : forest.trees[t])
      if (step.left != 0 && !rank_of(step.threshold, known[step.feature])) splits.push_back(step);
    return splits;
  };
  Edges edges(n_columns);
  if (!add_thresholds(splits_of(0, edges), edges)) return std::nullopt;
  std::vector<std::vector<Step>> others(forest.trees.size());
  crew.for_each_block(others.size(), [&](size_t t) { others[t] = splits_of(t, edges); });
  for (const std::vector<Step>& splits : others)
    if (!add_thresholds(splits, edges)) return std::nullopt;
  return edges;
}

// Ranks in place of values, where every column has few enough thresholds: trees take a quarter of the memory, rows an
// eighth. Their edges; none, and the forest as it was, where not.
std::optional<Edges> compress(ForestPaths& forest, size_t n_columns, Crew& crew) {
  const std::optional<Edges> edges = thresholds_of(forest, n_columns, crew);
  if (!edges) return std::nullopt;
  std::vector<RankedTree> ranked(forest.trees.size());
  std::atomic<bool> is_right{true};
  crew.for_each_block(ranked.size(), [&](size_t t) {
    if (std::optional<RankedTree> tree = ranked_tree(forest.trees[t], *edges))
      ranked[t] = std::move(*tree);
    else
      is_right = false;
  });
  if (!is_right) return std::nullopt;
  forest.ranked = std::move(ranked);
  forest.trees.clear();
  return edges;
}

// Rows of values that differ, while these are few: leaves of classes mostly hold one class alone.
class FewValues {
 public:
  explicit FewValues(size_t width) : width_(width) {}

  // Its number; none where there are too many.
  std::optional<uint32_t> number_of(const double* values) {
    uint64_t hash = 0;
    for (size_t c = 0; c < width_; ++c) hash = (hash ^ std::bit_cast<uint64_t>(values[c])) * 0x9E3779B97F4A7C15ULL;
    for (size_t slot = hash >> (64 - log_slots);; slot = (slot + 1) % slots_.size()) {
      if (slots_[slot] == 0) {
        if (n_ == most) return std::nullopt;
        table.insert(table.end(), values, values + width_);
        slots_[slot] = ++n_;
      }
      const uint32_t number = slots_[slot] - 1;
      if (std::memcmp(table.data() + number * width_, values, width_ * sizeof(double)) == 0) return number;
    }
  }

  std::vector<double> table;

 private:
  static constexpr size_t log_slots = 12, most = 1024;
  size_t width_;
  uint32_t n_ = 0;
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(size_t{1} << log_slots);
};

// Leaves of a ranked forest are called by what they say: the few values that differ stay in the nearest cache. The
// table that `values` point into from then on; empty, and the forest as it was, where values are many.
std::vector<double> share_values(ForestPaths& forest) {
  FewValues few(forest.width);
  std::vector<std::vector<uint32_t>> numbers(forest.n_trees());
  for (size_t t = 0; t < forest.n_trees(); ++t)
    for (size_t leaf = 0; leaf < forest.ranked[t].n_leaves(); ++leaf) {
      const std::optional<uint32_t> number = few.number_of(forest.values[t] + leaf * forest.width);
      if (!number) return {};
      numbers[t].push_back(*number);
    }
  for (size_t t = 0; t < forest.n_trees(); ++t) {
    forest.ranked[t].renumber(numbers[t].data());
    forest.values[t] = few.table.data();
  }
  return std::move(few.table);
}

// Adds up what the leaves of all trees say of rows that are `x`, and divides.
template <class Number>
void add_means(const Number* x, size_t n_columns, size_t count, const ForestPaths& forest, double* out) {
  const LedRows<Number> led(x, n_columns, count);
  std::vector<uint32_t> places(count);
  std::iota(places.begin(), places.end(), 0u);
  for (size_t t = 0; t < forest.n_trees(); ++t)
    lead(led, forest, t, places, [&](uint32_t k, size_t leaf) {
      const double* values = forest.values[t] + leaf * forest.width;
      for (size_t c = 0; c < forest.width; ++c) out[k * forest.width + c] += values[c];
    });
  for (size_t k = 0; k < count * forest.width; ++k) out[k] /= static_cast<double>(forest.n_trees());
}

}  // namespace

Means forest_means(const Rows& rows, ForestPaths forest, Crew& crew) {
  Means means;
  means.values.assign(rows.n_rows * forest.width, 0.0);
  size_t n_nodes = 0;
  for (const std::vector<Step>& steps : forest.trees) n_nodes += steps.size();
  std::optional<Edges> edges;
  const bool is_worth_it = rows.n_rows * forest.n_trees() > n_nodes;
  if (is_worth_it && rows.n_columns > 0 && !forest.n_levels) edges = compress(forest, rows.n_columns, crew);
  const Edges ends = edges ? ends_of(*edges) : Edges{};
  const std::vector<double> shared = edges ? share_values(forest) : std::vector<double>{};
  std::atomic<bool> is_finite{true};
  const size_t block_rows = block_of(rows.n_rows, crew);
  crew.for_each_block(blocks_of(rows.n_rows, block_rows), [&](size_t block) {
    const size_t first = block * block_rows, count = std::min(block_rows, rows.n_rows - first);
    double* out = means.values.data() + first * forest.width;
    if (edges) {
      std::vector<uint8_t> x(count * rows.n_columns);
      if (!bin_block(rows, first, count, ends, {}, x.data())) is_finite = false;
      return add_means(x.data(), rows.n_columns, count, forest, out);
    }
    const std::vector<double> x = dense_block(rows, first, count);
    for (double value : x)
      if (std::isinf(value)) is_finite = false;
    add_means(x.data(), rows.n_columns, count, forest, out);
  });
  means.is_finite = is_finite;
  return means;
}

template <class Number>
ForestCheck check_forest(const TreeRows& rows, const Number* X, const ForestPaths& forest, uint64_t seed,
                         size_t n_classes, Crew& crew) {
  const size_t n = rows.n_rows, n_trees = forest.n_trees();
  double size = n_classes > 0 ? 1.0 : 0.0;
  if (n_classes == 0)
    for (double y : rows.y) size = std::max(size, std::fabs(y));
  const LedRows<Number> led(X, rows.n_columns, n);
  std::vector<double> deviations(n_trees);
  std::vector<std::vector<bool>> is_drawn(n_trees, std::vector<bool>(n));
  crew.for_each_block(n_trees, [&](size_t t) {
    const std::vector<uint32_t> draws = drawn(rows, seed, t, crew);
    for (size_t i = 0; i < n; ++i) is_drawn[t][i] = draws[i] > 0;
    deviations[t] = leaf_deviation(rows, led, forest, t, draws, n_classes, size > 0 ? size : 1.0);
  });
  ForestCheck check;
  for (double deviation : deviations) check.deviation = std::max(check.deviation, deviation);
  check.out = out_of_bag(rows, led, forest, is_drawn, crew);
  check.target = rows.y;
  check.weight = rows.weight;
  return check;
}

template ForestCheck check_forest(const TreeRows&, const double*, const ForestPaths&, uint64_t, size_t, Crew&);
template ForestCheck check_forest(const TreeRows&, const uint8_t*, const ForestPaths&, uint64_t, size_t, Crew&);

OutOfBag check_forest_part(const DrawnPartOfRows& part, const uint8_t* ranks, const ForestPaths& forest,
                           size_t n_classes, ForestSums& sums, Crew& crew) {
  const TreeRows& rows = part.rows;
  const size_t n = rows.n_rows, n_trees = forest.n_trees();
  std::vector<size_t> leaves(n_trees + 1, 0), nodes(n_trees + 1, 0);
  for (size_t t = 0; t < n_trees; ++t) {
    leaves[t + 1] = leaves[t] + n_leaves_of(forest, t);
    nodes[t + 1] = nodes[t] + (forest.n_levels ? forest.trees[t].size() : 0);
  }
  const LedRows<uint8_t> led(ranks, rows.n_columns, n);
  DrawnByTree is_drawn(n_trees, std::vector<bool>(n));
  crew.for_each_block(n_trees, [&](size_t t) {
    std::vector<uint32_t> draws(n, 0);
    for (size_t block = 0; block < part.n_blocks; ++block) {
      const size_t begin = block * summed_block;
      draw_block(part.is_weighted ? rows.weight.data() + begin : nullptr, std::min(summed_block, n - begin),
                 part.block_draws[t * part.n_blocks + block], part.seed, t, part.first_block + block,
                 draws.data() + begin, crew);
    }
    for (size_t i = 0; i < n; ++i) is_drawn[t][i] = draws[i] > 0;
    add_leaves(rows, led, forest, t, draws, n_classes,
               {sums.sums.data() + leaves[t] * forest.width, sums.mass.data() + leaves[t],
                forest.n_levels ? sums.seen.data() + nodes[t] : nullptr});
  });
  return out_of_bag(rows, led, forest, is_drawn, crew);
}

}  // namespace certifit
