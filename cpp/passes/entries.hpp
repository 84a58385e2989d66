// The thinly stored entries of a row with the types of a CSR segment settled once a row, not once an entry.
#pragma once

#include "../tile.hpp"

namespace certifit {

template <class Index, class Value, class Use>
void for_each_of_csr(const Segment& s, size_t row, Use& use) {
  const Index* indices = static_cast<const Index*>(s.indices);
  const Value* values = static_cast<const Value*>(s.values);
  const int64_t end = s.offset(row + 1);
  for (int64_t e = s.offset(row); e < end; ++e)
    use(s.first_column + static_cast<size_t>(indices[e]), static_cast<double>(values[e]));
}

// use(column, value), in the order of `Rows::for_each_entry`.
template <class Use>
void for_each_entry(const Rows& rows, size_t row, Use use) {
  if (rows.thin.size() != 1 || rows.thin[0].kind != Segment::Kind::csr) {
    rows.for_each_entry(row, use);
    return;
  }
  const Segment& s = rows.thin[0];
  if (s.wide_index) {
    s.dtype == Dtype::f32 ? for_each_of_csr<int64_t, float>(s, row, use)
                          : for_each_of_csr<int64_t, double>(s, row, use);
  } else {
    s.dtype == Dtype::f32 ? for_each_of_csr<int32_t, float>(s, row, use)
                          : for_each_of_csr<int32_t, double>(s, row, use);
  }
}

}  // namespace certifit
