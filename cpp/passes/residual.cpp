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
  Real sum;          // sum_j x_j weight_j
  double size = 0;   // sum_j |x_j weight_j|
};

Score dense_score(const double* x, const double* scale, const double* weights, size_t d) {
  Twofold<Vec> sum;
  Vec size{};
  size_t j = 0;
  for (; j + lanes <= d; j += lanes) {
    Vec scaled = load(x + j) * load(scale + j);
    Twofold<Vec> p = two_product(scaled, load(weights + j));
    Twofold<Vec> s = two_sum(sum.hi, p.hi);
    sum = {s.hi, sum.lo + (s.lo + p.lo)};
    size += absolute(p.hi);
  }
  Score out;
  for (size_t lane = 0; lane < lanes; ++lane) {
    out.sum = out.sum + tidy(Real{sum.hi[lane], sum.lo[lane]});
    out.size += size[lane];
  }
  for (; j < d; ++j) {
    Real p = two_product(x[j] * scale[j], weights[j]);
    out.sum = out.sum + p;
    out.size += std::fabs(p.hi);
  }
  return out;
}

// gradient += x scale r for the rows of a tile, several rows for one load of the sums.
void add_gradient(const Tile& tile, size_t count, const double* scale, const Real* r, size_t d, double* hi, double* lo) {
  size_t j = 0;
  for (; j + lanes <= d; j += lanes) {
    Twofold<Vec> sum{load(hi + j), load(lo + j)};
    const Vec s = load(scale + j);
    for (size_t k = 0; k < count; ++k) {
      Vec x = load(tile.row(k) + j) * s;
      add_product(sum, x, broadcast(r[k].hi));
      sum.lo = multiply_add(x, broadcast(r[k].lo), sum.lo);
    }
    sum = tidy(sum);
    store(hi + j, sum.hi);
    store(lo + j, sum.lo);
  }
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
  Pass(const Rows& rows, const double* y, const double* weight, const Scaling& scaling, const double* weights,
       double intercept)
      : rows_(rows), y_(y), weight_(weight), scaling_(scaling), weights_(weights), intercept_(intercept),
        thin_(is_thin(rows)) {}

  // Residuals of one tile, and its size for rounding; the tile stays readable for the gradient.
  Tile residuals(size_t first, size_t count, Real* r, double* size) {
    Tile tile{nullptr, 0};
    if (!thin_) tile = read_tile(rows_, first, count, scratch_);
    for (size_t k = 0; k < count; ++k) {
      Score z = thin_ ? thin_score(first + k) : dense_score(tile.row(k), scaling_.scale, weights_, rows_.n_columns);
      const double target = y_[first + k] * scaling_.y_scale;
      r[k] = two_sum(target, -intercept_) - z.sum;
      size[k] = z.size + std::fabs(target);
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
    Pass pass(rows, y, weight, scaling, weights, intercept);
    for (size_t i = begin; i < end; i += tile_rows) {
      if (!crew.keep_going()) return;
      pass.add(i, std::min(tile_rows, end - i), sums);
    }
    tree.add(block, std::move(sums));
  });
  BlockResidual& root = tree.root();
  return {std::move(root.hi), std::move(root.lo), root.squares.hi, root.magnitude};
}

std::vector<double> residual_rows(const Rows& rows, const double* y, const Scaling& scaling, const double* weights,
                                  double intercept, Crew& crew) {
  std::vector<double> out(rows.n_rows);
  const size_t n_blocks = (rows.n_rows + rows_per_block - 1) / rows_per_block;
  crew.for_each_block(n_blocks, [&](size_t block) {
    Real r[tile_rows];
    double size[tile_rows];
    Pass pass(rows, y, nullptr, scaling, weights, intercept);
    const size_t end = std::min((block + 1) * rows_per_block, rows.n_rows);
    for (size_t i = block * rows_per_block; i < end; i += tile_rows) {
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
