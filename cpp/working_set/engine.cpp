#include "engine.hpp"

#include <algorithm>

#include "../simd.hpp"

namespace certifit {
namespace {

constexpr size_t tile_old = 4, tile_new = 3;
constexpr size_t group_new = 48;         // new columns that stay in the second-level cache while old ones pass by
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

void add_multiple(double* y, double m, const double* x, size_t n) {
  const Vec by = broadcast(m);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(y + i, multiply_add(by, load(x + i), load(y + i)));
  for (; i < n; ++i) y[i] = multiply_add(m, x[i], y[i]);
}

// y += m_0 x_0 + .. + m_3 x_3
void add_multiples(double* y, const double* m, const double* const (&x)[4], size_t n) {
  const Vec m0 = broadcast(m[0]), m1 = broadcast(m[1]), m2 = broadcast(m[2]), m3 = broadcast(m[3]);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec two = multiply_add(m1, load(x[1] + i), multiply_add(m0, load(x[0] + i), load(y + i)));
    store(y + i, multiply_add(m3, load(x[3] + i), multiply_add(m2, load(x[2] + i), two)));
  }
  for (; i < n; ++i)
    for (size_t k = 0; k < 4; ++k) y[i] = multiply_add(m[k], x[k][i], y[i]);
}

class GramEngine final : public Engine {
 public:
  GramEngine(const Gram& gram, std::vector<double> slopes) : gram_(gram), slopes_(std::move(slopes)) {}

  double slope(size_t p) override { return slopes_[p]; }
  void move(size_t p, double step) override { add_multiple(slopes_.data(), -step, gram_.row(p), slopes_.size()); }
  double curvature(const std::vector<size_t>& members, const double* d) override {
    image_.assign(slopes_.size(), 0.0);
    size_t at = 0;
    for (; at + 4 <= members.size(); at += 4) {
      const double* const rows[4] = {gram_.row(members[at]), gram_.row(members[at + 1]), gram_.row(members[at + 2]),
                                     gram_.row(members[at + 3])};
      add_multiples(image_.data(), d + at, rows, slopes_.size());
    }
    for (; at < members.size(); ++at) add_multiple(image_.data(), d[at], gram_.row(members[at]), slopes_.size());
    double sum = 0;
    for (size_t k = 0; k < members.size(); ++k) sum += d[k] * image_[members[k]];
    return std::max(sum, 0.0);
  }
  void advance(double t) override { add_multiple(slopes_.data(), -t, image_.data(), slopes_.size()); }
  void pull_image(const std::vector<size_t>& members, double* out) override {
    for (size_t k = 0; k < members.size(); ++k) out[k] = image_[members[k]];
  }
  void products(size_t p, const std::vector<size_t>& others, double* out) override {
    for (size_t k = 0; k < others.size(); ++k) out[k] = gram_.row(p)[others[k]];
  }

 private:
  const Gram& gram_;
  std::vector<double> slopes_, image_;
};

class ResidualEngine final : public Engine {
 public:
  ResidualEngine(const Columns& columns, const std::vector<size_t>& ids, std::vector<double> q)
      : columns_(columns), ids_(ids), q_(std::move(q)) {}

  // The true residual is q + shift omega. Its sum is 0 where columns are centred; sum_i omega_i z_ij is 0 too, so
  // that only the stored values of a sparse column, whose weighted sum is mean_j, meet the shift.
  double slope(size_t p) override { return columns_.pull(ids_[p], q_.data(), -shift_); }
  void move(size_t p, double step) override { columns_.add_weighted(ids_[p], -step, q_.data(), shift_); }
  double curvature(const std::vector<size_t>& members, const double* d) override {
    image_.assign(columns_.n_rows(), 0.0);
    image_shift_ = 0;
    for (size_t k = 0; k < members.size(); ++k) columns_.add(ids_[members[k]], d[k], image_.data(), image_shift_);
    double sum = 0;
    for (size_t i = 0; i < image_.size(); ++i) {
      const double z = image_[i] + image_shift_;
      sum += columns_.omega()[i] * z * z;
    }
    return sum;
  }
  void advance(double t) override {
    for (size_t i = 0; i < q_.size(); ++i) q_[i] -= t * columns_.omega()[i] * image_[i];
    shift_ -= t * image_shift_;
  }
  void pull_image(const std::vector<size_t>& members, double* out) override {
    weighted_.resize(image_.size());
    for (size_t i = 0; i < image_.size(); ++i) weighted_[i] = columns_.omega()[i] * image_[i];
    for (size_t k = 0; k < members.size(); ++k)
      out[k] = columns_.pull(ids_[members[k]], weighted_.data(), -image_shift_);
  }
  void products(size_t p, const std::vector<size_t>& others, double* out) override {
    other_ids_.resize(others.size());
    for (size_t k = 0; k < others.size(); ++k) other_ids_[k] = ids_[others[k]];
    work_.resize(columns_.n_rows(), 0.0);
    columns_.products(ids_[p], other_ids_, work_.data(), out);
  }

 private:
  const Columns& columns_;
  const std::vector<size_t>& ids_;
  std::vector<double> q_, image_, weighted_, work_;
  std::vector<size_t> other_ids_;
  double shift_ = 0, image_shift_ = 0;
};

}  // namespace

Gram::Gram(const Columns& columns) : columns_(columns), stride_(padded(columns.n_rows())) {}

void Gram::reserve(size_t size) {
  if (size <= room_) return;
  const size_t room = std::max<size_t>(64, size + size / 2), k = ids_.size();
  auto packed = std::make_unique_for_overwrite<double[]>(room * stride_);
  auto gram = std::make_unique_for_overwrite<double[]>(room * room);
  std::copy_n(packed_.get(), k * stride_, packed.get());
  for (size_t p = 0; p < k; ++p) std::copy_n(row(p), k, &gram[p * room]);
  packed_ = std::move(packed);
  gram_ = std::move(gram);
  room_ = room;
}

// Products of the new columns p with all columns q <= p, tile by tile; the mirror image is stored as well.
void Gram::append(const std::vector<size_t>& ids, Crew& crew) {
  const size_t before = size(), after = before + ids.size();
  reserve(after);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  for (size_t p = before; p < after; ++p) {
    double* column = &packed_[p * stride_];
    std::fill(column + columns_.n_rows(), column + stride_, 0.0);
    columns_.pack(ids_[p], column);
  }
  const size_t n_tiles = (after + tile_old - 1) / tile_old, n_groups = (ids.size() + group_new - 1) / group_new;
  auto block = [&](size_t number) {
    const size_t begin = before + number / n_tiles * group_new, q = number % n_tiles * tile_old;
    for (size_t p = begin; p < std::min(begin + group_new, after); p += tile_new)
      if (q < p + tile_new) fill_tile(p, q, after);
  };
  if (ids.size() * after * stride_ > little_work)
    crew.for_each_block(n_groups * n_tiles, block);
  else
    for (size_t number = 0; number < n_groups * n_tiles; ++number) block(number);
}

void Gram::fill_tile(size_t p, size_t q, size_t size) {
  auto column = [&](size_t at) { return &packed_[std::min(at, size - 1) * stride_]; };
  const double* const x[tile_new] = {column(p), column(p + 1), column(p + 2)};
  const double* const y[tile_old] = {column(q), column(q + 1), column(q + 2), column(q + 3)};
  double out[tile_new][tile_old];
  dot_tile(x, y, stride_, out);
  for (size_t a = 0; a < tile_new && p + a < size; ++a)
    for (size_t b = 0; b < tile_old && q + b <= p + a; ++b)
      gram_[(p + a) * room_ + q + b] = gram_[(q + b) * room_ + p + a] = out[a][b];
}

// Positions increase, so that what moves never overwrites what is still to move.
void Gram::keep(const std::vector<size_t>& positions) {
  std::vector<size_t> ids;
  for (size_t a = 0; a < positions.size(); ++a) {
    const size_t p = positions[a];
    ids.push_back(ids_[p]);
    if (p != a) std::copy_n(&packed_[p * stride_], stride_, &packed_[a * stride_]);
    for (size_t b = 0; b < positions.size(); ++b) gram_[a * room_ + b] = gram_[p * room_ + positions[b]];
  }
  ids_ = std::move(ids);
}

std::unique_ptr<Engine> gram_engine(const Gram& gram, std::vector<double> slopes) {
  return std::make_unique<GramEngine>(gram, std::move(slopes));
}

std::unique_ptr<Engine> residual_engine(const Columns& columns, const std::vector<size_t>& ids, std::vector<double> q) {
  return std::make_unique<ResidualEngine>(columns, ids, std::move(q));
}

}  // namespace certifit
