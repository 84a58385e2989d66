// Bins of columns: where their edges are, and which bin a value is in.
#include "bins.hpp"

#include <cmath>
#include <limits>

#include "../sorted.hpp"

namespace certifit {
namespace {

constexpr size_t lanes = 16;  // values that are searched side by side
constexpr size_t block_rows = 4096, tile_rows = 1024;

std::vector<double> edges_of(const double* x, size_t n, size_t max_bins) {
  std::vector<Key> keys;
  for (size_t i = 0; i < std::min(n, sample_rows); ++i)
    if (!std::isnan(x[i])) keys.push_back({ordered_bits(x[i]), 0});
  radix_sort(keys);
  std::vector<double> values(keys.size());
  for (size_t k = 0; k < keys.size(); ++k) values[k] = from_ordered_bits(keys[k].bits);
  std::vector<double> distinct = values;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<double> edges;
  if (distinct.size() <= max_bins) {
    for (size_t k = 1; k < distinct.size(); ++k) edges.push_back(halfway(distinct[k - 1], distinct[k]));
    return edges;
  }
  for (size_t k = 1; k < max_bins; ++k) {
    const double low = values[k * values.size() / max_bins - 1];
    const auto next = std::upper_bound(values.begin(), values.end(), low);
    if (next == values.end()) break;
    const double edge = halfway(low, *next);
    if (edges.empty() || edge > edges.back()) edges.push_back(edge);
  }
  return edges;
}

// How many of 255 edges, the last ones infinite, lie below each of some values. Halving without a branch: lanes do not
// wait for each other.
void search(const double* edges, const double* x, size_t n, uint8_t* codes) {
  uint32_t at[lanes] = {};
  for (uint32_t half = 128; half > 0; half /= 2)
    for (size_t lane = 0; lane < n; ++lane) at[lane] += edges[at[lane] + half - 1] < x[lane] ? half : 0;
  for (size_t lane = 0; lane < n; ++lane)
    codes[lane] = x[lane] != x[lane] ? Bins::missing : static_cast<uint8_t>(at[lane]);
}

}  // namespace

Edges bin_edges(const TreeRows& rows, size_t max_bins, const ColumnRules& columns, Crew& crew) {
  Edges edges(rows.n_columns);
  crew.for_each_block(rows.n_columns, [&](size_t j) {
    if (!columns.is_levels(j)) edges[j] = edges_of(rows.column(j), rows.n_rows, max_bins);
  });
  return edges;
}

namespace {

// Edges with what is behind the last one, so that halving finds the same number of steps in every column.
std::vector<double> padded(const std::vector<double>& edges) {
  std::vector<double> out(256, std::numeric_limits<double>::infinity());
  std::copy(edges.begin(), edges.end(), out.begin());
  return out;
}

void search_all(const double* edges, const double* x, size_t n, uint8_t* codes) {
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) search(edges, x + i, lanes, codes + i);
  search(edges, x + i, n - i, codes + i);
}

void find_levels(uint8_t n_levels, const double* x, size_t n, uint8_t* codes) {
  for (size_t i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(level_of(x[i], n_levels));
}

}  // namespace

Bins binned(const TreeRows& rows, Edges edges, const ColumnRules& columns, Crew& crew) {
  Bins bins{rows.n_rows, rows.n_columns, std::vector<uint8_t>(rows.n_rows * rows.n_columns), std::move(edges)};
  crew.for_each_block(rows.n_columns, [&](size_t j) {
    const double* x = rows.column(j);
    uint8_t* codes = bins.codes.data() + j * rows.n_rows;
    if (columns.is_levels(j))
      find_levels(columns.n_levels[j], x, rows.n_rows, codes);
    else
      search_all(padded(bins.edges[j]).data(), x, rows.n_rows, codes);
  });
  return bins;
}

Edges ends_of(const Edges& edges) {
  Edges ends;
  for (const std::vector<double>& of_column : edges) ends.push_back(padded(of_column));
  return ends;
}

bool bin_block(const Rows& rows, size_t first, size_t count, const Edges& ends, const ColumnRules& columns,
               uint8_t* out) {
  const size_t p = rows.n_columns;
  std::vector<double> scratch, x(count);
  std::vector<uint8_t> codes(count);
  WholeRows whole(rows);
  bool is_finite = true;
  // Some rows at a time stay in the cache until all their columns are read.
  for (size_t begin = 0; begin < count; begin += tile_rows) {
    const size_t n = std::min(tile_rows, count - begin);
    const Tile tile = read_tile(rows, first + begin, n, scratch);
    std::vector<double> dense(n * p);
    for (size_t k = 0; k < n; ++k) std::copy_n(whole.row(tile, k, first + begin + k), p, dense.data() + k * p);
    for (size_t j = 0; j < p; ++j) {
      for (size_t k = 0; k < n; ++k) x[k] = dense[k * p + j];
      for (size_t k = 0; k < n; ++k) is_finite &= !std::isinf(x[k]);
      if (columns.is_levels(j))
        find_levels(columns.n_levels[j], x.data(), n, codes.data());
      else
        search_all(ends[j].data(), x.data(), n, codes.data());
      for (size_t k = 0; k < n; ++k) out[(begin + k) * p + j] = codes[k];
    }
  }
  return is_finite;
}

std::vector<uint8_t> binned_rows(const Rows& rows, const Edges& edges, const ColumnRules& columns, Crew& crew) {
  const size_t n = rows.n_rows, p = rows.n_columns;
  std::vector<uint8_t> codes(n * p);
  const Edges ends = ends_of(edges);
  crew.for_each_block((n + block_rows - 1) / block_rows, [&](size_t block) {
    const size_t first = block * block_rows, count = std::min(block_rows, n - first);
    bin_block(rows, first, count, ends, columns, codes.data() + first * p);
  });
  return codes;
}

std::vector<uint8_t> by_row(const Bins& bins, Crew& crew) {
  const size_t n = bins.n_rows, p = bins.n_columns;
  std::vector<uint8_t> codes(n * p);
  crew.for_each_block((n + block_rows - 1) / block_rows, [&](size_t block) {
    const size_t begin = block * block_rows, end = std::min(n, begin + block_rows);
    for (size_t j = 0; j < p; ++j) {
      const uint8_t* column = bins.column(j);
      for (size_t i = begin; i < end; ++i) codes[i * p + j] = column[i];
    }
  });
  return codes;
}

}  // namespace certifit
