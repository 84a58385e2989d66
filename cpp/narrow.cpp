#include "narrow.hpp"

#include <algorithm>
#include <vector>

#include "margin/lanes.hpp"

namespace certifit {
namespace {

using margin::all_lanes;
using margin::fused;
using margin::Lanes;
using margin::load_lanes;
using margin::store_lanes;

constexpr size_t depth = 1024;  // terms of a sum that are added before they join the others
constexpr size_t stripe = 128;  // rows of A per task
#if CERTIFIT_HAS_FMA
constexpr size_t most_vectors = 3;  // of a panel: 4 rows x 3 vectors of sums, 3 of V and one of A fill 16 registers
#else
constexpr size_t most_vectors = 1;
#endif

// Columns [begin, begin + width) of V that are on in the same groups, row after row, filled up with zeros.
template <class T>
struct Panel {
  size_t begin, width;
  std::vector<T> values;

  size_t n_vectors() const { return (width + Lanes<T>::n - 1) / Lanes<T>::n; }
  size_t n_values() const { return n_vectors() * Lanes<T>::n; }
};

template <class T>
std::vector<Panel<T>> panels_of(MatrixOf<T> V, const Groups& groups) {
  std::vector<Panel<T>> panels;
  auto is_alike = [&](size_t a, size_t b) {
    for (size_t g = 0; g < groups.size(); ++g)
      if ((groups.is_on[g * V.n_columns + a] != 0) != (groups.is_on[g * V.n_columns + b] != 0)) return false;
    return true;
  };
  for (size_t c = 0; c < V.n_columns; ++c) {
    const bool is_first =
        panels.empty() || panels.back().width == most_vectors * Lanes<T>::n || !is_alike(panels.back().begin, c);
    if (is_first) panels.push_back({c, 0, {}});
    ++panels.back().width;
  }
  for (Panel<T>& panel : panels) {
    panel.values.assign(V.n_rows * panel.n_values(), T(0));
    for (size_t i = 0; i < V.n_rows; ++i) {
      const T* from = V.values + i * V.n_columns + panel.begin;
      std::copy(from, from + panel.width, panel.values.data() + i * panel.n_values());
    }
  }
  return panels;
}

// R rows of A, `terms` of each, times the panel: sums of R x C vectors.
template <class T, size_t R, size_t C>
inline void tile(const T* const* A, const T* V, size_t terms, T* sums) {
  using Vector = typename Lanes<T>::V;
  Vector sum[R][C];
#pragma GCC unroll 8
  for (size_t r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (size_t c = 0; c < C; ++c) sum[r][c] = Vector{};
  for (size_t k = 0; k < terms; ++k) {
    Vector v[C];
#pragma GCC unroll 3
    for (size_t c = 0; c < C; ++c) v[c] = load_lanes(V + (k * C + c) * Lanes<T>::n);
#pragma GCC unroll 8
    for (size_t r = 0; r < R; ++r) {
      const Vector a = all_lanes(A[r][k]);
#pragma GCC unroll 3
      for (size_t c = 0; c < C; ++c) sum[r][c] = fused<T>(a, v[c], sum[r][c]);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (size_t c = 0; c < C; ++c) store_lanes(sums + (r * C + c) * Lanes<T>::n, sum[r][c]);
}

// out += the terms [k, k + terms) of the products of rows [i, end) with a panel. The last rows are repeated.
template <class T, size_t R, size_t C>
void add_terms(MatrixOf<T> A, const Panel<T>& panel, size_t i, size_t end, size_t k, size_t terms, T* out, size_t ldo) {
  for (; i < end; i += R) {
    const T* rows[R];
    for (size_t r = 0; r < R; ++r) rows[r] = A.values + std::min(i + r, end - 1) * A.n_columns + k;
    alignas(32) T sums[R * C * Lanes<T>::n];
    tile<T, R, C>(rows, panel.values.data() + k * C * Lanes<T>::n, terms, sums);
    for (size_t r = 0; r < std::min(R, end - i); ++r) {
      T* to = out + (i + r) * ldo + panel.begin;
      for (size_t c = 0; c < panel.width; ++c) to[c] += sums[r * C * Lanes<T>::n + c];
    }
  }
}

}  // namespace

template <class T>
void narrow_product(MatrixOf<T> A, MatrixOf<T> V, const Groups& groups, T* out, Crew& crew) {
  const std::vector<Panel<T>> panels = panels_of(V, groups);
  const size_t columns = V.n_columns;
  std::vector<std::pair<size_t, size_t>> stripes;  // group and first row
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t i = groups.rows[g]; i < static_cast<size_t>(groups.rows[g + 1]); i += stripe) stripes.push_back({g, i});
  crew.for_each_block(stripes.size(), [&](size_t number) {
    const auto [g, i] = stripes[number];
    const size_t end = std::min<size_t>(i + stripe, groups.rows[g + 1]);
    std::fill(out + i * columns, out + end * columns, T(0));
    for (size_t h = 0; h < groups.size(); ++h)
      for (size_t k = groups.columns[h]; k < static_cast<size_t>(groups.columns[h + 1]) && crew.keep_going();
           k += depth) {
        const size_t terms = std::min<size_t>(depth, groups.columns[h + 1] - k);
        for (const Panel<T>& panel : panels) {
          if (!groups.is_on[g * columns + panel.begin] || !groups.is_on[h * columns + panel.begin]) continue;
          if (panel.n_vectors() == 1) add_terms<T, 8, 1>(A, panel, i, end, k, terms, out, columns);
          if (panel.n_vectors() == 2) add_terms<T, 4, 2>(A, panel, i, end, k, terms, out, columns);
          if (panel.n_vectors() == 3) add_terms<T, 4, 3>(A, panel, i, end, k, terms, out, columns);
        }
      }
  });
}

template void narrow_product<double>(DenseMatrix, DenseMatrix, const Groups&, double*, Crew&);
template void narrow_product<float>(MatrixOf<float>, MatrixOf<float>, const Groups&, float*, Crew&);

}  // namespace certifit
