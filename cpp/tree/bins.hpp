// Columns cut into at most 255 bins.
#pragma once

#include "tree.hpp"

namespace certifit {

// Ascending, per column; none of a category.
using Edges = std::vector<std::vector<double>>;

// x is in the first bin whose edge is x or more; the level of a category is its bin. Missing values have a bin of their
// own, 255.
struct Bins {
  size_t n_rows = 0, n_columns = 0;
  std::vector<uint8_t> codes;  // column after column
  Edges edges;
  const uint8_t* column(size_t j) const { return codes.data() + j * n_rows; }
  static constexpr uint8_t missing = 255;
};

// Codes that are kept elsewhere, column after column.
struct BinnedColumns {
  size_t n_columns, n_rows;
  const uint8_t* codes;
  const Edges& edges;
  const uint8_t* column(size_t j) const { return codes + j * n_rows; }
};

constexpr size_t sample_rows = 200000;  // rows whose values edges lie between

// Edges lie halfway between neighbouring values of the first 200,000 rows, which are in the order of a hash: at all of
// them where these are few, else at quantiles. Neither the order of the rows nor where they are kept changes an edge.
Edges bin_edges(const TreeRows& rows, size_t max_bins, const ColumnRules& columns, Crew& crew);

Bins binned(const TreeRows& rows, Edges edges, const ColumnRules& columns, Crew& crew);

// The same codes, row after row.
std::vector<uint8_t> by_row(const Bins& bins, Crew& crew);

// Codes of some rows that are not merged, row after row: `out` has room for count * n_columns. False where a value is
// infinite. `ends` are edges with what is behind the last one.
Edges ends_of(const Edges& edges);
bool bin_block(const Rows& rows, size_t first, size_t count, const Edges& ends, const ColumnRules& columns,
               uint8_t* out);

// The same of all rows.
std::vector<uint8_t> binned_rows(const Rows& rows, const Edges& edges, const ColumnRules& columns, Crew& crew);

}  // namespace certifit
