// Forests on rows in parts: draws of a part, histograms of nodes, their splits, and what is below nodes of few rows.
#include "../tree/forest_levels.hpp"

#include "bins.hpp"
#include "forest.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using DrawCountsArray = Array<uint32_t, 1>;
using SlotsOfRows = Array<int32_t, 1>;
using WordsOfNode = Array<int64_t, 1>;
using KeysOfNodes = Array<uint64_t, 1>;

DrawnRows checked_drawn(size_t n_rows, const std::optional<Vector>& block_weights) {
  check(n_rows > 0 && n_rows < size_t{1} << 31, "a forest needs 1 to 2^31 - 1 rows");
  DrawnRows rows{n_rows, {}};
  if (!block_weights) return rows;
  check_size("block_weights", block_weights->shape(0), rows.n_blocks());
  rows.block_weights.assign(block_weights->data(), block_weights->data() + block_weights->shape(0));
  for (const double weight : rows.block_weights) check(weight > 0 && weight < 0x1p520, "a weight is out of range");
  return rows;
}

// Draws of every block for a tree. block_weights: None where all rows weigh the same.
nb::object forest_block_draws_py(size_t n_rows, std::optional<Vector> block_weights, uint64_t seed, size_t tree) {
  check(tree < size_t{1} << 31, "tree is out of range");
  const DrawnRows rows = checked_drawn(n_rows, block_weights);
  return array_of(run(1, [&](Crew& crew) { return draws_of_blocks(rows, seed, tree, crew); }));
}

// Draws of the rows of a part, which begins with a block. of_blocks: draws of its blocks; weight: None where all rows
// weigh the same.
nb::object forest_draws_py(size_t n_rows, std::optional<Vector> weight, DrawCountsArray of_blocks, size_t first_block,
                           uint64_t seed, size_t tree) {
  check(n_rows < size_t{1} << 31 && first_block < size_t{1} << 31 && tree < size_t{1} << 31, "a part is out of range");
  check_size("of_blocks", of_blocks.shape(0), (n_rows + summed_block - 1) / summed_block);
  if (weight) {
    check_size("weight", weight->shape(0), n_rows);
    for (size_t i = 0; i < n_rows; ++i) {
      const double w = weight->data()[i];
      check(w > 0 && w < 0x1p500, "a weight is out of range");
    }
  }
  for (size_t k = 0; k < of_blocks.shape(0); ++k)
    check(of_blocks.data()[k] < uint32_t{1} << 31, "draws are out of range");
  std::vector<uint32_t> draws(n_rows, 0);
  run(1, [&](Crew& crew) {
    for (size_t block = 0; block < of_blocks.shape(0); ++block) {
      const size_t begin = block * summed_block, n = std::min(summed_block, n_rows - begin);
      draw_block(weight ? weight->data() + begin : nullptr, n, of_blocks.data()[block], seed, tree, first_block + block,
                 draws.data() + begin, crew);
    }
  });
  return array_of(std::move(draws));
}

// A part, its draws and what trees are grown to.
struct DrawnPart {
  DrawnPart(const Codes& codes, const Vector& y, const DrawCountsArray& draws, size_t n_classes) {
    rows.n_rows = codes.shape(0);
    rows.n_columns = codes.shape(1);
    check(rows.n_columns > 0 && rows.n_rows < size_t{1} << 31, "a part is out of range");
    check_size("draws", draws.shape(0), rows.n_rows);
    check_labelled(rows.n_rows, y, {}, n_classes);
    rows.y.assign(y.data(), y.data() + rows.n_rows);
  }
  TreeRows rows;
};

PackedUnits checked_units(const double* sizes) {
  check(std::isfinite(sizes[0]) && std::isfinite(sizes[1]) && sizes[0] >= 0 && sizes[1] >= 0, "sizes are not finite");
  check(sizes[2] >= 1 && sizes[2] < 0x1p31, "drawn rows are out of range");
  return PackedUnits({sizes[0], sizes[1]}, static_cast<size_t>(sizes[2]));
}

// Of every block: the sums that the units of a tree follow from, and the rows drawn.
auto forest_sizes_py(Vector y, DrawCountsArray draws, size_t n_classes, double centre) {
  check_size("draws", draws.shape(0), y.shape(0));
  const ForestPlan plan{1, n_classes, 1, 0, {}, {}, centre};
  std::vector<double> out;
  for (size_t begin = 0; begin < y.shape(0); begin += summed_block) {
    PackedSizes sizes;
    double n_drawn = 0;
    for (size_t i = begin; i < std::min(y.shape(0), begin + summed_block); ++i) {
      if (draws.data()[i] == 0) continue;
      sizes.add(drawn_moment(plan, y.data()[i], draws.data()[i]), draws.data()[i]);
      ++n_drawn;
    }
    out.insert(out.end(), {sizes.a, sizes.b, n_drawn});
  }
  const size_t shape[2] = {out.size() / 3, 3};
  return to_numpy<2>(std::move(out), shape);
}

// Histograms of nodes of a tree by column and bin, of the rows of a part: nodes x words. sizes: of the whole tree.
nb::object forest_histograms_py(Codes codes, Vector y, DrawCountsArray draws, SlotsOfRows slot, size_t n_slots,
                                size_t n_classes, double centre, Vector sizes, int threads) {
  const DrawnPart checked(codes, y, draws, n_classes);
  check_size("slot", slot.shape(0), checked.rows.n_rows);
  check_size("sizes", sizes.shape(0), 3);
  check(n_slots > 0 && n_slots < size_t{1} << 24, "n_slots is out of range");
  for (size_t i = 0; i < checked.rows.n_rows; ++i)
    check(slot.data()[i] < static_cast<int64_t>(n_slots), "a slot is not there");
  const ForestPlan plan{1, n_classes, 1, 0, {}, {}, centre};
  const size_t size = forest_words(plan, checked.rows.n_columns);
  check(n_slots * size < size_t{1} << 28, "histograms are larger than 2 GB");
  const PackedUnits units = checked_units(sizes.data());
  const ForestPart part{checked.rows, codes.data(), draws.data(), slot.data()};
  return matrix_of(run(threads, [&](Crew& crew) { return forest_histograms(part, n_slots, plan, units, crew); }),
                   n_slots, size);
}

// The split of a node from its histogram.
nb::object forest_split_py(WordsOfNode words, uint64_t key, size_t depth, size_t n_rows, bool is_pure, size_t n_columns,
                           size_t n_classes, size_t n_tried, size_t max_depth, size_t min_rows_split,
                           size_t min_rows_leaf, double centre, Vector sizes, std::optional<Flags> n_levels) {
  check(n_columns > 0 && n_columns < size_t{1} << 31, "a forest needs a column");
  check(n_classes != 1 && n_classes < size_t{1} << 20, "n_classes is out of range");
  check_size("sizes", sizes.shape(0), 3);
  ForestPlan plan{1, n_classes, n_tried, 0, {max_depth, min_rows_split, min_rows_leaf, 0.0}, {}, centre};
  check_plan(plan, n_levels, n_columns);
  check_size("words", words.shape(0), forest_words(plan, n_columns));
  const PackedUnits units = checked_units(sizes.data());
  ForestChoice found =
      run(1, [&](Crew&) { return forest_choice({words.data(), key, depth, n_rows, is_pure}, n_columns, plan, units); });
  nb::dict out;
  out["is_found"] = found.split.is_found;
  out["feature"] = found.split.feature;
  out["bin"] = found.split.bin;
  out["is_missing_left"] = found.split.is_missing_left;
  out["left_rows"] = static_cast<size_t>(std::clamp(found.split.n_left, 0.0, 0x1p53));
  out["gain"] = found.split.is_found ? found.split.gain : 0.0;
  out["shares"] = array_of(std::move(found.shares));
  out["levels"] = array_of(std::vector<uint64_t>(found.split.levels.begin(), found.split.levels.end()));
  out["keys"] = nb::make_tuple(child_key(key, false), child_key(key, true));
  return out;
}

// Trees below nodes of few rows, whose rows are end to end: node k has rows [cuts_k, cuts_k+1), of trees whose sizes
// are its row of `sizes`. block: the number of the block of every row.
nb::object grow_forest_rest_py(Codes codes, nb::list edges, Vector y, DrawCountsArray draws, WordsOfNode block,
                               WordsOfNode cuts, KeysOfNodes keys, WordsOfNode depths, Matrix sizes, size_t n_classes,
                               size_t n_tried, size_t max_depth, size_t min_rows_split, size_t min_rows_leaf,
                               double centre, std::optional<Flags> n_levels, int threads) {
  const DrawnPart checked(codes, y, draws, n_classes);
  const size_t n_nodes = keys.shape(0), n = checked.rows.n_rows, p = checked.rows.n_columns;
  check_size("block", block.shape(0), n);
  check_size("cuts", cuts.shape(0), n_nodes + 1);
  check_size("depths", depths.shape(0), n_nodes);
  check_size("sizes", sizes.shape(0), n_nodes);
  check_size("sizes of a tree", sizes.shape(1), 3);
  check(cuts.data()[0] == 0 && cuts.data()[n_nodes] == static_cast<int64_t>(n), "cuts do not span the rows");
  for (size_t k = 0; k < n_nodes; ++k)
    check(cuts.data()[k] >= 0 && cuts.data()[k] < cuts.data()[k + 1] && depths.data()[k] >= 0, "a node has no rows");
  for (size_t i = 0; i < n; ++i) check(draws.data()[i] > 0, "a row is not drawn");
  ForestPlan plan{1, n_classes, n_tried, 0, {max_depth, min_rows_split, min_rows_leaf, 0.0}, {}, centre};
  check_plan(plan, n_levels, p);
  const Edges known = checked_edges(edges, p);
  std::vector<PackedUnits> units;
  for (size_t k = 0; k < n_nodes; ++k) units.push_back(checked_units(sizes.data() + 3 * k));
  std::vector<ForestTree> trees(n_nodes);
  run(threads, [&](Crew& crew) {
    crew.for_each_block(n_nodes, [&](size_t k) {
      const auto begin = static_cast<size_t>(cuts.data()[k]), m = static_cast<size_t>(cuts.data()[k + 1]) - begin;
      TreeRows rows;
      rows.n_rows = m;
      rows.n_columns = p;
      rows.y.assign(y.data() + begin, y.data() + begin + m);
      for (size_t i = 0; i < m; ++i)
        if (i == 0 || block.data()[begin + i] != block.data()[begin + i - 1])
          rows.block_starts.push_back(static_cast<uint32_t>(i));
      std::vector<uint8_t> by_column(m * p);
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < p; ++j) by_column[j * m + i] = codes.data()[(begin + i) * p + j];
      ForestStart start{{draws.data() + begin, draws.data() + begin + m},
                        keys.data()[k],
                        static_cast<size_t>(depths.data()[k]),
                        units[k]};
      trees[k] = grow_rest(rows, {p, m, by_column.data(), known}, plan, std::move(start), crew);
    });
  });
  nb::list out;
  for (ForestTree& tree : trees) {
    const size_t shape[2] = {tree.values.size() / plan.width(), plan.width()};
    nb::dict one;
    std::vector<uint64_t> words;
    for (const Levels& set : tree.sets) words.insert(words.end(), set.begin(), set.end());
    one["feature"] = array_of<int64_t>(tree.nodes, [](const Node& node) { return node.feature; });
    one["left"] = array_of<int64_t>(tree.nodes, [](const Node& node) { return node.left; });
    one["threshold"] = array_of<double>(tree.nodes, [](const Node& node) { return node.threshold; });
    one["is_missing_left"] = array_of<uint8_t>(tree.nodes, [](const Node& node) { return node.is_missing_left; });
    one["gain"] = array_of<double>(tree.nodes, [](const Node& node) { return node.decrease; });
    one["values"] = to_numpy<2>(std::move(tree.values), shape);
    one["sets"] = array_of(std::move(words));
    out.append(one);
  }
  return out;
}

}  // namespace

void bind_forest_levels(nb::module_& m) {
  m.def("forest_root", [](uint64_t seed, size_t tree) { return root_key(seed, tree); }, "seed"_a, "tree"_a);
  m.def("forest_block_draws", forest_block_draws_py, "n_rows"_a, "block_weights"_a.noconvert().none(), "seed"_a,
        "tree"_a);
  m.def("forest_draws", forest_draws_py, "n_rows"_a, "weight"_a.noconvert().none(), "of_blocks"_a.noconvert(),
        "first_block"_a, "seed"_a, "tree"_a);
  m.def("forest_sizes", forest_sizes_py, "y"_a.noconvert(), "draws"_a.noconvert(), "n_classes"_a, "centre"_a);
  m.def("forest_histograms", forest_histograms_py, "codes"_a.noconvert(), "y"_a.noconvert(), "draws"_a.noconvert(),
        "slot"_a.noconvert(), "n_slots"_a, "n_classes"_a, "centre"_a, "sizes"_a.noconvert(), "threads"_a);
  m.def("forest_split", forest_split_py, "words"_a.noconvert(), "key"_a, "depth"_a, "n_rows"_a, "is_pure"_a,
        "n_columns"_a, "n_classes"_a, "n_tried"_a, "max_depth"_a, "min_rows_split"_a, "min_rows_leaf"_a, "centre"_a,
        "sizes"_a.noconvert(), "n_levels"_a.noconvert().none());
  m.def("grow_forest_rest", grow_forest_rest_py, "codes"_a.noconvert(), "edges"_a, "y"_a.noconvert(),
        "draws"_a.noconvert(), "block"_a.noconvert(), "cuts"_a.noconvert(), "keys"_a.noconvert(),
        "depths"_a.noconvert(), "sizes"_a.noconvert(), "n_classes"_a, "n_tried"_a, "max_depth"_a, "min_rows_split"_a,
        "min_rows_leaf"_a, "centre"_a, "n_levels"_a.noconvert().none(), "threads"_a);
}

}  // namespace certifit
