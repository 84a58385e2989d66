// Any storage of rows (dense of any numeric type and stride, or CSR) read as tiles of float64 rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace certifit {

enum class Dtype { f64, f32, i64, i32, i16, i8, u64, u32, u16, u8 };

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
    case Dtype::u8: return use(static_cast<const uint8_t*>(nullptr));
    default: return use(static_cast<const double*>(nullptr));
  }
}

struct Rows {
  size_t n_rows = 0;
  size_t n_columns = 0;
  Dtype dtype = Dtype::f64;
  const void* values = nullptr;
  // dense: strides in elements
  ptrdiff_t row_stride = 0;
  ptrdiff_t column_stride = 0;
  // CSR: indices and offsets, both int32 or both int64
  bool is_sparse = false;
  bool wide_index = false;
  const void* indices = nullptr;
  const void* offsets = nullptr;

  bool is_plain() const {  // rows of contiguous float64: read in place
    return !is_sparse && dtype == Dtype::f64 && column_stride == 1;
  }

  int64_t offset(size_t row) const {
    return wide_index ? static_cast<const int64_t*>(offsets)[row] : static_cast<const int32_t*>(offsets)[row];
  }
  size_t index(int64_t entry) const {
    return static_cast<size_t>(wide_index ? static_cast<const int64_t*>(indices)[entry]
                                          : static_cast<const int32_t*>(indices)[entry]);
  }
  double value(int64_t entry) const {
    return dtype == Dtype::f32 ? static_cast<const float*>(values)[entry] : static_cast<const double*>(values)[entry];
  }
};

// Rows [first, first + count) as float64, one after the other `stride` apart: the data itself where it
// already is that, else a copy in `scratch`.
struct Tile {
  const double* data;
  ptrdiff_t stride;
  const double* row(size_t k) const { return data + static_cast<ptrdiff_t>(k) * stride; }
};

template <class T>
void copy_tile(const Rows& rows, size_t first, size_t count, double* out) {
  const T* base = static_cast<const T*>(rows.values) + static_cast<ptrdiff_t>(first) * rows.row_stride;
  const size_t d = rows.n_columns;
  if (rows.column_stride == 1) {
    for (size_t k = 0; k < count; ++k)
      for (size_t j = 0; j < d; ++j)
        out[k * d + j] =
            static_cast<double>(base[static_cast<ptrdiff_t>(k) * rows.row_stride + static_cast<ptrdiff_t>(j)]);
    return;
  }
  // Eight columns side by side: reads run down eight columns, writes fill whole cache lines.
  constexpr size_t step = 8;
  for (size_t begin = 0; begin < d; begin += step) {
    const size_t end = std::min(begin + step, d);
    for (size_t k = 0; k < count; ++k)
      for (size_t j = begin; j < end; ++j)
        out[k * d + j] = static_cast<double>(
            base[static_cast<ptrdiff_t>(k) * rows.row_stride + static_cast<ptrdiff_t>(j) * rows.column_stride]);
  }
}

inline Tile read_tile(const Rows& rows, size_t first, size_t count, std::vector<double>& scratch) {
  const size_t d = rows.n_columns;
  if (rows.is_plain())
    return {static_cast<const double*>(rows.values) + static_cast<ptrdiff_t>(first) * rows.row_stride, rows.row_stride};
  scratch.resize(count * d);
  if (rows.is_sparse) {
    std::fill(scratch.begin(), scratch.end(), 0.0);
    for (size_t k = 0; k < count; ++k)
      for (int64_t e = rows.offset(first + k); e < rows.offset(first + k + 1); ++e)
        scratch[k * d + rows.index(e)] = rows.value(e);
  } else {
    with_type(rows.dtype, [&](auto* type) {
      using T = std::remove_const_t<std::remove_pointer_t<decltype(type)>>;
      copy_tile<T>(rows, first, count, scratch.data());
    });
  }
  return {scratch.data(), static_cast<ptrdiff_t>(d)};
}

// The next tile's rows, asked for a few cache lines at a time while this tile is worked on: the processor's own
// prefetching stops whenever reading does.
class Ahead {
 public:
  Ahead(const Rows& rows, size_t first, size_t count) {
    if (!rows.is_plain() || first >= rows.n_rows) return;
    count = std::min(count, rows.n_rows - first);
    at_ = static_cast<const char*>(rows.values) + static_cast<ptrdiff_t>(first * sizeof(double)) * rows.row_stride;
    left_ = rows.row_stride == static_cast<ptrdiff_t>(rows.n_columns) ? count * rows.n_columns * sizeof(double) : 0;
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

// Walking the stored entries of a row pays only where few are stored. Asked of a block, so that the answer, and with
// it the order of sums, does not depend on the chunk a block came in.
inline bool is_thin(const Rows& rows, size_t begin, size_t end) {
  if (!rows.is_sparse || begin == end) return false;
  double stored = static_cast<double>(rows.offset(end) - rows.offset(begin));
  return rows.n_columns > 32 && stored < 0.1 * static_cast<double>(end - begin) * static_cast<double>(rows.n_columns);
}

}  // namespace certifit
