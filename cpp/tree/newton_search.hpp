// The split of a leaf of a tree of boosting, from its histogram alone. Growth on rows in memory and on rows in parts
// share this file.
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "cuts.hpp"
#include "newton.hpp"
#include "newton_filter.hpp"

namespace certifit {

// Cells that are added to, from which a thread takes a share of them: some 50 microseconds, as long as a thread may
// take to come.
constexpr size_t shared_cells = 65536;

constexpr size_t walked_cells = 8 * shared_cells;  // the same of walks through columns that are filtered
constexpr double clear_share = 1e-9;  // of a gain and the worth of its node: far more than ties and rounding

struct Bounds {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

// Scores of the two sides of a split in a direction stay apart, below too. side: 0 is left.
inline Bounds halved(const Bounds& bounds, int direction, size_t side, double left_value, double right_value) {
  if (direction == 0) return bounds;
  const double middle = left_value / 2 + right_value / 2;
  const bool is_upper = (direction > 0) == (side == 1);
  return is_upper ? Bounds{std::max(bounds.low, middle), bounds.high}
                  : Bounds{bounds.low, std::min(bounds.high, middle)};
}

struct NewtonSplit {
  double gain = 0;  // in units of packed sums
  size_t column = 0, bin = 0;
  Levels levels{};
  bool is_missing_left = false, is_found = false;
  Cell left{};
  double left_value = 0, right_value = 0;
};

// What the search knows of a leaf beside its histogram.
struct NewtonLeaf {
  Cell sum{};
  Bounds bounds;
  size_t n_rows = 0;
};

struct NewtonAsked {
  const Cell* cells;  // its histogram
  NewtonLeaf leaf;
};

class NewtonSearch {
 public:
  NewtonSearch(const NewtonColumns& columns, const NewtonPlan& plan, const PackedUnits& packed)
      : columns_(columns),
        plan_(plan),
        packed_(packed),
        ridge_(packed.mass_unit() > 0 ? plan.ridge / packed.mass_unit() : 0.0),
        least_(std::max<size_t>(plan.min_rows_leaf, 1)) {
    for (size_t k = 0; k < columns.n_tried; ++k) {
      first_.push_back(static_cast<uint32_t>(n_cells_));
      n_cells_ += columns.n_bins[columns.tried[k]] + size_t{1};
    }
  }

  size_t least() const { return least_; }
  size_t n_cells() const { return n_cells_; }
  const uint32_t* first() const { return first_.data(); }  // where the cells of every column that is tried begin

  // The best splits of leaves. A look at a cell takes longer than adding to it.
  std::vector<NewtonSplit> best(const std::vector<NewtonAsked>& leaves, Crew& crew) {
    const size_t n_tried = columns_.n_tried, n_scans = leaves.size() * n_tried;
    best_.resize(std::max(best_.size(), n_scans));
    const auto scan_one = [&](size_t k) { best_[k] = best_of_column(k % n_tried, leaves[k / n_tried]); };
    if (leaves.size() * n_cells_ < shared_cells / 4) {
      for (size_t k = 0; k < n_scans; ++k) scan_one(k);
    } else {
      crew.for_each_block(n_scans, scan_one);
    }
    std::vector<NewtonSplit> splits;
    for (size_t k = 0; k < leaves.size(); ++k) splits.push_back(best_of(leaves[k].leaf, best_.data() + k * n_tried));
    return splits;
  }

  // The best split of one of the columns that are tried, by its number among them.
  NewtonSplit best_of_column(size_t place, const NewtonAsked& asked) const {
    return scan_column(asked.cells + first_[place], asked.leaf, columns_.tried[place]);
  }

  // The first of the columns whose gains are equal but for rounding. splits: of every column that is tried.
  NewtonSplit best_of(const NewtonLeaf& leaf, const NewtonSplit* splits) const {
    double most = 0;
    for (size_t k = 0; k < columns_.n_tried; ++k) most = std::max(most, splits[k].gain);
    const double equal = cut_tie * (worth(leaf.sum) + most);
    for (size_t k = 0; k < columns_.n_tried; ++k)
      if (splits[k].is_found && splits[k].gain >= most - equal) return splits[k];
    return {};
  }

  // A leaf of fewer rows than this is searched faster by its rows than by its histogram.
  size_t few_rows() const { return columns_.n_tried == 0 ? 0 : n_cells_ / columns_.n_tried * 3 / 5; }

  // The best split of a leaf, from its rows: only bins that they are in are summed and looked at. by_column: codes,
  // column after column, n_all of each; order: the rows; terms: what each row of the table adds.
  NewtonSplit best_by_rows(const uint8_t* by_column, size_t n_all, const uint32_t* order, const Cell* terms,
                           const NewtonLeaf& leaf, Crew& crew) {
    const size_t n_tried = columns_.n_tried, n = leaf.n_rows;
    best_.resize(std::max(best_.size(), n_tried));
    std::vector<Cell> of_row(n);
    for (size_t i = 0; i < n; ++i) of_row[i] = terms[order[i]];
    const auto scan_one = [&](size_t k) {
      const size_t column = columns_.tried[k], missing = columns_.n_bins[column];
      const uint8_t* codes = by_column + column * n_all;
      Cell cells[256];
      uint8_t met[256];
      // Missing values may be alone on the left: the first bin is looked at, with or without rows.
      uint64_t bits[4] = {1};
      for (size_t i = 0; i < n; ++i) bits[codes[order[i]] >> 6] |= uint64_t{1} << (codes[order[i]] & 63);
      size_t n_met = 0;
      for (size_t word = 0; word < 4; ++word)
        for (uint64_t left = bits[word]; left != 0; left &= left - 1) {
          met[n_met] = static_cast<uint8_t>(64 * word + static_cast<size_t>(std::countr_zero(left)));
          cells[met[n_met++]] = {};
        }
      for (size_t i = 0; i < n; ++i) cells[codes[order[i]]] += of_row[i];
      if (met[n_met - 1] == missing)
        --n_met;
      else
        cells[missing] = {};
      best_[k] = scan_met(cells, met, n_met, leaf, column);
    };
    if (n * n_tried < shared_cells / 4) {
      for (size_t k = 0; k < n_tried; ++k) scan_one(k);
    } else {
      crew.for_each_block(n_tried, scan_one);
    }
    return best_of(leaf, best_.data());
  }

  // The same from all rows in the order of their codes (newton.hpp): every column is walked once, and rows of other
  // leaves add nothing. This is the fastest where rows are few for so many bins, and no column has a direction.
  NewtonSplit best_by_walk(const NewtonRows& rows, const uint32_t* order, const NewtonLeaf& leaf, const Cell* terms,
                           Crew& crew) {
    constexpr size_t some_columns = 256;  // of a block
    const size_t n_tried = columns_.n_tried, n_blocks = (n_tried + some_columns - 1) / some_columns;
    best_.resize(std::max(best_.size(), n_tried));
    const Walk walk(rows, order, leaf, terms, gain_of(leaf),
                    {packed_, terms, order, leaf.n_rows, rows.n_rows, leaf.sum, ridge_, least_});
    const auto walk_some = [&](size_t block) {
      walk_columns(walk, block * some_columns, std::min(n_tried, (block + 1) * some_columns));
    };
    if (rows.n_rows * n_tried < walked_cells) {
      for (size_t block = 0; block < n_blocks; ++block) walk_some(block);
    } else {
      crew.for_each_block(n_blocks, walk_some);
    }
    return best_of(leaf, best_.data());
  }

  Bounds bounds_of(const NewtonLeaf& leaf, const NewtonSplit& split, size_t side) const {
    const int direction = plan_.direction ? plan_.direction[split.column] : 0;
    return halved(leaf.bounds, direction, side, split.left_value, split.right_value);
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
  double worth(const Cell& sum) const {
    return NewtonCut::of_side(broadcast(packed_.sum(sum)), broadcast(packed_.mass(sum) + ridge_))[0];
  }

  NewtonSplit scan_column(const Cell* cells, const NewtonLeaf& leaf, size_t column) const {
    const size_t n_bins = columns_.n_bins[column];
    const Cell missing = cells[n_bins];
    uint8_t order[256];
    const bool is_levels = columns_.is_levels(column);
    const size_t n_codes = is_levels ? levels_in_order(packed_, cells, n_bins, ridge_, -1.0, order) : n_bins;
    NewtonSplit best = plan_.direction
                           ? scan_bounded(leaf, column, cells, is_levels ? order : nullptr, missing, n_codes)
                           : scan_free(leaf, cells, is_levels ? order : nullptr, missing, n_codes);
    best.column = column;
    if (best.is_found && is_levels)
      best.levels = levels_left(packed_, cells, columns_.n_levels[column], order, best.bin + 1,
                                2 * packed_.rows(best.left) > leaf.n_rows);
    return best;
  }

  // The same where the rows are only in the bins `met`, ascending from 0, and in that of missing values. Bins without
  // rows repeat the cut before them, and of equal cuts the first is taken.
  NewtonSplit scan_met(Cell* cells, const uint8_t* met, size_t n_met, const NewtonLeaf& leaf, size_t column) const {
    const size_t n_bins = columns_.n_bins[column];
    if (columns_.is_levels(column)) {  // every level is read
      for (size_t bin = 0, at = 0; bin < n_bins; ++bin)
        if (at < n_met && met[at] == bin)
          ++at;
        else
          cells[bin] = {};
      return scan_column(cells, leaf, column);
    }
    NewtonSplit best = plan_.direction ? scan_bounded(leaf, column, cells, met, cells[n_bins], n_met)
                                       : scan_free(leaf, cells, met, cells[n_bins], n_met);
    best.column = column;
    if (best.is_found) best.bin = met[best.bin];
    return best;
  }

  struct Walk {
    Walk(const NewtonRows& rows, const uint32_t* order, const NewtonLeaf& leaf, const Cell* terms,
         const NewtonCut& gain, const NewtonFilter& filter)
        : rows(rows), leaf(leaf), gain(gain), filter(filter) {
      for (size_t i = 0; i < leaf.n_rows; ++i) of_row[order[i]] = terms[order[i]];
    }
    const NewtonRows& rows;
    const NewtonLeaf& leaf;
    const NewtonCut gain;
    const NewtonFilter filter;
    std::array<Cell, most_sorted> of_row{};
  };

  // The best splits of some columns; none of columns that certainly gain less than one of them.
  void walk_columns(const Walk& walk, size_t begin, size_t end) {
    std::array<Cell, 1 + 256> cells{};
    double most = 0;
    const auto look = [&](size_t place) {
      best_[place] = walked(walk, columns_.tried[place], cells.data());
      most = std::max(most, best_[place].gain);
    };
    for (size_t k = begin; k < end;) {
      std::array<size_t, NewtonFilter::n_together> places;
      NewtonFilter::Columns sorted;
      size_t n = 0;
      for (; k < end && n < places.size(); ++k) {
        best_[k].gain = 0;
        best_[k].is_found = false;
        const size_t column = columns_.tried[k];
        if (!is_plain(walk.rows, column)) {
          look(k);
          continue;
        }
        places[n] = k;
        sorted[n++] = walk.rows.sorted_rows + column * walk.rows.n_rows;
      }
      if (n == 0) return;
      std::fill(sorted.begin() + n, sorted.end(), sorted[0]);
      const unsigned reach = walk.filter.may_reach(sorted, (most + walk.gain.whole[0]) * (1 - clear_share));
      for (size_t j = 0; j < n; ++j)
        if (reach >> j & 1) look(places[j]);
    }
  }

  // Whether a column is of numbers, none of which is missing.
  bool is_plain(const NewtonRows& rows, size_t column) const {
    return !columns_.is_levels(column) && rows.sorted_codes[(column + 1) * rows.n_rows - 1] < columns_.n_bins[column];
  }

  // A column of all rows, of which those of the leaf add something. cells: room for all codes.
  NewtonSplit walked(const Walk& walk, size_t column, Cell* cells) const {
    const size_t n = walk.rows.n_rows, n_bins = columns_.n_bins[column];
    const uint8_t *row = walk.rows.sorted_rows + column * n, *code = walk.rows.sorted_codes + column * n;
    if (columns_.is_levels(column)) {
      std::fill_n(cells, 256, Cell{});
      for (size_t k = 0; k < n; ++k) cells[code[k]] += walk.of_row[row[k]];
      return scan_column(cells, walk.leaf, column);
    }
    Cell left = cells[0] = cells[1] = {};  // of no bin; of a bin without a row
    for (size_t k = 0; k < n; ++k) {
      left += walk.of_row[row[k]];
      cells[code[k] + size_t{1}] = left;  // the last row of a bin leaves what is on the left of the cut behind it
    }
    const Cell missing = walk.leaf.sum - cells[n_bins];
    NewtonSplit best = split_at(best_cut(packed_, cells + 1, n_bins, missing, walk.leaf.n_rows, least_, walk.gain));
    best.column = column;
    return best;
  }

  NewtonCut gain_of(const NewtonLeaf& leaf) const {
    return {packed_.sum(leaf.sum), packed_.mass(leaf.sum), ridge_, worth(leaf.sum)};
  }

  NewtonSplit scan_free(const NewtonLeaf& leaf, const Cell* cells, const uint8_t* order, const Cell& missing,
                        size_t n) const {
    return split_at(best_cut(packed_, cells, order, n, missing, leaf.n_rows, least_, gain_of(leaf)));
  }

  static NewtonSplit split_at(const Cut<Cell>& cut) {
    NewtonSplit best;
    best.gain = cut.gain;
    best.bin = cut.n_moved - 1;
    best.is_missing_left = cut.is_missing_left;
    best.is_found = cut.is_found;
    best.left = cut.left;
    return best;
  }

  // Where columns have directions: values of both sides keep within the bounds of the leaf.
  NewtonSplit scan_bounded(const NewtonLeaf& leaf, size_t column, const Cell* cells, const uint8_t* order,
                           const Cell& missing, size_t n) const {
    const int direction = plan_.direction[column];
    const double whole = worth(leaf.sum, value(leaf.sum, leaf.bounds)), equal = cut_tie * worth(leaf.sum);
    NewtonSplit best;
    for (const bool is_missing_left : {false, true}) {
      if (is_missing_left && packed_.rows(missing) == 0) break;
      Cell left = is_missing_left ? missing : Cell{};
      for (size_t bin = 0; bin < n; ++bin) {
        left += cells[order ? order[bin] : bin];
        const size_t n_left = packed_.rows(left);
        if (n_left + least_ > leaf.n_rows) break;
        if (n_left < least_) continue;
        const Cell right = leaf.sum - left;
        const double left_value = value(left, leaf.bounds), right_value = value(right, leaf.bounds);
        if (direction * (right_value - left_value) < 0) continue;
        const double gain = worth(left, left_value) + worth(right, right_value) - whole;
        if (!(gain > best.gain * (1 + cut_tie) + (best.is_found ? 0.0 : equal)) || !std::isfinite(gain)) continue;
        best.gain = gain;
        best.bin = bin;
        best.left = left;
        best.left_value = left_value;
        best.right_value = right_value;
        best.is_missing_left = is_missing_left;
        best.is_found = true;
      }
    }
    if (best.is_found && packed_.rows(missing) == 0) best.is_missing_left = 2 * packed_.rows(best.left) > leaf.n_rows;
    return best;
  }

  const NewtonColumns columns_;
  const NewtonPlan& plan_;
  const PackedUnits& packed_;
  double ridge_;  // in units of packed masses
  size_t least_, n_cells_ = 0;
  std::vector<uint32_t> first_;
  std::vector<NewtonSplit> best_;
};

// Whether each code of a column goes left. set: of levels, where the column is a category, else null.
inline void sides_of(size_t n_bins, size_t bin, const Levels* set, bool is_missing_left, bool* goes_left) {
  for (size_t code = 0; code < n_bins; ++code) goes_left[code] = set ? has_level(*set, code) : code <= bin;
  goes_left[n_bins] = is_missing_left;
}

// The same of every node of a tree, for rows that are led by their codes.
class NewtonPaths {
 public:
  NewtonPaths(const NewtonColumns& columns, const std::vector<NewtonNode>& nodes, const std::vector<Levels>& sets)
      : nodes_(nodes), goes_left_(nodes.size()) {
    for (size_t node = 0; node < nodes.size(); ++node) {
      const NewtonNode& at = nodes[node];
      if (at.left == 0) continue;
      const auto column = static_cast<size_t>(at.feature);
      sides_of(columns.n_bins[column], at.bin, columns.is_levels(column) ? &sets[at.bin] : nullptr, at.is_missing_left,
               goes_left_[node].data());
    }
  }
  int32_t leaf_of(const uint8_t* codes, int32_t at) const {
    while (nodes_[static_cast<size_t>(at)].left != 0) {
      const NewtonNode& node = nodes_[static_cast<size_t>(at)];
      at = node.left + !goes_left_[static_cast<size_t>(at)][codes[node.feature]];
    }
    return at;
  }

 private:
  const std::vector<NewtonNode>& nodes_;
  std::vector<std::array<bool, 256>> goes_left_;
};

}  // namespace certifit
