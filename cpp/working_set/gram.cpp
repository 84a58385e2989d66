#include "gram.hpp"

#include <algorithm>

#include "../simd.hpp"

namespace certifit {
namespace {

constexpr size_t tile_old = 4, tile_new = 3;
constexpr size_t group_new = 48;         // new columns that stay in the second-level cache while old ones pass by
constexpr size_t sparse_at_once = 16;    // new sparse columns a block
constexpr size_t little_work = 200'000;  // multiplications that no second thread is worth

size_t padded(size_t n) { return (n + lanes - 1) / lanes * lanes; }

// out[a][b] = x_a . y_b: twelve sums in flight for seven loads.
void dot_tile(const double* const (&x)[tile_new], const double* const (&y)[tile_old], size_t n,
              double (&out)[tile_new][tile_old]) {
  Vec sum[tile_new][tile_old] = {};
  for (size_t i = 0; i < n; i += lanes) {
    const Vec y0 = load(y[0] + i), y1 = load(y[1] + i), y2 = load(y[2] + i), y3 = load(y[3] + i);
    for (size_t a = 0; a < tile_new; ++a) {
      const Vec xa = load(x[a] + i);
      sum[a][0] = multiply_add(xa, y0, sum[a][0]);
      sum[a][1] = multiply_add(xa, y1, sum[a][1]);
      sum[a][2] = multiply_add(xa, y2, sum[a][2]);
      sum[a][3] = multiply_add(xa, y3, sum[a][3]);
    }
  }
  for (size_t a = 0; a < tile_new; ++a)
    for (size_t b = 0; b < tile_old; ++b) {
      const Vec s = sum[a][b];
      out[a][b] = (s[0] + s[1]) + (s[2] + s[3]);
    }
}

template <class Block>
void run_blocks(size_t n_blocks, size_t work, Crew& crew, Block block) {
  if (work > little_work)
    crew.for_each_block(n_blocks, block);
  else
    for (size_t number = 0; number < n_blocks; ++number) block(number);
}

}  // namespace

WorkingGram::WorkingGram(const Columns& columns)
    : columns_(columns), stride_(columns.is_sparse() ? 0 : padded(columns.n_rows())) {}

void WorkingGram::reserve(size_t size) {
  if (size <= room_) return;
  const size_t room = std::max<size_t>(64, size + size / 2), k = ids_.size();
  auto packed = std::make_unique_for_overwrite<double[]>(room * stride_);
  auto gram = std::make_unique_for_overwrite<double[]>(room * room);
  std::copy_n(packed_.get(), k * stride_, packed.get());
  for (size_t p = 0; p < k; ++p) std::copy_n(&gram_[p * room_], k, &gram[p * room]);
  packed_ = std::move(packed);
  gram_ = std::move(gram);
  room_ = room;
}

void WorkingGram::append(const std::vector<size_t>& ids, Crew& crew) {
  const size_t before = size();
  if (ids.empty()) return;
  reserve(before + ids.size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  columns_.is_sparse() ? append_sparse(before, crew) : append_dense(before, crew);
}

// Products of the new columns p with all columns q <= p, tile by tile; the mirror image is stored as well.
void WorkingGram::append_dense(size_t before, Crew& crew) {
  const size_t after = size(), fresh = after - before;
  for (size_t p = before; p < after; ++p) {
    double* column = &packed_[p * stride_];
    std::fill(column + columns_.n_rows(), column + stride_, 0.0);
    columns_.pack(ids_[p], column);
  }
  const size_t n_tiles = (after + tile_old - 1) / tile_old, n_groups = (fresh + group_new - 1) / group_new;
  run_blocks(n_groups * n_tiles, fresh * after * stride_, crew, [&](size_t number) {
    const size_t begin = before + number / n_tiles * group_new, q = number % n_tiles * tile_old;
    for (size_t p = begin; p < std::min(begin + group_new, after); p += tile_new)
      if (q < p + tile_new) fill_tile(p, q);
  });
}

void WorkingGram::fill_tile(size_t p, size_t q) {
  auto column = [&](size_t at) { return &packed_[std::min(at, size() - 1) * stride_]; };
  const double* const x[tile_new] = {column(p), column(p + 1), column(p + 2)};
  const double* const y[tile_old] = {column(q), column(q + 1), column(q + 2), column(q + 3)};
  double out[tile_new][tile_old];
  dot_tile(x, y, stride_, out);
  for (size_t a = 0; a < tile_new && p + a < size(); ++a)
    for (size_t b = 0; b < tile_old && q + b <= p + a; ++b)
      gram_[(p + a) * room_ + q + b] = gram_[(q + b) * room_ + p + a] = out[a][b];
}

// Row p up to the diagonal; the mirror image comes afterwards, so that no two threads write side by side.
void WorkingGram::append_sparse(size_t before, Crew& crew) {
  const size_t after = size(), fresh = after - before;
  size_t work = 0;
  for (size_t id : ids_) work += columns_.stored(id);
  run_blocks((fresh + sparse_at_once - 1) / sparse_at_once, work * fresh, crew, [&](size_t block) {
    std::vector<double> scattered(columns_.n_rows(), 0.0);
    const size_t begin = before + block * sparse_at_once;
    for (size_t p = begin; p < std::min(begin + sparse_at_once, after); ++p)
      columns_.products(ids_[p], ids_.data(), p + 1, scattered.data(), &gram_[p * room_]);
  });
  for (size_t p = before; p < after; ++p)
    for (size_t q = 0; q < p; ++q) gram_[q * room_ + p] = gram_[p * room_ + q];
}

// Positions increase, so that what moves never overwrites what is still to move.
void WorkingGram::keep(const std::vector<size_t>& positions) {
  for (size_t a = 0; a < positions.size(); ++a) {
    const size_t p = positions[a];
    ids_[a] = ids_[p];
    if (p != a) std::copy_n(&packed_[p * stride_], stride_, &packed_[a * stride_]);
    for (size_t b = 0; b < positions.size(); ++b) gram_[a * room_ + b] = gram_[p * room_ + positions[b]];
  }
  ids_.resize(positions.size());
}

}  // namespace certifit
