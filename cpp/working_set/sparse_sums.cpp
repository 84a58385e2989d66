#include "sparse_sums.hpp"

#include <bit>
#include <cmath>
#include <stdexcept>

#include "../twofold.hpp"

namespace certifit {
namespace {

constexpr size_t columns_per_block = 64, rows_per_block = 4096;
constexpr size_t longest_run = 4096;  // entries whose low parts are added before sums are

void check_row(size_t row, const ColumnData& x) {
  if (row >= x.n_rows) throw std::invalid_argument("CSC indices must be rows.");
}

template <class Use>
void for_each_column(size_t n_columns, Crew& crew, Use use) {
  crew.for_each_block((n_columns + columns_per_block - 1) / columns_per_block, [&](size_t block) {
    const size_t end = std::min((block + 1) * columns_per_block, n_columns);
    if (!crew.keep_going()) return;
    for (size_t j = block * columns_per_block; j < end; ++j) use(j);
  });
}

struct RowSums {
  Real total, squares;  // of weight r, of weight r^2
  double magnitude = 0;

  void add(const RowSums& other) {
    total = total + other.total;
    squares = squares + other.squares;
    magnitude += other.magnitude;
  }
};

struct Scores {
  std::vector<Real> sum;     // x_i'w
  std::vector<double> size;  // |x_i|'|w|
};

Scores scores_of(const ColumnData& x, double scale, const double* weights, Crew& crew) {
  Scores out{std::vector<Real>(x.n_rows), std::vector<double>(x.n_rows, 0.0)};
  for (size_t j = 0; j < x.n_columns; ++j) {
    if (weights[j] == 0) continue;
    if (!crew.keep_going()) throw Interrupted();
    for_each_stored(x, j, [&](size_t row, double value) {
      check_row(row, x);
      const Real p = two_product(value * scale, weights[j]);
      out.sum[row] = out.sum[row] + p;
      out.size[row] += std::fabs(p.hi);
    });
  }
  return out;
}

// Scores become weighted residuals, in their place.
RowSums settle(Scores& scores, size_t begin, size_t end, const ColumnTarget& t, double intercept) {
  RowSums out;
  for (size_t i = begin; i < end; ++i) {
    const double w = t.weight ? t.weight[i] * t.weight_scale : 1.0, y = t.y[i] * t.y_scale;
    const double size = scores.size[i] + std::fabs(y);
    const Real r = w == 0 ? Real{} : two_sum(y, -intercept) - scores.sum[i];  // weight 0: no row
    const Real weighted = Real{w, 0} * r;
    out.squares = out.squares + Real{w, 0} * (r * r);
    out.total = out.total + weighted;
    if (w != 0) out.magnitude += w * size * size;
    scores.sum[i] = weighted;
  }
  return out;
}

Real gradient_of(const ColumnData& x, size_t j, double scale, const std::vector<Real>& r) {
  Real total, part;
  size_t count = 0;
  for_each_stored(x, j, [&](size_t row, double value) {
    check_row(row, x);
    const double scaled = value * scale;
    add_product(part, scaled, r[row].hi);
    part.lo = multiply_add(scaled, r[row].lo, part.lo);
    if (++count % longest_run == 0) {
      total = total + tidy(part);
      part = {};
    }
  });
  return total + tidy(part);
}

}  // namespace

ColumnSums column_sums(const ColumnData& x, const double* weight, Crew& crew) {
  const size_t d = x.n_columns;
  ColumnSums out{std::vector<double>(d), std::vector<double>(d), std::vector<double>(d)};
  for_each_column(d, crew, [&](size_t j) {
    double sum = 0, squares = 0;
    int64_t size = 0;  // bits of |x|: as whole numbers in the order of the sizes, NaN above all
    for_each_stored(x, j, [&](size_t row, double value) {
      check_row(row, x);
      const double weighted = weight[row] * value;
      size = std::max(size, std::bit_cast<int64_t>(std::fabs(value)));
      sum += weighted;
      squares += weighted * value;
    });
    out.sizes[j] = std::bit_cast<double>(size);
    out.sums[j] = sum;
    out.squares[j] = squares;
  });
  return out;
}

ResidualSums column_residual(const ColumnData& x, double scale, const ColumnTarget& target, const double* weights,
                             double intercept, Crew& crew) {
  const size_t n = x.n_rows, d = x.n_columns, n_blocks = (n + rows_per_block - 1) / rows_per_block;
  Scores scores = scores_of(x, scale, weights, crew);
  SumTree<RowSums> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    const size_t begin = block * rows_per_block;
    tree.add(block, settle(scores, begin, std::min(begin + rows_per_block, n), target, intercept));
  });
  ResidualSums out;
  out.gradient_hi.resize(d + 1);
  out.gradient_lo.resize(d + 1);
  for_each_column(d, crew, [&](size_t j) {
    const Real sum = gradient_of(x, j, scale, scores.sum);
    out.gradient_hi[j] = sum.hi;
    out.gradient_lo[j] = sum.lo;
  });
  const RowSums& rows = tree.root();
  out.gradient_hi[d] = rows.total.hi;
  out.gradient_lo[d] = rows.total.lo;
  out.squares_hi = rows.squares.hi;
  out.squares_lo = rows.squares.lo;
  out.magnitude = rows.magnitude;
  return out;
}

}  // namespace certifit
