// Greedy growth on histograms. A node of many rows keeps the histogram of every column, and of two children only the
// smaller one is summed. The rows of a node of few rows are gathered, column after column, and its whole subtree is
// grown there, one column at a time on bins that have rows. Nodes of many rows share their rows and columns among
// threads; below that a whole subtree is one thread's work.
#include "binned.hpp"

#include <bit>
#include <memory>

#include "kinds.hpp"

namespace certifit {
namespace {

constexpr size_t few_rows = 512;                              // below it no histogram is kept
constexpr size_t most_subtree = 65536, least_subtree = 4096;  // rows of a subtree that one thread grows
constexpr size_t part_rows = 32768;                           // rows that a thread sums at a time

// Who does the parts of a node's work: all threads of a crew, or the one that grows the whole subtree.
struct Workers {
  Crew& crew;
  bool is_one;

  template <class Work>
  void each(size_t count, Work work) {
    if (!is_one) return crew.for_each_block(count, work);
    if (!crew.keep_going()) throw Interrupted();
    for (size_t i = 0; i < count; ++i) work(i);
  }
};

template <class Kind>
class BinnedGrower {
  using Word = typename Kind::Word;
  using FewWord = typename Kind::FewWord;
  using Cells = std::vector<Word>;

  struct Waiting {
    Open open;
    NodeSums sums;
    std::unique_ptr<Cells> cells;  // of all columns; null of a node of few rows
  };

  // The rows of a node of few rows: codes column after column, what they add, and their numbers.
  struct Few {
    std::vector<uint8_t> codes;
    std::vector<typename Kind::Term> terms;
    std::vector<uint32_t> rows, picked;
    std::vector<uint16_t> order, scratch;
    std::vector<FewWord> cells;  // of one column; empty but while it is searched
  };

 public:
  BinnedGrower(const Plan& plan, const Edges& edges, const uint8_t* codes, const Kind& kind,
               std::vector<uint32_t>& order, Branch& branch, Workers workers)
      : plan_(plan), edges_(edges), codes_(codes), kind_(kind), order_(order), branch_(branch), workers_(workers) {}

  // Nodes of `most_rest` rows or fewer are added to `left_over`; their branch is their number there, from 1.
  void grow(const Open& top, size_t most_rest, std::vector<Open>& left_over) {
    std::vector<Waiting> open;
    open.push_back({top, kind_.sums(order_.data() + top.range.begin, top.range.size()), nullptr});
    open[0].open.node = add();
    if (top.range.size() > few_rows) open[0].cells = summed(top.range);
    while (!open.empty()) {
      Waiting at = std::move(open.back());
      open.pop_back();
      if (at.open.range.size() <= most_rest) {
        left_over.push_back(at.open);
        branch_.rest[at.open.node] = static_cast<int32_t>(left_over.size());
      } else if (!at.cells) {
        workers_.each(1, [&](size_t) { grow_few(at); });
      } else {
        keep(at.open, at.sums);
        const BinSplit split = search(at);
        if (split.is_found) divide(at, split, open);
      }
    }
  }

 private:
  size_t add() {
    branch_.nodes.emplace_back();
    branch_.values.resize(branch_.values.size() + std::max<size_t>(plan_.n_classes, 1));
    branch_.rest.push_back(-1);
    return branch_.nodes.size() - 1;
  }

  void keep(const Open& at, const NodeSums& sums) {
    Node& node = branch_.nodes[at.node];
    node.n_rows = static_cast<uint32_t>(at.range.size());
    node.weight = sums.weight;
    node.impurity = sums.impurity;
    std::copy(sums.values.begin(), sums.values.end(), branch_.values.begin() + at.node * sums.values.size());
  }

  bool stays_leaf(const Open& at, const NodeSums& sums) const {
    return certifit::stays_leaf(plan_.stops, sums, at.depth, at.range.size());
  }

  // Parts of rows are summed apart and added.
  std::unique_ptr<Cells> summed(Range range) {
    const size_t size = plan_.rows.n_columns * n_bins * kind_.stride;
    const size_t n_parts = std::clamp<size_t>(range.size() / part_rows, 1, 4), part = range.size() / n_parts + 1;
    std::vector<std::unique_ptr<Cells>> parts(n_parts);
    workers_.each(n_parts, [&](size_t k) {
      parts[k] = std::make_unique<Cells>(size, Word{});
      const size_t begin = std::min(range.end, range.begin + k * part), end = std::min(range.end, begin + part);
      kind_.add(order_.data() + begin, end - begin, parts[k]->data());
    });
    for (size_t k = 1; k < n_parts; ++k)
      for (size_t i = 0; i < size; ++i) (*parts[0])[i] += (*parts[k])[i];
    return std::move(parts[0]);
  }

  BinSplit search(const Waiting& at) {
    if (stays_leaf(at.open, at.sums)) return {};
    const BinSplit best = best_split(kind_, plan_, at.cells->data(), at.sums, at.open, at.open.range.size(),
                                     [&](size_t n, auto work) { workers_.each(n, work); });
    return chosen(at.open, best);
  }

  // Compiled once per kind, not inlined into each of its callers.
  [[gnu::noinline]] BinSplit scanned(const FewWord* cells, const ColumnView& view, const Waiting& at) const {
    return kind_.scan(cells, view, at.sums, at.open);
  }

  BinSplit chosen(const Open& at, const BinSplit& best) {
    const double decrease = best.gain / plan_.whole.total;
    if (!best.is_found || decrease < plan_.stops.min_decrease) return {};
    Node& node = branch_.nodes[at.node];
    const std::vector<double>& edges = edges_[best.feature];
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

  // Two children of a node; its decrease is that of the rows themselves where the search rounded them.
  std::array<Waiting, 2> children(const Open& at, const NodeSums& sums, const BinSplit& split, size_t n_left,
                                  auto sums_of) {
    const size_t left = add();
    add();
    Node& node = branch_.nodes[at.node];
    node.left = static_cast<int32_t>(left);
    auto [first, second] =
        children_of(at, left, n_left, plan_.columns.direction_of(split.feature), split.left_value, split.right_value);
    std::array<Waiting, 2> out{Waiting{first, sums_of(first.range), nullptr},
                               Waiting{second, sums_of(second.range), nullptr}};
    if (!Kind::is_exact) node.decrease = squared_decrease(out[0].sums, out[1].sums, sums.weight, plan_);
    return out;
  }

  void divide(Waiting& at, const BinSplit& split, std::vector<Waiting>& open) {
    scratch_.resize(std::max(scratch_.size(), at.open.range.size()));
    const uint8_t* codes = codes_ + split.feature;
    const size_t p = plan_.rows.n_columns;
    const size_t n_left =
        part(order_.data(), scratch_.data(), at.open.range, split, [&](uint32_t row) { return codes[row * p]; });
    auto [small, large] = children(at.open, at.sums, split, n_left,
                                   [&](Range range) { return kind_.sums(order_.data() + range.begin, range.size()); });
    if (n_left > at.open.range.size() - n_left) std::swap(small, large);
    // Of a node of many rows the histogram becomes that of its larger child.
    if (large.open.range.size() > few_rows) {
      std::unique_ptr<Cells> of_small = summed(small.open.range);
      for (size_t k = 0; k < at.cells->size(); ++k) (*at.cells)[k] = (*at.cells)[k] - (*of_small)[k];
      large.cells = std::move(at.cells);
      if (small.open.range.size() > few_rows) small.cells = std::move(of_small);
    }
    open.push_back(std::move(large));
    open.push_back(std::move(small));  // the smaller one first: few histograms wait at a time
  }

  // Rows of the left side first, both sides in their order. How many go left.
  template <class Number, class Code>
  size_t part(Number* order, Number* scratch, Range range, const BinSplit& split, Code code_of) const {
    bool goes_left[n_bins];
    sides_of(split, plan_.columns.is_levels(split.feature), goes_left);
    size_t n_left = 0, n_right = 0;
    for (size_t k = range.begin; k < range.end; ++k) {
      const Number row = order[k];
      const bool left = goes_left[code_of(row)];
      order[range.begin + n_left] = row;
      scratch[n_right] = row;
      n_left += left;
      n_right += !left;
    }
    std::copy_n(scratch, n_right, order + range.begin + n_left);
    return n_left;
  }

  void gather(Range range) {
    const size_t m = range.size(), p = plan_.rows.n_columns;
    few_.codes.resize(p * m);
    few_.terms.resize(m);
    few_.rows.assign(order_.begin() + range.begin, order_.begin() + range.end);
    few_.picked.resize(m);
    few_.order.resize(m);
    few_.scratch.resize(m);
    few_.cells.resize(n_bins * kind_.stride, FewWord{});
    std::iota(few_.order.begin(), few_.order.end(), uint16_t{0});
    for (size_t k = 0; k < m; ++k) {
      const uint8_t* codes = codes_ + few_.rows[k] * p;
      for (size_t j = 0; j < p; ++j) few_.codes[j * m + k] = codes[j];
      few_.terms[k] = kind_.term(few_.rows[k]);
    }
  }

  NodeSums few_sums(Range range) {
    if constexpr (!std::is_same_v<typename Kind::Term, Counts>)
      for (size_t k = range.begin; k < range.end; ++k) few_.picked[k] = few_.rows[few_.order[k]];
    return kind_.sums(few_.terms.data(), few_.order.data() + range.begin, few_.picked.data() + range.begin,
                      range.size());
  }

  // The whole subtree of a node of few rows.
  void grow_few(const Waiting& top) {
    const size_t m = top.open.range.size();
    gather(top.open.range);
    std::vector<Waiting> open;
    open.push_back({top.open, top.sums, nullptr});
    open[0].open.range = {0, m};
    while (!open.empty()) {
      const Waiting at = std::move(open.back());
      open.pop_back();
      keep(at.open, at.sums);
      if (stays_leaf(at.open, at.sums)) continue;
      const BinSplit split = chosen(at.open, search_few(at, m));
      if (!split.is_found) continue;
      const uint8_t* codes = few_.codes.data() + split.feature * m;
      const size_t n_left =
          part(few_.order.data(), few_.scratch.data(), at.open.range, split, [&](uint16_t row) { return codes[row]; });
      auto [first, second] = children(at.open, at.sums, split, n_left, [&](Range range) { return few_sums(range); });
      open.push_back(std::move(second));
      open.push_back(std::move(first));
    }
  }

  BinSplit search_few(const Waiting& at, size_t m) {
    const double most = at.sums.weight * at.sums.impurity * (1 - tie_share);
    BinSplit best;
    // A split that leaves no impurity is not beaten by a later column.
    for (size_t j = 0; j < plan_.rows.n_columns && !(best.gain >= most); ++j) {
      const BinSplit split = search_column(at, j, few_.codes.data() + j * m);
      if (is_better(split, best, at.sums)) best = split;
    }
    return best;
  }

  BinSplit search_column(const Waiting& at, size_t j, const uint8_t* codes) {
    const Range range = at.open.range;
    const size_t stride = kind_.stride;
    FewWord* cells = few_.cells.data();
    uint64_t bits[4] = {};
    for (size_t k = range.begin; k < range.end; ++k) {
      const uint8_t code = codes[few_.order[k]];
      bits[code >> 6] |= uint64_t{1} << (code & 63);
      kind_.add_term(cells + code * stride, few_.terms[few_.order[k]]);
    }
    uint8_t met[n_bins];
    size_t n_met = 0;
    for (size_t word = 0; word < 4; ++word)
      for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1)
        met[n_met++] = static_cast<uint8_t>(64 * word + static_cast<size_t>(std::countr_zero(rest)));
    BinSplit split;
    const bool has_missing = met[n_met - 1] == Bins::missing;
    if (n_met > 1) split = scanned(cells, {j, range.size(), met, n_met - has_missing}, at);
    for (size_t k = 0; k < n_met; ++k) std::fill_n(cells + met[k] * stride, stride, FewWord{});
    return split;
  }

  const Plan& plan_;
  const Edges& edges_;
  const uint8_t* codes_;  // row after row
  const Kind& kind_;
  std::vector<uint32_t>& order_;
  Branch& branch_;
  Workers workers_;
  std::vector<uint32_t> scratch_;
  Few few_;
};

template <class Kind>
GrownTree grow_kind(const Plan& plan, const Edges& edges, const uint8_t* codes, const Kind& kind,
                    std::vector<uint32_t>& order, const Open& top, Crew& crew) {
  std::vector<Branch> branches(1);
  std::vector<Open> left_over;
  const size_t n = plan.rows.n_rows, most_rest = std::clamp(n / 8, least_subtree, most_subtree);
  BinnedGrower<Kind>(plan, edges, codes, kind, order, branches[0], {crew, false}).grow(top, most_rest, left_over);
  branches.resize(1 + left_over.size());
  std::vector<size_t> by_size(left_over.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return left_over[a].range.size() > left_over[b].range.size(); });
  crew.for_each_block(by_size.size(), [&](size_t k) {
    std::vector<Open> none;
    BinnedGrower<Kind>(plan, edges, codes, kind, order, branches[by_size[k] + 1], {crew, true})
        .grow(left_over[by_size[k]], 0, none);
  });
  return level_by_level(branches, std::max<size_t>(plan.n_classes, 1));
}

}  // namespace

Whole whole_of(const TreeRows& rows, Criterion criterion) {
  Whole whole;
  whole.n_rows = rows.n_rows;
  whole.is_weighted = rows.is_weighted;
  for (double w : rows.weight) whole.is_whole &= w == std::floor(w);
  std::vector<uint32_t> order(rows.n_rows);
  std::iota(order.begin(), order.end(), 0);
  if (criterion == Criterion::squared_error) {
    const RowArrays arrays{rows.y.data(), rows.weight.data(), nullptr, rows.is_weighted};
    NumberSums sums;
    for_each_row_block(rows, order.data(), order.size(), [&](const uint32_t* some, size_t n) {
      sums.add(number_block(arrays, some, n, criterion), criterion);
    });
    whole.centre = sums.mean;
  }
  for_each_row_block(rows, order.data(), order.size(), [&](const uint32_t* some, size_t n) {
    const WholeSizes sizes = sizes_of(rows, some[0], n, whole.centre);
    whole.total += sizes.weight;
    whole.moments += sizes.moments;
  });
  whole.is_whole &= whole.total < 0x1p31;
  return whole;
}

WholeSizes sizes_of(const TreeRows& rows, size_t begin, size_t n, double centre) {
  WholeSizes sizes;
  for (size_t i = begin; i < begin + n; ++i) {
    sizes.weight += rows.weight[i];
    sizes.moments += std::fabs(rows.weight[i] * (rows.y[i] - centre));
  }
  return sizes;
}

GrownTree grow_binned(const TreeRows& rows, const uint8_t* codes, const Edges& edges, Criterion criterion,
                      size_t n_classes, const Stops& stops, const ColumnRules& columns, Crew& crew, const Whole& whole,
                      double low, double high) {
  const Plan plan{rows, criterion, n_classes, stops, columns, whole};
  std::vector<uint32_t> order(rows.n_rows);
  std::iota(order.begin(), order.end(), 0);
  const Open top{0, 0, {0, rows.n_rows}, low, high};
  return with_kind(plan, codes,
                   [&](const auto& kind) { return grow_kind(plan, edges, codes, kind, order, top, crew); });
}

}  // namespace certifit
