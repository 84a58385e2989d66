// Distinct rows in the order of their hashes.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "../sorted.hpp"
#include "tree.hpp"

namespace certifit {
namespace {

constexpr size_t block_rows = 1024;

size_t n_blocks(size_t n) { return (n + block_rows - 1) / block_rows; }

// All columns as rows of float64: the data itself where it is that, else a copy.
class DenseRows {
 public:
  DenseRows(const Rows& rows, Crew& crew) : width_(rows.n_columns) {
    if (rows.is_plain && rows.thin.empty()) {
      std::vector<double> none;
      const Tile tile = read_tile(rows, 0, rows.n_rows, none);
      data_ = tile.data;
      stride_ = tile.stride;
      return;
    }
    copy_.assign(rows.n_rows * width_, 0.0);
    crew.for_each_block(n_blocks(rows.n_rows), [&](size_t block) {
      const size_t first = block * block_rows, count = std::min(block_rows, rows.n_rows - first);
      std::vector<double> scratch;
      const Tile tile = read_tile(rows, first, count, scratch);
      for (size_t k = 0; k < count; ++k) {
        double* out = copy_.data() + (first + k) * width_;
        for (size_t j = 0; j < rows.n_dense; ++j) out[rows.dense_columns[j]] = tile.row(k)[j];
        rows.for_each_entry(first + k, [&](size_t column, double value) { out[column] = value; });
      }
    });
    data_ = copy_.data();
    stride_ = static_cast<ptrdiff_t>(width_);
  }
  const double* row(size_t i) const { return data_ + static_cast<ptrdiff_t>(i) * stride_; }

 private:
  size_t width_;
  std::vector<double> copy_;
  const double* data_;
  ptrdiff_t stride_;
};

// 0 and -0 are equal, and so are all missing values.
uint64_t bits_of(double x) { return std::isnan(x) ? ~0ULL : std::bit_cast<uint64_t>(x + 0.0); }

// The finaliser of SplitMix64: every bit of the result depends on every bit of x.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// f(row, hash) of every row, whose numbers are eaten one after the other, y first. Whether all are as they should be.
template <class Use>
bool hash_each(const DenseRows& dense, const Rows& rows, const double* y, Crew& crew, uint64_t step, int turn,
               Use use) {
  std::atomic<bool> is_finite{true};
  crew.for_each_block(n_blocks(rows.n_rows), [&](size_t block) {
    const size_t end = std::min(rows.n_rows, (block + 1) * block_rows);
    for (size_t i = block * block_rows; i < end; ++i) {
      uint64_t hash = mixed(bits_of(y[i]));
      bool is_bad = !std::isfinite(y[i]);
      for (size_t j = 0; j < rows.n_columns; ++j) {
        const double x = dense.row(i)[j];
        is_bad |= std::isinf(x);
        hash = (std::rotl(hash, turn) ^ bits_of(x)) * step;
      }
      if (is_bad) is_finite = false;
      use(i, mixed(hash));
    }
  });
  return is_finite;
}

constexpr uint64_t first_step = 0x9E3779B97F4A7C15ULL, second_step = 0xD1B54A32D192ED03ULL;  // odd, bits well mixed
constexpr int first_turn = 23, second_turn = 29;

struct Keys {
  std::vector<Key> keys;
  bool is_finite;
};

Keys hashed(const DenseRows& dense, const Rows& rows, const double* y, const double* weight, Crew& crew) {
  std::vector<Key> keys(rows.n_rows);
  const bool is_finite = hash_each(dense, rows, y, crew, first_step, first_turn,
                                   [&](size_t i, uint64_t hash) { keys[i] = {hash, static_cast<uint32_t>(i)}; });
  if (weight) std::erase_if(keys, [&](const Key& key) { return !(weight[key.row] > 0); });
  return {std::move(keys), is_finite};
}

// Rows of one hash in an order of their values, so that equal ones are neighbours.
bool is_less(const DenseRows& dense, size_t n_columns, const double* y, uint32_t a, uint32_t b) {
  if (bits_of(y[a]) != bits_of(y[b])) return bits_of(y[a]) < bits_of(y[b]);
  for (size_t j = 0; j < n_columns; ++j) {
    const uint64_t left = bits_of(dense.row(a)[j]), right = bits_of(dense.row(b)[j]);
    if (left != right) return left < right;
  }
  return false;
}

// Groups of keys of one hash, sorted by `less`; use(row, weight, whether the row before is equal).
template <class Less, class Use>
void merge(std::vector<Key>& keys, const double* weight, Less less, Use use) {
  radix_sort(keys);
  for (size_t begin = 0; begin < keys.size();) {
    size_t end = begin + 1;
    while (end < keys.size() && keys[end].bits == keys[begin].bits) ++end;
    if (end - begin > 1) std::stable_sort(keys.begin() + begin, keys.begin() + end, less);
    for (size_t k = begin; k < end; ++k)
      use(keys[k].row, weight ? weight[keys[k].row] : 1.0, k > begin && !less(keys[k - 1], keys[k]));
    begin = end;
  }
}

// Rows of some keys, equal ones merged, in the order of their hashes.
TreeRows gathered(const DenseRows& dense, const Rows& rows, const double* y, const double* weight,
                  std::vector<Key>& keys, Crew& crew) {
  TreeRows out;
  out.n_columns = rows.n_columns;
  const auto less = [&](const Key& a, const Key& b) { return is_less(dense, rows.n_columns, y, a.row, b.row); };
  std::vector<uint32_t> first;  // of every group of equal rows
  merge(keys, weight, less, [&](uint32_t row, double mass, bool is_equal) {
    if (is_equal) {
      out.weight.back() += mass;
    } else {
      first.push_back(row);
      out.weight.push_back(mass);
    }
  });
  out.n_rows = first.size();
  out.y.resize(out.n_rows);
  out.columns.resize(out.n_rows * out.n_columns);
  crew.for_each_block(n_blocks(out.n_rows), [&](size_t block) {
    const size_t end = std::min(out.n_rows, (block + 1) * block_rows);
    for (size_t k = block * block_rows; k < end; ++k) {
      out.y[k] = y[first[k]] + 0.0;
      const double* row = dense.row(first[k]);
      for (size_t j = 0; j < out.n_columns; ++j) out.columns[j * out.n_rows + k] = row[j] + 0.0;
    }
  });
  for (double mass : out.weight) out.is_weighted |= mass != 1.0;
  return out;
}

}  // namespace

TreeRows merged_rows(const Rows& rows, const double* y, const double* weight, Crew& crew) {
  const DenseRows dense(rows, crew);
  auto [keys, is_finite] = hashed(dense, rows, y, weight, crew);
  if (is_finite) return gathered(dense, rows, y, weight, keys, crew);
  TreeRows out;
  out.is_finite = false;
  return out;
}

std::vector<double> row_after_row(const TreeRows& rows, size_t n_columns, Crew& crew) {
  std::vector<double> out(rows.n_rows * n_columns);
  crew.for_each_block(n_blocks(rows.n_rows), [&](size_t block) {
    const size_t begin = block * block_rows, end = std::min(rows.n_rows, begin + block_rows);
    for (size_t j = 0; j < n_columns; ++j)
      for (size_t i = begin; i < end; ++i) out[i * n_columns + j] = rows.column(j)[i];
  });
  return out;
}

RowHashes hash_rows(const Rows& rows, const double* y, Crew& crew) {
  const DenseRows dense(rows, crew);
  RowHashes out{std::vector<uint64_t>(rows.n_rows), std::vector<uint64_t>(rows.n_rows), true};
  out.is_finite =
      hash_each(dense, rows, y, crew, first_step, first_turn, [&](size_t i, uint64_t hash) { out.order[i] = hash; });
  hash_each(dense, rows, y, crew, second_step, second_turn, [&](size_t i, uint64_t hash) { out.other[i] = hash; });
  return out;
}

MergedHashes merged_hashes(const uint64_t* order, const uint64_t* other, const double* y, const double* weight,
                           size_t n_rows) {
  std::vector<Key> keys;
  keys.reserve(n_rows);
  for (size_t i = 0; i < n_rows; ++i)
    if (!weight || weight[i] > 0) keys.push_back({order[i], static_cast<uint32_t>(i)});
  const auto less = [&](const Key& a, const Key& b) {
    const uint64_t left = bits_of(y[a.row]), right = bits_of(y[b.row]);
    return left != right ? left < right : other[a.row] < other[b.row];
  };
  MergedHashes out;
  merge(keys, weight, less, [&](uint32_t row, double mass, bool is_equal) {
    if (is_equal) {
      out.weight.back() += mass;
    } else {
      out.first.push_back(row);
      out.weight.push_back(mass);
    }
  });
  return out;
}

TreeRows first_rows(const Rows& rows, const double* y, const double* weight, size_t most, Crew& crew) {
  const DenseRows dense(rows, crew);
  auto [keys, is_finite] = hashed(dense, rows, y, weight, crew);
  TreeRows out;
  out.is_finite = is_finite;
  const auto less = [](const Key& a, const Key& b) { return a.bits < b.bits; };
  // More keys are taken until enough of their rows differ. All rows of the last hash come along.
  for (size_t size = most; is_finite; size *= 2) {
    const bool is_all = size >= keys.size();
    if (!is_all) std::nth_element(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(size), keys.end(), less);
    const uint64_t last = is_all ? ~uint64_t{0} : keys[size].bits;
    std::vector<Key> some;
    for (const Key& key : keys)
      if (key.bits <= last) some.push_back(key);
    out = gathered(dense, rows, y, weight, some, crew);
    if (is_all || out.n_rows >= most) break;
  }
  return out;
}

}  // namespace certifit
