#include "thin_oracle.hpp"

#include "entries.hpp"
#include "tile_losses.hpp"

namespace certifit {
namespace {

struct Sums {
  double value = 0;
  std::vector<double> columns;

  void add(const Sums& other) {
    value += other.value;
    for (size_t j = 0; j < columns.size(); ++j) columns[j] += other.columns[j];
  }
};

// use(reader): reader(row, f) calls f(column, value) for the entries of a row. The types of one CSR are settled here.
template <class Use>
void with_reader(const Rows& rows, Use use) {
  if (!is_one_csr(rows)) {
    use([&](size_t row, auto f) { rows.for_each_entry(row, f); });
    return;
  }
  const Segment& s = rows.thin[0];
  with_csr(s, [&](const auto* indices, const auto* values) {
    use([&, indices, values](size_t row, auto f) {
      const auto [begin, end] = s.entries(row);
      for (int64_t e = begin; e < end; ++e) f(s.checked_column(indices[e]), static_cast<double>(values[e]));
    });
  });
}

// work(reader, first row, last row, sums) for every block, summed in a tree by block number.
template <class Work>
Sums summed(const Rows& rows, size_t block_rows, Crew& crew, Work work) {
  const size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows;
  SumTree<Sums> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    Sums sums;
    sums.columns.assign(rows.n_columns + 1, 0.0);
    const size_t begin = block * block_rows, end = std::min(begin + block_rows, rows.n_rows);
    with_reader(rows, [&](const auto& reader) { work(reader, begin, end, sums); });
    tree.add(block, std::move(sums));
  });
  Sums root = std::move(tree.root());
  root.columns.resize(rows.n_columns + 1, 0.0);
  return root;
}

// Scale is folded into weights before a pass and applied to sums after it, so that a pass reads one vector of columns.
std::vector<double> times_scale(const double* of_columns, const double* scale, size_t n_columns) {
  std::vector<double> out(n_columns);
  for (size_t j = 0; j < n_columns; ++j) out[j] = of_columns[j] * scale[j];
  return out;
}

template <class Reader>
double score(const Reader& reader, size_t row, const double* weights) {
  double z = 0;
  reader(row, [&](size_t j, double value) { z = multiply_add(value, weights[j], z); });
  return z;
}

template <class Reader>
void add_row(const Reader& reader, size_t row, double times, double* sums) {
  reader(row, [&](size_t j, double value) { sums[j] = multiply_add(value, times, sums[j]); });
}

}  // namespace

ThinSums thin_oracle(const Rows& rows, const double* y, const double* weight, const double* offset,
                     const Scaling& scaling, const State& state, Loss loss, double parameter, size_t block_rows,
                     Crew& crew) {
  const size_t d = rows.n_columns;
  const std::vector<double> weights = times_scale(state.weights, scaling.scale, d);
  ThinSums out;
  out.curvatures.resize(rows.n_rows);
  const AnyLoss loss_of = any_loss(loss, parameter);
  Sums sums = summed(rows, block_rows, crew, [&](const auto& reader, size_t begin, size_t end, Sums& sums) {
    constexpr size_t tile_rows = 64;
    double z[tile_rows], targets[tile_rows], w[tile_rows], value[tile_rows], slope[tile_rows], curvature[tile_rows];
    for (size_t first = begin; first < end; first += tile_rows) {
      if (!crew.keep_going()) return;
      const size_t count = std::min(tile_rows, end - first), n = (count + lanes - 1) / lanes * lanes;
      for (size_t k = 0; k < n; ++k) {  // a last row stands in for those that are missing
        const size_t row = first + std::min(k, count - 1);
        w[k] = k < count ? (weight ? weight[row] * scaling.weight_scale : 1.0) : 0.0;
        targets[k] = y[row];
        z[k] = state.intercept + (offset ? offset[row] : 0.0);
        if (w[k] > 0) z[k] += score(reader, row, weights.data());
      }
      weighted_losses(loss_of, n, targets, z, w, value, slope, curvature);
      for (size_t k = 0; k < n; k += lanes) sums.value += (value[k] + value[k + 1]) + (value[k + 2] + value[k + 3]);
      for (size_t k = 0; k < count; ++k) {
        out.curvatures[first + k] = curvature[k];
        if (slope[k] == 0) continue;
        add_row(reader, first + k, slope[k], sums.columns.data());
        sums.columns[d] += slope[k];
      }
    }
  });
  out.value = sums.value;
  out.gradient = std::move(sums.columns);
  for (size_t j = 0; j < d; ++j) out.gradient[j] *= scaling.scale[j];
  return out;
}

std::vector<double> thin_product(const Rows& rows, const double* curvatures, const Scaling& scaling,
                                 const double* direction, size_t block_rows, Crew& crew) {
  const size_t d = rows.n_columns;
  const std::vector<double> weights = times_scale(direction, scaling.scale, d);
  Sums sums = summed(rows, block_rows, crew, [&](const auto& reader, size_t begin, size_t end, Sums& sums) {
    for (size_t i = begin; i < end; ++i) {
      if (i % 64 == 0 && !crew.keep_going()) return;
      if (curvatures[i] == 0) continue;
      const double times = curvatures[i] * (direction[d] + score(reader, i, weights.data()));
      add_row(reader, i, times, sums.columns.data());
      sums.columns[d] += times;
    }
  });
  for (size_t j = 0; j < d; ++j) sums.columns[j] *= scaling.scale[j];
  return std::move(sums.columns);
}

std::vector<double> thin_diagonal(const Rows& rows, const double* curvatures, const Scaling& scaling, size_t block_rows,
                                  Crew& crew) {
  const size_t d = rows.n_columns;
  Sums sums = summed(rows, block_rows, crew, [&](const auto& reader, size_t begin, size_t end, Sums& sums) {
    double* to = sums.columns.data();
    for (size_t i = begin; i < end; ++i) {
      if (i % 64 == 0 && !crew.keep_going()) return;
      if (curvatures[i] == 0) continue;
      // x scale first: its square may not overflow where x's own does.
      reader(i, [&](size_t j, double value) {
        const double x = value * scaling.scale[j];
        to[j] = multiply_add(x * curvatures[i], x, to[j]);
      });
      to[d] += curvatures[i];
    }
  });
  return std::move(sums.columns);
}

}  // namespace certifit
