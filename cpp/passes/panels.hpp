// Rows packed in panels of four columns, and the sums of products of their columns that every Gram-like pass shares.
#pragma once

#include <numeric>
#include <span>
#include <vector>

#include "../twofold.hpp"
#include "gram.hpp"

namespace certifit {

// Sums of one block: for every cell the upper triangle of S, row-major with leading dimension `stride`.
struct BlockSums {
  std::vector<double> hi, lo;

  void add(const BlockSums& other) {
    if (lo.empty()) {
      for (size_t i = 0; i < hi.size(); ++i) hi[i] += other.hi[i];
      return;
    }
    for (size_t i = 0; i < hi.size(); ++i) {
      Real s = Real{hi[i], lo[i]} + Real{other.hi[i], other.lo[i]};
      hi[i] = s.hi;
      lo[i] = s.lo;
    }
  }
};

// A tile of rows packed in panels of four columns: panel p holds z[4p .. 4p+3] of row 0, row 1, ...
struct Panels {
  size_t n_columns, n_panels, capacity, panel_stride;
  std::vector<double> data;
  double* first;  // on a cache line of its own: no load of four numbers straddles two

  explicit Panels(size_t columns) : Panels(columns, fitting(columns)) {}
  Panels(size_t columns, size_t rows) : n_columns(columns), n_panels((columns + lanes - 1) / lanes), capacity(rows) {
    panel_stride = capacity * lanes;
    data.assign(n_panels * panel_stride + 7, 0.0);
    first = data.data() + (-reinterpret_cast<uintptr_t>(data.data()) / sizeof(double)) % 8;
  }
  Panels(const Panels&) = delete;
  Panels& operator=(const Panels&) = delete;
  double* at(size_t panel, size_t row) { return first + panel * panel_stride + row * lanes; }
  const double* at(size_t panel, size_t row) const { return first + panel * panel_stride + row * lanes; }

  // 60 rows of 50 columns fit the first-level cache; wide tiles stay in the second.
  static size_t fitting(size_t columns) {
    const size_t rows = 192 * 1024 / (sizeof(double) * lanes * ((columns + lanes - 1) / lanes));
    return std::clamp<size_t>(rows / 4 * 4, 16, 60);
  }
};

// Reads rows, scales and shifts them, and packs (x scale - shift, 1, y y_scale - y_shift).
class Packer {
 public:
  Packer(const Rows& rows, const double* y, const Scaling& scaling)
      : rows_(rows),
        y_(y),
        scaling_(scaling),
        scale_(of_dense(rows, scaling.scale)),
        minus_shift_(of_dense(rows, scaling.shift)) {
    for (double& shift : minus_shift_) shift = -shift;
  }

  // Makes rows [begin, end) readable: those that must be copied are copied at once, so columns are read in long pieces.
  void open(size_t begin, size_t end) {
    begin_ = begin;
    tile_ = read_tile(rows_, begin, end - begin, scratch_);
  }

  // Row k of the panels is rows[k], each entry times roots[k]; a root of 0 is no row, whatever stands in it.
  void pack(std::span<const size_t> rows, std::span<const double> roots, Panels& panels) {
    size_t k = 0;
    for (; k + lanes <= rows.size(); k += lanes) pack<lanes>(&rows[k], &roots[k], panels, k);
    for (; k < rows.size(); ++k) pack<1>(&rows[k], &roots[k], panels, k);
  }

 private:
  // n rows side by side: scales and shifts are read once for all of them.
  template <size_t n>
  void pack(const size_t* rows, const double* roots, Panels& panels, size_t first) {
    const size_t d = rows_.n_dense, whole = d / lanes * lanes, stride = panels.panel_stride;
    const double *scale = scale_.data(), *minus_shift = minus_shift_.data(), *x[n];
    Vec root[n];
    for (size_t k = 0; k < n; ++k) x[k] = tile_.row(rows[k] - begin_), root[k] = broadcast(roots[k]);
    double* out = panels.at(0, first);
    for (size_t j = 0; j < whole; j += lanes, out += stride) {
      const Vec times = load(scale + j), plus = load(minus_shift + j);
#pragma GCC unroll 4
      for (size_t k = 0; k < n; ++k) store(out + k * lanes, multiply_add(load(x[k] + j), times, plus) * root[k]);
    }
    // The last columns, 1 and y; what is left of the last panel is 0 from the start, and stays so.
    size_t c = 0;
    auto put = [&](auto value) {
      double* to = out + c / lanes * stride + c % lanes;
#pragma GCC unroll 4
      for (size_t k = 0; k < n; ++k) to[k * lanes] = roots[k] * value(k);
      ++c;
    };
    for (size_t j = whole; j < d; ++j)
      put([&, j](size_t k) { return multiply_add(x[k][j], scale[j], minus_shift[j]); });
    put([](size_t) { return 1.0; });
    const double y_scale = scaling_.y_scale, minus_y_shift = -scaling_.y_shift;
    if (y_) put([&](size_t k) { return multiply_add(y_[rows[k]], y_scale, minus_y_shift); });
    for (size_t k = 0; k < n; ++k)
      if (roots[k] == 0)  // NaN times 0 is none
        for (size_t p = 0; p < panels.n_panels; ++p) store(panels.at(p, first + k), Vec{});
  }

  const Rows& rows_;
  const double* y_;
  const Scaling& scaling_;
  std::vector<double> scale_, minus_shift_, scratch_;
  Tile tile_{nullptr, 0};
  size_t begin_ = 0;
};

// Rows [begin, end) by cell, in order within a cell; rows of no cell left out. starts[c] is where cell c begins.
struct ByCell {
  std::vector<size_t> rows, starts;

  void sort(const Cells& cells, size_t begin, size_t end) {
    starts.assign(cells.count + 2, 0);
    if (!cells.of_row) {
      rows.resize(end - begin);
      std::iota(rows.begin(), rows.end(), begin);
      starts[1] = rows.size();
      return;
    }
    auto in_cell = [&](size_t row) { return cells.of_row[row] >= 0; };
    for (size_t row = begin; row < end; ++row)
      if (in_cell(row)) ++starts[cells.of_row[row] + 2];
    for (size_t c = 2; c < starts.size(); ++c) starts[c] += starts[c - 1];
    rows.resize(starts.back());
    for (size_t row = begin; row < end; ++row)
      if (in_cell(row)) rows[starts[cells.of_row[row] + 1]++] = row;
  }
};

// S[4 x 4n] += a' b over the rows of a tile: a is one panel, b are n panels side by side. Loops over sums are unrolled
// by name: only then does the compiler keep all sums in registers, from the first to the last row.
template <size_t n>
void product(const double* a, const double* b, size_t panel_stride, size_t count, double* s, size_t stride) {
  Vec sum[4][n];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i)
#pragma GCC unroll 3
    for (size_t q = 0; q < n; ++q) sum[i][q] = Vec{};
  for (size_t k = 0; k < count; ++k) {
    Vec right[n];
#pragma GCC unroll 3
    for (size_t q = 0; q < n; ++q) right[q] = load(b + q * panel_stride + k * lanes);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      const Vec left = broadcast(a[k * lanes + i]);
#pragma GCC unroll 3
      for (size_t q = 0; q < n; ++q) sum[i][q] = multiply_add(left, right[q], sum[i][q]);
    }
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i)
#pragma GCC unroll 3
    for (size_t q = 0; q < n; ++q) {
      double* out = s + i * stride + q * lanes;
      store(out, load(out) + sum[i][q]);
    }
}

inline void product_twofold(const double* a, const double* b, size_t count, double* hi, double* lo, size_t stride) {
  Twofold<Vec> sum[4];
  for (size_t i = 0; i < 4; ++i) sum[i] = {load(hi + i * stride), load(lo + i * stride)};
  for (size_t k = 0; k < count; ++k) {
    Vec right = load(b + k * lanes);
    for (size_t i = 0; i < 4; ++i) add_product(sum[i], broadcast(a[k * lanes + i]), right);
  }
  for (size_t i = 0; i < 4; ++i) {
    Twofold<Vec> s = tidy(sum[i]);
    store(hi + i * stride, s.hi);
    store(lo + i * stride, s.lo);
  }
}

inline void add_tile(Panels& panels, size_t count, BlockSums& sums, size_t base, size_t stride, Ahead next) {
  const size_t n_products = panels.n_panels * (panels.n_panels + 1) / 6 + 1;
  const size_t lines = panels.capacity * panels.n_panels * lanes * sizeof(double) / 64 / n_products + 1;
  for (size_t p = 0; p < panels.n_panels; ++p) {
    const double* a = panels.at(p, 0);
    for (size_t q = p; q < panels.n_panels;) {
      const double* b = panels.at(q, 0);
      const size_t at = base + p * lanes * stride + q * lanes;
      const size_t left = panels.n_panels - q;
      next.fetch(lines);
      if (!sums.lo.empty()) {
        product_twofold(a, b, count, &sums.hi[at], &sums.lo[at], stride);
        q += 1;
      } else if (left == 1) {
        product<1>(a, b, panels.panel_stride, count, &sums.hi[at], stride);
        q += 1;
      } else if (left == 2 || left == 4) {  // 2 + 2 keeps more sums in flight than 3 + 1
        product<2>(a, b, panels.panel_stride, count, &sums.hi[at], stride);
        q += 2;
      } else {
        product<3>(a, b, panels.panel_stride, count, &sums.hi[at], stride);
        q += 3;
      }
    }
  }
}

// Where sums of products of columns stand: dense columns, 1, y, padding, thin columns; row-major, `stride` apart.
struct SquareLayout {
  size_t n_packed, first_thin, n_thin, stride;
  std::vector<size_t> places;  // of all columns, then 1, then y

  SquareLayout(const Rows& rows, bool has_y) {
    n_packed = rows.n_dense + 1 + (has_y ? 1 : 0);
    first_thin = (n_packed + lanes - 1) / lanes * lanes;
    n_thin = rows.n_columns - rows.n_dense;
    stride = (first_thin + n_thin + lanes - 1) / lanes * lanes;
    places.resize(rows.n_columns + 1 + (has_y ? 1 : 0));
    for (size_t j = 0; j < rows.n_dense; ++j) places[rows.dense_columns[j]] = j;
    size_t place = first_thin;
    for (const Segment& s : rows.thin)
      for (size_t j = 0; j < s.n_columns; ++j) places[s.first_column + j] = place++;
    places[rows.n_columns] = rows.n_dense;
    if (has_y) places[rows.n_columns + 1] = rows.n_dense + 1;
  }

  size_t size() const { return (first_thin + n_thin) * stride; }

  // The full symmetric matrices of all cells, columns in their own order; zeros where there are no sums.
  std::vector<double> unfolded(const std::vector<double>& part, size_t n_cells, bool has_sums) const {
    const size_t n = places.size();
    std::vector<double> full(n_cells * n * n, 0.0);
    if (!has_sums) return full;
    for (size_t c = 0; c < n_cells; ++c) {
      const double* from = &part[c * size()];
      double* to = &full[c * n * n];
      for (size_t i = 0; i < n; ++i)
        for (size_t j = i; j < n; ++j) {
          const size_t low = std::min(places[i], places[j]), high = std::max(places[i], places[j]);
          const bool mixed = low < first_thin && high >= first_thin;
          to[i * n + j] = to[j * n + i] = mixed ? from[high * stride + low] : from[low * stride + high];
        }
    }
    return full;
  }
};

// What a row stores thinly (CSR, categories) times the row's dense columns, and times itself. Such columns come after
// the dense ones and are not shifted; their products with dense columns fill the lower triangle, those with each other
// the upper.
class Entries {
 public:
  Entries(const Rows& rows, const Scaling& scaling, size_t first_place)
      : rows_(rows), scaling_(scaling), places_(rows.n_columns, 0) {
    size_t place = first_place;
    for (const Segment& s : rows.thin)
      for (size_t j = 0; j < s.n_columns; ++j) places_[s.first_column + j] = place++;
  }

  void add(size_t row, double root, Panels& panels, size_t k, BlockSums& sums, size_t first, size_t stride) {
    if (root == 0) return;
    at_.clear();
    values_.clear();
    rows_.for_each_entry(row, [&](size_t column, double value) {
      at_.push_back(places_[column]);
      values_.push_back(root * (value * scaling_.scale[column]));
    });
    for (size_t a = 0; a < at_.size(); ++a) {
      const size_t base = first + at_[a] * stride;
      const Vec left = broadcast(values_[a]);
      for (size_t p = 0; p < panels.n_panels; ++p) multiply(sums, base + p * lanes, left, load(panels.at(p, k)));
      for (size_t b = a; b < at_.size(); ++b) multiply(sums, base + at_[b], values_[a], values_[b]);
    }
  }

 private:
  static void multiply(BlockSums& sums, size_t at, Vec a, Vec b) {
    if (sums.lo.empty()) {
      store(&sums.hi[at], multiply_add(a, b, load(&sums.hi[at])));
    } else {
      Twofold<Vec> s{load(&sums.hi[at]), load(&sums.lo[at])};
      add_product(s, a, b);
      store(&sums.hi[at], s.hi);
      store(&sums.lo[at], s.lo);
    }
  }
  static void multiply(BlockSums& sums, size_t at, double a, double b) {
    if (sums.lo.empty()) {
      sums.hi[at] = multiply_add(a, b, sums.hi[at]);
    } else {
      Real s{sums.hi[at], sums.lo[at]};
      add_product(s, a, b);
      sums.hi[at] = s.hi;
      sums.lo[at] = s.lo;
    }
  }

  const Rows& rows_;
  const Scaling& scaling_;
  std::vector<size_t> places_, at_;
  std::vector<double> values_;
};

}  // namespace certifit
