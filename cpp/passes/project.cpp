#include "project.hpp"

#include "../simd.hpp"

namespace certifit {
namespace {

constexpr size_t rows_per_block = 4096;
constexpr size_t tile_rows = 32;

// Directions of the dense columns, padded with zeros to whole vectors.
std::vector<double> padded(const Rows& rows, const double* directions, size_t n_directions, size_t width) {
  std::vector<double> out(rows.n_dense * width, 0.0);
  for (size_t j = 0; j < rows.n_dense; ++j)
    std::copy_n(directions + rows.dense_columns[j] * n_directions, n_directions, &out[j * width]);
  return out;
}

// What the shifts of thin columns take from every score.
std::vector<double> start_of(const Rows& rows, const Scaling& scaling, const double* directions, size_t n_directions,
                             size_t width) {
  std::vector<double> out(width, 0.0);
  for (const Segment& s : rows.thin)
    for (size_t j = s.first_column; j < s.first_column + s.n_columns; ++j)
      for (size_t c = 0; c < n_directions; ++c)
        out[c] = multiply_add(-scaling.shift[j], directions[j * n_directions + c], out[c]);
  return out;
}

// out[r, 0 .. 4n) = start + z_r' D for n_rows rows of z, d long each.
template <size_t n, size_t n_rows>
void product(const double* z, size_t d, const double* directions, size_t width, const double* start, double* out) {
  Vec sum[n_rows][n];
  for (size_t r = 0; r < n_rows; ++r)
    for (size_t q = 0; q < n; ++q) sum[r][q] = load(start + q * lanes);
  for (size_t j = 0; j < d; ++j) {
    Vec right[n];
    for (size_t q = 0; q < n; ++q) right[q] = load(directions + j * width + q * lanes);
    for (size_t r = 0; r < n_rows; ++r) {
      const Vec left = broadcast(z[r * d + j]);
      for (size_t q = 0; q < n; ++q) sum[r][q] = multiply_add(left, right[q], sum[r][q]);
    }
  }
  for (size_t r = 0; r < n_rows; ++r)
    for (size_t q = 0; q < n; ++q) store(out + r * width + q * lanes, sum[r][q]);
}

template <size_t n_rows>
void row_products(const double* z, size_t d, const double* directions, size_t width, const double* start, double* out) {
  size_t c = 0;
  for (; c + 3 * lanes <= width; c += 3 * lanes) product<3, n_rows>(z, d, directions + c, width, start + c, out + c);
  for (; c < width; c += lanes) product<1, n_rows>(z, d, directions + c, width, start + c, out + c);
}

}  // namespace

std::vector<double> project(const Rows& rows, const Scaling& scaling, const double* directions, size_t n_directions,
                            Crew& crew) {
  std::vector<double> out(rows.n_rows * n_directions);
  if (out.empty()) return out;
  const size_t d = rows.n_dense, width = (n_directions + lanes - 1) / lanes * lanes;
  const std::vector<double> dense = padded(rows, directions, n_directions, width);
  const std::vector<double> start = start_of(rows, scaling, directions, n_directions, width);
  const std::vector<double> scale = of_dense(rows, scaling.scale), shift = of_dense(rows, scaling.shift);
  const size_t n_blocks = (rows.n_rows + rows_per_block - 1) / rows_per_block;
  crew.for_each_block(n_blocks, [&](size_t block) {
    std::vector<double> scratch, z(tile_rows * d), scores(tile_rows * width);
    const size_t end = std::min((block + 1) * rows_per_block, rows.n_rows);
    for (size_t i = block * rows_per_block; i < end; i += tile_rows) {
      if (!crew.keep_going()) return;
      const size_t count = std::min(tile_rows, end - i);
      const Tile tile = read_tile(rows, i, count, scratch);
      for (size_t k = 0; k < count; ++k)
        for (size_t j = 0; j < d; ++j) z[k * d + j] = multiply_add(tile.row(k)[j], scale[j], -shift[j]);
      size_t k = 0;
      for (; k + 4 <= count; k += 4)
        row_products<4>(z.data() + k * d, d, dense.data(), width, start.data(), scores.data() + k * width);
      for (; k < count; ++k)
        row_products<1>(z.data() + k * d, d, dense.data(), width, start.data(), scores.data() + k * width);
      for (k = 0; k < count; ++k) {
        double* to = scores.data() + k * width;
        rows.for_each_entry(i + k, [&](size_t column, double value) {
          const double left = value * scaling.scale[column];
          const double* right = directions + column * n_directions;
          for (size_t c = 0; c < n_directions; ++c) to[c] = multiply_add(left, right[c], to[c]);
        });
        std::copy_n(to, n_directions, out.data() + (i + k) * n_directions);
      }
    }
  });
  return out;
}

}  // namespace certifit
