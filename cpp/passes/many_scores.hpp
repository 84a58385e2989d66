// Many scores a row in one pass: Z = (x scale - shift, 1) B, a rule turns each row of Z into slopes R and adds to sums
// of its own, and G += (x scale - shift, 1)' R. Neither Z nor R is ever held for more than a tile of rows.
#pragma once

#include "entries.hpp"
#include "panels.hpp"
#include "score_weights.hpp"

namespace certifit {

// B of some sets of scores side by side, each filled up to whole panels: rows in the order of SquareLayout.
struct PackedWeights {
  size_t n_panels = 0, stride = 0;
  std::vector<double> data;

  PackedWeights(const SquareLayout& layout, std::span<const ScoreWeights> sets) {
    for (const ScoreWeights& set : sets) n_panels += (set.n_scores + lanes - 1) / lanes;
    stride = n_panels * lanes;
    data.assign((layout.first_thin + layout.n_thin) * stride, 0.0);
    const size_t n_columns = layout.places.size() - 1;
    size_t first = 0;
    for (const ScoreWeights& set : sets) {
      for (size_t j = 0; j <= n_columns; ++j) {
        const double* from = j < n_columns ? set.weights + j * set.n_scores : set.intercepts;
        std::copy_n(from, set.n_scores, &data[layout.places[j] * stride + first]);
      }
      first += (set.n_scores + lanes - 1) / lanes * lanes;
    }
  }
  const double* row(size_t place) const { return data.data() + place * stride; }
};

// Z[4 rows x 4n] += x B over some panels of columns.
template <size_t n>
void add_scores(const Panels& panels, size_t first, size_t last, size_t row, const double* b, size_t stride, Panels& z,
                size_t panel) {
  Vec sum[4][n];
  for (size_t k = 0; k < 4; ++k)
    for (size_t q = 0; q < n; ++q) sum[k][q] = load(z.at(panel + q, row + k));
  for (size_t p = first; p < last; ++p) {
    const double* x = panels.at(p, row);
    for (size_t j = 0; j < lanes; ++j, b += stride) {
      Vec right[n];
      for (size_t q = 0; q < n; ++q) right[q] = load(b + q * lanes);
      for (size_t k = 0; k < 4; ++k) {
        const Vec left = broadcast(x[k * lanes + j]);
        for (size_t q = 0; q < n; ++q) sum[k][q] = multiply_add(left, right[q], sum[k][q]);
      }
    }
  }
  for (size_t k = 0; k < 4; ++k)
    for (size_t q = 0; q < n; ++q) store(z.at(panel + q, row + k), sum[k][q]);
}

// use(first panel, number of panels as a type) over panels in threes, fours as two and two.
template <class Use>
void for_panels(size_t n_panels, Use use) {
  for (size_t q = 0; q < n_panels;) {
    const size_t left = n_panels - q;
    if (left == 1) {
      use(q, std::integral_constant<size_t, 1>{});
      q += 1;
    } else if (left == 2 || left == 4) {
      use(q, std::integral_constant<size_t, 2>{});
      q += 2;
    } else {
      use(q, std::integral_constant<size_t, 3>{});
      q += 3;
    }
  }
}

// A tile of rows: their columns, their scores, their slopes.
class ManyScores {
 public:
  ManyScores(const Rows& rows, const SquareLayout& layout, const Scaling& scaling, const PackedWeights& weights,
             size_t n_slopes)
      : panels(layout.n_packed),
        scores(weights.stride, panels.capacity),
        slopes(n_slopes, panels.capacity),
        rows_(rows),
        layout_(layout),
        scaling_(scaling),
        weights_(weights),
        packer_(rows, nullptr, scaling) {}

  Panels panels, scores, slopes;

  void open(size_t begin, size_t end) { packer_.open(begin, end); }

  // Rows of root 0 are no rows, whatever stands in them.
  void read(std::span<const size_t> tile, std::span<const double> roots) {
    constexpr size_t step = 32;  // panels whose part of B stays in the first-level cache
    packer_.pack(tile, roots, panels);
    std::fill(scores.data.begin(), scores.data.end(), 0.0);
    for_panels(scores.n_panels, [&](size_t q, auto n) {
      for (size_t p = 0; p < panels.n_panels; p += step)
        for (size_t k = 0; k < tile.size(); k += 4)
          add_scores<decltype(n)::value>(panels, p, std::min(p + step, panels.n_panels), k,
                                         weights_.row(p * lanes) + q * lanes, weights_.stride, scores, q);
    });
    if (rows_.thin.empty()) return;
    for (size_t k = 0; k < tile.size(); ++k)
      if (roots[k] != 0)
        for_each_entry(rows_, tile[k], [&](size_t j, double value) {
          add_times(scores, k, value * scaling_.scale[j], weights_.row(layout_.places[j]));
        });
  }

  // gradient: places of SquareLayout x whole panels of slopes.
  void add_gradient(std::span<const size_t> tile, std::span<const double> roots, std::vector<double>& gradient) {
    const size_t stride = slopes.n_panels * lanes;
    for_panels(slopes.n_panels, [&](size_t q, auto n) {
      for (size_t p = 0; p < panels.n_panels; ++p)
        product<decltype(n)::value>(panels.at(p, 0), slopes.at(q, 0), slopes.panel_stride, tile.size(),
                                    &gradient[p * lanes * stride + q * lanes], stride);
    });
    if (rows_.thin.empty()) return;
    for (size_t k = 0; k < tile.size(); ++k)
      if (roots[k] != 0)
        for_each_entry(rows_, tile[k], [&](size_t j, double value) {
          double* sum = &gradient[layout_.places[j] * stride];
          const Vec x = broadcast(value * scaling_.scale[j]);
          for (size_t q = 0; q < slopes.n_panels; ++q)
            store(sum + q * lanes, multiply_add(x, load(slopes.at(q, k)), load(sum + q * lanes)));
        });
  }

 private:
  static void add_times(Panels& to, size_t row, double value, const double* from) {
    const Vec x = broadcast(value);
    for (size_t q = 0; q < to.n_panels; ++q)
      store(to.at(q, row), multiply_add(x, load(from + q * lanes), load(to.at(q, row))));
  }

  const Rows& rows_;
  const SquareLayout& layout_;
  const Scaling& scaling_;
  const PackedWeights& weights_;
  Packer packer_;
};

// work(tile of ManyScores, its rows, its roots: 1 or 0) for the tiles of one block.
template <class Work>
void for_each_tile(ManyScores& many, const double* weight, size_t begin, size_t end, Crew& crew, Work work) {
  const size_t capacity = many.panels.capacity, chunk = 2 * capacity;
  std::vector<size_t> tile(capacity);
  std::vector<double> roots(capacity);
  for (size_t i = begin; i < end; i += chunk) {
    many.open(i, std::min(i + chunk, end));
    for (size_t at = i; at < std::min(i + chunk, end); at += capacity) {
      if (!crew.keep_going()) return;
      const size_t count = std::min({capacity, end - at, i + chunk - at});
      for (size_t k = 0; k < count; ++k) {
        tile[k] = at + k;
        roots[k] = !weight || weight[at + k] > 0 ? 1.0 : 0.0;
      }
      work(std::span<const size_t>(tile.data(), count), std::span<const double>(roots.data(), count));
    }
  }
}

// rule(row of the data, its weight, row of the tile, scores, slopes, sums): the slopes of one row, times its weight.
// Rows of weight 0 have slopes 0 and are not shown to it. Every block has a copy of the rule.
template <class Rule>
ManySums many_scores(const Rows& rows, const double* weight, const Scaling& scaling, std::span<const ScoreWeights> sets,
                     const Rule& for_all, size_t block_rows, Crew& crew) {
  const SquareLayout layout(rows, false);
  const PackedWeights weights(layout, sets);
  const size_t n_slopes = for_all.n_slopes(), stride = (n_slopes + lanes - 1) / lanes * lanes;
  const size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows;
  SumTree<ManySums> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    Rule rule = for_all;
    ManySums sums;
    sums.gradient.assign((layout.first_thin + layout.n_thin) * stride, 0.0);
    sums.own.assign(rule.n_sums(), 0.0);
    ManyScores many(rows, layout, scaling, weights, n_slopes);
    auto work = [&](std::span<const size_t> tile, std::span<const double> roots) {
      many.read(tile, roots);
      for (size_t k = 0; k < tile.size(); ++k) {
        if (roots[k] != 0) {
          rule(tile[k], weight ? weight[tile[k]] * scaling.weight_scale : 1.0, k, many.scores, many.slopes, sums.own);
          continue;
        }
        for (size_t q = 0; q < many.slopes.n_panels; ++q) store(many.slopes.at(q, k), Vec{});
      }
      many.add_gradient(tile, roots, sums.gradient);
    };
    for_each_tile(many, weight, block * block_rows, std::min((block + 1) * block_rows, rows.n_rows), crew, work);
    tree.add(block, std::move(sums));
  });

  ManySums out;
  ManySums& root = tree.root();
  out.own = std::move(root.own);
  out.own.resize(for_all.n_sums(), 0.0);
  out.gradient.assign(layout.places.size() * n_slopes, 0.0);
  if (n_blocks > 0)
    for (size_t j = 0; j < layout.places.size(); ++j)
      std::copy_n(&root.gradient[layout.places[j] * stride], n_slopes, &out.gradient[j * n_slopes]);
  return out;
}

}  // namespace certifit
