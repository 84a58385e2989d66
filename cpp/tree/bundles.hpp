// Columns of few bins that share a byte per row: a row is added to one cell for all of them. Cells are whole numbers,
// so what they add up to by column is what the column alone would have given, bit by bit.
#pragma once

#include <vector>

#include "newton.hpp"
#include "packed.hpp"

namespace certifit {

// Columns as `add_packed` reads them: those that are tried, or bundles of all of them.
class BundledColumns {
 public:
  explicit BundledColumns(const NewtonRows& rows) : n_columns(rows.n_bundles), codes(rows.bundled) {
    for (uint32_t bundle = 0; bundle < rows.n_bundles; ++bundle) {
      Bundle made{n_cells_, {}};
      size_t size = 1;
      for (uint32_t column = 0; column < rows.n_columns; ++column)
        if (rows.bundle_of[column] == bundle) {
          made.columns.push_back({column, rows.columns.n_bins[column] + size_t{1}});
          size *= made.columns.back().n_codes;
        }
      first_.push_back(static_cast<uint32_t>(n_cells_));
      tried_.push_back(bundle);
      n_cells_ += size;
      bundles_.push_back(std::move(made));
    }
    columns = {tried_.size(), tried_.data()};
  }
  BundledColumns(const BundledColumns&) = delete;
  BundledColumns& operator=(const BundledColumns&) = delete;

  size_t n_cells() const { return n_cells_; }
  const uint32_t* first() const { return first_.data(); }

  // Cells of every column from those of the bundles. first: where those of a column begin.
  void spread(const Cell* cells, const uint32_t* first, Cell* by_column) const {
    for (const Bundle& bundle : bundles_)
      spread(cells + bundle.begin, bundle.columns.data(), bundle.columns.data() + bundle.columns.size(), first,
             by_column);
  }

  size_t n_columns;
  const uint8_t* codes;
  struct {
    size_t n_tried;
    const uint32_t* tried;
  } columns{};

 private:
  struct Member {
    size_t column, n_codes;
  };
  struct Bundle {
    size_t begin;
    std::vector<Member> columns;  // the code of the first one moves fastest
  };

  // The sum of the cells, which are also added to those of their columns, and how many there are.
  static std::pair<Cell, size_t> spread(const Cell* cells, const Member* begin, const Member* end,
                                        const uint32_t* first, Cell* by_column) {
    if (begin == end) return {*cells, 1};
    const Member& slowest = end[-1];
    Cell all{};
    size_t n_cells = 0;
    for (size_t code = 0; code < slowest.n_codes; ++code) {
      const auto [sum, n_below] = spread(cells + n_cells, begin, end - 1, first, by_column);
      by_column[first[slowest.column] + code] += sum;
      all += sum;
      n_cells += n_below;
    }
    return {all, n_cells};
  }

  size_t n_cells_ = 0;
  std::vector<uint32_t> first_, tried_;
  std::vector<Bundle> bundles_;
};

}  // namespace certifit
