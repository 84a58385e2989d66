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

#include "few_records.hpp"
#include "forest_split.hpp"

namespace certifit {
namespace {

constexpr size_t few_rows = 1024;  // below it only bins that were met are looked at

struct Waiting {
  size_t node, depth, begin, end;
  uint64_t key;       // of the columns that are tried
  DrawCounts counts;  // of its rows, where these are records
  size_t size() const { return end - begin; }
};

// What a split sends to both sides; counts of records.
struct Parted {
  size_t n_left;
  DrawCounts left, right;
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
    return grow({drawn(rows_, plan_.seed, number, crew), root_key(plan_.seed, number), 0, std::nullopt}, crew);
  }

  ForestTree grow(ForestStart start, Crew& crew) {
    tree_ = {};
    draws_ = std::move(start.draws);
    has_records_ = !table_.is_empty() && records_.draw(table_, draws_);
    if (has_records_) {
      counts_of_.resize(Records::most_at_once * n_bins);
    } else {
      order_.clear();
      for (size_t i = 0; i < rows_.n_rows; ++i)
        if (draws_[i] > 0) order_.push_back(static_cast<uint32_t>(i));
      if (plan_.n_classes <= 2) pack(start.units);
    }
    tree_.nodes.emplace_back();
    std::vector<Waiting> open{{0, start.depth, 0, has_records_ ? records_.n_rows() : order_.size(), start.key, {}}};
    if (has_records_) open[0].counts = records_.sum(0, records_.n_rows());
    while (!open.empty()) {
      const Waiting at = open.back();
      const bool is_quick = has_records_ && at.size() < few_rows;  // it and all below: nobody is asked
      if (!is_quick && !crew.keep_going()) throw Interrupted();
      open.pop_back();
      const BinSplit choice = choose(at);
      if (!choice.is_found) {
        if (plan_.n_classes == 0) node_values_[at.node] = mean_of(at);
        continue;
      }
      const Parted sides = part(at, choice);
      const size_t middle = at.begin + sides.n_left, left = tree_.nodes.size();
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
      node.decrease = choice.gain;
      open.push_back({left + 1, at.depth + 1, middle, at.end, child_key(at.key, true), sides.right});
      open.push_back({left, at.depth + 1, at.begin, middle, child_key(at.key, false), sides.left});
    }
    keep_leaves();
    return std::move(tree_);
  }

 private:
  // Draws and their sums of y less its middle, as whole numbers.
  void pack(const std::optional<PackedUnits>& units) {
    moment_.resize(rows_.n_rows);
    mass_of_.resize(rows_.n_rows);
    for (const uint32_t row : order_) {
      mass_of_[row] = draws_[row];
      moment_[row] = drawn_moment(plan_, rows_.y[row], draws_[row]);
    }
    packed_ = units ? *units : PackedUnits(drawn_sizes(plan_, rows_, draws_, order_), order_.size());
    if (!packed_->is_legal()) throw std::invalid_argument("the sum of |y| is not finite");
    terms_.resize(rows_.n_rows);
    for (const uint32_t row : order_) terms_[row] = packed_->term(moment_[row], mass_of_[row]);
  }

  // Shares of the classes of a node, kept until its leaf is known: leaf values are written at the end, in the order of
  // the nodes. Whether all its rows are equal in y.
  bool sum_up(const Waiting& at) {
    const size_t width = plan_.width();
    node_values_.resize(tree_.nodes.size() * width);
    double* values = node_values_.data() + at.node * width;
    if (has_records_) {
      const double mass = DrawCountsRead{}.mass(at.counts), second = DrawCountsRead{}.sum(at.counts);
      values[0] = (mass - second) / mass;
      values[1] = second / mass;
      return second == 0 || second == mass;
    }
    const double first = rows_.y[order_[at.begin]];
    const bool is_pure =
        std::all_of(order_.begin() + static_cast<ptrdiff_t>(at.begin), order_.begin() + static_cast<ptrdiff_t>(at.end),
                    [&](uint32_t row) { return rows_.y[row] == first; });
    if (plan_.n_classes == 0) return is_pure;
    std::fill_n(values, width, 0.0);
    mass_ = 0;
    for (size_t k = at.begin; k < at.end; ++k) {
      const double draws = draws_[order_[k]];
      mass_ += draws;
      values[static_cast<size_t>(rows_.y[order_[k]])] += draws;
    }
    class_sums_.assign(values, values + width);
    for (size_t c = 0; c < width; ++c) values[c] /= mass_;
    return is_pure;
  }

  // Means of blocks of rows are put together: the parts that the rows are in do not change it.
  double mean_of(const Waiting& at) const {
    const RowArrays arrays{rows_.y.data(), mass_of_.data(), nullptr, true};
    NumberSums sums;
    for_each_row_block(rows_, order_.data() + at.begin, at.size(), [&](const uint32_t* some, size_t n) {
      sums.add(mean_block(arrays, some, n), Criterion::squared_error);
    });
    return sums.mean;
  }

  BinSplit choose(const Waiting& at) {
    const bool is_pure = sum_up(at);
    const Stops& stops = plan_.stops;
    BinSplit best;
    if (is_pure || at.depth >= stops.max_depth || at.size() < stops.min_rows_split ||
        at.size() < 2 * stops.min_rows_leaf)
      return best;
    columns_.begin(at.key);
    if (has_records_) return choose_by_counts(at);
    if (plan_.n_classes <= 2) {
      total_ = {};
      for (size_t k = at.begin; k < at.end; ++k) total_ += terms_[order_[k]];
    }
    // Columns that are constant in the node do not count as tried.
    for (size_t n_tried = 0; n_tried < plan_.n_tried && columns_.n_left() > 0;) {
      const size_t j = columns_.next();
      if (!(plan_.n_classes > 2 ? add_classes(at, bins_.column(j)) : add_draws(at, bins_.column(j)))) continue;
      ++n_tried;
      const BinSplit split = plan_.n_classes > 2 ? of_classes(at, j) : of_squares(at, j);
      if (is_larger(split, best)) best = split;
    }
    return best;
  }

  // The same by counts of records: the columns come in the same order, and counts are what packed sums are but for a
  // power of two.
  BinSplit choose_by_counts(const Waiting& at) {
    constexpr DrawCountsRead read;
    const SquaredCut gain{read.sum(at.counts), read.mass(at.counts), 2.0};
    return at.size() <= FewRecords::most ? choose_of_few(at, gain) : choose_of_many(at, gain);
  }

  BinSplit choose_of_few(const Waiting& at, const SquaredCut& gain) {
    few_.begin(records_, at.begin, at.end);
    BinSplit best;
    bool is_pure = false;  // no other column takes more
    for (size_t n_tried = 0; n_tried < plan_.n_tried && columns_.n_left() > 0 && !is_pure;) {
      const size_t j = columns_.next();
      const FewRecords::Column column = few_.read(j);
      if (column.is_constant) continue;
      ++n_tried;
      if (column.has_missing || plan_.columns.is_levels(j))
        try_columns(at, &j, 1, gain, best);
      else
        is_pure = few_.improve(j, plan_.stops.min_rows_leaf, gain, best);
    }
    return best;
  }

  // Some columns at a time.
  BinSplit choose_of_many(const Waiting& at, const SquaredCut& gain) {
    BinSplit best;
    for (size_t n_tried = 0; n_tried < plan_.n_tried && columns_.n_left() > 0;) {
      size_t tried[Records::most_at_once], n = 0;
      for (const size_t most = std::min({plan_.n_tried - n_tried, columns_.n_left(), Records::most_at_once}); n < most;
           ++n)
        tried[n] = columns_.next();
      n_tried += try_columns(at, tried, n, gain, best);
    }
    return best;
  }

  // How many of the columns are not constant.
  size_t try_columns(const Waiting& at, const size_t* tried, size_t n, const SquaredCut& gain, BinSplit& best) {
    MetBins met[Records::most_at_once];
    records_.add(at.begin, at.end, tried, n, counts_of_.data(), met);
    size_t n_tried = 0;
    for (size_t k = 0; k < n; ++k) {
      DrawCounts* cells = counts_of_.data() + k * n_bins;
      if (met[k].n > 1) {
        ++n_tried;
        const bool has_missing = met[k].bins[met[k].n - 1] == Bins::missing;
        const ColumnView view{tried[k], at.size(), met[k].bins, met[k].n - has_missing};
        const size_t n_levels = levels_of(plan_, tried[k]);
        const BinSplit split = split_of(DrawCountsRead{}, cells, view, n_levels, plan_.stops.min_rows_leaf, gain);
        if (is_larger(split, best)) best = split;
      }
      for (size_t m = 0; m < met[k].n; ++m) cells[met[k].bins[m]] = {};
    }
    return n_tried;
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

  bool has_missing() const { return met_bins_.back() == Bins::missing; }

  // The cells of a column; false where all rows are in one. Of few rows only bins that they are in are cleared.
  bool add_draws(const Waiting& at, const uint8_t* codes) {
    const bool is_few = at.size() < few_rows;
    if (is_few && !find_bins(at, codes)) return false;
    if (is_few)
      for (uint8_t bin : met_bins_) cells_[bin] = {};
    else
      std::fill(cells_.begin(), cells_.end(), Cell{});
    for (size_t k = at.begin; k < at.end; ++k) cells_[codes[order_[k]]] += terms_[order_[k]];
    if (is_few) return true;
    met_bins_.clear();
    for (size_t bin = 0; bin < n_bins; ++bin)
      if (cells_[bin].mass != 0) met_bins_.push_back(static_cast<uint8_t>(bin));
    return met_bins_.size() > 1;
  }

  BinSplit of_squares(const Waiting& at, size_t j) {
    if (!has_missing()) cells_[Bins::missing] = {};
    if (at.size() < few_rows && levels_of(plan_, j) > 0)  // every level is read
      for (size_t bin = 0; bin < Bins::missing; ++bin)
        if (!((met_[bin >> 6] >> (bin & 63)) & 1)) cells_[bin] = {};
    const ColumnView view{j, at.size(), met_bins_.data(), met_bins_.size() - has_missing()};
    return packed_split(plan_, *packed_, cells_.data(), view, total_);
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
    if (has_missing()) met_bins_.pop_back();
    return class_split(plan_, counts_.data(), j, met_bins_, node_cell_.data(), work_);
  }

  // Rows of the left side first, both sides in their order.
  Parted part(const Waiting& at, const BinSplit& choice) {
    const uint8_t* codes = bins_.column(choice.feature);
    bool goes_left[n_bins];
    sides_of(choice, plan_.columns.is_levels(choice.feature), goes_left);
    if (has_records_) {
      const DrawCounts left = records_.part(at.begin, at.end, choice.feature, goes_left);
      return {DrawCountsRead{}.rows(left), left, {at.counts.word - left.word}};
    }
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
    return {n_left, {}, {}};
  }

  void keep_leaves() {
    const size_t width = plan_.width();
    tree_.gains.assign(bins_.n_columns, 0.0);
    for (size_t k = 0; k < tree_.nodes.size(); ++k) {
      const Node& node = tree_.nodes[k];
      if (node.left != 0) {
        tree_.gains[static_cast<size_t>(node.feature)] += node.decrease;
        continue;
      }
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
  FewRecords few_;
  bool has_records_ = false;
  std::vector<DrawCounts> counts_of_;
  ColumnDraws columns_;
  std::vector<Cell> cells_, terms_;
  std::vector<double> counts_, node_values_, class_sums_, node_cell_, work_, moment_, mass_of_;
  std::optional<PackedUnits> packed_;
  Cell total_{};
  std::vector<uint32_t> draws_, order_, scratch_;
  std::vector<uint8_t> met_bins_;
  uint64_t met_[4];
  double mass_ = 0;
};

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

PackedSizes drawn_sizes(const ForestPlan& plan, const TreeRows& rows, const std::vector<uint32_t>& draws,
                        const std::vector<uint32_t>& order) {
  PackedSizes all;
  for_each_row_block(rows, order.data(), order.size(), [&](const uint32_t* some, size_t n) {
    PackedSizes block;
    for (size_t k = 0; k < n; ++k) block.add(drawn_moment(plan, rows.y[some[k]], draws[some[k]]), draws[some[k]]);
    all.add(block.a, block.b);
  });
  return all;
}

ForestTree grow_rest(const TreeRows& rows, const BinnedColumns& bins, const ForestPlan& plan, ForestStart start,
                     Crew& crew) {
  const RecordTable table(bins, plan.n_classes == 2 ? rows.y.data() : nullptr, crew);
  return TreeGrower(rows, bins, table, plan).grow(std::move(start), crew);
}

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
