// Cholesky factor of a symmetric matrix whose columns come and go: M = U'U. A change costs O(k^2), not O(k^3).
#pragma once

#include <cstddef>
#include <vector>

#include "../parallel.hpp"

namespace certifit {

class ActiveFactor {
 public:
  size_t size() const { return size_; }
  void clear() { size_ = 0; }

  // products[i] = M_ij with the columns held, square = M_jj. False: refused because the column depends on those held
  // to rounding; nothing changed.
  bool append(const double* products, double square);

  // What was left of the square of the last column given to `append`.
  double last_pivot() const { return last_pivot_; }

  void remove(size_t place);

  // Appends many columns at once, in blocks. With k columns afterwards, row a of `entries` starts at entries[a * k] and
  // holds M between new column a and all k columns. False: a column is close to the span of those before it and none
  // is appended; `append` looks closer.
  bool extend(const std::vector<double>& entries, size_t count, Crew& crew);

  void solve(double* b) const;  // b <- M^-1 b

 private:
  static constexpr double floor = 0x1p-40, rounding = 0x1p-46;  // of a pivot, see is_dependent
  static constexpr double safe = 0x1p-17;                       // a pivot above this part of its square needs no look

  double* row(size_t i) { return &upper_[i * stride_]; }
  const double* row(size_t i) const { return &upper_[i * stride_]; }
  void reserve(size_t k);
  void solve_transposed(double* b) const;  // b <- U'^-1 b
  void solve_upper(double* b) const;       // b <- U^-1 b
  void update_rows(size_t begin, size_t i, size_t old);
  bool factor_panel(size_t begin, size_t end, size_t old);
  bool is_dependent(double square) const;

  size_t size_ = 0, stride_ = 0;
  double last_pivot_ = 0;
  std::vector<double> upper_;    // row-major, upper triangle
  std::vector<double> inverse_;  // 1 / U_ii
  std::vector<double> roots_;    // sqrt of M_ii
  std::vector<double> work_;
};

}  // namespace certifit
