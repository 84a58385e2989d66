#include "columns.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "../simd.hpp"

namespace certifit {
namespace {

// sum_i (x_i - mean) q_i
double centred_dot(const double* x, double mean, const double* q, size_t n) {
  Vec sum[4] = {};
  const Vec m = broadcast(mean);
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    for (size_t k = 0; k < 4; ++k) sum[k] = multiply_add(load(x + i + k * lanes) - m, load(q + i + k * lanes), sum[k]);
  for (; i + lanes <= n; i += lanes) sum[0] = multiply_add(load(x + i) - m, load(q + i), sum[0]);
  const Vec s = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double rest = 0;
  for (; i < n; ++i) rest = multiply_add(x[i] - mean, q[i], rest);
  return ((s[0] + s[1]) + (s[2] + s[3])) + rest;
}

// sum_i omega_i (unit (x_i - mean))^2
double weighted_squares(const double* x, double mean, double unit, const double* omega, size_t n) {
  Vec sum[2] = {};
  const Vec m = broadcast(mean), by = broadcast(unit);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes)
    for (size_t k = 0; k < 2; ++k) {
      const Vec z = by * (load(x + i + k * lanes) - m);
      sum[k] = multiply_add(load(omega + i + k * lanes) * z, z, sum[k]);
    }
  const Vec s = sum[0] + sum[1];
  double rest = 0;
  for (; i < n; ++i) {
    const double z = unit * (x[i] - mean);
    rest += omega[i] * z * z;
  }
  return ((s[0] + s[1]) + (s[2] + s[3])) + rest;
}

// sum_k values_k q[rows_k] over the entries of column j: four sums in flight.
template <class Index>
double sparse_dot(const ColumnData& data, const Index* rows, size_t j, const double* q) {
  double sum[4] = {};
  int64_t k = data.offsets[j];
  const int64_t end = data.offsets[j + 1];
  for (; k + 4 <= end; k += 4)
    for (int64_t lane = 0; lane < 4; ++lane)
      sum[lane] = multiply_add(data.values[k + lane], q[rows[k + lane]], sum[lane]);
  for (; k < end; ++k) sum[0] = multiply_add(data.values[k], q[rows[k]], sum[0]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

struct Survey {
  double largest = 0;  // |x_i|
  double odd = 0;      // NaN if a value is NaN or infinite
};

Survey survey(const double* x, size_t n) {
  Survey out;
  Vec largest = {}, odd = {};
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec v = load(x + i), size = absolute(v);
    largest = size > largest ? size : largest;
    odd += v - v;
  }
  for (size_t k = 0; k < lanes; ++k) {
    out.largest = std::max(out.largest, largest[k]);
    out.odd += odd[k];
  }
  for (; i < n; ++i) {
    out.largest = std::max(out.largest, std::fabs(x[i]));
    out.odd += x[i] - x[i];
  }
  return out;
}

[[noreturn]] void refuse(size_t column, const char* reason) {
  throw std::invalid_argument("Column " + std::to_string(column) + " of X " + reason);
}
constexpr const char* not_finite = "holds NaN or infinity. Drop or fill the rows, or leave the column out.";
constexpr const char* too_large = "holds values beyond 1e300. Divide the column by a constant.";
constexpr const char* not_sorted = "has rows that do not increase or are not there. Sort the indices, sum duplicates.";
constexpr int widest = 1000;  // exponents of scales and values stay within 2^-1000 .. 2^1000

void check_values(size_t column, double largest, double odd) {
  if (!(odd == 0)) refuse(column, not_finite);
  if (largest > std::exp2(widest - 4)) refuse(column, too_large);
}

double unit_of(double largest) { return std::exp2(std::min(-std::ilogb(largest), widest)); }

}  // namespace

Columns::Columns(ColumnData data, const double* weight, bool fit_intercept)
    : data_(std::move(data)), is_centred_(fit_intercept) {
  const size_t n = data_.n_rows, d = data_.n_columns;
  double total = 0;
  for (size_t i = 0; i < n; ++i) total += weight ? weight[i] : 1.0;
  if (!(total > 0)) throw std::invalid_argument("The weights sum to 0. At least one must be positive.");
  omega_.resize(n);
  root_omega_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    omega_[i] = (weight ? weight[i] : 1.0) / total;
    root_omega_[i] = std::sqrt(omega_[i]);
  }
  mean_.assign(d, 0.0);
  scale_.assign(d, 1.0);
  norm_.assign(d, 0.0);
}

// Means are taken about the first value, so that a constant column is constant to the last bit.
void Columns::describe_dense(size_t j) {
  const double* x = data_.values + j * data_.column_stride;
  const size_t n = data_.n_rows;
  const auto [largest, odd] = survey(x, n);
  check_values(j, largest, odd);
  if (is_centred_) mean_[j] = x[0] + centred_dot(x, x[0], omega_.data(), n);
  if (largest == 0) return;
  const double unit = unit_of(largest), squares = weighted_squares(x, mean_[j], unit, omega_.data(), n);
  set_scale(j, unit, squares);
}

void Columns::describe_sparse(size_t j) {
  double largest = 0, odd = 0, sum = 0, first = 0;
  int64_t before = -1, count = 0;
  stored_values(j, [&](size_t row, double x) {
    const auto at = static_cast<int64_t>(row);
    if (at <= before || row >= data_.n_rows) refuse(j, not_sorted);
    before = at;
    if (count++ == 0) first = x;
    largest = std::max(largest, std::fabs(x));
    odd += x - x;
  });
  check_values(j, largest, odd);
  if (largest == 0) return;
  const bool is_full = count == static_cast<int64_t>(data_.n_rows);
  const double base = is_full ? first : 0.0;
  stored_values(j, [&](size_t row, double x) { sum += omega_[row] * (x - base); });
  if (is_centred_) mean_[j] = base + sum;
  const double unit = unit_of(largest);
  double squares = 0, held = 0;
  stored_values(j, [&](size_t row, double x) {
    const double z = unit * (x - mean_[j]);
    squares += omega_[row] * z * z;
    held += omega_[row];
  });
  const double hole = unit * mean_[j];
  if (!is_full) squares += std::max(0.0, 1.0 - held) * hole * hole;
  set_scale(j, unit, squares);
}

// `squares` is <x - mean, x - mean> unit^2, unit a power of two that keeps it from overflow.
void Columns::set_scale(size_t j, double unit, double squares) {
  if (!(squares > 0)) return;
  const int exponent = std::max(std::ilogb(std::sqrt(squares)), std::ilogb(unit) - widest);
  scale_[j] = std::ldexp(unit, -exponent);
  norm_[j] = std::ldexp(std::sqrt(squares), -exponent);
}

size_t Columns::stored(size_t j) const {
  return is_sparse() ? static_cast<size_t>(data_.offsets[j + 1] - data_.offsets[j]) : data_.n_rows;
}

size_t Columns::stored() const {
  return is_sparse() ? static_cast<size_t>(data_.offsets.back() - data_.offsets.front()) : data_.n_rows * size();
}

double Columns::pull(size_t j, const double* q, double total) const {
  if (!is_sparse()) return scale_[j] * centred_dot(data_.values + j * data_.column_stride, mean_[j], q, data_.n_rows);
  const double sum = data_.narrow ? sparse_dot(data_, data_.narrow, j, q) : sparse_dot(data_, data_.wide, j, q);
  return scale_[j] * (sum - mean_[j] * total);
}

void Columns::add(size_t j, double c, double* r, double& shift) const {
  const double step = c * scale_[j];
  if (is_sparse()) {
    stored_values(j, [&](size_t row, double x) { r[row] = multiply_add(step, x, r[row]); });
    shift -= step * mean_[j];
    return;
  }
  const double* x = data_.values + j * data_.column_stride;
  const double mean = mean_[j];
  for (size_t i = 0; i < data_.n_rows; ++i) r[i] = multiply_add(step, x[i] - mean, r[i]);
}

void Columns::add_weighted(size_t j, double c, double* q, double& shift) const {
  const double step = c * scale_[j];
  if (is_sparse()) {
    stored_values(j, [&](size_t row, double x) { q[row] = multiply_add(step * omega_[row], x, q[row]); });
    shift -= step * mean_[j];
    return;
  }
  const double* x = data_.values + j * data_.column_stride;
  const double mean = mean_[j];
  for (size_t i = 0; i < data_.n_rows; ++i) q[i] = multiply_add(step * omega_[i], x[i] - mean, q[i]);
}

void Columns::pack(size_t j, double* out) const {
  const double* x = data_.values + j * data_.column_stride;
  for (size_t i = 0; i < data_.n_rows; ++i) out[i] = root_omega_[i] * (scale_[j] * (x[i] - mean_[j]));
}

void Columns::products(size_t j, const size_t* others, size_t count, double* work, double* out) const {
  double total = 0;  // minus the sum of omega_i z_ij over the stored values
  add_weighted(j, 1.0, work, total);
  for (size_t k = 0; k < count; ++k) out[k] = pull(others[k], work, -total);
  stored_values(j, [&](size_t row, double) { work[row] = 0; });
}

}  // namespace certifit
