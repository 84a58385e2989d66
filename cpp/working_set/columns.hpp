// X by columns, dense or CSC, seen through row weights that sum to one, columns centred and scaled by powers of two:
//   z_ij = scale_j (x_ij - mean_j),   <a, b> = sum_i omega_i a_i b_i,   1 <= <z_j, z_j> < 4  (0 and scale 1: constant).
// Without intercept the means are 0. Sparse columns are never centred in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace certifit {

struct ColumnData {
  size_t n_rows = 0, n_columns = 0;
  const double* values = nullptr;
  size_t column_stride = 0;         // dense only
  std::vector<int64_t> offsets;     // CSC: n_columns + 1 entries; empty for dense
  const int32_t* narrow = nullptr;  // CSC: one of the two holds the rows, increasing within a column
  const int64_t* wide = nullptr;

  bool is_sparse() const { return !offsets.empty(); }
};

// use(row, value) for the stored values of sparse column j.
template <class Use>
void for_each_stored(const ColumnData& data, size_t j, Use use) {
  const int64_t end = data.offsets[j + 1];
  if (data.narrow)
    for (int64_t k = data.offsets[j]; k < end; ++k) use(static_cast<size_t>(data.narrow[k]), data.values[k]);
  else
    for (int64_t k = data.offsets[j]; k < end; ++k) use(static_cast<size_t>(data.wide[k]), data.values[k]);
}

class Columns {
 public:
  Columns(ColumnData data, const double* weight, bool fit_intercept);
  // Mean, scale and norm of column j: needed before anything else is asked of it. Throws std::invalid_argument that
  // names the column where a value is not finite.
  void describe(size_t j) { is_sparse() ? describe_sparse(j) : describe_dense(j); }

  size_t n_rows() const { return data_.n_rows; }
  size_t size() const { return data_.n_columns; }
  bool is_sparse() const { return data_.is_sparse(); }
  bool is_centred() const { return is_centred_; }
  size_t stored(size_t j) const;  // values that a product with column j reads
  size_t stored() const;          // values of X
  const std::vector<double>& omega() const { return omega_; }
  double mean(size_t j) const { return mean_[j]; }
  double scale(size_t j) const { return scale_[j]; }
  double norm(size_t j) const { return norm_[j]; }

  // sum_i z_ij q_i. `total` is the sum of q: what centring takes out of a sparse column.
  double pull(size_t j, const double* q, double total) const;
  // r_i += c z_ij. Sparse columns: the part that centring adds to every row is added to `shift` instead.
  void add(size_t j, double c, double* r, double& shift) const;
  // q_i += c omega_i z_ij, as `add`.
  void add_weighted(size_t j, double c, double* q, double& shift) const;
  // out_i = sqrt(omega_i) z_ij; dense columns only.
  void pack(size_t j, double* out) const;
  // out[k] = <z_j, z_others[k]> for sparse columns; `work` has n_rows zeros and is left so.
  void products(size_t j, const size_t* others, size_t count, double* work, double* out) const;

 private:
  template <class Use>
  void stored_values(size_t j, Use use) const {
    for_each_stored(data_, j, use);
  }
  void describe_dense(size_t j);
  void describe_sparse(size_t j);
  void set_scale(size_t j, double unit, double squares);

  ColumnData data_;
  bool is_centred_;
  std::vector<double> omega_, root_omega_, mean_, scale_, norm_;
};

}  // namespace certifit
