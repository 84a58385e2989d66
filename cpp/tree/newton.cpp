// Splits are searched on histograms of whole numbers (packed.hpp); values, gains and weights of the tree that comes out
// are sums of the rows themselves.
#include "newton.hpp"

#include <queue>

#include "bundles.hpp"
#include "newton_levels.hpp"
#include "newton_search.hpp"

namespace certifit {
namespace {

constexpr size_t few_rows = 512;                // whose numbers stay in the nearest cache
constexpr size_t near_codes = size_t{1} << 18;  // bytes of all codes that are near, in whatever order they are read
constexpr size_t scan_cost = 6;                 // of a look at a cell, in cells that are added to
constexpr size_t rows_of_walk = 4;              // that are passed while one is looked at without a walk
constexpr size_t nowhere = ~size_t{0};
constexpr size_t tile_rows = 1024;

// Histograms of the tree before, for the next one of this thread: memory that is new to the process costs more than the
// sums that are made in it.
thread_local std::vector<std::vector<Cell>> kept;
constexpr size_t most_kept = size_t{1} << 20;  // cells, 16 MB

struct Leaf {
  size_t node, depth, begin, end;
  NewtonLeaf searched;
  size_t histogram = nowhere;  // its place among those that are kept
  NewtonSplit split;
  size_t size() const { return end - begin; }
};

// Sums over blocks of the rows, which are added in their order.
NewtonSizes sizes_of(const NewtonRows& rows, Crew& crew) {
  const size_t size = summed_rows(1);
  std::vector<NewtonSizes> blocks((rows.n_rows + size - 1) / size);
  crew.for_each_block(blocks.size(), [&](size_t block) {
    PackedSizes sizes;
    if (rows.are_all_drawn()) {
      const size_t end = std::min(rows.n_rows, (block + 1) * size);
      for (size_t i = block * size; i < end; ++i) sizes.add(rows.slope[i], rows.curvature[i]);
      blocks[block] = {sizes.a, sizes.b, end - block * size};
      return;
    }
    const uint32_t *begin = std::lower_bound(rows.rows, rows.rows + rows.n_drawn, block * size),
                   *end = std::lower_bound(begin, rows.rows + rows.n_drawn, (block + 1) * size);
    for (const uint32_t* at = begin; at != end; ++at) sizes.add(rows.slope[*at], rows.curvature[*at]);
    blocks[block] = {sizes.a, sizes.b, static_cast<size_t>(end - begin)};
  });
  NewtonSizes all;
  for (const NewtonSizes& block : blocks) all.add(block);
  return all;
}

class Grower {
 public:
  Grower(const NewtonRows& rows, const NewtonPlan& plan, Crew& crew)
      : rows_(rows),
        plan_(plan),
        crew_(crew),
        packed_(units_of(sizes_of(rows, crew))),
        search_(rows.columns, plan, packed_),
        bundles_(rows),
        n_cells_(search_.n_cells()),
        n_summed_(rows.bundled ? bundles_.n_cells() : n_cells_),
        terms_(reinterpret_cast<Cell*>(rows.scratch)),
        order_(reinterpret_cast<uint32_t*>(terms_ + rows.n_rows)),
        rights_(order_ + rows.n_rows),
        is_walked_(rows.sorted_rows != nullptr),
        histograms_(std::move(kept)) {}

  ~Grower() {
    size_t n_cells = 0;
    for (const std::vector<Cell>& cells : histograms_) n_cells += cells.size();
    if (n_cells <= most_kept) kept = std::move(histograms_);
  }
  Grower(const Grower&) = delete;
  Grower& operator=(const Grower&) = delete;

  NewtonTree grow() {
    tree_.nodes.emplace_back();
    Leaf root{0, 0, 0, rows_.n_drawn, {{}, {}, rows_.n_drawn}, nowhere, {}};
    if (packed_.is_legal() && plan_.max_leaves > 1 && can_split(root)) {
      is_walked_ ? place_rows(root) : fill(root);
      search({&root});
    } else {
      for (size_t k = 0; k < rows_.n_drawn; ++k) order_[k] = static_cast<uint32_t>(rows_.drawn(k));
    }
    offer(root);
    for (size_t n_leaves = 1; n_leaves < plan_.max_leaves && !open_.empty(); ++n_leaves) {
      if (!crew_.keep_going()) throw Interrupted();
      const size_t place = open_.top().place;
      open_.pop();
      split(place, n_leaves + 1 < plan_.max_leaves);
    }
    settle();
    return std::move(tree_);
  }

 private:
  size_t take() {
    if (!free_.empty()) {
      const size_t place = free_.back();
      free_.pop_back();
      return place;
    }
    if (n_taken_ == histograms_.size()) histograms_.emplace_back();
    const size_t n_cells = std::max(n_cells_, n_summed_) + 256;  // any code stays inside
    histograms_[n_taken_].resize(std::max(histograms_[n_taken_].size(), n_cells));
    return n_taken_++;
  }

  void give_back(Leaf& leaf) {
    if (leaf.histogram != nowhere) free_.push_back(leaf.histogram);
    leaf.histogram = nowhere;
  }

  // The rows, what each adds to sums, and the sum of all of them.
  void place_rows(Leaf& root) {
    for (size_t k = 0; k < rows_.n_drawn; ++k) {
      const size_t row = rows_.drawn(k);
      terms_[row] = packed_.term(rows_.slope[row], rows_.curvature[row]);
      order_[k] = static_cast<uint32_t>(row);
      root.searched.sum += terms_[row];
    }
  }

  // The rows, what each adds to histograms, and the histogram and the sum of all of them.
  void fill(Leaf& root) {
    root.histogram = take();
    sum_parts(root, [&](size_t begin, size_t n, Cell* cells) {
      for (size_t k = begin; k < begin + n; k += tile_rows) {  // a tile is near while it is added
        const size_t end = std::min(begin + n, k + tile_rows);
        for (size_t i = k; i < end; ++i) {
          const size_t row = rows_.drawn(i);
          terms_[row] = packed_.term(rows_.slope[row], rows_.curvature[row]);
          order_[i] = static_cast<uint32_t>(row);
        }
        add(rows_.are_all_drawn() ? nullptr : rows_.rows + k, k, end - k, cells);
      }
    });
    const Cell* cells = histograms_[root.histogram].data();
    const size_t n_first = rows_.columns.n_bins[rows_.columns.tried[0]] + size_t{1};
    for (size_t code = 0; code < n_first; ++code) root.searched.sum += cells[code];
  }

  // Many rows are summed in parts that threads share; parts of whole numbers add up to the same in any order.
  void add_rows(const Leaf& leaf) {
    sum_parts(leaf, [&](size_t begin, size_t n, Cell* cells) { add(order_ + leaf.begin + begin, 0, n, cells); });
  }

  void add(const uint32_t* order, size_t begin, size_t n, Cell* cells) const {
    if (rows_.bundled)
      add_packed(bundles_, terms_, order, begin, n, bundles_.first(), cells);
    else
      add_packed(rows_, terms_, order, begin, n, search_.first(), cells);
  }

  // The histogram of a leaf. sum(begin, n, cells) adds some of its rows to cells, of columns or of bundles.
  template <class Sum>
  void sum_parts(const Leaf& leaf, Sum sum) {
    const size_t n_parts = n_shares(leaf.size() * rows_.columns.n_tried), size = leaf.size() / n_parts + 1;
    std::vector<size_t> places{rows_.bundled ? take() : leaf.histogram};
    while (places.size() < n_parts) places.push_back(take());
    crew_.for_each_block(n_parts, [&](size_t part) {
      const size_t begin = std::min(leaf.size(), part * size), end = std::min(leaf.size(), begin + size);
      std::vector<Cell>& cells = histograms_[places[part]];
      std::fill_n(cells.begin(), n_summed_ + 256, Cell{});
      sum(begin, end - begin, cells.data());
    });
    Cell* whole = histograms_[places[0]].data();
    for (size_t part = 1; part < n_parts; ++part) {
      const Cell* cells = histograms_[places[part]].data();
      for (size_t k = 0; k < n_summed_; ++k) whole[k] += cells[k];
      free_.push_back(places[part]);
    }
    if (!rows_.bundled) return;
    std::vector<Cell>& by_column = histograms_[leaf.histogram];
    std::fill_n(by_column.begin(), n_cells_, Cell{});
    bundles_.spread(whole, search_.first(), by_column.data());
    free_.push_back(places[0]);
  }

  // One column of few rows, whose cells then stay near. near_terms_: of the rows of the leaf.
  void add_column(const Leaf& leaf, size_t place, Cell* cells) const {
    const size_t column = rows_.columns.tried[place];
    const uint8_t* codes = rows_.by_column + column * rows_.n_rows;
    std::fill_n(cells, rows_.columns.n_bins[column] + size_t{1}, Cell{});
    for (size_t i = 0; i < leaf.size(); ++i) cells[codes[order_[leaf.begin + i]]] += near_terms_[i];
  }

  size_t n_shares(size_t n_cells) const { return std::clamp<size_t>(n_cells / shared_cells, 1, crew_.n_threads()); }

  bool is_few(const Leaf& leaf) const { return is_walked_ || leaf.size() < search_.few_rows(); }

  // A leaf of few rows, by these.
  NewtonSplit best_by_rows(const Leaf& leaf) {
    const uint32_t* order = order_ + leaf.begin;
    if (is_walked_ && leaf.size() * rows_of_walk >= rows_.n_rows)
      return search_.best_by_walk(rows_, order, leaf.searched, terms_, crew_);
    return search_.best_by_rows(rows_.by_column, rows_.n_rows, order, terms_, leaf.searched, crew_);
  }

  // Leaves of few rows by these, which leave their histograms; others by their histograms.
  void search(const std::vector<Leaf*>& leaves) {
    std::vector<NewtonAsked> asked;
    std::vector<Leaf*> by_histogram;
    for (Leaf* leaf : leaves) {
      if (is_few(*leaf)) {
        leaf->split = best_by_rows(*leaf);
        give_back(*leaf);
      } else {
        asked.push_back({histograms_[leaf->histogram].data(), leaf->searched});
        by_histogram.push_back(leaf);
      }
    }
    const std::vector<NewtonSplit> splits = search_.best(asked, crew_);
    for (size_t k = 0; k < splits.size(); ++k) by_histogram[k]->split = splits[k];
  }

  // The smaller side is summed, the larger one is what remains; then both are searched. Threads share the columns: few
  // rows, and rows whose codes are all near, are summed column by column in the same loop.
  void search_sides(Leaf& large, Leaf& small) {
    const size_t n_tried = rows_.columns.n_tried;
    const bool is_by_column = small.size() <= few_rows || rows_.n_rows * n_tried <= near_codes;
    if (is_by_column) {
      near_terms_.resize(std::max(near_terms_.size(), small.size()));
      for (size_t i = 0; i < small.size(); ++i) near_terms_[i] = terms_[order_[small.begin + i]];
    } else {
      add_rows(small);
    }
    Cell *whole = histograms_[large.histogram].data(), *part = histograms_[small.histogram].data();
    const NewtonAsked of_large{whole, large.searched}, of_small{part, small.searched};
    const bool is_small_scanned = can_split(small) && !is_few(small);
    splits_.resize(2 * n_tried);
    const auto scan = [&](size_t k) {
      const size_t first = search_.first()[k], end = first + rows_.columns.n_bins[rows_.columns.tried[k]] + 1;
      if (is_by_column) add_column(small, k, part + first);
      for (size_t cell = first; cell < end; ++cell) whole[cell] = whole[cell] - part[cell];
      splits_[k] = search_.best_of_column(k, of_large);
      if (is_small_scanned) splits_[n_tried + k] = search_.best_of_column(k, of_small);
    };
    const size_t n_added =
        (is_by_column ? small.size() * n_tried : 0) + n_cells_ * (is_small_scanned ? 2 : 1) * scan_cost;
    if (n_added < shared_cells / 4)
      for (size_t k = 0; k < n_tried; ++k) scan(k);
    else
      crew_.for_each_block(n_tried, scan);
    large.split = search_.best_of(large.searched, splits_.data());
    if (is_small_scanned)
      small.split = search_.best_of(small.searched, splits_.data() + n_tried);
    else if (can_split(small))
      search({&small});
  }

  struct Open {
    double gain;
    size_t depth, place;
    bool is_best_first;
    bool operator<(const Open& other) const {  // the queue's top is the largest
      if (is_best_first && gain != other.gain) return gain < other.gain;
      if (!is_best_first && depth != other.depth) return depth > other.depth;
      return place > other.place;
    }
  };

  // Keeps a leaf, and lines it up where it may be split.
  void offer(Leaf& leaf) {
    if (leaf.split.is_found)
      open_.push({leaf.split.gain, leaf.depth, leaves_.size(), plan_.is_best_first});
    else
      give_back(leaf);
    leaves_.push_back(leaf);
  }

  bool can_split(const Leaf& leaf) const { return leaf.depth < plan_.max_depth && leaf.size() >= 2 * search_.least(); }

  // is_searched: whether a child may be split in its turn.
  void split(size_t place, bool is_searched) {
    Leaf leaf = leaves_[place];
    const size_t middle = part(leaf), left = tree_.nodes.size();
    if (middle == leaf.begin || middle == leaf.end) return;  // codes that no bin has
    leaves_[place].begin = leaves_[place].end;               // its rows are those of its children
    keep(leaf, left);
    Leaf sides[2];
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const size_t begin = side == 0 ? leaf.begin : middle, end = side == 0 ? middle : leaf.end;
      const Cell sum = side == 0 ? leaf.split.left : leaf.searched.sum - leaf.split.left;
      const Bounds bounds = search_.bounds_of(leaf.searched, leaf.split, side);
      sides[side] = {left + side, leaf.depth + 1, begin, end, {sum, bounds, end - begin}, nowhere, {}};
    }
    const size_t few = sides[0].size() <= sides[1].size() ? 0 : 1;
    Leaf &small = sides[few], &large = sides[1 - few];
    if (is_searched && can_split(large)) {
      if (!is_few(large)) {
        small.histogram = take();
        large.histogram = leaf.histogram;
        leaf.histogram = nowhere;
        search_sides(large, small);
      } else {
        search(can_split(small) ? std::vector<Leaf*>{&large, &small} : std::vector<Leaf*>{&large});
      }
    }
    give_back(leaf);
    offer(sides[0]);
    offer(sides[1]);
  }

  void keep(const Leaf& leaf, size_t left) {
    tree_.nodes.resize(left + 2);
    NewtonNode& node = tree_.nodes[leaf.node];
    const bool is_levels = rows_.columns.is_levels(leaf.split.column);
    node.feature = static_cast<int32_t>(leaf.split.column);
    node.left = static_cast<int32_t>(left);
    node.bin = static_cast<uint32_t>(is_levels ? tree_.sets.size() : leaf.split.bin);
    node.is_missing_left = leaf.split.is_missing_left;
    if (is_levels) tree_.sets.push_back(leaf.split.levels);
  }

  size_t part(const Leaf& leaf) {
    bool goes_left[256] = {};
    const bool is_levels = rows_.columns.is_levels(leaf.split.column);
    sides_of(rows_.columns.n_bins[leaf.split.column], leaf.split.bin, is_levels ? &leaf.split.levels : nullptr,
             leaf.split.is_missing_left, goes_left);
    const uint8_t* codes = rows_.by_column + leaf.split.column * rows_.n_rows;
    const size_t n_parts = n_shares(4 * leaf.size()), size = leaf.size() / n_parts + 1;
    struct Sides {
      size_t begin, n_left, n_right, to_right;
    };
    std::vector<Sides> parts(n_parts);
    crew_.for_each_block(n_parts, [&](size_t part) {
      const size_t begin = std::min(leaf.end, leaf.begin + part * size), end = std::min(leaf.end, begin + size);
      uint32_t *lefts = order_ + begin, *rights = rights_ + begin;  // the left ones never overtake what is read
      size_t n_left = 0, n_right = 0;
      for (size_t k = begin; k < end; ++k) {
        const uint32_t row = order_[k];
        const bool is_left = goes_left[codes[row]];
        lefts[n_left] = row;
        rights[n_right] = row;
        n_left += is_left;
        n_right += !is_left;
      }
      parts[part] = {begin, n_left, n_right, 0};
    });
    size_t middle = leaf.begin;
    for (const Sides& part : parts) {
      if (part.begin != middle) std::copy_n(order_ + part.begin, part.n_left, order_ + middle);
      middle += part.n_left;
    }
    size_t right = middle;
    for (Sides& part : parts) {
      part.to_right = right;
      right += part.n_right;
    }
    crew_.for_each_block(n_parts, [&](size_t part) {
      const Sides& sides = parts[part];
      std::copy_n(rights_ + sides.begin, sides.n_right, order_ + sides.to_right);
    });
    return middle;
  }

  // Leaves of all rows; then sums of the rows themselves, block by block, give every node its value, its gain and its
  // weight.
  void settle() {
    tree_.leaves = std::make_unique_for_overwrite<int32_t[]>(rows_.n_rows);
    int32_t* leaf_of = tree_.leaves.get();
    const size_t n_nodes = tree_.nodes.size(), size = summed_rows(n_nodes);
    std::vector<std::vector<NewtonSums>> blocks((rows_.n_rows + size - 1) / size);
    crew_.for_each_block(blocks.size(), [&](size_t block) {
      const size_t first = block * size, last = std::min(rows_.n_rows, first + size);
      if (!rows_.are_all_drawn()) std::fill(leaf_of + first, leaf_of + last, -1);
      for (const Leaf& leaf : leaves_) {
        const uint32_t *begin = order_ + leaf.begin, *end = order_ + leaf.end;
        for (const uint32_t* at = std::lower_bound(begin, end, first); at != end && *at < last; ++at)
          leaf_of[*at] = static_cast<int32_t>(leaf.node);
      }
      std::vector<NewtonSums> sums(n_nodes);
      for (size_t i = first; i < last; ++i)  // rows in their order, which are read faster than by leaf
        if (leaf_of[i] >= 0)
          sums[static_cast<size_t>(leaf_of[i])].add(rows_.slope[i], rows_.curvature[i], rows_.weight[i]);
      blocks[block] = std::move(sums);
    });
    std::vector<NewtonSums> sums(n_nodes);
    for (const std::vector<NewtonSums>& block : blocks)
      for (size_t node = 0; node < n_nodes; ++node) sums[node].add(block[node].g, block[node].h, block[node].weight);
    settle_nodes(tree_.nodes, sums, plan_);
    lead_others();
  }

  void lead_others() {
    if (rows_.are_all_drawn()) return;
    const NewtonPaths paths(rows_.columns, tree_.nodes, tree_.sets);
    for (size_t i = 0; i < rows_.n_rows; ++i)
      if (tree_.leaves[i] < 0) tree_.leaves[i] = paths.leaf_of(rows_.codes + i * rows_.n_columns, 0);
  }

  const NewtonRows& rows_;
  const NewtonPlan& plan_;
  Crew& crew_;
  PackedUnits packed_;
  NewtonSearch search_;
  BundledColumns bundles_;
  size_t n_cells_, n_summed_;  // cells of a histogram, and of what rows are added to
  NewtonTree tree_;
  Cell* terms_;
  uint32_t *order_, *rights_;
  bool is_walked_;
  std::vector<std::vector<Cell>> histograms_;
  size_t n_taken_ = 0;
  std::vector<size_t> free_;
  std::vector<Leaf> leaves_;
  std::vector<NewtonSplit> splits_;
  std::vector<Cell> near_terms_;
  std::priority_queue<Open> open_;
};

}  // namespace

NewtonTree grow_newton(const NewtonRows& rows, const NewtonPlan& plan, Crew& crew) {
  return Grower(rows, plan, crew).grow();
}

}  // namespace certifit
