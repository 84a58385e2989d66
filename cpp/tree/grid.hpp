// A grid of thresholds, the rows as codes on it, and subsets of them.
#pragma once

#include "optimal.hpp"

namespace certifit {

// A column as codes: x <= edges[code]. Missing values have the highest code, so that they go right, or the lowest one,
// so that they go left; a column with missing values is there twice.
struct GridColumn {
  size_t feature;
  bool is_missing_low;
  std::vector<double> edges;
  std::vector<uint8_t> codes;
  size_t n_codes;
};

std::vector<GridColumn> grid_of(const TreeRows& rows, size_t n_thresholds, Crew& crew);

// Rows of a subset: columns without the codes that none of them has. S: sums of weights.
template <class S>
struct Subset {
  size_t n_rows = 0;
  std::vector<uint32_t> rows;                 // of all
  std::vector<uint8_t> codes;                 // column after column
  std::vector<std::vector<uint8_t>> is_code;  // per column: which code of the grid each code of the subset is
  std::vector<uint32_t> label;
  std::vector<S> weight;
  std::vector<double> moment;  // weight times y
  double squares = 0;          // sum of weight times y^2
  // Rows whose code is not the column's most frequent one, where they are few.
  std::vector<std::vector<uint32_t>> rare;
  std::vector<uint8_t> common;
  const uint8_t* column(size_t j) const { return codes.data() + j * n_rows; }
  size_t n_codes(size_t j) const { return is_code[j].size(); }
};

// All rows as a search reads them. y: less its mean.
template <class S>
struct GridRows {
  const std::vector<GridColumn>& columns;
  std::vector<uint32_t> label;
  std::vector<S> weight;
  std::vector<double> moment, square;
  size_t n_classes;
  double least_weight;

  Subset<S> of(std::vector<uint32_t> rows) const {
    Subset<S> part;
    const size_t m = part.n_rows = rows.size(), d = columns.size();
    part.codes.resize(m * d);
    part.is_code.resize(d);
    part.rare.resize(d);
    part.common.resize(d);
    for (size_t j = 0; j < d; ++j) squeeze(part, j, rows);
    part.weight.resize(m);
    for (size_t k = 0; k < m; ++k) part.weight[k] = weight[rows[k]];
    if (n_classes > 0) {
      part.label.resize(m);
      for (size_t k = 0; k < m; ++k) part.label[k] = label[rows[k]];
    } else {
      part.moment.resize(m);
      for (size_t k = 0; k < m; ++k) {
        part.moment[k] = moment[rows[k]];
        part.squares += square[rows[k]];
      }
    }
    part.rows = std::move(rows);
    return part;
  }

 private:
  void squeeze(Subset<S>& part, size_t j, const std::vector<uint32_t>& rows) const {
    const uint8_t* from = columns[j].codes.data();
    uint8_t* to = part.codes.data() + j * part.n_rows;
    uint32_t n_of[256] = {};
    for (size_t k = 0; k < part.n_rows; ++k) ++n_of[to[k] = from[rows[k]]];
    uint8_t place[256] = {};
    size_t most = 0;
    for (size_t code = 0; code < 256; ++code) {
      if (n_of[code] == 0) continue;
      place[code] = static_cast<uint8_t>(part.is_code[j].size());
      part.is_code[j].push_back(static_cast<uint8_t>(code));
      if (n_of[code] > n_of[most]) most = code;
    }
    for (size_t k = 0; k < part.n_rows; ++k) to[k] = place[to[k]];
    part.common[j] = place[most];
    const size_t n_rare = part.n_rows - n_of[most];
    if (4 * n_rare >= part.n_rows) return;
    part.rare[j].reserve(n_rare);
    for (size_t k = 0; k < part.n_rows; ++k)
      if (to[k] != part.common[j]) part.rare[j].push_back(static_cast<uint32_t>(k));
  }
};

}  // namespace certifit
