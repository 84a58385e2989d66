// Greedy growth on histograms. A node of many rows keeps the histogram of every column, and of two children only the
// smaller one is summed; a node of few rows sums one column at a time and looks at bins that have rows. Nodes of many
// rows share their columns among threads; below that a whole subtree is one thread's work.
#include "binned.hpp"

#include <bit>
#include <memory>

#include "histogram.hpp"

namespace certifit {
namespace {

constexpr size_t few_rows = 1024;                             // below it no histogram is kept
constexpr size_t most_subtree = 65536, least_subtree = 4096;  // rows of a subtree that one thread grows
constexpr size_t group_columns = 4;                           // that a thread sums together

using Cells = std::vector<double>;

// What a row adds: its weight, and its weight times y less a centre that is the same for all nodes.
BinnedRows terms_of(const TreeRows& rows, std::vector<uint8_t> codes, size_t width, double centre) {
  BinnedRows out{rows.n_rows, rows.n_columns, width, std::move(codes), {}, {}};
  if (width > 1) {
    out.terms = rows.weight;
    out.labels.assign(rows.y.begin(), rows.y.end());
    return out;
  }
  out.terms.resize(4 * rows.n_rows);
  for (size_t i = 0; i < rows.n_rows; ++i) {
    const double term[4] = {1, rows.weight[i], rows.weight[i] * (rows.y[i] - centre), 0};
    std::copy_n(term, 4, out.terms.data() + 4 * i);
  }
  return out;
}

struct Waiting {
  Open open;
  std::shared_ptr<Cells> cells;  // of all columns; null of a node of few rows
};

template <class Score>
class BinnedGrower {
 public:
  BinnedGrower(const Plan& plan, const Bins& bins, const BinnedRows& rows, const Score& score, double centre,
               std::vector<uint32_t>& order, Branch& branch)
      : plan_(plan),
        bins_(bins),
        rows_(rows),
        score_(score),
        centre_(centre),
        stride_(rows.stride()),
        order_(order),
        branch_(branch) {}

  // each(n, work): work(i) for every i below n. Nodes of `most_rest` rows or fewer are handed to `leave`.
  template <class Each, class Leave>
  void grow(const Open& top, size_t most_rest, Each each, Leave leave) {
    std::vector<Waiting> open{{top, nullptr}};
    open[0].open.node = add();
    if (top.range.size() >= few_rows) open[0].cells = summed_cells(top.range, each);
    while (!open.empty()) {
      Waiting at = std::move(open.back());
      open.pop_back();
      if (at.open.range.size() <= most_rest) {
        branch_.rest[at.open.node] = static_cast<int32_t>(leave(at.open));
        continue;
      }
      const NodeSums sums = sums_of(at.open.range);
      keep(at.open, sums);
      const BinSplit split = search(at, sums, each);
      if (split.is_found) divide(at, split, open, each);
    }
  }

 private:
  size_t add() {
    branch_.nodes.emplace_back();
    branch_.values.resize(branch_.values.size() + std::max<size_t>(plan_.n_classes, 1));
    branch_.rest.push_back(-1);
    return branch_.nodes.size() - 1;
  }

  NodeSums sums_of(Range range) {
    const RowArrays arrays{plan_.rows.y.data(), plan_.rows.weight.data(), nullptr, plan_.rows.is_weighted};
    const uint32_t* order = order_.data() + range.begin;
    return plan_.n_classes > 0 ? class_sums(plan_, arrays, order, range.size())
                               : number_sums(plan_, arrays, order, range.size());
  }

  void keep(const Open& at, const NodeSums& sums) {
    Node& node = branch_.nodes[at.node];
    node.n_rows = static_cast<uint32_t>(at.range.size());
    node.weight = sums.weight;
    node.impurity = sums.impurity;
    std::copy(sums.values.begin(), sums.values.end(), branch_.values.begin() + at.node * sums.values.size());
  }

  template <class Each>
  std::shared_ptr<Cells> summed_cells(Range range, Each each) {
    const size_t p = rows_.n_columns;
    auto cells = std::make_shared<Cells>(p * n_bins * stride_, 0.0);
    each((p + group_columns - 1) / group_columns, [&](size_t group) {
      const size_t first = group * group_columns;
      add_rows(rows_, order_.data() + range.begin, range.size(), first, std::min(p, first + group_columns),
               cells->data());
    });
    return cells;
  }

  // The cell of all rows of a node, about the centre of all rows.
  std::vector<double> node_cell(const Open& at, const NodeSums& sums) {
    std::vector<double> cell(stride_, 0.0);
    cell[0] = static_cast<double>(at.range.size());
    cell[1] = sums.weight;
    if (score_.width > 1) {
      std::copy(sums.values.begin(), sums.values.end(), cell.begin() + 2);
    } else {
      cell[2] = plan_.n_classes == 2 ? sums.values[1] : sums.weight * (sums.values[0] - centre_);
    }
    return cell;
  }

  template <class Each>
  BinSplit search(const Waiting& at, const NodeSums& sums, Each each) {
    const Stops& stops = plan_.stops;
    const size_t n = at.open.range.size(), p = rows_.n_columns;
    if (sums.is_pure || at.open.depth >= stops.max_depth || n < stops.min_rows_split || n < 2 * stops.min_rows_leaf)
      return {};
    const std::vector<double> node = node_cell(at.open, sums);
    SplitRules rules;
    rules.min_rows = static_cast<double>(stops.min_rows_leaf);
    rules.tie = tie_share * sums.weight * sums.impurity;
    rules.is_bounded = plan_.columns.has_directions();
    rules.low = at.open.low;
    rules.high = at.open.high;
    splits_.assign(p, {});
    const size_t n_groups = at.cells ? p : 1;
    each(n_groups, [&](size_t group) {
      thread_local std::vector<uint8_t> met;
      thread_local std::vector<double> work;
      const size_t end = at.cells ? group + 1 : p;
      for (size_t j = group; j < end; ++j) {
        SplitRules own = rules;
        own.direction = plan_.columns.direction_of(j);
        own.n_levels = plan_.columns.is_levels(j) ? plan_.columns.n_levels[j] : 0;
        const double* cells = at.cells ? at.cells->data() + j * n_bins * stride_ : few_cells(at.open.range, j, met);
        if (at.cells) bins_met(cells, stride_, met);
        scan_column(score_, j, cells, met, node.data(), own, work, splits_[j]);
      }
    });
    return chosen(at.open, sums);
  }

  // The first of the columns whose gains are equal but for rounding.
  BinSplit chosen(const Open& at, const NodeSums& sums) {
    BinSplit best;
    for (const BinSplit& split : splits_)
      if (split.is_found && (!best.is_found || split.gain > best.gain + tie_share * sums.weight * sums.impurity))
        best = split;
    const double decrease = best.gain / plan_.total;
    if (!best.is_found || decrease < plan_.stops.min_decrease) return {};
    Node& node = branch_.nodes[at.node];
    const std::vector<double>& edges = bins_.edges[best.feature];
    node.feature = static_cast<int32_t>(best.feature);
    node.decrease = decrease;
    node.is_missing_left = best.is_missing_left;
    node.is_of_levels = plan_.columns.is_levels(best.feature);
    if (node.is_of_levels) {
      node.threshold = static_cast<double>(branch_.sets.size());
      branch_.sets.push_back(best.levels);
    } else {
      node.threshold = best.bin < edges.size() ? edges[best.bin] : std::numeric_limits<double>::infinity();
    }
    return best;
  }

  // The cells of one column of a node of few rows, and its bins with rows.
  const double* few_cells(Range range, size_t j, std::vector<uint8_t>& met) {
    thread_local std::vector<double> cells;
    if (cells.size() < n_bins * stride_) cells.assign(n_bins * stride_, 0.0);
    const size_t p = rows_.n_columns;
    uint64_t bits[4] = {};
    for (size_t k = range.begin; k < range.end; ++k) {
      const uint8_t code = rows_.codes[order_[k] * p + j];
      bits[code >> 6] |= uint64_t{1} << (code & 63);
    }
    bits[3] |= uint64_t{1} << 63;  // the cell of missing values is always read
    met.clear();
    for (size_t word = 0; word < 4; ++word)
      for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1) {
        const size_t bin = 64 * word + static_cast<size_t>(std::countr_zero(rest));
        std::fill_n(cells.begin() + bin * stride_, stride_, 0.0);
        if (bin != Bins::missing) met.push_back(static_cast<uint8_t>(bin));
      }
    if (met.size() < 2 && !has_code(range, j, Bins::missing)) {
      met.clear();
      return cells.data();
    }
    for (size_t k = range.begin; k < range.end; ++k) {
      const size_t row = order_[k];
      double* cell = cells.data() + rows_.codes[row * p + j] * stride_;
      if (rows_.width == 1) {
        for (size_t s = 0; s < 3; ++s) cell[s] += rows_.terms[4 * row + s];
      } else {
        cell[0] += 1;
        cell[1] += rows_.terms[row];
        cell[2 + rows_.labels[row]] += rows_.terms[row];
      }
    }
    return cells.data();
  }

  bool has_code(Range range, size_t j, uint8_t code) const {
    for (size_t k = range.begin; k < range.end; ++k)
      if (rows_.codes[order_[k] * rows_.n_columns + j] == code) return true;
    return false;
  }

  template <class Each>
  void divide(Waiting& at, const BinSplit& split, std::vector<Waiting>& open, Each each) {
    const size_t n_left = part(at.open.range, split), left = add();
    add();
    branch_.nodes[at.open.node].left = static_cast<int32_t>(left);
    auto [first, second] = children_of(at.open, left, n_left, plan_.columns.direction_of(split.feature),
                                       split.left_value, split.right_value);
    Waiting small{first, nullptr}, large{second, nullptr};
    if (n_left > at.open.range.size() - n_left) std::swap(small, large);
    // Of a node of many rows the histogram becomes that of its larger child.
    if (at.cells && large.open.range.size() >= few_rows) {
      const std::shared_ptr<Cells> of_small = summed_cells(small.open.range, each);
      double *whole = at.cells->data(), *part = of_small->data();
      each(rows_.n_columns, [&](size_t j) { subtract(whole + j * n_bins * stride_, part + j * n_bins * stride_); });
      large.cells = std::move(at.cells);
      if (small.open.range.size() >= few_rows) small.cells = of_small;
    }
    open.push_back(std::move(large));
    open.push_back(std::move(small));  // the smaller one first: few histograms wait at a time
  }

  // A bin without rows holds nothing, not even rounding.
  void subtract(double* whole, const double* part) {
    for (size_t bin = 0; bin < n_bins; ++bin)
      for (size_t s = 0, at = bin * stride_, is_empty = whole[at] == part[at]; s < stride_; ++s)
        whole[at + s] = is_empty ? 0.0 : whole[at + s] - part[at + s];
  }

  size_t part(Range range, const BinSplit& split) {
    const size_t p = rows_.n_columns;
    const bool is_levels = plan_.columns.is_levels(split.feature);
    bool goes_left[n_bins];
    for (size_t code = 0; code < n_bins; ++code)
      goes_left[code] = code == Bins::missing ? split.is_missing_left
                        : is_levels           ? has_level(split.levels, code)
                                              : code <= split.bin;
    scratch_.resize(std::max(scratch_.size(), range.size()));
    const uint8_t* codes = rows_.codes.data() + split.feature;
    size_t n_left = 0, n_right = 0;
    for (size_t k = range.begin; k < range.end; ++k) {
      const uint32_t row = order_[k];
      const bool left = goes_left[codes[row * p]];
      order_[range.begin + n_left] = row;
      scratch_[n_right] = row;
      n_left += left;
      n_right += !left;
    }
    std::copy_n(scratch_.data(), n_right, order_.data() + range.begin + n_left);
    return n_left;
  }

  const Plan& plan_;
  const Bins& bins_;
  const BinnedRows& rows_;
  const Score& score_;
  double centre_;
  size_t stride_;
  std::vector<uint32_t>& order_;
  Branch& branch_;
  std::vector<BinSplit> splits_;
  std::vector<uint32_t> scratch_;
};

double centre_of(const TreeRows& rows, Criterion criterion) {
  if (criterion != Criterion::squared_error) return 0;
  double total = 0, sum = 0;
  for (size_t i = 0; i < rows.n_rows; ++i) {
    total += rows.weight[i];
    sum += rows.weight[i] * (rows.y[i] - rows.y[0]);
  }
  return rows.y[0] + sum / total;
}

template <class Score>
GrownTree grow_with(const Plan& plan, const Bins& bins, const Score& score, Crew& crew) {
  const double centre = centre_of(plan.rows, plan.criterion);
  const BinnedRows rows = terms_of(plan.rows, by_row(bins, crew), score.width, centre);
  std::vector<uint32_t> order(rows.n_rows);
  std::iota(order.begin(), order.end(), 0);
  std::vector<Branch> branches(1);
  std::vector<Open> left_over;
  const size_t most_rest = std::clamp(rows.n_rows / 8, least_subtree, most_subtree);
  BinnedGrower<Score>(plan, bins, rows, score, centre, order, branches[0])
      .grow(
          {0, 0, {0, rows.n_rows}}, most_rest, [&](size_t n, auto work) { crew.for_each_block(n, work); },
          [&](const Open& at) {
            left_over.push_back(at);
            return left_over.size();  // the branch of its number
          });
  branches.resize(1 + left_over.size());
  std::vector<size_t> by_size(left_over.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return left_over[a].range.size() > left_over[b].range.size(); });
  crew.for_each_block(by_size.size(), [&](size_t k) {
    const auto each = [&](size_t n, auto work) {
      if (!crew.keep_going()) throw Interrupted();
      for (size_t i = 0; i < n; ++i) work(i);
    };
    BinnedGrower<Score>(plan, bins, rows, score, centre, order, branches[by_size[k] + 1])
        .grow(left_over[by_size[k]], 0, each, [](const Open&) { return size_t{0}; });
  });
  return level_by_level(branches, std::max<size_t>(plan.n_classes, 1));
}

}  // namespace

GrownTree grow_binned(const TreeRows& rows, const Bins& bins, Criterion criterion, size_t n_classes, const Stops& stops,
                      const ColumnRules& columns, Crew& crew) {
  double total = 0;
  for (double w : rows.weight) total += w;
  const Plan plan{rows, criterion, n_classes, stops, columns, total};
  if (plan.is_two_class_gini()) return grow_with(plan, bins, SquaredScore{2.0}, crew);
  if (n_classes > 0) return grow_with(plan, bins, ClassScore{n_classes, criterion == Criterion::entropy}, crew);
  if (criterion == Criterion::poisson) return grow_with(plan, bins, PoissonScore{}, crew);
  return grow_with(plan, bins, SquaredScore{1.0}, crew);
}

}  // namespace certifit
