#include "grid.hpp"

#include <cmath>

#include "../sorted.hpp"

namespace certifit {
namespace {

// All midpoints of a column of few different values, else midpoints at its quantiles.
std::vector<double> edges_of(const double* x, size_t n, size_t n_thresholds) {
  std::vector<Key> keys;
  for (size_t i = 0; i < n; ++i)
    if (!std::isnan(x[i])) keys.push_back({ordered_bits(x[i]), 0});
  radix_sort(keys);
  std::vector<double> distinct;
  for (const Key& key : keys) {
    const double value = from_ordered_bits(key.bits);
    if (distinct.empty() || value > distinct.back()) distinct.push_back(value);
  }
  std::vector<double> edges;
  if (distinct.size() <= std::max(few_values, n_thresholds + 1)) {
    for (size_t k = 1; k < distinct.size(); ++k) edges.push_back(halfway(distinct[k - 1], distinct[k]));
    return edges;
  }
  for (size_t k = 1; k <= n_thresholds; ++k) {
    const double low = from_ordered_bits(keys[k * keys.size() / (n_thresholds + 1) - 1].bits);
    const auto next = std::upper_bound(distinct.begin(), distinct.end(), low);
    if (next == distinct.end()) break;
    const double edge = halfway(low, *next);
    if (edges.empty() || edge > edges.back()) edges.push_back(edge);
  }
  return edges;
}

}  // namespace

std::vector<GridColumn> grid_of(const TreeRows& rows, size_t n_thresholds, Crew& crew) {
  std::vector<std::vector<GridColumn>> made(rows.n_columns);
  crew.for_each_block(rows.n_columns, [&](size_t j) {
    const double* x = rows.column(j);
    const std::vector<double> edges = edges_of(x, rows.n_rows, n_thresholds);
    std::vector<uint8_t> codes(rows.n_rows);
    bool has_missing = false;
    const auto n_known = static_cast<uint8_t>(edges.size() + 1);
    for (size_t i = 0; i < rows.n_rows; ++i) {
      const bool is_missing = std::isnan(x[i]);
      has_missing |= is_missing;
      codes[i] = is_missing ? n_known
                            : static_cast<uint8_t>(std::lower_bound(edges.begin(), edges.end(), x[i]) - edges.begin());
    }
    if (edges.empty() && !has_missing) return;  // nothing to split
    made[j].push_back({j, false, edges, codes, edges.size() + 1 + has_missing});
    if (!has_missing) return;
    for (uint8_t& code : codes) code = code == n_known ? 0 : static_cast<uint8_t>(code + 1);
    made[j].push_back({j, true, edges, codes, edges.size() + 2});
  });
  std::vector<GridColumn> columns;
  for (auto& some : made)
    for (GridColumn& column : some) columns.push_back(std::move(column));
  return columns;
}

}  // namespace certifit
