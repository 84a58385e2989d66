#include "oracle.hpp"

#include <optional>

#include "entries.hpp"
#include "panels.hpp"
#include "tile_losses.hpp"

namespace certifit {
namespace {

struct BlockOracle {
  std::vector<double> value, gradient;  // gradient: cells x (places of SquareLayout)
  BlockSums hessian;
  std::vector<double> largest;  // places of SquareLayout
  double slopes = 0, curvatures = 0;

  void add(const BlockOracle& other) {
    for (size_t i = 0; i < value.size(); ++i) value[i] += other.value[i];
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += other.gradient[i];
    hessian.add(other.hessian);
    for (size_t i = 0; i < largest.size(); ++i) largest[i] = std::max(largest[i], other.largest[i]);
    slopes += other.slopes;
    curvatures += other.curvatures;
  }
};

// A loss; or none, and derivatives are known: the slope stands for the target, the curvature for the offset of a score
// of 0.
using LossOrKnown = std::optional<AnyLoss>;

void evaluate_losses(const LossOrKnown& loss, size_t n, const double* y, const double* z, const double* weight,
                     double* value, double* slope, double* curvature) {
  if (loss) return weighted_losses(*loss, n, y, z, weight, value, slope, curvature);
  for (size_t i = 0; i < n; i += lanes) {
    const Vec w = load(weight + i), known_slope = load(y + i) * w, known_curvature = load(z + i) * w;
    const Int counted = w > broadcast(0.0);
    store(value + i, Vec{});
    store(slope + i, choose(counted, known_slope, Vec{}));
    store(curvature + i, choose(counted, known_curvature, Vec{}));
  }
}

size_t padded(size_t n) { return (n + lanes - 1) / lanes * lanes; }

class Evaluator {
 public:
  Evaluator(const Rows& rows, const double* y, const double* weight, const double* offset, const Scaling& scaling,
            const State& state, const SquareLayout& layout, const LossOrKnown& loss)
      : rows_(rows),
        y_(y),
        weight_(weight),
        offset_(offset),
        scaling_(scaling),
        state_(state),
        layout_(layout),
        loss_(loss),
        weights_(layout.first_thin, 0.0) {
    for (size_t j = 0; j < rows.n_dense; ++j) weights_[j] = state.weights[rows.dense_columns[j]];
    weights_[rows.n_dense] = state.intercept;
  }

  double weight(size_t row) const { return weight_ ? weight_[row] * scaling_.weight_scale : 1.0; }

  // Slopes and curvatures, times the rows' weights, of a packed tile; returns the sum of values.
  double evaluate(std::span<const size_t> tile, Panels& panels, double* slopes, double* curvatures) {
    const size_t n = padded(tile.size());
    for (auto* of_rows : {&score_, &target_, &share_, &value_}) of_rows->resize(n);
    for (size_t begin = 0; begin < n; begin += lanes) scores(panels, begin, &score_[begin]);
    for (size_t k = 0; k < n; ++k) {  // a last row stands in for those that are missing
      const size_t row = tile[std::min(k, tile.size() - 1)];
      share_[k] = k < tile.size() ? weight(row) : 0.0;
      target_[k] = y_[row];
      if (offset_) score_[k] += offset_[row];
      if (loss_ && !rows_.thin.empty()) score_[k] += thin_score(row);
    }
    evaluate_losses(loss_, n, target_.data(), score_.data(), share_.data(), value_.data(), slopes, curvatures);
    double total = 0;
    for (size_t k = 0; k < n; k += lanes) total += (value_[k] + value_[k + 1]) + (value_[k + 2] + value_[k + 3]);
    return total;
  }

  void add_largest(size_t row, double* largest) const {
    for_each_entry(rows_, row, [&](size_t j, double value) {
      double& most = largest[layout_.places[j]];
      most = std::max(most, std::fabs(value * scaling_.scale[j]));
    });
  }

  void add_gradient(std::span<const size_t> tile, Panels& panels, const double* slopes, double* gradient) {
    for (size_t p = 0; p < panels.n_panels; ++p) {
      Vec sum[2] = {};
      const double* x = panels.at(p, 0);
      size_t k = 0;
      for (; k + 2 <= tile.size(); k += 2) {
        sum[0] = multiply_add(load(x + k * lanes), broadcast(slopes[k]), sum[0]);
        sum[1] = multiply_add(load(x + (k + 1) * lanes), broadcast(slopes[k + 1]), sum[1]);
      }
      if (k < tile.size()) sum[0] = multiply_add(load(x + k * lanes), broadcast(slopes[k]), sum[0]);
      double* out = gradient + p * lanes;
      store(out, load(out) + (sum[0] + sum[1]));
    }
    if (rows_.thin.empty()) return;
    for (size_t k = 0; k < tile.size(); ++k) {
      if (slopes[k] == 0) continue;
      for_each_entry(rows_, tile[k], [&](size_t j, double value) {
        double& sum = gradient[layout_.places[j]];
        sum = multiply_add(value * scaling_.scale[j], slopes[k], sum);
      });
    }
  }

 private:
  // Four rows side by side, four columns a step.
  void scores(Panels& panels, size_t begin, double* z) {
    Vec sum[lanes] = {};
    for (size_t p = 0; p < panels.n_panels; ++p) {
      const Vec w = load(&weights_[p * lanes]);
      const double* x = panels.at(p, begin);
      for (size_t k = 0; k < lanes; ++k) sum[k] = multiply_add(load(x + k * lanes), w, sum[k]);
    }
    for (size_t k = 0; k < lanes; ++k) z[k] = (sum[k][0] + sum[k][1]) + (sum[k][2] + sum[k][3]);
  }

  double thin_score(size_t row) const {
    double z = 0;
    for_each_entry(rows_, row,
                   [&](size_t j, double value) { z = multiply_add(value * scaling_.scale[j], state_.weights[j], z); });
    return z;
  }

  const Rows& rows_;
  const double* y_;
  const double* weight_;
  const double* offset_;
  const Scaling& scaling_;
  const State& state_;
  const SquareLayout& layout_;
  const LossOrKnown& loss_;
  std::vector<double> weights_;
  std::vector<double> score_, target_, share_, value_;  // of the rows of a tile
};

// Each row of the panels times the root of its curvature; the largest entries before that.
void scale_rows(Panels& panels, std::span<const double> roots, double* largest) {
  for (size_t p = 0; p < panels.n_panels; ++p) {
    Vec most = load(largest + p * lanes);
    for (size_t k = 0; k < roots.size(); ++k) {
      double* x = panels.at(p, k);
      const Vec own = load(x), size = absolute(own);
      most = choose(size > most, size, most);
      store(x, own * broadcast(roots[k]));
    }
    store(largest + p * lanes, most);
  }
}

// The gradient alone, of rows read where they lie: scale and shift are folded into the weights and applied to the sums
// at the end. For shifts that are not large: x times a weight must not cancel against them.
class GradientOnly {
 public:
  static constexpr size_t tile_rows = 64;

  GradientOnly(const Rows& rows, const double* y, const double* weight, const double* offset, const Scaling& scaling,
               const State& state, const SquareLayout& layout, const LossOrKnown& loss)
      : rows_(rows),
        y_(y),
        weight_(weight),
        offset_(offset),
        scaling_(scaling),
        layout_(layout),
        loss_(loss),
        base_(state.intercept) {
    const size_t d = rows.n_dense;
    weights_.resize(d);
    for (size_t j = 0; j < d; ++j) {
      const size_t column = rows.dense_columns[j];
      weights_[j] = state.weights[column] * scaling.scale[column];
      base_ -= state.weights[column] * scaling.shift[column];
    }
    if (rows.thin.empty()) return;
    thin_weights_.resize(rows.n_columns);
    for (size_t j = 0; j < rows.n_columns; ++j) thin_weights_[j] = state.weights[j] * scaling.scale[j];
  }

  void add(size_t first, size_t count, BlockOracle& sums) {
    const size_t d = rows_.n_dense;
    const Tile tile = read_tile(rows_, first, count, scratch_);
    Ahead next(rows_, first + count, tile_rows);
    const size_t lines = lanes * d * sizeof(double) / 64 + 1;
    double z[tile_rows], y[tile_rows], w[tile_rows], values[tile_rows], slopes[tile_rows], curvatures[tile_rows];
    for (size_t begin = 0; begin < count; begin += lanes) {
      next.fetch(lines);
      const double* x[lanes];  // a last row stands in for those that are missing
      for (size_t k = 0; k < lanes; ++k) {
        const size_t at = std::min(begin + k, count - 1), row = first + at;
        x[k] = tile.row(at);
        w[begin + k] = begin + k < count ? (weight_ ? weight_[row] * scaling_.weight_scale : 1.0) : 0.0;
        y[begin + k] = y_[row];
      }
      scores(x, z + begin);
      if (offset_)
        for (size_t k = begin; k < begin + lanes; ++k) z[k] += offset_[first + std::min(k, count - 1)];
      if (!thin_weights_.empty())
        for (size_t k = begin; k < begin + lanes; ++k) z[k] += thin_score(first + std::min(k, count - 1));
    }
    evaluate_losses(loss_, padded(count), y, z, w, values, slopes, curvatures);
    Vec steepness{}, curvature{};
    for (size_t k = 0; k < count; k += lanes) {
      sums.value[0] += (values[k] + values[k + 1]) + (values[k + 2] + values[k + 3]);
      steepness = steepness + absolute(load(slopes + k));
      curvature = curvature + load(curvatures + k);
    }
    sums.slopes += (steepness[0] + steepness[1]) + (steepness[2] + steepness[3]);
    sums.curvatures += (curvature[0] + curvature[1]) + (curvature[2] + curvature[3]);
    size_t j = 0;
    for (; j + 4 * lanes <= d; j += 4 * lanes) add_columns<4>(tile, count, slopes, j, sums.gradient.data());
    for (; j + lanes <= d; j += lanes) add_columns<1>(tile, count, slopes, j, sums.gradient.data());
    for (; j < d; ++j)
      for (size_t k = 0; k < count; ++k)
        if (slopes[k] != 0) sums.gradient[j] = multiply_add(tile.row(k)[j], slopes[k], sums.gradient[j]);
    for (size_t k = 0; k < count; ++k) sums.gradient[d] += slopes[k];
    if (thin_weights_.empty()) return;
    for (size_t k = 0; k < count; ++k)
      if (slopes[k] != 0)
        rows_.for_each_entry(first + k, [&](size_t column, double x) {
          double& sum = sums.gradient[layout_.places[column]];
          sum = multiply_add(x * scaling_.scale[column], slopes[k], sum);
        });
  }

  // Once for all rows of a block.
  void finish(BlockOracle& sums) const {
    for (size_t j = 0; j < rows_.n_dense; ++j) {
      const size_t column = rows_.dense_columns[j];
      sums.gradient[j] =
          sums.gradient[j] * scaling_.scale[column] - sums.gradient[rows_.n_dense] * scaling_.shift[column];
    }
  }

 private:
  void scores(const double* const (&x)[lanes], double* z) const {
    Vec sum[lanes] = {};
    const size_t d = rows_.n_dense;
    size_t j = 0;
    for (; j + lanes <= d; j += lanes) {
      const Vec w = load(&weights_[j]);
      for (size_t k = 0; k < lanes; ++k) sum[k] = multiply_add(load(x[k] + j), w, sum[k]);
    }
    for (size_t k = 0; k < lanes; ++k) {
      z[k] = base_ + ((sum[k][0] + sum[k][1]) + (sum[k][2] + sum[k][3]));
      for (size_t c = j; c < d; ++c) z[k] = multiply_add(x[k][c], weights_[c], z[k]);
    }
  }

  double thin_score(size_t row) const {
    double z = 0;
    rows_.for_each_entry(row, [&](size_t j, double x) { z = multiply_add(x, thin_weights_[j], z); });
    return z;
  }

  template <size_t n>
  static void add_columns(const Tile& tile, size_t count, const double* slopes, size_t j, double* gradient) {
    Vec sum[n];
    for (size_t q = 0; q < n; ++q) sum[q] = load(gradient + j + q * lanes);
    for (size_t k = 0; k < count; ++k) {
      if (slopes[k] == 0) continue;  // no row, whatever stands in it
      const Vec r = broadcast(slopes[k]);
      for (size_t q = 0; q < n; ++q) sum[q] = multiply_add(load(tile.row(k) + j + q * lanes), r, sum[q]);
    }
    for (size_t q = 0; q < n; ++q) store(gradient + j + q * lanes, sum[q]);
  }

  const Rows& rows_;
  const double* y_;
  const double* weight_;
  const double* offset_;
  const Scaling& scaling_;
  const SquareLayout& layout_;
  const LossOrKnown& loss_;
  double base_;
  std::vector<double> weights_, thin_weights_, scratch_;
};

OracleSums summed(const Rows& rows, const double* y, const double* weight, const double* offset, const Cells& cells,
                  const Scaling& scaling, const State& state, const LossOrKnown& loss, bool with_hessian,
                  size_t block_rows, Crew& crew) {
  const SquareLayout layout(rows, false);
  const size_t width = layout.first_thin + layout.n_thin, square = with_hessian ? layout.size() : 0;
  const size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows;
  SumTree<BlockOracle> tree(n_blocks);

  crew.for_each_block(n_blocks, [&](size_t block) {
    const size_t begin = block * block_rows, end = std::min(begin + block_rows, rows.n_rows);
    BlockOracle sums;
    sums.value.assign(cells.count, 0.0);
    sums.gradient.assign(cells.count * width, 0.0);
    sums.hessian.hi.assign(cells.count * square, 0.0);
    if (with_hessian) sums.largest.assign(width, 0.0);
    if (!with_hessian && !cells.of_row && (rows.thin.empty() || rows.n_dense > 0)) {
      GradientOnly pass(rows, y, weight, offset, scaling, state, layout, loss);
      constexpr size_t step = GradientOnly::tile_rows;
      for (size_t i = begin; i < end; i += step) {
        if (!crew.keep_going()) return;
        pass.add(i, std::min(step, end - i), sums);
      }
      pass.finish(sums);
      tree.add(block, std::move(sums));
      return;
    }
    Panels panels(layout.n_packed);
    Packer packer(rows, nullptr, scaling);
    Entries entries(rows, scaling, layout.first_thin);
    Evaluator evaluator(rows, y, weight, offset, scaling, state, layout, loss);
    ByCell by_cell;
    std::vector<double> ones(panels.capacity), slopes(panels.capacity + lanes), roots(panels.capacity + lanes);
    const size_t chunk = 32 * panels.capacity;
    for (size_t i = begin; i < end; i += chunk) {
      packer.open(i, std::min(i + chunk, end));
      by_cell.sort(cells, i, std::min(i + chunk, end));
      for (size_t c = 0, at = 0; c < cells.count; ++c) {
        for (const size_t last = by_cell.starts[c + 1]; at < last;) {
          if (!crew.keep_going()) return;
          const size_t count = std::min(panels.capacity, last - at);
          const std::span<const size_t> tile(&by_cell.rows[at], count);
          for (size_t k = 0; k < count; ++k) ones[k] = evaluator.weight(tile[k]) > 0 ? 1.0 : 0.0;
          packer.pack(tile, {ones.data(), count}, panels);
          at += count;
          sums.value[c] += evaluator.evaluate(tile, panels, slopes.data(), roots.data());
          evaluator.add_gradient(tile, panels, slopes.data(), &sums.gradient[c * width]);
          for (size_t k = 0; k < count; ++k) {
            sums.slopes += std::fabs(slopes[k]);
            sums.curvatures += roots[k];
            roots[k] = std::sqrt(roots[k]);
          }
          if (!with_hessian) continue;
          scale_rows(panels, {roots.data(), count}, sums.largest.data());
          add_tile(
              panels, count, sums.hessian, c * square, layout.stride,
              Ahead(rows, at < by_cell.rows.size() ? by_cell.rows[at] : std::min(i + chunk, end), panels.capacity));
          if (layout.n_thin == 0) continue;
          for (size_t k = 0; k < count; ++k) {
            entries.add(tile[k], roots[k], panels, k, sums.hessian, c * square, layout.stride);
            if (evaluator.weight(tile[k]) > 0) evaluator.add_largest(tile[k], sums.largest.data());
          }
        }
      }
    }
    tree.add(block, std::move(sums));
  });

  OracleSums out;
  BlockOracle& root = tree.root();
  out.value = std::move(root.value);
  out.value.resize(cells.count, 0.0);
  out.gradient.assign(cells.count * layout.places.size(), 0.0);
  if (n_blocks > 0)
    for (size_t c = 0; c < cells.count; ++c)
      for (size_t j = 0; j < layout.places.size(); ++j)
        out.gradient[c * layout.places.size() + j] = root.gradient[c * width + layout.places[j]];
  out.slopes = root.slopes;
  out.curvatures = root.curvatures;
  if (!with_hessian) return out;
  out.hessian = layout.unfolded(root.hessian.hi, cells.count, n_blocks > 0);
  out.largest.assign(layout.places.size(), 0.0);
  if (n_blocks > 0)
    for (size_t j = 0; j < layout.places.size(); ++j) out.largest[j] = root.largest[layout.places[j]];
  return out;
}

}  // namespace

OracleSums oracle(const Rows& rows, const double* y, const double* weight, const double* offset, const Cells& cells,
                  const Scaling& scaling, const State& state, Loss loss, double parameter, bool with_hessian,
                  size_t block_rows, Crew& crew) {
  return summed(rows, y, weight, offset, cells, scaling, state, any_loss(loss, parameter), with_hessian, block_rows,
                crew);
}

OracleSums weighted_sums(const Rows& rows, const double* slopes, const double* curvatures, const double* weight,
                         const Cells& cells, const Scaling& scaling, size_t block_rows, Crew& crew) {
  const std::vector<double> zeros(rows.n_columns, 0.0);
  return summed(rows, slopes, weight, curvatures, cells, scaling, {zeros.data(), 0.0}, {}, curvatures != nullptr,
                block_rows, crew);
}

}  // namespace certifit
