// Greedy growth with every threshold tried. Each column is sorted once; a split cuts every sorted column in two, both
// parts in order. Nodes of many rows share their columns among threads; below that a whole subtree is one thread's
// work, with rows renumbered so that a row and its rank in a column are 16 bits each.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../sorted.hpp"
#include "exact_scan.hpp"

namespace certifit {
namespace {

constexpr size_t most_narrow = 32768, least_narrow = 2048;  // rows of a subtree that one thread grows

// Rows in the order of every column. rows[place]: where the row stands in TreeRows.
template <class Index>
struct Sheet {
  size_t n_rows, n_columns;
  std::vector<Entry<Index>> entries;
  std::vector<Index> order;  // rows in ascending order, by node
  std::vector<uint32_t> rows;
  std::vector<double> y, weight, moment;
  std::vector<uint8_t> is_left;
  bool is_weighted;

  Sheet(size_t n, size_t d, bool is_weighted)
      : n_rows(n),
        n_columns(d),
        entries(n * d),
        order(n),
        rows(n),
        y(n),
        weight(is_weighted ? n : 0),
        moment(n),
        is_left(n),
        is_weighted(is_weighted) {
    std::iota(order.begin(), order.end(), Index{0});
  }
  Entry<Index>* column(size_t j) { return entries.data() + j * n_rows; }
  RowArrays arrays() { return {y.data(), weight.data(), moment.data(), is_weighted}; }
};

template <class Index>
NodeSums summed(const Plan& plan, Sheet<Index>& sheet, Range range) {
  const RowArrays rows = sheet.arrays();
  const Index* order = sheet.order.data() + range.begin;
  NodeSums node =
      plan.n_classes > 0 ? class_sums(plan, rows, order, range.size()) : number_sums(plan, rows, order, range.size());
  if (!plan.has_moments() || node.is_pure) return node;
  const double mean = plan.n_classes > 0 ? node.values[1] / node.weight : node.values[0];
  for (size_t k = 0; k < range.size(); ++k) rows.moment[order[k]] = rows.mass(order[k]) * (rows.y[order[k]] - mean);
  return node;
}

template <class Index>
class ColumnSearch {
 public:
  ColumnSearch(const Plan& plan, Sheet<Index>& sheet, const NodeSums& node, const Open& at)
      : plan_(plan), sheet_(sheet), rows_(sheet.arrays()), node_(node), at_(at) {}

  Split best(size_t feature) {
    Split best;
    best.feature = feature;
    const Limits limits{plan_.columns.has_directions(), plan_.columns.direction_of(feature), at_.low, at_.high};
    if (plan_.columns.is_levels(feature)) {
      best_levels(limits, best);
      return best;
    }
    const Entry<Index>* entries = sheet_.column(feature) + at_.range.begin;
    const auto try_with = [&](auto gain) {
      scan(entries, at_.range.size(), plan_.stops.min_rows_leaf, limits, gain, best);
      best.gain = gain.in_units(best.gain);
    };
    if (plan_.has_moments()) {
      try_with(SquaredGain(rows_, node_, plan_.n_classes > 0 ? 2.0 : 1.0));
    } else if (plan_.criterion == Criterion::gini) {
      try_with(GiniGain(rows_, node_));
    } else if (plan_.criterion == Criterion::entropy) {
      try_with(EntropyGain(rows_, node_));
    } else {
      try_with(PoissonGain(rows_, node_));
    }
    return best;
  }

  // Whether the columns can be searched side by side.
  bool are_plain(size_t first, size_t end) const {
    if (!plan_.has_moments() || rows_.is_weighted || plan_.columns.has_directions()) return false;
    for (size_t j = first; j < end; ++j)
      if (plan_.columns.is_levels(j) || sheet_.column(j)[at_.range.end - 1].rank == Entry<Index>::missing) return false;
    return true;
  }

  template <size_t width>
  void best_of(size_t first, std::vector<Split>& splits) const {
    std::array<const Entry<Index>*, width> columns;
    for (size_t c = 0; c < width; ++c) {
      columns[c] = sheet_.column(first + c) + at_.range.begin;
      splits[first + c].feature = first + c;
    }
    const double times = plan_.n_classes > 0 ? 2.0 : 1.0;
    scan_together<width>(columns, at_.range.size(), plan_.stops.min_rows_leaf, rows_.moment,
                         tie_share * node_.weight * node_.impurity / times, splits.data() + first);
    for (size_t c = 0; c < width; ++c) splits[first + c].gain *= times;
  }

 private:
  void best_levels(const Limits& limits, Split& best) {
    SplitRules rules;
    rules.min_rows = static_cast<double>(plan_.stops.min_rows_leaf);
    rules.tie = tie_share * node_.weight * node_.impurity;
    rules.is_bounded = limits.is_bounded;
    rules.low = limits.low;
    rules.high = limits.high;
    rules.n_levels = plan_.columns.n_levels[best.feature];
    if (plan_.n_classes > 0) {
      scan_classes(rules, best);
    } else {
      scan_numbers(rules, best);
    }
  }

  void scan_classes(const SplitRules& rules, Split& best) {
    std::vector<double> node{static_cast<double>(at_.range.size()), node_.weight};
    node.insert(node.end(), node_.values.begin(), node_.values.end());
    scan_with(ClassScore{plan_.n_classes, plan_.criterion == Criterion::entropy}, node, rules, best,
              [this](size_t row, double* cell) {
                cell[0] += 1;
                cell[1] += rows_.mass(row);
                cell[2 + static_cast<size_t>(rows_.y[row])] += rows_.mass(row);
              });
  }

  void scan_numbers(SplitRules rules, Split& best) {
    const bool is_poisson = plan_.criterion == Criterion::poisson;
    const double centre = is_poisson ? 0.0 : node_.values[0];
    const auto n = static_cast<double>(at_.range.size());
    const auto add = [this, centre](size_t row, double* cell) {
      cell[0] += 1;
      cell[1] += rows_.mass(row);
      cell[2] += rows_.mass(row) * (rows_.y[row] - centre);
    };
    rules.low -= centre;
    rules.high -= centre;
    if (is_poisson) {
      scan_with(PoissonScore{}, {n, node_.weight, node_.weight * node_.values[0], 0}, rules, best, add);
    } else {
      scan_with(SquaredScore{1.0}, {n, node_.weight, 0, 0}, rules, best, add);
    }
    best.left_mean += centre;
    best.right_mean += centre;
  }

  template <class Score, class Term>
  void scan_with(const Score& score, const std::vector<double>& node, const SplitRules& rules, Split& best, Term term) {
    scan_levels(sheet_.column(best.feature) + at_.range.begin, at_.range, sheet_.rows, plan_.rows.column(best.feature),
                node, rules, score, term, best);
  }

  const Plan& plan_;
  Sheet<Index>& sheet_;
  const RowArrays rows_;
  const NodeSums& node_;
  const Open& at_;
};

// The lowest column of those whose gains are equal but for rounding.
Split best_of(const std::vector<Split>& splits, const NodeSums& node) {
  Split best;
  for (const Split& split : splits)
    if (split.is_found && (!best.is_found || split.gain > best.gain + tie_share * node.weight * node.impurity))
      best = split;
  return best;
}

template <class Index, class Item, class IsLeft>
void cut(Item* items, size_t n, std::vector<Item>& scratch, IsLeft is_left) {
  scratch.resize(std::max(scratch.size(), n));
  size_t n_left = 0, n_right = 0;
  for (size_t k = 0; k < n; ++k) {
    const Item item = items[k];
    const bool left = is_left(item);
    items[n_left] = item;
    scratch[n_right] = item;
    n_left += left;
    n_right += !left;
  }
  std::copy_n(scratch.data(), n_right, items + n_left);
}

template <class Index>
class Grower {
 public:
  Grower(const Plan& plan, Sheet<Index>& sheet, Branch& branch) : plan_(plan), sheet_(sheet), branch_(branch) {}

  // Grows the subtree of a node. each(n, work): work(i) for every i below n. Nodes of `most_rest`
  // rows or fewer are handed to `leave`.
  template <class Each, class Leave>
  void grow(const Open& top, size_t most_rest, Each each, Leave leave) {
    std::vector<Open> open{top};
    open[0].node = add();
    while (!open.empty()) {
      const Open at = open.back();
      open.pop_back();
      if (at.range.size() <= most_rest) {
        branch_.rest[at.node] = static_cast<int32_t>(leave(at));
        continue;
      }
      const NodeSums sums = summed(plan_, sheet_, at.range);
      keep(at, sums);
      const Split split = search(at, sums, each);
      if (!split.is_found) continue;
      const size_t n_left = part(at.range, split, each);
      const size_t left = add();
      add();
      branch_.nodes[at.node].left = static_cast<int32_t>(left);
      const auto [first, second] =
          children_of(at, left, n_left, plan_.columns.direction_of(split.feature), split.left_mean, split.right_mean);
      open.push_back(second);
      open.push_back(first);
    }
  }

 private:
  size_t add() {
    branch_.nodes.emplace_back();
    branch_.values.resize(branch_.values.size() + width());
    branch_.rest.push_back(-1);
    return branch_.nodes.size() - 1;
  }
  size_t width() const { return std::max<size_t>(plan_.n_classes, 1); }

  void keep(const Open& at, const NodeSums& sums) {
    Node& node = branch_.nodes[at.node];
    node.n_rows = static_cast<uint32_t>(at.range.size());
    node.weight = sums.weight;
    node.impurity = sums.impurity;
    std::copy(sums.values.begin(), sums.values.end(), branch_.values.begin() + at.node * width());
  }

  template <class Each>
  Split search(const Open& at, const NodeSums& sums, Each each) {
    const Stops& stops = plan_.stops;
    if (sums.is_pure || at.depth >= stops.max_depth || at.range.size() < stops.min_rows_split ||
        at.range.size() < 2 * stops.min_rows_leaf)
      return {};
    splits_.assign(sheet_.n_columns, {});
    each((sheet_.n_columns + n_beside - 1) / n_beside, [&](size_t group) {
      const size_t first = group * n_beside, end = std::min(first + n_beside, sheet_.n_columns);
      ColumnSearch<Index> columns(plan_, sheet_, sums, at);
      if (end - first == n_beside && columns.are_plain(first, end))
        return columns.template best_of<n_beside>(first, splits_);
      for (size_t j = first; j < end; ++j) splits_[j] = columns.best(j);
    });
    Split split = best_of(splits_, sums);
    const double decrease = split.gain / plan_.whole.total;
    if (!split.is_found || decrease < stops.min_decrease) return {};
    Node& node = branch_.nodes[at.node];
    node.feature = static_cast<int32_t>(split.feature);
    node.decrease = decrease;
    node.is_of_levels = split.is_of_levels;
    if (split.is_of_levels) {
      node.is_missing_left = split.is_missing_left;
      node.threshold = static_cast<double>(branch_.sets.size());
      branch_.sets.push_back(split.levels);
      return split;
    }
    node.is_missing_left = sends_missing_left(at.range, split);
    node.threshold = threshold_of(at.range, split);
    return split;
  }

  // Where no row of the node has a missing value, later ones go where more rows go.
  bool sends_missing_left(Range range, const Split& split) {
    const bool has_missing = sheet_.column(split.feature)[range.end - 1].rank == Entry<Index>::missing;
    return has_missing ? split.is_missing_left : 2 * split.n_left > range.size();
  }

  double threshold_of(Range range, const Split& split) {
    const Entry<Index>* entries = sheet_.column(split.feature) + range.begin;
    const double* x = plan_.rows.column(split.feature);
    const double low = x[sheet_.rows[entries[split.n_left - 1].row]];
    if (split.n_left == range.size() || entries[split.n_left].rank == Entry<Index>::missing)
      return std::numeric_limits<double>::infinity();
    return halfway(low, x[sheet_.rows[entries[split.n_left].row]]);
  }

  // Columns that are searched side by side; above the narrow ones threads share them.
  static constexpr size_t n_beside = sizeof(Index) == 2 ? 4 : 2;

  static bool is_in(const Split& split, double x, uint8_t n_levels) {
    const size_t level = level_of(x, n_levels);
    return level == Bins::missing ? split.is_missing_left : has_level(split.levels, level);
  }

  template <class Each>
  size_t part(Range range, const Split& split, Each each) {
    const Entry<Index>* entries = sheet_.column(split.feature) + range.begin;
    const double* x = plan_.rows.column(split.feature);
    size_t n_left = 0;
    for (size_t k = 0; k < range.size(); ++k) {
      const bool left = split.is_of_levels
                            ? is_in(split, x[sheet_.rows[entries[k].row]], plan_.columns.n_levels[split.feature])
                        : entries[k].rank == Entry<Index>::missing ? split.is_missing_left
                                                                   : k < split.n_left;
      sheet_.is_left[entries[k].row] = left;
      n_left += left;
    }
    const uint8_t* is_left = sheet_.is_left.data();
    each(sheet_.n_columns + 1, [&](size_t j) {
      if (j == sheet_.n_columns) {
        thread_local std::vector<Index> scratch;
        cut<Index>(sheet_.order.data() + range.begin, range.size(), scratch,
                   [&](Index row) { return is_left[row] != 0; });
        return;
      }
      if (j == split.feature && !split.is_missing_left && !split.is_of_levels) return;  // it is cut already
      thread_local std::vector<Entry<Index>> scratch;
      cut<Index>(sheet_.column(j) + range.begin, range.size(), scratch,
                 [&](const Entry<Index>& entry) { return is_left[entry.row] != 0; });
    });
    return n_left;
  }

  const Plan& plan_;
  Sheet<Index>& sheet_;
  Branch& branch_;
  std::vector<Split> splits_;
};

using Wide = uint32_t;
using Narrow = uint16_t;

Sheet<Wide> sorted_sheet(const TreeRows& rows, Crew& crew) {
  Sheet<Wide> sheet(rows.n_rows, rows.n_columns, rows.is_weighted);
  std::iota(sheet.rows.begin(), sheet.rows.end(), 0);
  sheet.y = rows.y;
  if (rows.is_weighted) sheet.weight = rows.weight;
  KeySorter sorter;
  crew.for_each_block(rows.n_columns, [&](size_t j) {
    const double* x = rows.column(j);
    Entry<Wide>* column = sheet.column(j);
    const auto bits = [x](size_t i) { return std::isnan(x[i]) ? ~0ULL : ordered_bits(x[i]); };  // missing values last
    sorter.sort(rows.n_rows, bits, [column](const std::vector<Key>& keys) {
      Wide rank = 0;
      for (size_t k = 0; k < keys.size(); ++k) {
        if (k > 0 && keys[k].bits != keys[k - 1].bits) ++rank;
        column[k] = {keys[k].row, keys[k].bits == ~0ULL ? Entry<Wide>::missing : rank};
      }
    });
  });
  return sheet;
}

// The rows of a node with numbers of their own. place: by row of `wide`, free for this node's rows.
Sheet<Narrow> narrowed(Sheet<Wide>& wide, Range range, std::vector<Narrow>& place) {
  Sheet<Narrow> sheet(range.size(), wide.n_columns, wide.is_weighted);
  for (size_t k = 0; k < range.size(); ++k) {
    const Wide row = wide.order[range.begin + k];
    place[row] = static_cast<Narrow>(k);
    sheet.rows[k] = row;
    sheet.y[k] = wide.y[row];
    if (wide.is_weighted) sheet.weight[k] = wide.weight[row];
  }
  for (size_t j = 0; j < wide.n_columns; ++j) {
    const Entry<Wide>* from = wide.column(j) + range.begin;
    Entry<Narrow>* to = sheet.column(j);
    Narrow rank = 0;
    for (size_t k = 0; k < range.size(); ++k) {
      if (k > 0 && from[k].rank != from[k - 1].rank) ++rank;
      to[k] = {place[from[k].row], from[k].rank == Entry<Wide>::missing ? Entry<Narrow>::missing : rank};
    }
  }
  return sheet;
}

}  // namespace

GrownTree grow_exact(const TreeRows& rows, Criterion criterion, size_t n_classes, const Stops& stops,
                     const ColumnRules& columns, Crew& crew) {
  Whole whole;
  for (double w : rows.weight) whole.total += w;
  const Plan plan{rows, criterion, n_classes, stops, columns, whole};
  Sheet<Wide> sheet = sorted_sheet(rows, crew);
  std::vector<Branch> branches(1);
  std::vector<Open> left_over;
  const size_t most_rest = std::clamp(rows.n_rows / 8, least_narrow, most_narrow);
  Grower<Wide>(plan, sheet, branches[0])
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
  std::vector<Narrow> place(rows.n_rows);
  crew.for_each_block(by_size.size(), [&](size_t k) {
    const Open& at = left_over[by_size[k]];
    Sheet<Narrow> narrow = narrowed(sheet, at.range, place);
    const auto each = [&](size_t n, auto work) {
      if (!crew.keep_going()) throw Interrupted();
      for (size_t i = 0; i < n; ++i) work(i);
    };
    Grower<Narrow>(plan, narrow, branches[by_size[k] + 1])
        .grow({0, at.depth, {0, at.range.size()}, at.low, at.high}, 0, each, [](const Open&) { return size_t{0}; });
  });
  return level_by_level(branches, std::max<size_t>(n_classes, 1));
}

}  // namespace certifit
