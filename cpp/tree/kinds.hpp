// What rows add to histograms, by the criterion of a tree: whole numbers where weights are whole (cuts.hpp searches
// them), else double precision (histogram.hpp).
//
//   Word, stride            a cell is `stride` words
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

inline NodeSums sums_of_rows(const Plan& plan, const uint32_t* order, size_t n) {
  const RowArrays arrays{plan.rows.y.data(), plan.rows.weight.data(), nullptr, plan.rows.is_weighted};
  return plan.n_classes > 0 ? class_sums(plan, arrays, order, n) : number_sums(plan, arrays, order, n);
}

// The first of the columns whose gains are equal but for rounding.
inline bool is_better(const BinSplit& split, const BinSplit& best, const NodeSums& node) {
  return split.is_found && (!best.is_found || split.gain > best.gain + tie_share * node.weight * node.impurity);
}

// What a split takes from squared errors, or from Gini of two classes, by the numbers of its sides.
inline double squared_decrease(const NodeSums& a, const NodeSums& b, double weight, const Plan& plan) {
  const bool is_of_classes = plan.n_classes == 2;
  const double apart = is_of_classes ? a.values[1] / a.weight - b.values[1] / b.weight : a.values[0] - b.values[0];
  return (is_of_classes ? 2 : 1) * a.weight / weight * b.weight * apart * apart / plan.total;
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
    out.bin = cut.n_moved == n_codes ? Bins::missing - 1 : codes[cut.n_moved - 1];
  return out;
}

// Two classes and rows of weight 1: eight bytes per bin, and the numbers of a node follow from its counts.
class CountsKind {
 public:
  using Word = Counts;
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
  using Term = Cell;
  static constexpr bool is_exact = false;  // y is rounded for the search
  static constexpr size_t stride = 1;
  SquaresKind(const Plan& plan, const uint8_t* codes, const std::vector<double>& moment, double centre,
              const std::vector<uint32_t>& all)
      : plan_(plan),
        codes_(codes),
        packed_(moment.data(), plan.rows.weight.data(), all.data(), all.size(), all.size()),
        centre_(centre) {}
  bool is_legal() const { return packed_.is_legal(); }
  Term term(uint32_t row) const { return packed_.terms()[row]; }
  void add_term(Word* cell, const Term& term) const { *cell += term; }
  bool is_met(const Word* cell) const { return cell->mass != 0; }
  void add(const uint32_t* order, size_t n, Word* cells) const {
    constexpr size_t ahead = 16;
    const size_t p = plan_.rows.n_columns;
    const Cell* terms = packed_.terms();
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
    const double sum = is_of_classes ? node.values[1] : node.weight * (node.values[0] - centre_);
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
  Packed packed_;
  double centre_;
};

// Everything else: entropy, Poisson deviance, more classes, weights that are no whole numbers, directions.
class GeneralKind {
 public:
  using Word = double;
  using Term = uint32_t;
  static constexpr bool is_exact = true;
  using Score = std::variant<SquaredScore, ClassScore, PoissonScore>;
  GeneralKind(const Plan& plan, const BinnedRows& rows, const Score& score, double centre)
      : stride(rows.stride()), plan_(plan), rows_(rows), score_(score), centre_(centre) {}
  const size_t stride;
  Term term(uint32_t row) const { return row; }
  void add_term(Word* cell, Term row) const {
    if (rows_.width == 1) {
      for (size_t s = 0; s < 3; ++s) cell[s] += rows_.terms[4 * row + s];
      return;
    }
    cell[0] += 1;
    cell[1] += rows_.terms[row];
    cell[2 + rows_.labels[row]] += rows_.terms[row];
  }
  bool is_met(const Word* cell) const { return cell[0] > 0; }
  void add(const uint32_t* order, size_t n, Word* cells) const { add_rows(rows_, order, n, 0, rows_.n_columns, cells); }
  NodeSums sums(const uint32_t* order, size_t n) const { return sums_of_rows(plan_, order, n); }
  NodeSums sums(const Term*, const uint16_t*, const uint32_t* rows, size_t n) const {
    return sums_of_rows(plan_, rows, n);
  }
  BinSplit scan(const Word* cells, const ColumnView& view, const NodeSums& sums, const Open& at) const {
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
    if (rows_.width > 1)
      std::copy(sums.values.begin(), sums.values.end(), cell.begin() + 2);
    else
      cell[2] = plan_.n_classes == 2 ? sums.values[1] : sums.weight * (sums.values[0] - centre_);
  }
  const Plan& plan_;
  const BinnedRows& rows_;
  const Score score_;
  double centre_;
};

}  // namespace certifit
