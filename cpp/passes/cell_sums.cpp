#include "cell_sums.hpp"

#include <cstring>
#include <type_traits>

#include "../simd.hpp"
#include "entries.hpp"

namespace certifit {
namespace {

constexpr size_t chunk_rows = 1024;  // dense sums start anew after so many rows, so roundings do not pile up

struct BlockSums {
  std::vector<double> weight, dense, dense_squares, thin, thin_squares;
  double lowest = 0;
  double health = 0;  // 0 times every entry: NaN where one is not finite

  void add(const BlockSums& other) {
    add_to(weight, other.weight);
    add_to(dense, other.dense);
    add_to(dense_squares, other.dense_squares);
    add_to(thin, other.thin);
    add_to(thin_squares, other.thin_squares);
    lowest = std::min(lowest, other.lowest);
    health += other.health;
  }

  static void add_to(std::vector<double>& to, const std::vector<double>& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }
};

Vec smaller(Vec a, Vec b) { return a < b ? a : b; }

// The smallest of some values and `lowest`, which is <= 0. Signs are looked at first, all at once.
template <class Value>
double lowest_of(const Value* values, size_t n, double lowest) {
  using Bits = std::conditional_t<sizeof(Value) == 8, int64_t, int32_t>;
  Bits signs = 0;
  for (size_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, values + i, sizeof bits);
    signs |= bits;
  }
  if (signs >= 0) return lowest;
  for (size_t i = 0; i < n; ++i) lowest = std::min(lowest, static_cast<double>(values[i]));
  return lowest;
}

// 0 if all values are finite, else NaN.
template <class Value>
double health_of(const Value* values, size_t n) {
  if constexpr (std::is_integral_v<Value>) return 0;
  Value sum[4] = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (size_t k = 0; k < 4; ++k) sum[k] += values[i + k] * Value(0);
  for (; i < n; ++i) sum[0] += values[i] * Value(0);
  return static_cast<double>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// sum[column] += term(value). Entries further on are asked for: the processor's own prefetching ends with every page.
template <class Index, class Value, class Term>
void scatter(double* sum, const Index* columns, const Value* values, size_t n, Term term) {
  constexpr size_t ahead = 512;  // bytes
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __builtin_prefetch(reinterpret_cast<const char*>(values + i) + ahead);
    __builtin_prefetch(reinterpret_cast<const char*>(columns + i) + ahead);
    for (size_t k = i; k < i + 8; ++k) sum[columns[k]] += term(values[k]);
  }
  for (; i < n; ++i) sum[columns[i]] += term(values[i]);
}

class Pass {
 public:
  Pass(const Rows& rows, const CellSumsTask& task)
      : rows_(rows),
        task_(task),
        d_(rows.n_dense),
        is_unscaled_(std::all_of(task.scale, task.scale + rows.n_columns, [](double s) { return s == 1; })),
        scale_(of_dense(rows, task.scale)) {
    shift_.reserve(task.cells.count * d_);
    for (size_t c = 0; c < task.cells.count; ++c)
      for (size_t j = 0; j < d_; ++j) shift_.push_back(task.shift[c * rows.n_columns + rows.dense_columns[j]]);
  }

  BlockSums empty() const {
    const size_t n_cells = task_.cells.count;
    BlockSums sums;
    sums.weight.assign(n_cells, 0.0);
    sums.dense.assign(n_cells * d_, 0.0);
    if (task_.has_squares) sums.dense_squares.assign(n_cells * d_, 0.0);
    if (rows_.thin.empty()) return sums;
    sums.thin.assign(n_cells * rows_.n_columns, 0.0);
    if (task_.has_squares) sums.thin_squares.assign(n_cells * rows_.n_columns, 0.0);
    return sums;
  }

  void add(size_t begin, size_t end, BlockSums& total) {
    const size_t n_cells = task_.cells.count;
    weight_.assign(n_cells, 0.0);
    dense_.assign(n_cells * d_, 0.0);
    squares_.assign(task_.has_squares ? n_cells * d_ : 0, 0.0);
    const Tile tile = read_tile(rows_, begin, end - begin, scratch_);
    for_each_row(begin, end, [&](size_t row, size_t cell, double w) {
      weight_[cell] += w;
      const double* x = tile.row(row - begin);
      if (task_.is_indicator) {
        add_indicators(x, w, cell, total);
      } else {
        add_values(x, w, cell, total);
      }
    });
    BlockSums::add_to(total.weight, weight_);
    BlockSums::add_to(total.dense, dense_);
    BlockSums::add_to(total.dense_squares, squares_);
    if (!rows_.thin.empty()) add_thin(begin, end, total);
  }

 private:
  // use(row, cell, weight) for the rows that count: those of no cell or no weight do not, whatever stands in them.
  template <class Use>
  void for_each_row(size_t begin, size_t end, Use use) const {
    for (size_t row = begin; row < end; ++row) {
      const int32_t cell = task_.cells.of_row ? task_.cells.of_row[row] : 0;
      const double w = task_.weight ? task_.weight[row] * task_.weight_scale : 1.0;
      if (cell >= 0 && w != 0) use(row, static_cast<size_t>(cell), w);
    }
  }

  void add_values(const double* x, double w, size_t cell, BlockSums& total) {
    double* sum = dense_.data() + cell * d_;
    double* square = task_.has_squares ? squares_.data() + cell * d_ : nullptr;
    const double* shift = shift_.data() + cell * d_;
    const Vec times = broadcast(w);
    Vec low = broadcast(total.lowest);
    size_t j = 0;
    for (; j + lanes <= d_; j += lanes) {
      const Vec value = load(x + j);
      const Vec z = multiply_add(value, load(&scale_[j]), -load(shift + j));
      const Vec wz = times * z;
      store(sum + j, load(sum + j) + wz);
      if (square) {
        store(square + j, multiply_add(wz, z, load(square + j)));
      } else {
        low = smaller(value, low);
      }
    }
    total.lowest = std::min(std::min(low[0], low[1]), std::min(low[2], low[3]));
    for (; j < d_; ++j) {
      const double z = multiply_add(x[j], scale_[j], -shift[j]);
      const double wz = w * z;
      sum[j] += wz;
      if (square) square[j] = multiply_add(wz, z, square[j]);
      if (x[j] < total.lowest) total.lowest = x[j];
    }
  }

  void add_indicators(const double* x, double w, size_t cell, BlockSums& total) {
    double* sum = dense_.data() + cell * d_;
    const Vec times = broadcast(w), zero = broadcast(0.0), threshold = broadcast(task_.threshold);
    Vec health = zero;
    size_t j = 0;
    for (; j + lanes <= d_; j += lanes) {
      const Vec value = load(x + j);
      store(sum + j, load(sum + j) + (value > threshold ? times : zero));
      health += value * zero;
    }
    total.health += (health[0] + health[1]) + (health[2] + health[3]);
    for (; j < d_; ++j) {
      if (x[j] > task_.threshold) sum[j] += w;
      total.health += x[j] * 0.0;
    }
  }

  void add_thin(size_t begin, size_t end, BlockSums& total) const {
    if (is_one_csr(rows_) && is_unscaled_ && !task_.has_squares) {
      with_csr(rows_.thin[0],
               [&](const auto* indices, const auto* values) { add_counts(begin, end, indices, values, total); });
      return;
    }
    for_each_row(begin, end, [&](size_t row, size_t cell, double w) { add_entries(row, w, cell, total); });
  }

  // Counts, or indicators, of plain CSR: one table in the cache, and no type or choice to look up an entry.
  template <class Index, class Value>
  void add_counts(size_t begin, size_t end, const Index* indices, const Value* values, BlockSums& total) const {
    const Segment& s = rows_.thin[0];
    const double threshold = task_.threshold;
    for_each_row(begin, end, [&](size_t row, size_t cell, double w) {
      const auto [first, last] = s.entries(row);
      const auto n = static_cast<size_t>(last - first);
      const Index* column = indices + first;
      s.check_columns(column, n);
      const Value* value = values + first;
      double* sum = total.thin.data() + cell * rows_.n_columns + s.first_column;
      if (task_.is_indicator) {
        scatter(sum, column, value, n, [&](Value v) { return static_cast<double>(v) > threshold ? w : 0.0; });
        total.health += health_of(value, n);
      } else {
        scatter(sum, column, value, n, [&](Value v) { return w * static_cast<double>(v); });
        total.lowest = lowest_of(value, n, total.lowest);
      }
    });
  }

  void add_entries(size_t row, double w, size_t cell, BlockSums& total) const {
    double* sum = total.thin.data() + cell * rows_.n_columns;
    double* square = task_.has_squares ? total.thin_squares.data() + cell * rows_.n_columns : nullptr;
    for_each_entry(rows_, row, [&](size_t column, double value) {
      if (task_.is_indicator) {
        if (value > task_.threshold) sum[column] += w;
        total.health += value * 0.0;
        return;
      }
      const double z = value * task_.scale[column];
      sum[column] += w * z;
      if (square) square[column] += w * z * z;
      if (value < total.lowest) total.lowest = value;
    });
  }

  const Rows& rows_;
  const CellSumsTask& task_;
  size_t d_;
  bool is_unscaled_;
  std::vector<double> scale_, shift_, scratch_;
  std::vector<double> weight_, dense_, squares_;
};

}  // namespace

CellSums cell_sums(const Rows& rows, const CellSumsTask& task, size_t block_rows, Crew& crew) {
  const size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows;
  SumTree<BlockSums> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    const size_t begin = block * block_rows, end = std::min(begin + block_rows, rows.n_rows);
    Pass pass(rows, task);
    BlockSums sums = pass.empty();
    for (size_t i = begin; i < end; i += chunk_rows) {
      if (!crew.keep_going()) return;
      pass.add(i, std::min(i + chunk_rows, end), sums);
    }
    tree.add(block, std::move(sums));
  });

  const size_t n_cells = task.cells.count;
  BlockSums& root = tree.root();
  if (n_blocks == 0) root = Pass(rows, task).empty();
  auto whole = [&](const std::vector<double>& dense, std::vector<double>&& thin) {
    std::vector<double> out = std::move(thin);
    out.resize(n_cells * rows.n_columns, 0.0);
    for (size_t c = 0; c < n_cells; ++c)
      for (size_t j = 0; j < rows.n_dense; ++j)
        out[c * rows.n_columns + rows.dense_columns[j]] = dense[c * rows.n_dense + j];
    return out;
  };
  CellSums out;
  out.weight = std::move(root.weight);
  out.sums = whole(root.dense, std::move(root.thin));
  if (task.has_squares) out.squares = whole(root.dense_squares, std::move(root.thin_squares));
  out.lowest = root.lowest;
  out.is_finite = root.health == 0;
  return out;
}

}  // namespace certifit
