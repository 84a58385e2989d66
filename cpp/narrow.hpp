// Products of a large matrix with few columns. A BLAS copies the large matrix into its own order at every call; here it
// is read once, as it is. Any number of threads gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels.hpp"

namespace certifit {

// Rows of A in groups: group g is [rows[g], rows[g + 1]); columns of A in as many. is_on: groups x columns of V,
// whether V has anything but 0 in the group, and whether the product is wanted there.
struct Groups {
  std::span<const int64_t> rows, columns;
  const uint8_t* is_on;

  size_t size() const { return rows.size() - 1; }
};

// A V; blocks of A between groups of which a column has one only may be left out of that column's sums.
template <class T>
void narrow_product(MatrixOf<T> A, MatrixOf<T> V, const Groups& groups, T* out, Crew& crew);

}  // namespace certifit
