#include "residual.hpp"

#include "../twofold.hpp"

namespace certifit {
namespace {

constexpr size_t tile_rows = 64;

struct BlockResidual {
  std::vector<double> hi, lo;  // gradient, then the sum of residuals
  Real squares;
  double magnitude = 0;

  void add(const BlockResidual& other) {
    for (size_t j = 0; j < hi.size(); ++j) {
      Real s = Real{hi[j], lo[j]} + Real{other.hi[j], other.lo[j]};
      hi[j] = s.hi;
      lo[j] = s.lo;
    }
    squares = squares + other.squares;
    magnitude += other.magnitude;
  }
};

struct Score {
  Real sum;         // sum_j x_j weight_j
  double size = 0;  // sum_j |x_j weight_j|
};

// Lane l of four vectors as one vector.
Vec across(const Vec (&rows)[lanes], size_t l) { return Vec{rows[0][l], rows[1][l], rows[2][l], rows[3][l]}; }

// Four rows at once: sums in flight side by side, and their lanes folded as vectors over the rows.
void dense_scores(const double* const (&x)[lanes], const double* scale, const double* weights, size_t d, Score* out) {
  Vec hi[lanes] = {}, lo[lanes] = {}, size[lanes] = {};
  size_t j = 0;
  for (; j + lanes <= d; j += lanes) {
    const Vec s = load(scale + j), w = load(weights + j);
    for (size_t k = 0; k < lanes; ++k) {
      Twofold<Vec> p = two_product(load(x[k] + j) * s, w);
      Twofold<Vec> sum = two_sum(hi[k], p.hi);
      hi[k] = sum.hi;
      lo[k] += sum.lo + p.lo;
      size[k] += absolute(p.hi);
    }
  }
  Twofold<Vec> total{};
  Vec total_size{};
  for (size_t l = 0; l < lanes; ++l) {
    total = total + tidy(Twofold<Vec>{across(hi, l), across(lo, l)});
    total_size += across(size, l);
  }
  for (; j < d; ++j) {
    const Vec column{x[0][j], x[1][j], x[2][j], x[3][j]};
    Twofold<Vec> p = two_product(column * broadcast(scale[j]), broadcast(weights[j]));
    total = total + p;
    total_size += absolute(p.hi);
  }
  for (size_t k = 0; k < lanes; ++k) out[k] = {{total.hi[k], total.lo[k]}, total_size[k]};
}

// gradient += x scale r over the rows of a tile, for n vectors of columns side by side.
template <size_t n>
void add_gradient(const Tile& tile, size_t count, const double* scale, const Real* r, size_t j, double* hi,
                  double* lo) {
  Twofold<Vec> sum[n];
  Vec s[n];
  for (size_t q = 0; q < n; ++q) {
    sum[q] = {load(hi + j + q * lanes), load(lo + j + q * lanes)};
    s[q] = load(scale + j + q * lanes);
  }
  for (size_t k = 0; k < count; ++k) {
    const Vec r_hi = broadcast(r[k].hi), r_lo = broadcast(r[k].lo);
    for (size_t q = 0; q < n; ++q) {
      Vec x = load(tile.row(k) + j + q * lanes) * s[q];
      Twofold<Vec> p = two_product(x, r_hi);
      Twofold<Vec> t = two_sum(sum[q].hi, p.hi);
      sum[q].hi = t.hi;
      sum[q].lo += multiply_add(x, r_lo, t.lo + p.lo);
    }
  }
  for (size_t q = 0; q < n; ++q) {
    Twofold<Vec> t = tidy(sum[q]);
    store(hi + j + q * lanes, t.hi);
    store(lo + j + q * lanes, t.lo);
  }
}

void add_gradient(const Tile& tile, size_t count, const double* scale, const Real* r, size_t d, double* hi,
                  double* lo) {
  size_t j = 0;
  for (; j + 3 * lanes <= d; j += 3 * lanes) add_gradient<3>(tile, count, scale, r, j, hi, lo);
  for (; j + lanes <= d; j += lanes) add_gradient<1>(tile, count, scale, r, j, hi, lo);
  for (; j < d; ++j) {
    Real sum{hi[j], lo[j]};
    for (size_t k = 0; k < count; ++k) {
      double x = tile.row(k)[j] * scale[j];
      add_product(sum, x, r[k].hi);
      sum.lo = multiply_add(x, r[k].lo, sum.lo);
    }
    sum = tidy(sum);
    hi[j] = sum.hi;
    lo[j] = sum.lo;
  }
}

class Pass {
 public:
  // For rows [begin, end) of a block.
  Pass(const Rows& rows, const double* y, const double* weight, const Scaling& scaling, const double* weights,
       double intercept, size_t begin, size_t end)
      : rows_(rows),
        y_(y),
        weight_(weight),
        scaling_(scaling),
        weights_(weights),
        intercept_(intercept),
        thin_(is_thin(rows, begin, end)) {}

  // Residuals of one tile, and its size for rounding; the tile stays readable for the gradient.
  Tile residuals(size_t first, size_t count, Real* r, double* size) {
    Tile tile{nullptr, 0};
    if (!thin_) tile = read_tile(rows_, first, count, scratch_);
    Ahead next(rows_, first + count, tile_rows);
    const size_t lines = lanes * rows_.n_columns * sizeof(double) / 64 + 1;
    for (size_t begin = 0; begin < count; begin += lanes) {
      next.fetch(lines);
      const size_t n = std::min(lanes, count - begin);
      Score z[lanes];
      if (thin_) {
        for (size_t k = 0; k < n; ++k) z[k] = thin_score(first + begin + k);
      } else {  // a last row stands in for those that are missing
        const double* x[lanes];
        for (size_t k = 0; k < lanes; ++k) x[k] = tile.row(std::min(begin + k, count - 1));
        dense_scores(x, scaling_.scale, weights_, rows_.n_columns, z);
      }
      for (size_t k = 0; k < n; ++k) {
        const double target = y_[first + begin + k] * scaling_.y_scale;
        r[begin + k] = two_sum(target, -intercept_) - z[k].sum;
        size[begin + k] = z[k].size + std::fabs(target);
      }
    }
    return tile;
  }

  void add(size_t first, size_t count, BlockResidual& sums) {
    Real r[tile_rows];
    double size[tile_rows];
    Tile tile = residuals(first, count, r, size);
    const size_t d = rows_.n_columns;
    for (size_t k = 0; k < count; ++k) {
      const double w = weight_ ? weight_[first + k] * scaling_.weight_scale : 1.0;
      if (w == 0) {  // no row, whatever stands in it
        r[k] = Real{};
        continue;
      }
      sums.squares = sums.squares + Real{w, 0} * (r[k] * r[k]);
      sums.magnitude += w * size[k] * size[k];
      r[k] = Real{w, 0} * r[k];
      Real total = Real{sums.hi[d], sums.lo[d]} + r[k];
      sums.hi[d] = total.hi;
      sums.lo[d] = total.lo;
    }
    if (!thin_) {
      add_gradient(tile, count, scaling_.scale, r, d, sums.hi.data(), sums.lo.data());
      return;
    }
    for (size_t k = 0; k < count; ++k)
      for (int64_t e = rows_.offset(first + k); e < rows_.offset(first + k + 1); ++e) {
        const size_t j = rows_.index(e);
        Real sum{sums.hi[j], sums.lo[j]};
        add_product(sum, rows_.value(e) * scaling_.scale[j], r[k].hi);
        sums.hi[j] = sum.hi;
        sums.lo[j] = multiply_add(rows_.value(e) * scaling_.scale[j], r[k].lo, sum.lo);
      }
  }

 private:
  Score thin_score(size_t row) const {
    Score out;
    for (int64_t e = rows_.offset(row); e < rows_.offset(row + 1); ++e) {
      const size_t j = rows_.index(e);
      Real p = two_product(rows_.value(e) * scaling_.scale[j], weights_[j]);
      out.sum = out.sum + p;
      out.size += std::fabs(p.hi);
    }
    return out;
  }

  const Rows& rows_;
  const double* y_;
  const double* weight_;
  const Scaling& scaling_;
  const double* weights_;
  double intercept_;
  bool thin_;
  std::vector<double> scratch_;
};

constexpr size_t rows_per_block = 4096;  // for passes whose result belongs to the row, not to the block

}  // namespace

ResidualSums residual(const Rows& rows, const double* y, const double* weight, const Scaling& scaling,
                      const double* weights, double intercept, size_t block_rows, Crew& crew) {
  const size_t size = rows.n_columns + 1;
  const size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows;
  SumTree<BlockResidual> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    const size_t begin = block * block_rows, end = std::min(begin + block_rows, rows.n_rows);
    BlockResidual sums;
    sums.hi.assign(size, 0.0);
    sums.lo.assign(size, 0.0);
    Pass pass(rows, y, weight, scaling, weights, intercept, begin, end);
    for (size_t i = begin; i < end; i += tile_rows) {
      if (!crew.keep_going()) return;
      pass.add(i, std::min(tile_rows, end - i), sums);
    }
    tree.add(block, std::move(sums));
  });
  BlockResidual& root = tree.root();
  return {std::move(root.hi), std::move(root.lo), root.squares.hi, root.squares.lo, root.magnitude};
}

std::vector<double> residual_rows(const Rows& rows, const double* y, const Scaling& scaling, const double* weights,
                                  double intercept, Crew& crew) {
  std::vector<double> out(rows.n_rows);
  const size_t n_blocks = (rows.n_rows + rows_per_block - 1) / rows_per_block;
  crew.for_each_block(n_blocks, [&](size_t block) {
    Real r[tile_rows];
    double size[tile_rows];
    const size_t begin = block * rows_per_block, end = std::min(begin + rows_per_block, rows.n_rows);
    Pass pass(rows, y, nullptr, scaling, weights, intercept, begin, end);
    for (size_t i = begin; i < end; i += tile_rows) {
      if (!crew.keep_going()) return;
      const size_t count = std::min(tile_rows, end - i);
      pass.residuals(i, count, r, size);
      for (size_t k = 0; k < count; ++k) out[i + k] = r[k].hi;
    }
  });
  return out;
}

std::vector<double> scores(const Rows& rows, const double* weights, double intercept, Crew& crew) {
  std::vector<double> out(rows.n_rows);
  const size_t d = rows.n_columns;
  const size_t n_blocks = (rows.n_rows + rows_per_block - 1) / rows_per_block;
  crew.for_each_block(n_blocks, [&](size_t block) {
    std::vector<double> scratch;
    const size_t end = std::min((block + 1) * rows_per_block, rows.n_rows);
    for (size_t i = block * rows_per_block; i < end; i += tile_rows) {
      if (!crew.keep_going()) return;
      const size_t count = std::min(tile_rows, end - i);
      if (rows.is_sparse) {
        for (size_t k = i; k < i + count; ++k) {
          double z = intercept;
          for (int64_t e = rows.offset(k); e < rows.offset(k + 1); ++e)
            z = multiply_add(rows.value(e), weights[rows.index(e)], z);
          out[k] = z;
        }
        continue;
      }
      Tile tile = read_tile(rows, i, count, scratch);
      for (size_t k = 0; k < count; ++k) {
        const double* x = tile.row(k);
        Vec sum{};
        size_t j = 0;
        for (; j + lanes <= d; j += lanes) sum = multiply_add(load(x + j), load(weights + j), sum);
        double z = intercept + ((sum[0] + sum[1]) + (sum[2] + sum[3]));
        for (; j < d; ++j) z = multiply_add(x[j], weights[j], z);
        out[i + k] = z;
      }
    }
  });
  return out;
}

}  // namespace certifit
