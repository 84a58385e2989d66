#include "residual.hpp"

#include <optional>

#include "../twofold.hpp"
#include "grid_sums.hpp"

namespace certifit {
namespace {

constexpr size_t tile_rows = 64;

struct BlockResidual {
  std::vector<double> dense_hi, dense_lo;  // gradient for the dense columns
  std::vector<double> thin_hi, thin_lo;    // gradient for all columns, used for the thin ones
  Real total;                              // sum of residuals
  Real squares;
  double magnitude = 0;

  explicit BlockResidual(const Rows* rows = nullptr) {
    if (!rows) return;
    dense_hi.assign(rows->n_dense, 0.0);
    dense_lo.assign(rows->n_dense, 0.0);
    if (rows->thin.empty()) return;
    thin_hi.assign(rows->n_columns, 0.0);
    thin_lo.assign(rows->n_columns, 0.0);
  }

  void add(const BlockResidual& other) {
    add_pairs(dense_hi, dense_lo, other.dense_hi, other.dense_lo);
    add_pairs(thin_hi, thin_lo, other.thin_hi, other.thin_lo);
    total = total + other.total;
    squares = squares + other.squares;
    magnitude += other.magnitude;
  }

 private:
  static void add_pairs(std::vector<double>& hi, std::vector<double>& lo, const std::vector<double>& other_hi,
                        const std::vector<double>& other_lo) {
    for (size_t j = 0; j < hi.size(); ++j) {
      Real s = Real{hi[j], lo[j]} + Real{other_hi[j], other_lo[j]};
      hi[j] = s.hi;
      lo[j] = s.lo;
    }
  }
};

struct Score {
  Real sum;         // sum_j x_j weight_j
  double size = 0;  // sum_j |x_j weight_j|
};

// Lane l of four vectors as one vector.
Vec across(const Vec (&rows)[lanes], size_t l) { return Vec{rows[0][l], rows[1][l], rows[2][l], rows[3][l]}; }

// Four rows at once: sums in flight side by side, and their lanes folded as vectors over the rows.
void dense_scores(const double* const (&x)[lanes], const double* weights, size_t d, Score* out) {
  Vec hi[lanes] = {}, lo[lanes] = {}, size[lanes] = {};
  size_t j = 0;
  for (; j + lanes <= d; j += lanes) {
    const Vec w = load(weights + j);
    for (size_t k = 0; k < lanes; ++k) {
      Twofold<Vec> p = two_product(load(x[k] + j), w);
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
    Twofold<Vec> p = two_product(column, broadcast(weights[j]));
    total = total + p;
    total_size += absolute(p.hi);
  }
  for (size_t k = 0; k < lanes; ++k) out[k] = {{total.hi[k], total.lo[k]}, total_size[k]};
}

// hi, lo += x r over `few` rows, for n vectors of columns side by side.
template <size_t n, size_t few>
void add_rows(const double* const (&x)[few], const Vec (&r_hi)[few], const Vec (&r_lo)[few], double* hi, double* lo,
              size_t j) {
  Twofold<Vec> sum[n];
#pragma GCC unroll 2
  for (size_t q = 0; q < n; ++q) sum[q] = {load(hi + j + q * lanes), load(lo + j + q * lanes)};
#pragma GCC unroll 8
  for (size_t k = 0; k < few; ++k)
#pragma GCC unroll 2
    for (size_t q = 0; q < n; ++q) {
      const Vec value = load(x[k] + j + q * lanes);
      const Twofold<Vec> p = two_product(value, r_hi[k]), t = two_sum(sum[q].hi, p.hi);
      sum[q].hi = t.hi;
      sum[q].lo += multiply_add(value, r_lo[k], t.lo + p.lo);
    }
#pragma GCC unroll 2
  for (size_t q = 0; q < n; ++q) {
    store(hi + j + q * lanes, sum[q].hi);
    store(lo + j + q * lanes, sum[q].lo);
  }
}

// hi, lo += x r over `few` rows and whole vectors of columns. Rows are read from end to end, as memory is quickest.
template <size_t few>
void add_rows(const Tile& tile, size_t first, const Real* r, size_t d, double* hi, double* lo) {
  const double* x[few];
  Vec r_hi[few], r_lo[few];
  for (size_t k = 0; k < few; ++k) {
    x[k] = tile.row(first + k);
    r_hi[k] = broadcast(r[first + k].hi);
    r_lo[k] = broadcast(r[first + k].lo);
  }
  size_t j = 0;
  for (; j + 2 * lanes <= d; j += 2 * lanes) add_rows<2>(x, r_hi, r_lo, hi, lo, j);
  if (j + lanes <= d) add_rows<1>(x, r_hi, r_lo, hi, lo, j);
}

// gradient += x r over the rows of a tile.
void add_gradient(const Tile& tile, size_t count, const Real* r, size_t d, double* hi, double* lo) {
  size_t first = 0, j = 0;
  for (; first + 8 <= count; first += 8) add_rows<8>(tile, first, r, d, hi, lo);
  for (; first < count; ++first) add_rows<1>(tile, first, r, d, hi, lo);
  for (; j + lanes <= d; j += lanes) {
    const Twofold<Vec> sum = tidy(Twofold<Vec>{load(hi + j), load(lo + j)});
    store(hi + j, sum.hi);
    store(lo + j, sum.lo);
  }
  for (; j < d; ++j) {
    Real sum{hi[j], lo[j]};
    for (size_t k = 0; k < count; ++k) {
      double x = tile.row(k)[j];
      add_product(sum, x, r[k].hi);
      sum.lo = multiply_add(x, r[k].lo, sum.lo);
    }
    sum = tidy(sum);
    hi[j] = sum.hi;
    lo[j] = sum.lo;
  }
}

// Powers of two near enough to 1 that unscaled products neither overflow nor vanish.
bool is_moderate(const std::vector<double>& scale) {
  return std::all_of(scale.begin(), scale.end(), [](double s) { return s > 0x1p-400 && s < 0x1p400; });
}

class Pass {
 public:
  Pass(const Rows& rows, const double* y, const double* weight, const Scaling& scaling, const double* weights,
       double intercept)
      : rows_(rows),
        y_(y),
        weight_(weight),
        scaling_(scaling),
        weights_(weights),
        intercept_(intercept),
        scale_(of_dense(rows, scaling.scale)),
        prescaled_(!is_moderate(scale_)),
        dense_weights_(of_tiles(weights)),
        has_weights_(std::any_of(dense_weights_.begin(), dense_weights_.end(), [](double w) { return w != 0; })) {}

  // Weights of all columns as those of the dense ones in the units of what `read` gives.
  std::vector<double> of_tiles(const double* weights) const {
    std::vector<double> out = of_dense(rows_, weights);
    if (!prescaled_)
      for (size_t j = 0; j < scale_.size(); ++j) out[j] *= scale_[j];
    return out;
  }

  Tile read(size_t first, size_t count) {
    Tile tile = read_tile(rows_, first, count, scratch_);
    if (!prescaled_) return tile;
    const size_t d = rows_.n_dense;
    scaled_.resize(count * d);
    for (size_t k = 0; k < count; ++k)
      for (size_t j = 0; j < d; ++j) scaled_[k * d + j] = tile.row(k)[j] * scale_[j];
    return {scaled_.data(), static_cast<ptrdiff_t>(d)};
  }

  // Residuals of the rows of a tile, and their sizes for rounding.
  void residuals(const Tile& tile, size_t first, size_t count, Real* r, double* size) {
    Ahead next(rows_, first + count, tile_rows);
    const size_t lines = lanes * rows_.n_dense * sizeof(double) / 64 + 1;
    for (size_t begin = 0; begin < count; begin += lanes) {
      if (has_weights_) next.fetch(lines);
      const size_t n = std::min(lanes, count - begin);
      Score z[lanes];
      const double* x[lanes];  // a last row stands in for those that are missing
      for (size_t k = 0; k < lanes; ++k) x[k] = tile.row(std::min(begin + k, count - 1));
      if (has_weights_) dense_scores(x, dense_weights_.data(), rows_.n_dense, z);
      for (size_t k = 0; k < n; ++k) {
        const size_t row = first + begin + k;
        add_entries(row, z[k]);
        const double target = y_[row] * scaling_.y_scale;
        r[begin + k] = two_sum(target, -intercept_) - z[k].sum;
        size[begin + k] = z[k].size + std::fabs(target);
      }
    }
  }

  // Sums of rows [begin, end), a block. before(tile, first, count): called for every tile before its targets are read.
  template <class Use>
  void add_block(size_t begin, size_t end, BlockResidual& sums, Crew& crew, Use before) {
#if CERTIFIT_HAS_FMA
    const bool on_grid = !prescaled_ && GridSums::is_for(rows_, end - begin);
    std::optional<GridSums> grid;
    GridBlock block;
    if (on_grid) block = grid.emplace(dense_weights_.data(), rows_.n_dense).start();
#endif
    for (size_t first = begin; first < end; first += tile_rows) {
      if (!crew.keep_going()) return;
      const size_t count = std::min(tile_rows, end - first);
      const Tile tile = read(first, count);
      before(tile, first, count);
      size_t done = 0;
#if CERTIFIT_HAS_FMA
      Ahead next(rows_, first + count, tile_rows);
      for (; grid && done + grid_rows <= count; done += grid_rows) {
        const size_t row = first + done;
        const Tile part{tile.row(done), tile.stride};
        const double* weight = weight_ ? weight_ + row : nullptr;
        if (!grid->add(part, y_ + row, weight, scaling_.y_scale, intercept_, scaling_.weight_scale, next, block))
          add(part, row, grid_rows, sums);
      }
#endif
      if (done < count) add({tile.row(done), tile.stride}, first + done, count - done, sums);
    }
#if CERTIFIT_HAS_FMA
    if (grid) join(*grid, block, sums);
#endif
    finish(sums);
  }

 private:
  // Sums of a tile: dense columns, then the sum of residuals, then the thin columns at their own places.
  void add(const Tile& tile, size_t first, size_t count, BlockResidual& sums) {
    Real r[tile_rows];
    double size[tile_rows];
    residuals(tile, first, count, r, size);
    for (size_t k = 0; k < count; ++k) {
      const double w = weight_ ? weight_[first + k] * scaling_.weight_scale : 1.0;
      if (w == 0) {  // no row, whatever stands in it
        r[k] = Real{};
        continue;
      }
      sums.squares = sums.squares + Real{w, 0} * (r[k] * r[k]);
      sums.magnitude += w * size[k] * size[k];
      r[k] = Real{w, 0} * r[k];
      sums.total = sums.total + r[k];
    }
    add_gradient(tile, count, r, rows_.n_dense, sums.dense_hi.data(), sums.dense_lo.data());
    if (rows_.thin.empty()) return;
    for (size_t k = 0; k < count; ++k)
      rows_.for_each_entry(first + k, [&](size_t j, double value) {
        const double x = value * scaling_.scale[j];
        Real sum{sums.thin_hi[j], sums.thin_lo[j]};
        add_product(sum, x, r[k].hi);
        sums.thin_hi[j] = sum.hi;
        sums.thin_lo[j] = multiply_add(x, r[k].lo, sum.lo);
      });
  }

  // After the last tile: the scale of the columns, a power of two, once for all rows.
  void finish(BlockResidual& sums) const {
    if (prescaled_) return;
    for (size_t j = 0; j < scale_.size(); ++j) {
      sums.dense_hi[j] *= scale_[j];
      sums.dense_lo[j] *= scale_[j];
    }
  }

#if CERTIFIT_HAS_FMA
  static void join(const GridSums& grid, const GridBlock& block, BlockResidual& sums) {
    for (size_t j = 0; j < sums.dense_hi.size(); ++j) {
      const size_t at = grid.place(j);
      const Real s = Real{sums.dense_hi[j], sums.dense_lo[j]} + Real{block.hi[at], block.lo[at]};
      sums.dense_hi[j] = s.hi;
      sums.dense_lo[j] = s.lo;
    }
    for (size_t l = 0; l < lanes; ++l) {
      sums.total = sums.total + Real{block.total.hi[l], block.total.lo[l]};
      sums.squares = sums.squares + Real{block.squares.hi[l], block.squares.lo[l]};
      sums.magnitude += block.magnitude[l];
    }
  }
#endif

  void add_entries(size_t row, Score& z) const {
    rows_.for_each_entry(row, [&](size_t j, double value) {
      Real p = two_product(value * scaling_.scale[j], weights_[j]);
      z.sum = z.sum + p;
      z.size += std::fabs(p.hi);
    });
  }

  const Rows& rows_;
  const double* y_;
  const double* weight_;
  const Scaling& scaling_;
  const double* weights_;
  double intercept_;
  std::vector<double> scale_;
  bool prescaled_;  // extreme scales are applied entry by entry
  std::vector<double> dense_weights_, scratch_, scaled_;
  bool has_weights_;  // else the residuals are the targets
};

// x'weights of the d columns of a row, in a fixed order.
double dot(const double* x, const double* weights, size_t d, double start) {
  Vec sum{};
  size_t j = 0;
  for (; j + lanes <= d; j += lanes) sum = multiply_add(load(x + j), load(weights + j), sum);
  double z = start + ((sum[0] + sum[1]) + (sum[2] + sum[3]));
  for (; j < d; ++j) z = multiply_add(x[j], weights[j], z);
  return z;
}

template <class Use>
ResidualSums residual_sums(const Rows& rows, const double* y, const double* weight, const Scaling& scaling,
                           const double* weights, double intercept, size_t block_rows, Crew& crew, Use before) {
  const size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows;
  SumTree<BlockResidual> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    const size_t begin = block * block_rows, end = std::min(begin + block_rows, rows.n_rows);
    BlockResidual sums(&rows);
    Pass pass(rows, y, weight, scaling, weights, intercept);
    pass.add_block(begin, end, sums, crew, before);
    tree.add(block, std::move(sums));
  });
  BlockResidual& root = tree.root();
  ResidualSums out;
  out.gradient_hi = std::move(root.thin_hi);
  out.gradient_lo = std::move(root.thin_lo);
  out.gradient_hi.resize(rows.n_columns + 1, 0.0);
  out.gradient_lo.resize(rows.n_columns + 1, 0.0);
  for (size_t j = 0; j < root.dense_hi.size(); ++j) {
    out.gradient_hi[rows.dense_columns[j]] = root.dense_hi[j];
    out.gradient_lo[rows.dense_columns[j]] = root.dense_lo[j];
  }
  out.gradient_hi[rows.n_columns] = root.total.hi;
  out.gradient_lo[rows.n_columns] = root.total.lo;
  out.squares_hi = root.squares.hi;
  out.squares_lo = root.squares.lo;
  out.magnitude = root.magnitude;
  return out;
}

constexpr size_t rows_per_block = 4096;  // for passes whose result belongs to the row, not to the block

}  // namespace

ResidualSums residual(const Rows& rows, const double* y, const double* weight, const Scaling& scaling,
                      const double* weights, double intercept, size_t block_rows, Crew& crew) {
  return residual_sums(rows, y, weight, scaling, weights, intercept, block_rows, crew, [](auto&&...) {});
}

MovedFits moved_fits(const Rows& rows, const double* multipliers, double scale, const double* less, const double* start,
                     size_t block_rows, Crew& crew) {
  const size_t d = rows.n_dense;
  const std::vector<double> of_columns = of_dense(rows, multipliers), ones(d, 1.0), zeros(d, 0.0);
  std::vector<double> weights(rows.n_rows), targets(rows.n_rows);
  auto move = [&](const Tile& tile, size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) {
      weights[i] = start[i] + (dot(tile.row(i - first), of_columns.data(), d, 0.0) * scale - less[i]);
      targets[i] = weights[i] * scale;
    }
  };
  const Scaling scaling{ones.data(), nullptr, 1.0, 0.0, 1.0};
  ResidualSums sums = residual_sums(rows, targets.data(), nullptr, scaling, zeros.data(), 0.0, block_rows, crew, move);
  return {std::move(weights), std::move(sums.gradient_hi), std::move(sums.gradient_lo)};
}

std::vector<double> residual_rows(const Rows& rows, const double* y, const Scaling& scaling, const double* weights,
                                  const double* low, double intercept, Crew& crew) {
  std::vector<double> out(rows.n_rows);
  const size_t n_blocks = (rows.n_rows + rows_per_block - 1) / rows_per_block;
  crew.for_each_block(n_blocks, [&](size_t block) {
    Real r[tile_rows];
    double size[tile_rows];
    Pass pass(rows, y, nullptr, scaling, weights, intercept);
    const std::vector<double> of_low = low ? pass.of_tiles(low) : std::vector<double>{};
    const size_t end = std::min((block + 1) * rows_per_block, rows.n_rows);
    for (size_t i = block * rows_per_block; i < end; i += tile_rows) {
      if (!crew.keep_going()) return;
      const size_t count = std::min(tile_rows, end - i);
      const Tile tile = pass.read(i, count);
      pass.residuals(tile, i, count, r, size);
      for (size_t k = 0; k < count; ++k) out[i + k] = r[k].hi;
      if (low)
        for (size_t k = 0; k < count; ++k) out[i + k] -= dot(tile.row(k), of_low.data(), of_low.size(), 0.0);
    }
  });
  return out;
}

std::vector<double> scores(const Rows& rows, const double* weights, double intercept, Crew& crew) {
  std::vector<double> out(rows.n_rows);
  const std::vector<double> dense_weights = of_dense(rows, weights);
  const size_t d = rows.n_dense;
  const size_t n_blocks = (rows.n_rows + rows_per_block - 1) / rows_per_block;
  crew.for_each_block(n_blocks, [&](size_t block) {
    std::vector<double> scratch;
    const size_t end = std::min((block + 1) * rows_per_block, rows.n_rows);
    for (size_t i = block * rows_per_block; i < end; i += tile_rows) {
      if (!crew.keep_going()) return;
      const size_t count = std::min(tile_rows, end - i);
      Tile tile = read_tile(rows, i, count, scratch);
      for (size_t k = 0; k < count; ++k) {
        double z = dot(tile.row(k), dense_weights.data(), d, intercept);
        rows.for_each_entry(i + k, [&](size_t column, double value) { z = multiply_add(value, weights[column], z); });
        out[i + k] = z;
      }
    }
  });
  return out;
}

}  // namespace certifit
