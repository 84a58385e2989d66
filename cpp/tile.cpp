#include "tile.hpp"

#include "square.hpp"

namespace certifit {
namespace {

constexpr size_t near = 4096;   // numbers that stay in the first level of the cache while their rows are filled
constexpr size_t least = 64;    // rows that a column is read for at a time, at least
constexpr size_t together = 4;  // columns that are turned into rows at a time

// Whether the numbers of a column lie one after another, as the core adds them.
bool is_by_column(const Segment& s) {
  const bool is_numbers = s.kind == Segment::Kind::dense || s.kind == Segment::Kind::column;
  return is_numbers && s.dtype == Dtype::f64 && s.row_stride == 1 && !s.valid.data;
}

// Four columns as part of rows that are `stride` numbers apart.
void turn(const double* const* columns, size_t count, double* out, size_t stride) {
  size_t k = 0;
  for (; k + lanes <= count; k += lanes)
    store_turned(load(columns[0] + k), load(columns[1] + k), load(columns[2] + k), load(columns[3] + k),
                 out + k * stride, stride);
  for (; k < count; ++k)
    for (size_t j = 0; j < together; ++j) out[k * stride + j] = columns[j][k];
}

void copy_few(const Rows& rows, size_t first, size_t count, double* out) {
  const size_t stride = rows.n_dense;
  const double* waiting[together];
  size_t n_waiting = 0, at = 0;  // columns that wait for others beside them, and where the next one goes
  auto copy_waiting = [&] {
    for (size_t j = 0; j < n_waiting; ++j)
      for (size_t k = 0; k < count; ++k) out[k * stride + at - n_waiting + j] = waiting[j][k];
    n_waiting = 0;
  };
  for (const Segment& s : rows.dense) {
    if (!is_by_column(s)) {
      copy_waiting();
      copy_segment(s, first, count, out + at, stride);
      at += s.n_columns;
      continue;
    }
    for (size_t j = 0; j < s.n_columns; ++j) {
      waiting[n_waiting++] = static_cast<const double*>(s.values) + first + static_cast<ptrdiff_t>(j) * s.column_stride;
      ++at;
      if (n_waiting < together) continue;
      turn(waiting, count, out + at - together, stride);
      n_waiting = 0;
    }
  }
  copy_waiting();
}

}  // namespace

void copy_rows(const Rows& rows, size_t first, size_t count, double* out) {
  const size_t step = std::max(near / std::max<size_t>(rows.n_dense, 1), least);
  for (size_t begin = 0; begin < count; begin += step)
    copy_few(rows, first + begin, std::min(step, count - begin), out + begin * rows.n_dense);
}

}  // namespace certifit
