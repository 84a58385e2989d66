// Small dense systems of one local fit: a Cholesky factor of the correlations, or where they are nearly singular the
// singular values of a triangular factor of the rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace certifit {

// Lower Cholesky factor in place, row-major; false where a pivot is not positive.
inline bool cholesky(std::vector<double>& A, size_t q) {
  for (size_t j = 0; j < q; ++j) {
    for (size_t i = j; i < q; ++i) {
      double sum = A[i * q + j];
      for (size_t k = 0; k < j; ++k) sum -= A[i * q + k] * A[j * q + k];
      if (i == j) {
        if (!(sum > 0)) return false;
        A[j * q + j] = std::sqrt(sum);
      } else {
        A[i * q + j] = sum / A[j * q + j];
      }
    }
  }
  return true;
}

// (L L')^-1 b in place.
inline void solve_factor(const std::vector<double>& L, size_t q, double* b) {
  for (size_t i = 0; i < q; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= L[i * q + k] * b[k];
    b[i] /= L[i * q + i];
  }
  for (size_t i = q; i-- > 0;) {
    for (size_t k = i + 1; k < q; ++k) b[i] -= L[k * q + i] * b[k];
    b[i] /= L[i * q + i];
  }
}

// Condition of A = L L' in the largest column sum.
inline double condition_of(const std::vector<double>& A, const std::vector<double>& L, size_t q) {
  double of_matrix = 0, of_inverse = 0;
  std::vector<double> column(q);
  for (size_t j = 0; j < q; ++j) {
    double sum = 0, inverse = 0;
    for (size_t i = 0; i < q; ++i) sum += std::fabs(A[i * q + j]);
    std::fill(column.begin(), column.end(), 0.0);
    column[j] = 1;
    solve_factor(L, q, column.data());
    for (double value : column) inverse += std::fabs(value);
    of_matrix = std::max(of_matrix, sum);
    of_inverse = std::max(of_inverse, inverse);
  }
  return of_matrix * of_inverse;
}

// The triangular factor of rows that are added one at a time by rotations; the last column is the target.
class RowFactor {
 public:
  explicit RowFactor(size_t width) : width_(width), R_(width * width, 0.0) {}

  void add(std::vector<double>& row) {
    for (size_t j = 0; j < width_; ++j) {
      if (row[j] == 0) continue;
      double* r = R_.data() + j * width_;
      const double size = std::hypot(r[j], row[j]), c = r[j] / size, s = row[j] / size;
      for (size_t k = j; k < width_; ++k) {
        const double upper = r[k], lower = row[k];
        r[k] = c * upper + s * lower;
        row[k] = c * lower - s * upper;
      }
    }
  }

  double at(size_t i, size_t j) const { return R_[i * width_ + j]; }

 private:
  size_t width_;
  std::vector<double> R_;
};

// Singular values of a q x q matrix by one-sided rotations (Jacobi): A V has orthogonal columns.
struct SingularValues {
  std::vector<double> A, V, sizes;  // column-major: column j is A[j * q ...]

  SingularValues(std::vector<double> columns, size_t q) : A(std::move(columns)), V(q * q, 0.0), sizes(q) {
    for (size_t j = 0; j < q; ++j) V[j * q + j] = 1;
    for (int sweep = 0; sweep < 60 && rotate(q); ++sweep) {
    }
    for (size_t j = 0; j < q; ++j) sizes[j] = std::sqrt(dot(&A[j * q], &A[j * q], q));
  }

 private:
  static double dot(const double* a, const double* b, size_t q) {
    double sum = 0;
    for (size_t i = 0; i < q; ++i) sum += a[i] * b[i];
    return sum;
  }

  bool rotate(size_t q) {
    bool moved = false;
    for (size_t i = 0; i + 1 < q; ++i)
      for (size_t j = i + 1; j < q; ++j) {
        const double a = dot(&A[i * q], &A[i * q], q), b = dot(&A[j * q], &A[j * q], q);
        const double product = dot(&A[i * q], &A[j * q], q);
        if (!(std::fabs(product) > 1e-15 * std::sqrt(a) * std::sqrt(b))) continue;
        moved = true;
        const double zeta = (b - a) / (2 * product);
        const double t = std::copysign(1.0, zeta) / (std::fabs(zeta) + std::hypot(1.0, zeta));
        const double c = 1 / std::hypot(1.0, t), s = c * t;
        turn(&A[i * q], &A[j * q], c, s, q);
        turn(&V[i * q], &V[j * q], c, s, q);
      }
    return moved;
  }

  static void turn(double* a, double* b, double c, double s, size_t q) {
    for (size_t k = 0; k < q; ++k) {
      const double first = a[k], second = b[k];
      a[k] = c * first - s * second;
      b[k] = s * first + c * second;
    }
  }
};

}  // namespace certifit
