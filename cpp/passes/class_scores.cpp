#include "class_scores.hpp"

#include "../coordinate/row_sums.hpp"
#include "entries.hpp"

namespace certifit {
namespace {

constexpr size_t tile_rows = 64, rows_per_block = 4096;

// work(first row, number of rows) over tiles, blocks of them side by side.
template <class MakeWork>
void for_each_tile(size_t n_rows, Crew& crew, MakeWork make_work) {
  const size_t n_blocks = (n_rows + rows_per_block - 1) / rows_per_block;
  crew.for_each_block(n_blocks, [&](size_t block) {
    auto work = make_work();
    const size_t end = std::min((block + 1) * rows_per_block, n_rows);
    for (size_t i = block * rows_per_block; i < end; i += tile_rows) {
      if (!crew.keep_going()) return;
      work(i, std::min(tile_rows, end - i));
    }
  });
}

// All columns of a tile of rows side by side, thin ones expanded.
class WholeRows {
 public:
  explicit WholeRows(const Rows& rows) : rows_(rows) {}

  Tile read(size_t first, size_t count) {
    const Tile tile = read_tile(rows_, first, count, scratch_);
    if (rows_.thin.empty()) return tile;
    const size_t d = rows_.n_columns;
    whole_.assign(count * d, 0.0);
    for (size_t k = 0; k < count; ++k) {
      double* out = whole_.data() + k * d;
      for (size_t j = 0; j < rows_.n_dense; ++j) out[rows_.dense_columns[j]] = tile.row(k)[j];
      rows_.for_each_entry(first + k, [&](size_t column, double value) { out[column] = value; });
    }
    return {whole_.data(), static_cast<ptrdiff_t>(d)};
  }

 private:
  const Rows& rows_;
  std::vector<double> scratch_, whole_;
};

double scaled_distance(const double* x, const double* mean, const double* root, size_t d) {
  Vec sum{};
  size_t j = 0;
  for (; j + lanes <= d; j += lanes) {
    const Vec z = (load(x + j) - load(mean + j)) * load(root + j);
    sum = multiply_add(z, z, sum);
  }
  double total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  for (; j < d; ++j) {
    const double z = (x[j] - mean[j]) * root[j];
    total = multiply_add(z, z, total);
  }
  return total;
}

// Weights of thin columns, some classes at a time: those of a column side by side, so that the scores of a row can stay
// in registers while its entries are read.
class ThinWeights {
 public:
  ThinWeights(const Rows& rows, const double* weights, size_t n_classes) : rows_(rows) {
    if (rows.thin.empty()) return;
    for (size_t first = 0, width; first < n_classes; first += width) {
      const size_t left = n_classes - first;
      width = left >= 4 ? 4 : left >= 2 ? 2 : 1;
      Group group{first, width, std::vector<double>(rows.n_columns * width)};
      for (size_t c = 0; c < width; ++c)
        for (size_t j = 0; j < rows.n_columns; ++j)
          group.weights[j * width + c] = weights[(first + c) * rows.n_columns + j];
      groups_.push_back(std::move(group));
    }
  }

  void add(size_t row, double* scores) const {
    for (const Group& group : groups_) {
      switch (group.width) {
        case 4: add_group<4>(row, group, scores); break;
        case 2: add_group<2>(row, group, scores); break;
        default: add_group<1>(row, group, scores);
      }
    }
  }

 private:
  struct Group {
    size_t first, width;
    std::vector<double> weights;  // columns x width
  };

  template <size_t width>
  void add_group(size_t row, const Group& group, double* scores) const {
    const double* weights = group.weights.data();
    double sum[width];
    std::copy_n(scores + group.first, width, sum);
    for_each_entry(rows_, row, [&](size_t column, double value) {
      const double* own = weights + column * width;
      for (size_t c = 0; c < width; ++c) sum[c] = multiply_add(value, own[c], sum[c]);
    });
    std::copy_n(sum, width, scores + group.first);
  }

  const Rows& rows_;
  std::vector<Group> groups_;
};

}  // namespace

std::vector<double> linear_scores(const Rows& rows, const double* weights, const double* intercepts, size_t n_classes,
                                  Crew& crew) {
  const size_t d = rows.n_dense, n_columns = rows.n_columns;
  std::vector<double> out(rows.n_rows * n_classes), dense(n_classes * d);
  for (size_t c = 0; c < n_classes; ++c)
    for (size_t j = 0; j < d; ++j) dense[c * d + j] = weights[c * n_columns + rows.dense_columns[j]];
  const ThinWeights thin(rows, weights, n_classes);
  for_each_tile(rows.n_rows, crew, [&] {
    return [&, scratch = std::vector<double>()](size_t first, size_t count) mutable {
      const Tile tile = read_tile(rows, first, count, scratch);
      for (size_t k = 0; k < count; ++k) {
        double* z = out.data() + (first + k) * n_classes;
        for (size_t c = 0; c < n_classes; ++c) z[c] = intercepts[c] + dot(tile.row(k), dense.data() + c * d, d);
        thin.add(first + k, z);
      }
    };
  });
  return out;
}

std::vector<double> quadratic_scores(const Rows& rows, const double* means, const double* roots, bool is_diagonal,
                                     const double* constants, size_t n_classes, Crew& crew) {
  const size_t d = rows.n_columns;
  std::vector<double> out(rows.n_rows * n_classes);
  for_each_tile(rows.n_rows, crew, [&] {
    return [&, whole = WholeRows(rows), away = std::vector<double>(tile_rows * d)](size_t first, size_t count) mutable {
      const Tile tile = whole.read(first, count);
      for (size_t c = 0; c < n_classes; ++c) {
        const double* mean = means + c * d;
        if (is_diagonal) {
          for (size_t k = 0; k < count; ++k)
            out[(first + k) * n_classes + c] = constants[c] - scaled_distance(tile.row(k), mean, roots + c * d, d) / 2;
          continue;
        }
        for (size_t k = 0; k < count; ++k)
          for (size_t j = 0; j < d; ++j) away[k * d + j] = tile.row(k)[j] - mean[j];
        double distance[tile_rows] = {};
        for (size_t j = 0; j < d; ++j) {
          const double* root = roots + (c * d + j) * d;
          for (size_t begin = 0; begin < count; begin += 4) {
            const double* four[4];  // a last row stands in for those that are missing
            for (size_t r = 0; r < 4; ++r) four[r] = away.data() + std::min(begin + r, count - 1) * d;
            double y[4];
            dot_rows(y, four, root, j + 1);
            for (size_t r = 0; r < 4 && begin + r < count; ++r)
              distance[begin + r] = multiply_add(y[r], y[r], distance[begin + r]);
          }
        }
        for (size_t k = 0; k < count; ++k) out[(first + k) * n_classes + c] = constants[c] - distance[k] / 2;
      }
    };
  });
  return out;
}

}  // namespace certifit
