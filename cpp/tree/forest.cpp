// Growth of the trees of a forest.
#include "forest.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "../philox.hpp"
#include "kinds.hpp"
#include "records.hpp"

namespace certifit {
namespace {

constexpr size_t few_rows = 1024;  // below it only bins that were met are looked at

struct Waiting {
  size_t node, depth, begin, end;
  size_t size() const { return end - begin; }
};

// One tree at a time; what it needs is kept for the next tree.
class TreeGrower {
 public:
  TreeGrower(const TreeRows& rows, const BinnedColumns& bins, const RecordTable& table, const ForestPlan& plan)
      : rows_(rows),
        bins_(bins),
        table_(table),
        plan_(plan),
        columns_(bins.n_columns),
        cells_(plan.n_classes > 2 ? 0 : n_bins),
        counts_(plan.n_classes > 2 ? n_bins * cell_size(plan.n_classes) : 0) {}

  ForestTree grow(size_t number, Crew& crew) {
    tree_ = {};
    tree_.gains.assign(bins_.n_columns, 0.0);
    draws_ = drawn(rows_, plan_.seed, number);
    has_records_ = !table_.is_empty() && records_.draw(table_, draws_);
    if (has_records_) {
      counts_of_.resize(Records::most_at_once * n_bins);
    } else {
      order_.clear();
      for (size_t i = 0; i < rows_.n_rows; ++i)
        if (draws_[i] > 0) order_.push_back(static_cast<uint32_t>(i));
      if (plan_.n_classes <= 2) pack();
    }
    Philox random(plan_.seed, 2 * number + 1);
    std::iota(columns_.begin(), columns_.end(), size_t{0});
    tree_.nodes.emplace_back();
    std::vector<Waiting> open{{0, 0, 0, has_records_ ? records_.n_rows() : order_.size()}};
    while (!open.empty()) {
      if (!crew.keep_going()) throw Interrupted();
      const Waiting at = open.back();
      open.pop_back();
      const BinSplit choice = choose(at, random);
      if (!choice.is_found) continue;
      const size_t middle = at.begin + part(at, choice), left = tree_.nodes.size();
      tree_.nodes.resize(left + 2);
      Node& node = tree_.nodes[at.node];
      node.feature = static_cast<int32_t>(choice.feature);
      node.left = static_cast<int32_t>(left);
      node.is_of_levels = plan_.columns.is_levels(choice.feature);
      const std::vector<double>& edges = bins_.edges[choice.feature];
      if (node.is_of_levels) {
        node.threshold = static_cast<double>(tree_.sets.size());
        tree_.sets.push_back(choice.levels);
      } else {
        node.threshold = choice.bin < edges.size() ? edges[choice.bin] : std::numeric_limits<double>::infinity();
      }
      node.is_missing_left = choice.is_missing_left;
      tree_.gains[choice.feature] += choice.gain;
      open.push_back({left + 1, at.depth + 1, middle, at.end});
      open.push_back({left, at.depth + 1, at.begin, middle});
    }
    keep_leaves();
    return std::move(tree_);
  }

 private:
  // Draws and their sums of y less its middle, as whole numbers.
  void pack() {
    const bool is_of_classes = plan_.n_classes == 2;
    moment_.resize(rows_.n_rows);
    mass_of_.resize(rows_.n_rows);
    const double centre = is_of_classes ? 0.0 : plan_.centre;
    for (const uint32_t row : order_) {
      mass_of_[row] = draws_[row];
      moment_[row] = draws_[row] * (rows_.y[row] - centre);
    }
    packed_ = std::make_unique<Packed>(moment_.data(), mass_of_.data(), order_.data(), order_.size(), rows_.n_rows);
    if (!packed_->is_legal()) throw std::invalid_argument("the sum of |y| is not finite");
  }

  // Sums of a node, kept until its leaf is known: leaf values are written at the end, in the order of the nodes.
  bool sum_up(const Waiting& at) {
    const size_t width = plan_.width();
    node_values_.resize(tree_.nodes.size() * width);
    double* values = node_values_.data() + at.node * width;
    if (has_records_) {
      node_counts_ = records_.sum(at.begin, at.end);
      const double mass = DrawCountsRead{}.mass(node_counts_), second = DrawCountsRead{}.sum(node_counts_);
      values[0] = (mass - second) / mass;
      values[1] = second / mass;
      return second == 0 || second == mass;
    }
    std::fill_n(values, width, 0.0);
    mass_ = 0;
    const double first = rows_.y[order_[at.begin]];
    bool is_pure = true;
    for (size_t k = at.begin; k < at.end; ++k) {
      const double draws = draws_[order_[k]], y = rows_.y[order_[k]];
      mass_ += draws;
      is_pure &= y == first;
      if (plan_.n_classes > 0) {
        values[static_cast<size_t>(y)] += draws;
      } else {
        values[0] += draws * (y - first);
      }
    }
    if (plan_.n_classes == 0) values[0] = first + values[0] / mass_;
    class_sums_.assign(values, values + width);
    if (plan_.n_classes > 0)
      for (size_t c = 0; c < width; ++c) values[c] /= mass_;
    return is_pure;
  }

  BinSplit choose(const Waiting& at, Philox& random) {
    const bool is_pure = sum_up(at);
    const Stops& stops = plan_.stops;
    BinSplit best;
    if (is_pure || at.depth >= stops.max_depth || at.size() < stops.min_rows_split ||
        at.size() < 2 * stops.min_rows_leaf)
      return best;
    if (has_records_) return choose_by_counts(at, random);
    if (plan_.n_classes <= 2) {
      total_ = {};
      for (size_t k = at.begin; k < at.end; ++k) total_ += packed_->terms()[order_[k]];
    }
    size_t left = columns_.size();
    // Columns that are constant in the node do not count as tried.
    for (size_t n_tried = 0; n_tried < plan_.n_tried && left > 0;) {
      std::swap(columns_[random.below(static_cast<uint32_t>(left))], columns_[left - 1]);
      const size_t j = columns_[--left];
      if (!(plan_.n_classes > 2 ? add_classes(at, bins_.column(j)) : add_draws(at, bins_.column(j)))) continue;
      ++n_tried;
      const BinSplit split = plan_.n_classes > 2 ? of_classes(at, j) : of_squares(at, j);
      if (split.is_found && (!best.is_found || split.gain > best.gain * (1 + tie_share))) best = split;
    }
    return best;
  }

  // The same by counts of records, some columns at a time: the columns come in the same order, and counts are what
  // packed sums are but for a power of two.
  BinSplit choose_by_counts(const Waiting& at, Philox& random) {
    constexpr DrawCountsRead read;
    const SquaredCut gain{read.sum(node_counts_), read.mass(node_counts_), 2.0};
    BinSplit best;
    size_t left = columns_.size();
    for (size_t n_tried = 0; n_tried < plan_.n_tried && left > 0;) {
      size_t tried[Records::most_at_once], n = 0;
      for (const size_t most = std::min({plan_.n_tried - n_tried, left, Records::most_at_once}); n < most; ++n) {
        std::swap(columns_[random.below(static_cast<uint32_t>(left))], columns_[left - 1]);
        tried[n] = columns_[--left];
      }
      MetBins met[Records::most_at_once];
      records_.add(at.begin, at.end, tried, n, counts_of_.data(), met);
      for (size_t k = 0; k < n; ++k) {
        DrawCounts* cells = counts_of_.data() + k * n_bins;
        if (met[k].n > 1) {
          ++n_tried;
          const bool has_missing = met[k].bins[met[k].n - 1] == Bins::missing;
          const ColumnView view{tried[k], at.size(), met[k].bins, met[k].n - has_missing};
          const BinSplit split = split_of(read, cells, view, n_levels_of(tried[k]), plan_.stops.min_rows_leaf, gain);
          if (split.is_found && (!best.is_found || split.gain > best.gain * (1 + tie_share))) best = split;
        }
        for (size_t m = 0; m < met[k].n; ++m) cells[met[k].bins[m]] = {};
      }
    }
    return best;
  }

  // Bins that the node's rows are in, in ascending order; false where all are in one.
  bool find_bins(const Waiting& at, const uint8_t* codes) {
    std::fill_n(met_, 4, 0);
    for (size_t k = at.begin; k < at.end; ++k) {
      const uint8_t code = codes[order_[k]];
      met_[code >> 6] |= uint64_t{1} << (code & 63);
    }
    met_bins_.clear();
    for (size_t word = 0; word < 4; ++word)
      for (uint64_t bits = met_[word]; bits != 0; bits &= bits - 1)
        met_bins_.push_back(static_cast<uint8_t>(64 * word + static_cast<size_t>(std::countr_zero(bits))));
    return met_bins_.size() > 1;
  }

  size_t n_levels_of(size_t j) const { return plan_.columns.is_levels(j) ? plan_.columns.n_levels[j] : 0; }
  bool has_missing() const { return met_bins_.back() == Bins::missing; }

  // The cells of a column; false where all rows are in one. Of few rows only bins that they are in are cleared.
  bool add_draws(const Waiting& at, const uint8_t* codes) {
    const bool is_few = at.size() < few_rows;
    if (is_few && !find_bins(at, codes)) return false;
    if (is_few)
      for (uint8_t bin : met_bins_) cells_[bin] = {};
    else
      std::fill(cells_.begin(), cells_.end(), Cell{});
    const Cell* terms = packed_->terms();
    for (size_t k = at.begin; k < at.end; ++k) cells_[codes[order_[k]]] += terms[order_[k]];
    if (is_few) return true;
    met_bins_.clear();
    for (size_t bin = 0; bin < n_bins; ++bin)
      if (cells_[bin].mass != 0) met_bins_.push_back(static_cast<uint8_t>(bin));
    return met_bins_.size() > 1;
  }

  BinSplit of_squares(const Waiting& at, size_t j) {
    if (!has_missing()) cells_[Bins::missing] = {};
    if (at.size() < few_rows && n_levels_of(j) > 0)  // every level is read
      for (size_t bin = 0; bin < Bins::missing; ++bin)
        if (!((met_[bin >> 6] >> (bin & 63)) & 1)) cells_[bin] = {};
    const double times = plan_.n_classes == 2 ? 2.0 : 1.0, unit = packed_->sum_unit();
    const SquaredCut gain{packed_->sum(total_), packed_->mass(total_), times};
    const ColumnView view{j, at.size(), met_bins_.data(), met_bins_.size() - has_missing()};
    BinSplit split = split_of(*packed_, cells_.data(), view, n_levels_of(j), plan_.stops.min_rows_leaf, gain);
    split.gain *= unit * unit / packed_->mass_unit();
    return split;
  }

  bool add_classes(const Waiting& at, const uint8_t* codes) {
    if (!find_bins(at, codes)) return false;
    const size_t stride = cell_size(plan_.n_classes);
    std::fill_n(counts_.begin() + Bins::missing * stride, stride, 0.0);
    for (uint8_t bin : met_bins_) std::fill_n(counts_.begin() + static_cast<ptrdiff_t>(bin * stride), stride, 0.0);
    for (size_t k = at.begin; k < at.end; ++k) {
      double* cell = counts_.data() + codes[order_[k]] * stride;
      const double draws = draws_[order_[k]];
      cell[0] += 1;
      cell[1] += draws;
      cell[2 + static_cast<size_t>(rows_.y[order_[k]])] += draws;
    }
    return true;
  }

  // Gini of more classes.
  BinSplit of_classes(const Waiting& at, size_t j) {
    node_cell_.assign({static_cast<double>(at.size()), mass_});
    node_cell_.insert(node_cell_.end(), class_sums_.begin(), class_sums_.end());
    SplitRules rules;
    rules.min_rows = static_cast<double>(plan_.stops.min_rows_leaf);
    rules.n_levels = n_levels_of(j);
    if (has_missing()) met_bins_.pop_back();
    BinSplit split;
    scan_column(ClassScore{plan_.n_classes, false}, j, counts_.data(), met_bins_, node_cell_.data(), rules, work_,
                split);
    return split;
  }

  // Rows of the left side first, both sides in their order. How many go left.
  size_t part(const Waiting& at, const BinSplit& choice) {
    const uint8_t* codes = bins_.column(choice.feature);
    bool goes_left[n_bins];
    sides_of(choice, plan_.columns.is_levels(choice.feature), goes_left);
    if (has_records_) return records_.part(at.begin, at.end, choice.feature, goes_left);
    scratch_.resize(std::max(scratch_.size(), at.size()));
    size_t n_left = 0, n_right = 0;
    for (size_t k = at.begin; k < at.end; ++k) {
      const uint32_t row = order_[k];
      const bool left = goes_left[codes[row]];
      order_[at.begin + n_left] = row;
      scratch_[n_right] = row;
      n_left += left;
      n_right += !left;
    }
    std::copy_n(scratch_.data(), n_right, order_.data() + at.begin + n_left);
    return n_left;
  }

  void keep_leaves() {
    const size_t width = plan_.width();
    for (size_t k = 0; k < tree_.nodes.size(); ++k) {
      if (tree_.nodes[k].left != 0) continue;
      const double* values = node_values_.data() + k * width;
      tree_.values.insert(tree_.values.end(), values, values + width);
    }
  }

  const TreeRows& rows_;
  const BinnedColumns& bins_;
  const RecordTable& table_;
  const ForestPlan& plan_;
  ForestTree tree_;
  Records records_;
  bool has_records_ = false;
  DrawCounts node_counts_;
  std::vector<DrawCounts> counts_of_;
  std::vector<size_t> columns_;
  std::vector<Cell> cells_;
  std::vector<double> counts_, node_values_, class_sums_, node_cell_, work_, moment_, mass_of_;
  std::unique_ptr<Packed> packed_;
  Cell total_{};
  std::vector<uint32_t> draws_, order_, scratch_;
  std::vector<uint8_t> met_bins_;
  uint64_t met_[4];
  double mass_ = 0;
};

}  // namespace

std::vector<uint32_t> drawn(const TreeRows& rows, uint64_t seed, size_t tree) {
  std::vector<uint32_t> draws(rows.n_rows, 0);
  Philox random(seed, 2 * tree);
  std::vector<double> ends(rows.is_weighted ? rows.n_rows : 0);
  double total = 0;
  bool is_whole = true;
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i] = total += rows.weight[i];
    is_whole = is_whole && rows.weight[i] == std::floor(rows.weight[i]);
  }
  is_whole = is_whole && total < 0x1p32;
  const size_t n_draws = rows.is_weighted && is_whole ? static_cast<size_t>(total) : rows.n_rows;
  for (size_t k = 0; k < n_draws; ++k) {
    if (!rows.is_weighted) {
      ++draws[random.below(static_cast<uint32_t>(rows.n_rows))];
      continue;
    }
    const double place = is_whole ? random.below(static_cast<uint32_t>(total))
                                  : (random.next() * 0x1p-32 + random.next() * 0x1p-64) * total;
    const auto found = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), place) - ends.begin());
    ++draws[std::min(found, rows.n_rows - 1)];
  }
  return draws;
}

namespace {

// Trees that are grown in any order are handed on in theirs.
class InOrder {
 public:
  InOrder(size_t first, const std::function<void(ForestTree&&)>& take) : next_(first), take_(take) {}

  void add(size_t number, ForestTree&& tree) {
    std::lock_guard<std::mutex> hold(lock_);
    waiting_.emplace(number, std::move(tree));
    for (auto at = waiting_.begin(); at != waiting_.end() && at->first == next_; at = waiting_.erase(at), ++next_)
      take_(std::move(at->second));
  }

 private:
  std::mutex lock_;
  std::map<size_t, ForestTree> waiting_;
  size_t next_;
  const std::function<void(ForestTree&&)>& take_;
};

}  // namespace

void grow_forest(const TreeRows& rows, const BinnedColumns& bins, const ForestPlan& plan, Crew& crew, size_t n_at_once,
                 const std::function<void(ForestTree&&)>& take, const std::function<bool(size_t)>& tell) {
  const RecordTable table(bins, plan.n_classes == 2 ? rows.y.data() : nullptr, crew);
  const size_t most = tell ? std::max<size_t>(n_at_once, 1) : plan.n_trees;
  for (size_t first = 0; first < plan.n_trees;) {
    const size_t count = std::min(most, plan.n_trees - first);
    InOrder trees(first, take);
    crew.for_each_block(
        count, [&](size_t t) { trees.add(first + t, TreeGrower(rows, bins, table, plan).grow(first + t, crew)); });
    first += count;
    if (tell && tell(first)) break;
  }
}

}  // namespace certifit
