// Rows of any storage behind one reader. A source hands over segments of columns: dense arrays of any numeric type
// and stride, single Arrow columns with their validity bits, CSR, and codes of categories. Dense columns are read as
// tiles of float64 rows; what is stored thinly (CSR, codes) as the entries of a row. A category is never expanded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace certifit {

enum class Dtype { f64, f32, i64, i32, i16, i8, u64, u32, u16, u8, bits };

// use(pointer to the type); bits are read apart, as bytes.
template <class Use>
auto with_type(Dtype dtype, Use use) {
  switch (dtype) {
    case Dtype::f32: return use(static_cast<const float*>(nullptr));
    case Dtype::i64: return use(static_cast<const int64_t*>(nullptr));
    case Dtype::i32: return use(static_cast<const int32_t*>(nullptr));
    case Dtype::i16: return use(static_cast<const int16_t*>(nullptr));
    case Dtype::i8: return use(static_cast<const int8_t*>(nullptr));
    case Dtype::u64: return use(static_cast<const uint64_t*>(nullptr));
    case Dtype::u32: return use(static_cast<const uint32_t*>(nullptr));
    case Dtype::u16: return use(static_cast<const uint16_t*>(nullptr));
    case Dtype::bits:
    case Dtype::u8: return use(static_cast<const uint8_t*>(nullptr));
    default: return use(static_cast<const double*>(nullptr));
  }
}

struct Bits {  // Arrow's bitmaps: least significant bit first
  const uint8_t* data = nullptr;
  size_t offset = 0;
  bool at(size_t i) const { return (data[(i + offset) / 8] >> ((i + offset) % 8)) & 1; }
};

struct Segment {
  enum class Kind { dense, column, missing, csr, codes };
  Kind kind = Kind::dense;
  size_t n_columns = 1;
  size_t first_column = 0;  // among all columns
  Dtype dtype = Dtype::f64;
  const void* values = nullptr;

  ptrdiff_t row_stride = 1, column_stride = 0;  // dense, column: in elements

  Bits valid;         // column, missing, codes: where data is null, nothing is
  Bits bits;          // column of Dtype::bits
  double fill = 0.0;  // column: what stands in for a null

  const void* indices = nullptr;  // csr
  const void* offsets = nullptr;
  int64_t n_entries = 0;
  bool wide_index = false;

  const int32_t* columns = nullptr;  // codes: column of each code, or -1 for none
  size_t n_codes = 0;
  int32_t null_column = -1;

  int64_t offset(size_t row) const {
    return wide_index ? static_cast<const int64_t*>(offsets)[row] : static_cast<const int32_t*>(offsets)[row];
  }
  struct Range {
    int64_t begin, end;
  };
  Range entries(size_t row) const {  // of CSR
    const Range range{offset(row), offset(row + 1)};
    if (range.begin < 0 || range.begin > range.end || range.end > n_entries) refuse_offsets();
    return range;
  }
  // A column of CSR from its stored index; a negative one is beyond every number of columns.
  template <class Index>
  size_t checked_column(Index stored) const {
    const auto column = static_cast<size_t>(stored);
    if (column >= n_columns) refuse_column();
    return column;
  }
  template <class Index>
  void check_columns(const Index* stored, size_t n) const {
    bool beyond = false;
    for (size_t k = 0; k < n; ++k) beyond |= static_cast<size_t>(stored[k]) >= n_columns;
    if (beyond) refuse_column();
  }
  size_t index(int64_t entry) const {
    return wide_index ? checked_column(static_cast<const int64_t*>(indices)[entry])
                      : checked_column(static_cast<const int32_t*>(indices)[entry]);
  }
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_offsets() {
    throw std::invalid_argument("CSR offsets must rise from 0 to the number of entries");
  }
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_column() {
    throw std::invalid_argument("a CSR index is not a column");
  }
  double value(int64_t entry) const {  // of CSR
    switch (dtype) {
      case Dtype::f32: return static_cast<const float*>(values)[entry];
      case Dtype::i64: return static_cast<double>(static_cast<const int64_t*>(values)[entry]);
      case Dtype::i32: return static_cast<const int32_t*>(values)[entry];
      default: return static_cast<const double*>(values)[entry];
    }
  }
  int64_t code(size_t row) const {
    return with_type(dtype, [&](auto* type) { return static_cast<int64_t>(static_cast<decltype(type)>(values)[row]); });
  }
};

struct Rows {
  size_t n_rows = 0;
  size_t n_columns = 0;
  size_t n_dense = 0;                 // columns read in tiles, in the order of `dense`
  std::vector<Segment> dense, thin;   // thin: read entry by entry
  std::vector<size_t> dense_columns;  // place of each dense column among all
  bool is_plain = false;              // one block of contiguous float64 rows: read in place

  void add(Segment segment) {
    segment.first_column = n_columns;
    n_columns += segment.n_columns;
    // The choice decides the order of sums, so it must not depend on the rows of one chunk.
    const bool is_thin =
        segment.kind == Segment::Kind::codes || (segment.kind == Segment::Kind::csr && segment.n_columns > 32);
    if (!is_thin) {
      for (size_t j = 0; j < segment.n_columns; ++j) dense_columns.push_back(segment.first_column + j);
      n_dense += segment.n_columns;
    }
    (is_thin ? thin : dense).push_back(segment);
    is_plain = dense.size() == 1 && dense[0].kind == Segment::Kind::dense && dense[0].dtype == Dtype::f64 &&
               dense[0].column_stride == 1;
  }

  // use(column, value) for the stored entries of a row, columns ascending.
  template <class Use>
  void for_each_entry(size_t row, Use use) const {
    for (const Segment& s : thin) {
      if (s.kind == Segment::Kind::csr) {
        const auto [begin, end] = s.entries(row);
        for (int64_t e = begin; e < end; ++e) use(s.first_column + s.index(e), s.value(e));
        continue;
      }
      int64_t column = s.null_column;
      if (!s.valid.data || s.valid.at(row)) {
        const int64_t code = s.code(row);
        column = code >= 0 && code < static_cast<int64_t>(s.n_codes) ? s.columns[code] : -1;
      }
      if (column >= 0) use(s.first_column + static_cast<size_t>(column), 1.0);
    }
  }
};

// Rows [first, first + count) of the dense columns as float64, `stride` apart: the data itself where it already is
// that, else a copy in `scratch`.
struct Tile {
  const double* data;
  ptrdiff_t stride;
  const double* row(size_t k) const { return data + static_cast<ptrdiff_t>(k) * stride; }
};

template <class T>
void copy_dense(const Segment& s, size_t first, size_t count, double* out, size_t stride) {
  const T* base = static_cast<const T*>(s.values) + static_cast<ptrdiff_t>(first) * s.row_stride;
  // Eight columns side by side: reads run down eight columns, writes fill whole cache lines.
  const size_t step = s.column_stride == 1 ? s.n_columns : 8;
  for (size_t begin = 0; begin < s.n_columns; begin += step) {
    const size_t end = std::min(begin + step, s.n_columns);
    for (size_t k = 0; k < count; ++k)
      for (size_t j = begin; j < end; ++j)
        out[k * stride + j] = static_cast<double>(
            base[static_cast<ptrdiff_t>(k) * s.row_stride + static_cast<ptrdiff_t>(j) * s.column_stride]);
  }
}

inline void copy_segment(const Segment& s, size_t first, size_t count, double* out, size_t stride) {
  switch (s.kind) {
    case Segment::Kind::missing:
      for (size_t k = 0; k < count; ++k) out[k * stride] = s.valid.data && !s.valid.at(first + k) ? 1.0 : 0.0;
      return;
    case Segment::Kind::csr:
      for (size_t k = 0; k < count; ++k) {
        std::fill(out + k * stride, out + k * stride + s.n_columns, 0.0);
        const auto [begin, end] = s.entries(first + k);
        for (int64_t e = begin; e < end; ++e) out[k * stride + s.index(e)] = s.value(e);
      }
      return;
    default: break;
  }
  if (s.dtype == Dtype::bits) {
    for (size_t k = 0; k < count; ++k) out[k * stride] = s.bits.at(first + k) ? 1.0 : 0.0;
  } else {
    with_type(s.dtype, [&](auto* type) {
      using T = std::remove_const_t<std::remove_pointer_t<decltype(type)>>;
      copy_dense<T>(s, first, count, out, stride);
    });
  }
  if (s.valid.data)
    for (size_t k = 0; k < count; ++k)
      if (!s.valid.at(first + k)) out[k * stride] = s.fill;
}

// The dense columns of some rows, one row after another.
void copy_rows(const Rows& rows, size_t first, size_t count, double* out);

inline Tile read_tile(const Rows& rows, size_t first, size_t count, std::vector<double>& scratch) {
  if (rows.is_plain) {
    const Segment& s = rows.dense[0];
    return {static_cast<const double*>(s.values) + static_cast<ptrdiff_t>(first) * s.row_stride, s.row_stride};
  }
  scratch.resize(count * rows.n_dense);
  copy_rows(rows, first, count, scratch.data());
  return {scratch.data(), static_cast<ptrdiff_t>(rows.n_dense)};
}

// The next tile's rows, asked for a few cache lines at a time while this tile is worked on: the processor's own
// prefetching stops whenever reading does.
class Ahead {
 public:
  Ahead(const Rows& rows, size_t first, size_t count) {
    if (!rows.is_plain || first >= rows.n_rows) return;
    const Segment& s = rows.dense[0];
    count = std::min(count, rows.n_rows - first);
    at_ = static_cast<const char*>(s.values) + static_cast<ptrdiff_t>(first * sizeof(double)) * s.row_stride;
    left_ = s.row_stride == static_cast<ptrdiff_t>(s.n_columns) ? count * s.n_columns * sizeof(double) : 0;
  }
  void fetch(size_t n_lines) {
    for (; n_lines > 0 && left_ > 0; --n_lines) {
      __builtin_prefetch(at_, 0, 2);
      at_ += 64;
      left_ = left_ > 64 ? left_ - 64 : 0;
    }
  }

 private:
  const char* at_ = nullptr;
  size_t left_ = 0;
};

// Values of all columns picked for the dense ones: what a tile's columns are scaled or weighted by.
inline std::vector<double> of_dense(const Rows& rows, const double* of_all) {
  std::vector<double> out(rows.n_dense);
  for (size_t j = 0; j < rows.n_dense; ++j) out[j] = of_all[rows.dense_columns[j]];
  return out;
}

}  // namespace certifit
