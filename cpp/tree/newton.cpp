// Splits are searched on histograms of whole numbers (packed.hpp); values, gains and weights of the tree that comes out
// are sums of the rows themselves.
#include "newton.hpp"

#include <cmath>
#include <limits>
#include <queue>

#include "cuts.hpp"

namespace certifit {
namespace {

constexpr size_t shared_cells = 400000;  // cells that are added to or looked at, from which threads share them
constexpr double tie = cut_tie;
constexpr double infinite = std::numeric_limits<double>::infinity();

struct Bounds {
  double low = -infinite, high = infinite;
};

struct Split {
  double gain = 0;  // in units of packed sums
  size_t column = 0, bin = 0;
  Levels levels{};
  bool is_missing_left = false, is_found = false;
  Cell left{};
  double left_value = 0, right_value = 0;
};

constexpr size_t nowhere = ~size_t{0};

struct Leaf {
  size_t node, depth, begin, end;
  Cell sum{};
  Bounds bounds;
  size_t histogram = nowhere;  // its place among those that are kept
  Split split;
  size_t size() const { return end - begin; }
};

class Grower {
 public:
  Grower(const NewtonRows& rows, const NewtonPlan& plan, Crew& crew)
      : rows_(rows),
        plan_(plan),
        crew_(crew),
        packed_(rows.slope, rows.curvature, rows.rows, rows.n_drawn, rows.n_rows),
        ridge_(packed_.mass_unit() > 0 ? plan.ridge / packed_.mass_unit() : 0.0),
        least_(std::max<size_t>(plan.min_rows_leaf, 1)),
        order_(rows.rows, rows.rows + rows.n_drawn),
        moved_(rows.n_drawn),
        best_(rows.n_tried) {
    for (size_t k = 0; k < rows.n_tried; ++k) {
      first_.push_back(static_cast<uint32_t>(n_cells_));
      n_cells_ += rows.n_bins[rows.columns[k]] + size_t{1};
    }
  }

  NewtonTree grow() {
    tree_.nodes.emplace_back();
    Leaf root{0, 0, 0, order_.size(), {}, {}, nowhere, {}};
    for (uint32_t row : order_)
      if (packed_.is_legal()) root.sum += packed_.terms()[row];
    if (packed_.is_legal() && plan_.max_leaves > 1 && can_split(root)) {
      root.histogram = take();
      add_rows(root);
      search(root);
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
  // Values of leaves in units of the packed sums: their order and their middles are what bounds need.
  double value(const Cell& sum, const Bounds& bounds) const {
    const double mass = packed_.mass(sum) + ridge_;
    return mass > 0 ? std::clamp(-static_cast<double>(sum.sum) / mass, bounds.low, bounds.high) : 0.0;
  }

  // Twice what a leaf takes from the second-order model, at its value, or at the best.
  double worth(const Cell& sum, double value) const {
    return -value * (2 * static_cast<double>(sum.sum) + (packed_.mass(sum) + ridge_) * value);
  }
  double worth(const Cell& sum) const { return NewtonCut::of_side(packed_.sum(sum), packed_.mass(sum) + ridge_); }

  size_t take() {
    if (!free_.empty()) {
      const size_t place = free_.back();
      free_.pop_back();
      return place;
    }
    histograms_.emplace_back(n_cells_ + 256, Cell{});  // a code that no bin has stays inside
    return histograms_.size() - 1;
  }

  void give_back(Leaf& leaf) {
    if (leaf.histogram != nowhere) free_.push_back(leaf.histogram);
    leaf.histogram = nowhere;
  }

  // Many rows are summed in parts that threads share; parts of whole numbers add up to the same in any order.
  void add_rows(const Leaf& leaf) {
    const uint32_t* order = leaf.size() == rows_.n_rows ? nullptr : order_.data() + leaf.begin;
    const size_t n_parts = leaf.size() * rows_.n_tried < shared_cells ? 1 : 4, size = leaf.size() / n_parts + 1;
    size_t places[4] = {leaf.histogram};
    for (size_t part = 1; part < n_parts; ++part) places[part] = take();
    const auto sum_part = [&](size_t part) {
      const size_t begin = std::min(leaf.size(), part * size), end = std::min(leaf.size(), begin + size);
      std::vector<Cell>& cells = histograms_[places[part]];
      std::fill(cells.begin(), cells.end(), Cell{});
      add_packed(rows_, packed_.terms(), order ? order + begin : nullptr, begin, end - begin, first_.data(),
                 cells.data());
    };
    if (n_parts == 1) return sum_part(0);
    crew_.for_each_block(n_parts, sum_part);
    Cell* whole = histograms_[leaf.histogram].data();
    for (size_t part = 1; part < n_parts; ++part) {
      const Cell* cells = histograms_[places[part]].data();
      for (size_t k = 0; k < n_cells_; ++k) whole[k] += cells[k];
      free_.push_back(places[part]);
    }
  }

  void search(Leaf& leaf) {
    if (n_cells_ < shared_cells / 8) {
      for (size_t k = 0; k < rows_.n_tried; ++k) best_[k] = scan(leaf, k);
    } else {
      crew_.for_each_block(rows_.n_tried, [&](size_t k) { best_[k] = scan(leaf, k); });
    }
    double most = 0;
    for (const Split& split : best_) most = std::max(most, split.gain);
    const double equal = tie * (worth(leaf.sum) + most);
    leaf.split = {};
    for (const Split& split : best_)
      if (split.is_found && split.gain >= most - equal && !leaf.split.is_found) leaf.split = split;
  }

  Split scan(const Leaf& leaf, size_t k) const {
    const size_t column = rows_.columns[k], n_bins = rows_.n_bins[column];
    const Cell* cells = histograms_[leaf.histogram].data() + first_[k];
    const Cell missing = cells[n_bins];
    uint8_t order[256];
    const bool is_levels = rows_.n_levels && rows_.n_levels[column] != 0;
    const size_t n_codes = is_levels ? levels_in_order(packed_, cells, n_bins, ridge_, -1.0, order) : n_bins;
    Split best = plan_.direction ? scan_bounded(leaf, column, cells, is_levels ? order : nullptr, missing, n_codes)
                                 : scan_free(leaf, cells, is_levels ? order : nullptr, missing, n_codes);
    best.column = column;
    if (best.is_found && is_levels)
      best.levels = levels_left(packed_, cells, rows_.n_levels[column], order, best.bin + 1,
                                2 * packed_.rows(best.left) > leaf.size());
    return best;
  }

  Split scan_free(const Leaf& leaf, const Cell* cells, const uint8_t* order, const Cell& missing, size_t n) const {
    const NewtonCut gain{packed_.sum(leaf.sum), packed_.mass(leaf.sum), ridge_, worth(leaf.sum)};
    const Cut<Cell> cut = best_cut(packed_, cells, order, n, missing, leaf.size(), least_, gain);
    Split best;
    best.gain = cut.gain;
    best.bin = cut.n_moved - 1;
    best.is_missing_left = cut.is_missing_left;
    best.is_found = cut.is_found;
    best.left = cut.left;
    return best;
  }

  // Where columns have directions: values of both sides keep within the bounds of the leaf.
  Split scan_bounded(const Leaf& leaf, size_t column, const Cell* cells, const uint8_t* order, const Cell& missing,
                     size_t n) const {
    const int direction = plan_.direction[column];
    const double whole = worth(leaf.sum, value(leaf.sum, leaf.bounds)), equal = tie * worth(leaf.sum);
    Split best;
    for (const bool is_missing_left : {false, true}) {
      if (is_missing_left && packed_.rows(missing) == 0) break;
      Cell left = is_missing_left ? missing : Cell{};
      for (size_t bin = 0; bin < n; ++bin) {
        left += cells[order ? order[bin] : bin];
        const size_t n_left = packed_.rows(left);
        if (n_left + least_ > leaf.size()) break;
        if (n_left < least_) continue;
        const Cell right = leaf.sum - left;
        const double left_value = value(left, leaf.bounds), right_value = value(right, leaf.bounds);
        if (direction * (right_value - left_value) < 0) continue;
        const double gain = worth(left, left_value) + worth(right, right_value) - whole;
        if (!(gain > best.gain * (1 + tie) + (best.is_found ? 0.0 : equal)) || !std::isfinite(gain)) continue;
        best.gain = gain;
        best.bin = bin;
        best.left = left;
        best.left_value = left_value;
        best.right_value = right_value;
        best.is_missing_left = is_missing_left;
        best.is_found = true;
      }
    }
    if (best.is_found && packed_.rows(missing) == 0) best.is_missing_left = 2 * packed_.rows(best.left) > leaf.size();
    return best;
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

  bool can_split(const Leaf& leaf) const { return leaf.depth < plan_.max_depth && leaf.size() >= 2 * least_; }

  // is_searched: whether a child may be split in its turn.
  void split(size_t place, bool is_searched) {
    Leaf leaf = leaves_[place];
    const size_t middle = part(leaf), left = tree_.nodes.size();
    if (middle == leaf.begin || middle == leaf.end) return;  // codes that no bin has
    leaves_[place].begin = leaves_[place].end;               // its rows are those of its children
    keep(leaf, left);
    Leaf sides[2];
    for (const size_t side : {size_t{0}, size_t{1}}) {
      sides[side] = {left + side,
                     leaf.depth + 1,
                     side == 0 ? leaf.begin : middle,
                     side == 0 ? middle : leaf.end,
                     side == 0 ? leaf.split.left : leaf.sum - leaf.split.left,
                     bounds_of(leaf, side),
                     nowhere,
                     {}};
    }
    const size_t few = sides[0].size() <= sides[1].size() ? 0 : 1;
    Leaf &small = sides[few], &large = sides[1 - few];
    if (is_searched && can_split(large)) {  // the smaller one is summed, the larger one is what remains
      small.histogram = take();
      add_rows(small);
      large.histogram = leaf.histogram;
      leaf.histogram = nowhere;
      Cell* whole = histograms_[large.histogram].data();
      const Cell* part = histograms_[small.histogram].data();
      for (size_t k = 0; k < n_cells_; ++k) whole[k] = whole[k] - part[k];
      search(large);
      if (can_split(small)) search(small);
    }
    give_back(leaf);
    offer(sides[0]);
    offer(sides[1]);
  }

  void keep(const Leaf& leaf, size_t left) {
    tree_.nodes.resize(left + 2);
    NewtonNode& node = tree_.nodes[leaf.node];
    const bool is_levels = rows_.n_levels && rows_.n_levels[leaf.split.column] != 0;
    node.feature = static_cast<int32_t>(leaf.split.column);
    node.left = static_cast<int32_t>(left);
    node.bin = static_cast<uint32_t>(is_levels ? tree_.sets.size() : leaf.split.bin);
    node.is_missing_left = leaf.split.is_missing_left;
    if (is_levels) tree_.sets.push_back(leaf.split.levels);
  }

  // Scores of the two sides of a split in a direction stay apart, below too.
  Bounds bounds_of(const Leaf& leaf, size_t side) const {
    const int direction = plan_.direction ? plan_.direction[leaf.split.column] : 0;
    return direction == 0 ? leaf.bounds
                          : halved(leaf.bounds, direction, side, leaf.split.left_value, leaf.split.right_value);
  }
  static Bounds halved(const Bounds& bounds, int direction, size_t side, double left_value, double right_value) {
    const double middle = left_value / 2 + right_value / 2;
    const bool is_upper = (direction > 0) == (side == 1);
    return is_upper ? Bounds{std::max(bounds.low, middle), bounds.high}
                    : Bounds{bounds.low, std::min(bounds.high, middle)};
  }

  // Whether each code of a column goes left.
  void sides_of(size_t column, size_t bin, const Levels* set, bool is_missing_left, bool* goes_left) const {
    const size_t n_bins = rows_.n_bins[column];
    for (size_t code = 0; code < n_bins; ++code) goes_left[code] = set ? has_level(*set, code) : code <= bin;
    goes_left[n_bins] = is_missing_left;
  }

  size_t part(const Leaf& leaf) {
    bool goes_left[256] = {};
    const bool is_levels = rows_.n_levels && rows_.n_levels[leaf.split.column] != 0;
    sides_of(leaf.split.column, leaf.split.bin, is_levels ? &leaf.split.levels : nullptr, leaf.split.is_missing_left,
             goes_left);
    size_t left = leaf.begin, n_right = 0;
    const uint8_t* codes = rows_.by_column + leaf.split.column * rows_.n_rows;
    for (size_t k = leaf.begin; k < leaf.end; ++k) {
      const uint32_t row = order_[k];
      const bool is_left = goes_left[codes[row]];
      order_[left] = row;
      moved_[n_right] = row;
      left += is_left;
      n_right += !is_left;
    }
    std::copy_n(moved_.begin(), n_right, order_.begin() + static_cast<ptrdiff_t>(left));
    return left;
  }

  // Leaves of all rows; then sums of the rows themselves give every node its value, its gain and its weight.
  void settle() {
    tree_.leaves.assign(rows_.n_rows, -1);
    for (const Leaf& leaf : leaves_)
      for (size_t k = leaf.begin; k < leaf.end; ++k) tree_.leaves[order_[k]] = static_cast<int32_t>(leaf.node);
    struct Sums {
      double g = 0, h = 0, weight = 0;
    };
    std::vector<Sums> sums(tree_.nodes.size());
    for (size_t k = 0; k < rows_.n_drawn; ++k) {
      const size_t i = rows_.rows[k];
      Sums& sum = sums[static_cast<size_t>(tree_.leaves[i])];
      sum.g += rows_.slope[i];
      sum.h += rows_.curvature[i];
      sum.weight += rows_.weight[i];
    }
    for (size_t node = sums.size(); node-- > 0;) {
      if (const auto left = static_cast<size_t>(tree_.nodes[node].left); left != 0)
        sums[node] = {sums[left].g + sums[left + 1].g, sums[left].h + sums[left + 1].h,
                      sums[left].weight + sums[left + 1].weight};
    }
    std::vector<Bounds> bounds(sums.size());
    const auto step = [&](size_t node, const Bounds& within) {
      const double mass = sums[node].h + plan_.ridge;
      return mass > 0 ? std::clamp(-sums[node].g / mass, within.low, within.high) : 0.0;
    };
    const auto taken = [&](size_t node) {
      const double at = tree_.nodes[node].value;
      return -at * (2 * sums[node].g + (sums[node].h + plan_.ridge) * at);
    };
    for (size_t node = 0; node < sums.size(); ++node) {
      NewtonNode& made = tree_.nodes[node];
      made.weight = sums[node].weight;
      made.value = step(node, bounds[node]);
      const auto left = static_cast<size_t>(made.left);
      if (left == 0) continue;
      const int direction = plan_.direction ? plan_.direction[made.feature] : 0;
      const double sides[2] = {step(left, bounds[node]), step(left + 1, bounds[node])};
      for (const size_t side : {size_t{0}, size_t{1}})
        bounds[left + side] = direction == 0 ? bounds[node] : halved(bounds[node], direction, side, sides[0], sides[1]);
    }
    for (size_t node = 0; node < sums.size(); ++node)
      if (const auto left = static_cast<size_t>(tree_.nodes[node].left); left != 0)
        tree_.nodes[node].gain = std::max(0.0, taken(left) + taken(left + 1) - taken(node));
    lead_others();
  }

  void lead_others() {
    if (rows_.n_drawn == rows_.n_rows) return;
    std::vector<std::array<bool, 256>> goes_left(tree_.nodes.size());
    for (size_t node = 0; node < tree_.nodes.size(); ++node) {
      const NewtonNode& made = tree_.nodes[node];
      if (made.left == 0) continue;
      const auto column = static_cast<size_t>(made.feature);
      const bool is_levels = rows_.n_levels && rows_.n_levels[column] != 0;
      sides_of(column, made.bin, is_levels ? &tree_.sets[made.bin] : nullptr, made.is_missing_left,
               goes_left[node].data());
    }
    for (size_t i = 0; i < rows_.n_rows; ++i) {
      if (tree_.leaves[i] >= 0) continue;
      int32_t at = 0;
      while (tree_.nodes[at].left != 0) {
        const NewtonNode& node = tree_.nodes[at];
        const uint8_t code = rows_.codes[i * rows_.n_columns + static_cast<size_t>(node.feature)];
        at = node.left + !goes_left[static_cast<size_t>(at)][code];
      }
      tree_.leaves[i] = at;
    }
  }

  const NewtonRows& rows_;
  const NewtonPlan& plan_;
  Crew& crew_;
  Packed packed_;
  double ridge_;  // in units of packed masses
  size_t least_;
  NewtonTree tree_;
  std::vector<uint32_t> order_, moved_, first_;
  std::vector<Split> best_;
  size_t n_cells_ = 0;
  std::vector<std::vector<Cell>> histograms_;
  std::vector<size_t> free_;
  std::vector<Leaf> leaves_;
  std::priority_queue<Open> open_;
};

}  // namespace

NewtonTree grow_newton(const NewtonRows& rows, const NewtonPlan& plan, Crew& crew) {
  return Grower(rows, plan, crew).grow();
}

}  // namespace certifit
