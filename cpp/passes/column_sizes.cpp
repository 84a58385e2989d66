#include "column_sizes.hpp"

#include <cmath>

namespace certifit {
namespace {

constexpr size_t tile_rows = 256;

// use(x) for every row of the dense columns.
template <class Use>
void for_each_row(const Rows& rows, Use use) {
  std::vector<double> scratch;
  for (size_t first = 0; first < rows.n_rows; first += tile_rows) {
    const size_t count = std::min(tile_rows, rows.n_rows - first);
    const Tile tile = read_tile(rows, first, count, scratch);
    for (size_t k = 0; k < count; ++k) use(tile.row(k));
  }
}

double larger(double most, double value) { return value > most || value != value ? value : most; }

}  // namespace

std::vector<double> column_sizes(const Rows& rows) {
  std::vector<double> dense(rows.n_dense, 0.0), out(rows.n_columns, 0.0);
  for_each_row(rows, [&](const double* x) {
    for (size_t j = 0; j < dense.size(); ++j) dense[j] = larger(dense[j], std::fabs(x[j]));
  });
  for (size_t j = 0; j < dense.size(); ++j) out[rows.dense_columns[j]] = dense[j];
  if (rows.thin.empty()) return out;
  for (size_t row = 0; row < rows.n_rows; ++row)
    rows.for_each_entry(row, [&](size_t j, double value) { out[j] = larger(out[j], std::fabs(value)); });
  for (const Segment& s : rows.thin)
    if (s.kind == Segment::Kind::codes)
      std::fill_n(out.begin() + static_cast<ptrdiff_t>(s.first_column), s.n_columns, 1.0);
  return out;
}

std::vector<double> column_shifts(const Rows& rows, const double* scale, bool exact) {
  const size_t d = rows.n_dense;
  const std::vector<double> unit = of_dense(rows, scale);
  std::vector<double> first(d), mean(d, 0.0), spread(d, 0.0), out(rows.n_columns, 0.0);
  std::vector<uint8_t> varies(d, 0);
  bool is_first = true;
  for_each_row(rows, [&](const double* x) {
    if (is_first)
      for (size_t j = 0; j < d; ++j) first[j] = x[j];
    is_first = false;
    for (size_t j = 0; j < d; ++j) {
      mean[j] += x[j] * unit[j];
      varies[j] |= static_cast<uint8_t>(x[j] != first[j]);
    }
  });
  for (size_t j = 0; j < d; ++j) mean[j] = varies[j] ? mean[j] / static_cast<double>(rows.n_rows) : first[j] * unit[j];
  if (exact)
    for_each_row(rows, [&](const double* x) {
      for (size_t j = 0; j < d; ++j) spread[j] = larger(spread[j], std::fabs(x[j] * unit[j] - mean[j]));
    });
  for (size_t j = 0; j < d; ++j)
    if (std::isfinite(mean[j]) && (!exact || spread[j] <= std::fabs(mean[j]) / 4)) out[rows.dense_columns[j]] = mean[j];
  return out;
}

}  // namespace certifit
