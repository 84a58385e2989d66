#include "column_sizes.hpp"

#include <bit>
#include <cmath>

#include "../coordinate/row_sums.hpp"
#include "../square.hpp"

namespace certifit {
namespace {

typedef long long Bits __attribute__((vector_size(32)));

// Rows of a tile that stays near the processor.
size_t tile_rows(size_t n_columns) { return std::clamp<size_t>(32768 / std::max<size_t>(n_columns, 1), 8, 256); }

// use(x, stride, count) for the rows of a segment, x those of the first one, the others so many numbers apart: float64
// row by row where it lies, all else in tiles.
template <class Use>
void for_each_tile(const Segment& s, size_t n_rows, Use use) {
  const bool is_in_place = s.kind == Segment::Kind::dense && s.dtype == Dtype::f64;
  if (is_in_place && (s.column_stride == 1 || s.n_columns == 1)) {
    use(static_cast<const double*>(s.values), s.row_stride, n_rows);
    return;
  }
  std::vector<double> scratch;
  const size_t step = tile_rows(s.n_columns);
  for (size_t first = 0; first < n_rows; first += step) {
    const size_t count = std::min(step, n_rows - first);
    scratch.resize(count * s.n_columns);
    copy_segment(s, first, count, scratch.data(), s.n_columns);
    use(scratch.data(), static_cast<ptrdiff_t>(s.n_columns), count);
  }
}

double larger(double most, double value) { return value > most || value != value ? value : most; }

// Bits of |x|: as whole numbers in the order of the sizes, NaN above all, so that a maximum runs in lanes.
int64_t size_bits(double x) { return std::bit_cast<int64_t>(x) & INT64_MAX; }

void keep_larger(int64_t& most, int64_t bits) { most = bits > most ? bits : most; }

// The largest |x| of numbers that lie side by side, as bits; several maxima at once, for none waits for itself.
int64_t largest_bits(const double* x, size_t n) {
  constexpr size_t width = 4 * lanes;
  int64_t most[width] = {};
  size_t i = 0;
  for (; i + width <= n; i += width)
#pragma GCC unroll 16
    for (size_t k = 0; k < width; ++k) keep_larger(most[k], size_bits(x[i + k]));
  for (; i < n; ++i) keep_larger(most[0], size_bits(x[i]));
  return *std::max_element(most, most + width);
}

// Some rows more of n columns, so many at a time.
template <size_t n_rows>
void keep_larger_rows(const double* x, ptrdiff_t stride, size_t n, int64_t* most) {
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    Bits kept;
    std::memcpy(&kept, most + j, sizeof kept);
    for (size_t k = 0; k < n_rows; ++k) {
      const Bits bits = (Bits)absolute(load(x + static_cast<ptrdiff_t>(k) * stride + j));
      kept = bits > kept ? bits : kept;
    }
    std::memcpy(most + j, &kept, sizeof kept);
  }
  for (; j < n; ++j)
    for (size_t k = 0; k < n_rows; ++k) keep_larger(most[j], size_bits(x[static_cast<ptrdiff_t>(k) * stride + j]));
}

// Sizes of the columns of one segment.
void segment_sizes(const Segment& s, size_t n_rows, int64_t* most) {
  if (s.kind == Segment::Kind::dense && s.dtype == Dtype::f64 && s.row_stride == 1) {
    const auto* x = static_cast<const double*>(s.values);
    for (size_t j = 0; j < s.n_columns; ++j)
      most[j] = largest_bits(x + static_cast<ptrdiff_t>(j) * s.column_stride, n_rows);
    return;
  }
  for_each_tile(s, n_rows, [&](const double* x, ptrdiff_t stride, size_t count) {
    for (; count >= 4; count -= 4, x += 4 * stride) keep_larger_rows<4>(x, stride, s.n_columns, most);
    for (; count > 0; --count, x += stride) keep_larger_rows<1>(x, stride, s.n_columns, most);
  });
}

// Sums of some columns over rows, in the order of the rows, and which columns are not their first row in every other.
struct ColumnSums {
  const double* unit;  // what the entries of a column are multiplied by
  std::vector<double> first, sum;
  std::vector<int64_t> varies;

  ColumnSums(const double* unit, size_t n) : unit(unit), first(n), sum(n, 0.0), varies(n, 0) {}

  template <size_t n_rows>
  void add(const double* x, ptrdiff_t stride) {
    const size_t n = sum.size();
    size_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      const Vec of_first = load(&first[j]), of_unit = load(unit + j);
      Vec total = load(&sum[j]);
      Bits differs = {};
      for (size_t k = 0; k < n_rows; ++k) {
        const Vec row = load(x + static_cast<ptrdiff_t>(k) * stride + j);
        total += row * of_unit;
        differs |= (Bits)(row != of_first);
      }
      store(&sum[j], total);
      for (size_t lane = 0; lane < lanes; ++lane) varies[j + lane] |= differs[lane];
    }
    for (; j < n; ++j)
      for (size_t k = 0; k < n_rows; ++k) {
        const double row = x[static_cast<ptrdiff_t>(k) * stride + j];
        sum[j] += row * unit[j];
        varies[j] |= row != first[j];
      }
  }

  void add_segment(const Segment& s, size_t n_rows) {
    bool is_first = true;
    for_each_tile(s, n_rows, [&](const double* x, ptrdiff_t stride, size_t count) {
      if (is_first) std::copy_n(x, count > 0 ? first.size() : 0, first.data());
      is_first = false;
      for (; count >= 4; count -= 4, x += 4 * stride) add<4>(x, stride);
      for (; count > 0; --count, x += stride) add<1>(x, stride);
    });
  }
};

// The largest distance of some columns, times `unit`, from `centre`.
void keep_spreads(const Segment& s, size_t n_rows, const double* unit, const double* centre, double* spread) {
  for_each_tile(s, n_rows, [&](const double* x, ptrdiff_t stride, size_t count) {
    for (; count > 0; --count, x += stride)
      for (size_t j = 0; j < s.n_columns; ++j) spread[j] = larger(spread[j], std::fabs(x[j] * unit[j] - centre[j]));
  });
}

constexpr size_t piece = 64;  // columns of few rows that one thread reads at a time

size_t n_pieces(size_t n_columns) { return (n_columns + piece - 1) / piece; }

// Columns begin to end of turned rows.
void look_at(const double* turned, const double* weights, size_t n_rows, size_t begin, size_t end, ColumnLook& seen) {
  for (size_t j = begin; j < end; ++j) {
    const double* column = turned + j * n_rows;
    seen.sizes[j] = std::bit_cast<double>(largest_bits(column, n_rows));
    if (weights) seen.sums[j] = dot(column, weights, n_rows);
  }
}

}  // namespace

std::vector<double> column_sizes(const Rows& rows) {
  std::vector<int64_t> dense(rows.n_dense, 0);
  std::vector<double> out(rows.n_columns, 0.0);
  size_t at = 0;
  for (const Segment& s : rows.dense) {
    segment_sizes(s, rows.n_rows, dense.data() + at);
    at += s.n_columns;
  }
  for (size_t j = 0; j < dense.size(); ++j) out[rows.dense_columns[j]] = std::bit_cast<double>(dense[j]);
  if (rows.thin.empty()) return out;
  for (size_t row = 0; row < rows.n_rows; ++row)
    rows.for_each_entry(row, [&](size_t j, double value) { out[j] = larger(out[j], std::fabs(value)); });
  for (const Segment& s : rows.thin)
    if (s.kind == Segment::Kind::codes)
      std::fill_n(out.begin() + static_cast<ptrdiff_t>(s.first_column), s.n_columns, 1.0);
  return out;
}

ColumnLook turn(const double* x, const double* weights, size_t n_rows, size_t n_columns, double* out, Crew& crew) {
  constexpr size_t few = 2 * lanes;  // rows of a line of the cache: both sides stay near
  ColumnLook seen{std::vector<double>(n_columns), std::vector<double>(n_columns, 0.0)};
  crew.for_each_block(n_pieces(n_columns), [&](size_t block) {
    const size_t begin = block * piece, end = std::min(begin + piece, n_columns);
    for (size_t first = 0; first < n_rows; first += few) {
      const size_t last = std::min(first + few, n_rows);
      // The lines of a row are too few for the processor to see where they go on: the next rows are asked for.
      for (size_t i = last; i < std::min(last + few, n_rows); ++i)
        for (size_t j = begin; j < end; j += 8) __builtin_prefetch(x + i * n_columns + j);
      size_t j = begin;
      if (last - first == few)
        for (; j + lanes <= end; j += lanes)
          for (size_t i = first; i < last; i += lanes) {
            const double* const row = x + i * n_columns + j;
            store_turned(load(row), load(row + n_columns), load(row + 2 * n_columns), load(row + 3 * n_columns),
                         out + j * n_rows + i, n_rows);
          }
      for (; j < end; ++j)
        for (size_t i = first; i < last; ++i) out[j * n_rows + i] = x[i * n_columns + j];
    }
    look_at(out, weights, n_rows, begin, end, seen);
  });
  return seen;
}

ColumnLook look_at_columns(const double* turned, const double* weights, size_t n_rows, size_t n_columns, Crew& crew) {
  ColumnLook seen{std::vector<double>(n_columns), std::vector<double>(n_columns, 0.0)};
  crew.for_each_block(n_pieces(n_columns), [&](size_t block) {
    look_at(turned, weights, n_rows, block * piece, std::min((block + 1) * piece, n_columns), seen);
  });
  return seen;
}

std::vector<double> column_shifts(const Rows& rows, const double* scale, bool exact) {
  const std::vector<double> unit = of_dense(rows, scale);
  std::vector<double> out(rows.n_columns, 0.0);
  size_t at = 0;
  for (const Segment& s : rows.dense) {
    ColumnSums sums(unit.data() + at, s.n_columns);
    sums.add_segment(s, rows.n_rows);
    std::vector<double> mean(s.n_columns), spread(s.n_columns, 0.0);
    for (size_t j = 0; j < mean.size(); ++j)
      mean[j] = sums.varies[j] ? sums.sum[j] / static_cast<double>(rows.n_rows) : sums.first[j] * unit[at + j];
    if (exact) keep_spreads(s, rows.n_rows, unit.data() + at, mean.data(), spread.data());
    for (size_t j = 0; j < mean.size(); ++j)
      if (std::isfinite(mean[j]) && (!exact || spread[j] <= std::fabs(mean[j]) / 4))
        out[rows.dense_columns[at + j]] = mean[j];
    at += s.n_columns;
  }
  return out;
}

}  // namespace certifit
