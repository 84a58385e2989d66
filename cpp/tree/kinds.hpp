// What rows add to histograms, by the criterion of a tree: always whole numbers, multiples of a power of two, so that
// histograms of any parts of the rows add up to those of all, bit by bit. Where weights are whole cuts.hpp searches
// them, else histogram.hpp, in double precision.
//
//   Word, stride            a cell is `stride` words
//   FewWord                 of a node of few rows, whose cells are summed in the order of its rows
//   Term, term(row)         what a row adds, as a node of few rows keeps it; add_term
//   add(order, n, ...)      adds rows to the cells of some columns
//   sums(order, n)          weight, values and impurity of a node
//   scan(...)               the best split of a column
#pragma once

#include <variant>

#include "cuts.hpp"
#include "histogram.hpp"

namespace certifit {

// A column of a node as the search sees it. codes: bins with rows, ascending, without the missing one.
struct ColumnView {
  size_t column, n_rows;
  const uint8_t* codes;
  size_t n_codes;
};

// Sums of rows block by block: what is rounded does not depend on the parts that the rows are in.
inline NodeSums sums_of_rows(const Plan& plan, const uint32_t* order, size_t n) {
  const RowArrays arrays{plan.rows.y.data(), plan.rows.weight.data(), nullptr, plan.whole.is_weighted};
  if (plan.n_classes > 0 && plan.whole.is_whole) return class_sums(plan, arrays, order, n);
  if (plan.n_classes > 0) {
    std::vector<double> weights(plan.n_classes, 0.0), block(plan.n_classes);
    for_each_row_block(plan.rows, order, n, [&](const uint32_t* rows, size_t m) {
      std::fill(block.begin(), block.end(), 0.0);
      add_classes(arrays, rows, m, block);
      for (size_t c = 0; c < block.size(); ++c) weights[c] += block[c];
    });
    return class_node(std::move(weights), plan.criterion);
  }
  NumberSums sums;
  for_each_row_block(plan.rows, order, n, [&](const uint32_t* rows, size_t m) {
    sums.add(number_block(arrays, rows, m, plan.criterion), plan.criterion);
  });
  return sums.node();
}

// The first of the columns whose gains are equal but for rounding.
inline bool is_better(const BinSplit& split, const BinSplit& best, const NodeSums& node) {
  return split.is_found && (!best.is_found || split.gain > best.gain + tie_share * node.weight * node.impurity);
}

// What a split takes from squared errors, or from Gini of two classes, by the numbers of its sides.
inline double squared_decrease(const NodeSums& a, const NodeSums& b, double weight, const Plan& plan) {
  const bool is_of_classes = plan.n_classes == 2;
  const double apart = is_of_classes ? a.values[1] / a.weight - b.values[1] / b.weight : a.values[0] - b.values[0];
  return (is_of_classes ? 2 : 1) * a.weight / weight * b.weight * apart * apart / plan.whole.total;
}

// What a row adds to sums of y: its weight times y less the centre of all rows.
inline double moment_of(const Plan& plan, size_t row) {
  return plan.rows.weight[row] * (plan.rows.y[row] - plan.whole.centre);
}

// The split of a column of whole-number cells.
template <class Cell, class Read>
BinSplit split_of(const Read& read, const Cell* cells, const ColumnView& view, size_t n_levels, size_t least,
                  const SquaredCut& gain) {
  BinSplit out;
  out.feature = view.column;
  const Cell missing = cells[Bins::missing];
  uint8_t order[256];
  const uint8_t* codes = view.codes;
  size_t n_codes = view.n_codes;
  if (n_levels > 0) {
    n_codes = levels_in_order(read, cells, n_levels, 0.0, 1.0, order);
    codes = order;
  }
  if (n_codes == 0 || (n_codes == 1 && read.rows(missing) == 0)) return out;
  const Cut<Cell> cut = best_cut(read, cells, codes, n_codes, missing, view.n_rows, least, gain);
  if (!cut.is_found) return out;
  out.gain = cut.gain;
  out.n_left = static_cast<double>(read.rows(cut.left));
  out.is_missing_left = cut.is_missing_left;
  out.is_found = true;
  if (n_levels > 0)
    out.levels = levels_left(read, cells, n_levels, order, cut.n_moved, 2 * read.rows(cut.left) > view.n_rows);
  else  // all that is known goes left: so does every value beyond
    out.bin = cut.n_moved == n_codes ? Bins::missing - 1 : bin_between(codes[cut.n_moved - 1], codes[cut.n_moved]);
  return out;
}

// Two classes and rows of weight 1: eight bytes per bin, and the numbers of a node follow from its counts.
class CountsKind {
 public:
  using Word = Counts;
  using FewWord = Counts;
  using Term = Counts;
  static constexpr bool is_exact = true;
  static constexpr size_t stride = 1;
  CountsKind(const Plan& plan, const uint8_t* codes) : plan_(plan), codes_(codes), terms_(plan.rows.n_rows) {
    for (size_t i = 0; i < terms_.size(); ++i) terms_[i] = {1 | (static_cast<uint64_t>(plan.rows.y[i] != 0) << 32)};
  }
  Term term(uint32_t row) const { return terms_[row]; }
  void add_term(Word* cell, const Term& term) const { *cell += term; }
  bool is_met(const Word* cell) const { return cell->word != 0; }
  void add(const uint32_t* order, size_t n, Word* cells) const {
    constexpr size_t ahead = 16;
    const size_t p = plan_.rows.n_columns;
    for (size_t k = 0; k < n; ++k) {
      if (k + ahead < n) {
        __builtin_prefetch(codes_ + order[k + ahead] * p);
        __builtin_prefetch(terms_.data() + order[k + ahead]);
      }
      const uint8_t* code = codes_ + order[k] * p;
      const uint64_t term = terms_[order[k]].word;
      for (size_t j = 0; j < p; ++j) cells[j * n_bins + code[j]].word += term;
    }
  }
  NodeSums sums(const uint32_t* order, size_t n) const {
    Counts all{0};
    for (size_t k = 0; k < n; ++k) all += terms_[order[k]];
    return of(all);
  }
  NodeSums sums(const Term* terms, const uint16_t* order, const uint32_t*, size_t n) const {
    Counts all{0};
    for (size_t k = 0; k < n; ++k) all += terms[order[k]];
    return of(all);
  }
  BinSplit scan(const Word* cells, const ColumnView& view, const NodeSums& node, const Open&) const {
    const SquaredCut gain{node.values[1], node.weight, 2.0, node.weight * node.impurity};
    const size_t n_levels = plan_.columns.is_levels(view.column) ? plan_.columns.n_levels[view.column] : 0;
    return split_of(CountsRead{}, cells, view, n_levels, plan_.stops.min_rows_leaf, gain);
  }

 private:
  NodeSums of(const Counts& all) const {
    const CountsRead read;
    NodeSums node;
    node.weight = read.mass(all);
    node.values = {node.weight - read.sum(all), read.sum(all)};
    const double first = node.values[0] / node.weight, second = node.values[1] / node.weight;
    node.impurity = first * (1 - first) + second * (1 - second);
    node.is_pure = node.values[0] == 0 || node.values[1] == 0;
    return node;
  }
  const Plan& plan_;
  const uint8_t* codes_;
  std::vector<Counts> terms_;
};

// Squared error, and two classes, of whole weights.
class SquaresKind {
 public:
  using Word = Cell;
  using FewWord = Cell;
  using Term = Cell;
  static constexpr bool is_exact = false;  // y is rounded for the search
  static constexpr size_t stride = 1;
  SquaresKind(const Plan& plan, const uint8_t* codes)
      : plan_(plan), codes_(codes), packed_({plan.whole.moments, plan.whole.total}, plan.whole.n_rows) {
    if (!is_legal()) return;
    terms_.reserve(plan.rows.n_rows);
    for (size_t i = 0; i < plan.rows.n_rows; ++i)
      terms_.push_back(packed_.term(moment_of(plan, i), plan.rows.weight[i]));
  }
  bool is_legal() const { return packed_.is_legal(); }
  Term term(uint32_t row) const { return terms_[row]; }
  void add_term(Word* cell, const Term& term) const { *cell += term; }
  bool is_met(const Word* cell) const { return cell->mass != 0; }
  void add(const uint32_t* order, size_t n, Word* cells) const {
    constexpr size_t ahead = 16;
    const size_t p = plan_.rows.n_columns;
    const Cell* terms = terms_.data();
    for (size_t k = 0; k < n; ++k) {
      if (k + ahead < n) {
        __builtin_prefetch(codes_ + order[k + ahead] * p);
        __builtin_prefetch(terms + order[k + ahead]);
      }
      const uint8_t* code = codes_ + order[k] * p;
      const TwoWords term = *reinterpret_cast<const TwoWords*>(terms + order[k]);
      for (size_t j = 0; j < p; ++j) *reinterpret_cast<TwoWords*>(cells + j * n_bins + code[j]) += term;
    }
  }
  NodeSums sums(const uint32_t* order, size_t n) const { return sums_of_rows(plan_, order, n); }
  NodeSums sums(const Term*, const uint16_t*, const uint32_t* rows, size_t n) const {
    return sums_of_rows(plan_, rows, n);
  }
  BinSplit scan(const Word* cells, const ColumnView& view, const NodeSums& node, const Open&) const {
    const bool is_of_classes = plan_.n_classes == 2;
    const double times = is_of_classes ? 2.0 : 1.0, up = 1 / packed_.sum_unit(), mass_up = 1 / packed_.mass_unit();
    const double sum = is_of_classes ? node.values[1] : node.weight * (node.values[0] - plan_.whole.centre);
    const double unit = up * up / mass_up;
    const SquaredCut gain{sum * up, node.weight * mass_up, times, node.weight * node.impurity * unit};
    const size_t n_levels = plan_.columns.is_levels(view.column) ? plan_.columns.n_levels[view.column] : 0;
    BinSplit out = split_of(packed_, cells, view, n_levels, plan_.stops.min_rows_leaf, gain);
    out.gain /= unit;
    return out;
  }

 private:
  const Plan& plan_;
  const uint8_t* codes_;
  PackedUnits packed_;
  std::vector<Cell> terms_;
};

// Everything else: entropy, Poisson deviance, more classes, weights that are no whole numbers, directions. Weights, and
// sums of y, are rounded to 2^-61 of those of all rows; of a node of few rows they are not.
class GeneralKind {
  const size_t width_;  // of the score

 public:
  using Word = uint64_t;  // of signed numbers: sums wrap
  using FewWord = double;
  struct Term {
    double mass, sum;
    uint32_t label;
  };
  static constexpr bool is_exact = true;
  using Score = std::variant<SquaredScore, ClassScore, PoissonScore>;
  GeneralKind(const Plan& plan, const uint8_t* codes, const Score& score)
      : width_(std::visit([](const auto& one) { return size_t{one.width}; }, score)),
        stride(cell_size(width_)),
        plan_(plan),
        codes_(codes),
        score_(score),
        mass_unit_(plan.whole.total),
        sum_unit_(plan.whole.moments) {
    const size_t n = plan.rows.n_rows;
    terms_.resize(width_ == 1 ? 4 * n : n);
    for (size_t i = 0; i < n; ++i) {
      const auto mass = static_cast<uint64_t>(mass_unit_.whole(plan.rows.weight[i]));
      if (width_ > 1) {
        terms_[i] = mass;
        labels_.push_back(static_cast<uint32_t>(plan.rows.y[i]));
        continue;
      }
      const uint64_t term[4] = {1, mass, static_cast<uint64_t>(sum_unit_.whole(moment_of(plan, i))), 0};
      std::copy_n(term, 4, terms_.data() + 4 * i);
    }
  }
  const size_t stride;
  Term term(uint32_t row) const {
    const double mass = plan_.rows.weight[row];
    if (width_ > 1) return {mass, mass, labels_[row]};
    return {mass, moment_of(plan_, row), 0};
  }
  void add_term(FewWord* cell, const Term& term) const {
    cell[0] += 1;
    cell[1] += term.mass;
    cell[2 + term.label] += term.sum;
  }
  bool is_met(const Word* cell) const { return cell[0] != 0; }
  void add(const uint32_t* order, size_t n, Word* cells) const {
    constexpr size_t ahead = 16;
    const size_t p = plan_.rows.n_columns;
    for (size_t k = 0; k < n; ++k) {
      const size_t row = order[k];
      if (k + ahead < n) {
        __builtin_prefetch(codes_ + order[k + ahead] * p);
        if (width_ == 1) __builtin_prefetch(terms_.data() + order[k + ahead] * 4);
      }
      const uint8_t* codes = codes_ + row * p;
      if (width_ == 1) {
        typedef uint64_t Four __attribute__((vector_size(32), aligned(8), may_alias));
        const Four term = *reinterpret_cast<const Four*>(terms_.data() + 4 * row);
        for (size_t j = 0; j < p; ++j) *reinterpret_cast<Four*>(cells + (j * n_bins + codes[j]) * 4) += term;
      } else {
        const size_t label = 2 + labels_[row];
        for (size_t j = 0; j < p; ++j) {
          Word* cell = cells + (j * n_bins + codes[j]) * stride;
          cell[0] += 1;
          cell[1] += terms_[row];
          cell[label] += terms_[row];
        }
      }
    }
  }
  NodeSums sums(const uint32_t* order, size_t n) const { return sums_of_rows(plan_, order, n); }
  NodeSums sums(const Term*, const uint16_t*, const uint32_t* rows, size_t n) const {
    return sums_of_rows(plan_, rows, n);
  }
  BinSplit scan(const Word* words, const ColumnView& view, const NodeSums& sums, const Open& at) const {
    thread_local std::vector<double> cells;
    cells.resize(n_bins * stride);
    const auto read = [&](size_t code) {
      const Word* word = words + code * stride;
      double* cell = cells.data() + code * stride;
      cell[0] = static_cast<double>(word[0]);
      cell[1] = mass_unit_.number(static_cast<int64_t>(word[1]));
      const WholeUnit& unit = width_ == 1 ? sum_unit_ : mass_unit_;
      for (size_t s = 2; s < stride; ++s) cell[s] = unit.number(static_cast<int64_t>(word[s]));
    };
    for (size_t k = 0; k < view.n_codes; ++k) read(view.codes[k]);
    read(Bins::missing);
    return scan(cells.data(), view, sums, at);
  }
  BinSplit scan(const FewWord* cells, const ColumnView& view, const NodeSums& sums, const Open& at) const {
    thread_local std::vector<double> work, node;
    node_cell(view.n_rows, sums, node);
    SplitRules rules;
    rules.min_rows = static_cast<double>(plan_.stops.min_rows_leaf);
    rules.min_mass = tie_share * sums.weight;
    rules.tie = tie_share * sums.weight * sums.impurity;
    rules.is_bounded = plan_.columns.has_directions();
    rules.low = at.low;
    rules.high = at.high;
    rules.direction = plan_.columns.direction_of(view.column);
    rules.n_levels = plan_.columns.is_levels(view.column) ? plan_.columns.n_levels[view.column] : 0;
    const std::vector<uint8_t> met(view.codes, view.codes + view.n_codes);
    BinSplit best;
    std::visit([&](const auto& score) { scan_column(score, view.column, cells, met, node.data(), rules, work, best); },
               score_);
    return best;
  }

 private:
  // The cell of all rows of a node, about the centre of all rows.
  void node_cell(size_t n_rows, const NodeSums& sums, std::vector<double>& cell) const {
    cell.assign(stride, 0.0);
    cell[0] = static_cast<double>(n_rows);
    cell[1] = sums.weight;
    if (width_ > 1)
      std::copy(sums.values.begin(), sums.values.end(), cell.begin() + 2);
    else
      cell[2] = plan_.n_classes == 2 ? sums.values[1] : sums.weight * (sums.values[0] - plan_.whole.centre);
  }
  const Plan& plan_;
  const uint8_t* codes_;
  const Score score_;
  const WholeUnit mass_unit_, sum_unit_;
  std::vector<uint64_t> terms_;  // width 1: {1, mass, sum, 0} per row; else the mass
  std::vector<uint32_t> labels_;
};

// f of the kind that a plan asks for. codes: of the rows at hand, row after row.
template <class F>
auto with_kind(const Plan& plan, const uint8_t* codes, F f) {
  if (plan.has_moments() && !plan.columns.has_directions()) {
    if (!plan.whole.is_weighted && plan.n_classes == 2) return f(CountsKind(plan, codes));
    if (plan.whole.is_whole)
      if (const SquaresKind kind(plan, codes); kind.is_legal()) return f(kind);
  }
  if (plan.is_two_class_gini()) return f(GeneralKind(plan, codes, SquaredScore{2.0}));
  if (plan.n_classes > 0)
    return f(GeneralKind(plan, codes, ClassScore{plan.n_classes, plan.criterion == Criterion::entropy}));
  if (plan.criterion == Criterion::poisson) return f(GeneralKind(plan, codes, PoissonScore{}));
  return f(GeneralKind(plan, codes, SquaredScore{1.0}));
}

inline bool stays_leaf(const Stops& stops, const NodeSums& sums, size_t depth, size_t n_rows) {
  return sums.is_pure || depth >= stops.max_depth || n_rows < stops.min_rows_split || n_rows < 2 * stops.min_rows_leaf;
}

// The best split of a node from the histograms of all columns. each(n, work): work(0) to work(n - 1), in any order.
template <class Kind, class Each>
BinSplit best_split(const Kind& kind, const Plan& plan, const typename Kind::Word* cells, const NodeSums& sums,
                    const Open& at, size_t n_rows, Each each) {
  std::vector<BinSplit> splits(plan.rows.n_columns);
  each(splits.size(), [&](size_t j) {
    const auto* of_column = cells + j * n_bins * kind.stride;
    uint8_t met[n_bins];
    size_t n_met = 0;
    for (size_t bin = 0; bin < Bins::missing; ++bin) {
      met[n_met] = static_cast<uint8_t>(bin);
      n_met += kind.is_met(of_column + bin * kind.stride);
    }
    splits[j] = kind.scan(of_column, {j, n_rows, met, n_met}, sums, at);
  });
  BinSplit best;
  for (const BinSplit& split : splits)
    if (is_better(split, best, sums)) best = split;
  return best;
}

}  // namespace certifit
