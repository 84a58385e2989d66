// The entries of CSR with their types settled once, not once an entry.
#pragma once

#include <atomic>

#include "../parallel.hpp"
#include "../tile.hpp"

namespace certifit {

// use(indices, values): pointers to the arrays of a CSR segment.
template <class Use>
void with_csr(const Segment& s, Use use) {
  auto with_values = [&](auto* indices) {
    switch (s.dtype) {
      case Dtype::f32: return use(indices, static_cast<const float*>(s.values));
      case Dtype::i64: return use(indices, static_cast<const int64_t*>(s.values));
      case Dtype::i32: return use(indices, static_cast<const int32_t*>(s.values));
      default: return use(indices, static_cast<const double*>(s.values));
    }
  };
  s.wide_index ? with_values(static_cast<const int64_t*>(s.indices))
               : with_values(static_cast<const int32_t*>(s.indices));
}

inline bool is_one_csr(const Rows& rows) { return rows.thin.size() == 1 && rows.thin[0].kind == Segment::Kind::csr; }

// use(column, value), in the order of `Rows::for_each_entry`.
template <class Use>
void for_each_entry(const Rows& rows, size_t row, Use use) {
  if (!is_one_csr(rows)) {
    rows.for_each_entry(row, use);
    return;
  }
  const Segment& s = rows.thin[0];
  with_csr(s, [&](const auto* indices, const auto* values) {
    const auto [begin, end] = s.entries(row);
    for (int64_t e = begin; e < end; ++e)
      use(s.first_column + s.checked_column(indices[e]), static_cast<double>(values[e]));
  });
}

// Whether CSR is what every pass takes it to be: offsets that rise from 0 to the number of entries, and in each row
// columns that rise and exist.
template <class Index>
bool is_canonical(const Index* indices, const Index* offsets, size_t n_rows, int64_t n_entries, int64_t n_columns,
                  Crew& crew) {
  constexpr size_t rows_per_block = 4096;
  if (offsets[0] != 0 || offsets[n_rows] != n_entries) return false;
  std::atomic<bool> is_fine{true};
  crew.for_each_block((n_rows + rows_per_block - 1) / rows_per_block, [&](size_t block) {
    const size_t last = std::min((block + 1) * rows_per_block, n_rows);
    for (size_t row = block * rows_per_block; row < last && is_fine.load(std::memory_order_relaxed); ++row) {
      const int64_t begin = offsets[row], end = offsets[row + 1];
      bool is_good = begin >= 0 && begin <= end && end <= n_entries;
      if (is_good && begin < end) {
        Index falls = 0;
        for (int64_t e = begin; e + 1 < end; ++e) falls |= static_cast<Index>(indices[e] >= indices[e + 1]);
        is_good = falls == 0 && indices[begin] >= 0 && indices[end - 1] < n_columns;
      }
      if (!is_good) is_fine.store(false);
    }
  });
  return is_fine.load();
}

}  // namespace certifit
