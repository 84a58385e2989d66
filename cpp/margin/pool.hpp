// Rows of the matrix of a kernel, made by the BLAS when they are asked for, and kept while there is room.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "../kernels.hpp"
#include "../pages.hpp"
#include "gaussian_sums.hpp"

namespace certifit::margin {

// The rows of one problem in `Real`. The matrix is that of a kernel form of points, or it is given whole.
template <class Real>
class KernelPool {
 public:
  // points: n x d, already in the units of the form. most_rows: of the matrix that are kept at a time.
  KernelPool(GemmOf<Real> gemm, const KernelForm& form, const double* points, size_t n, size_t d, size_t most_rows);
  // matrix: n x n, symmetric; a copy is kept.
  KernelPool(const double* matrix, size_t n);
  // Some of the rows of another pool, each as often as it is named; it takes the memory of pools before it.
  KernelPool(KernelPool& all, const std::vector<uint32_t>& rows, Crew& crew);

  size_t n_rows() const { return n_; }
  Real diagonal(size_t i) const { return diagonal_[i]; }

  // k(rows[s], rows[t]), in row s of a matrix whose rows are so long; what is beyond the last t is 0. It stands until
  // the next call.
  const Real* among(const std::vector<uint32_t>& rows, size_t stride, Crew& crew);

  // f[i] += sum_t coefficients[t] k(rows[t], i) for every i; few terms are added in Real, then in float64. How far a
  // Gaussian in float32 can be off: as in `gaussian_sums.hpp`, with products of d columns in pieces of 192, off by
  // (192 + d / 192 + 1) u |x| |z| where d is more, and sums of eight terms, 9u.
  void add(const std::vector<uint32_t>& rows, const std::vector<double>& coefficients, double* f, Crew& crew);

  // Memory of pools of some of the rows, which come one after the other.
  std::vector<Pages<Real>> memory_of_parts;
  std::vector<Pages<Real>> released() { return std::move(slabs_); }

  size_t n_made = 0, n_reused = 0;  // rows of the matrix that were computed, and that were still there

 private:
  struct Slot {
    uint32_t row = 0;
    uint64_t used = 0;  // when it was asked for last
  };

  // Rows of the matrix that are made: their points, one after the other, and where each is written to, or nowhere.
  struct Fresh {
    std::vector<uint32_t> rows;
    std::vector<Real*> kept;
    std::vector<double> coefficients;
    std::vector<Real> points;
  };

  void add_new(const Fresh& fresh, size_t first, size_t b, double* sums) const;
  void form_row(Real square, const Real* squares, Real* g, size_t n) const;
  void multiply(const Real* A, size_t a, const Real* B, size_t b, Real* C, size_t stride) const;
  bool is_kept(uint32_t row) const;
  Real* slot_for(uint32_t row, size_t& n_busy);
  size_t rows_per_slab() const;
  Real* values_of(size_t slot) { return slabs_[slot / rows_per_slab()].get() + slot % rows_per_slab() * n_; }

  GemmOf<Real> gemm_ = nullptr;
  KernelForm form_{KernelForm::Kind::linear};
  size_t n_, d_ = 0, most_rows_ = 0;
  std::vector<Real> points_, squares_, given_, diagonal_;  // squares: |x|^2 / 2
  std::optional<Panels> panels_;                           // of a Gaussian in float32 whose rows are not kept
  std::vector<int64_t> place_;                             // of a row among the slots, -1 where it is not kept
  std::vector<Slot> slots_;
  std::vector<Pages<Real>> slabs_;  // the values of the slots, many rows of a slab
  Pages<Real> matrix_;              // of the last rows `among` which it was asked for
  size_t n_matrix_ = 0;
  uint64_t clock_ = 0, probe_ = 12345;
};

extern template class KernelPool<float>;
extern template class KernelPool<double>;

}  // namespace certifit::margin
