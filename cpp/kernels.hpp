// Matrices of kernels, and products of large matrices, in tiles of a fixed shape: any number of threads gives the same
// bits. The products inside a tile are those of a BLAS that the caller hands over, on one thread per tile.
#pragma once

#include <cstddef>

#include "gemm.hpp"
#include "parallel.hpp"

namespace certifit {

// What becomes of the inner product g of two rows.
struct KernelForm {
  enum class Kind { linear, polynomial, gaussian } kind;
  double constant = 0.0;  // (constant + g)^degree
  int degree = 1;
};

// Row-major, n_rows x n_columns, without gaps.
template <class T>
struct MatrixOf {
  const T* values;
  size_t n_rows, n_columns;
};
using DenseMatrix = MatrixOf<double>;

// K_ij = k(x_i, z_j), n x m, row-major. gaussian: exp(-|x - z|^2 / 2). Z the same array as X: K is symmetric to the
// bit. T float: rounded from double.
template <class T>
void kernel_matrix(Gemm gemm, const KernelForm& form, DenseMatrix X, DenseMatrix Z, T* K, Crew& crew);

// K V without holding K, n x k. Z the same array as X: half of K is made. A sum has pieces of 256 terms.
void kernel_times(Gemm gemm, const KernelForm& form, DenseMatrix X, DenseMatrix Z, DenseMatrix V, double* out,
                  Crew& crew);

// A B, or A' B.
template <class T>
void multiply(GemmOf<T> gemm, MatrixOf<T> A, bool is_transposed, MatrixOf<T> B, T* out, Crew& crew);

// A'A, symmetric to the bit, from blocks of rows that are added in a tree.
std::vector<double> inner_products(Syrk syrk, DenseMatrix A, size_t block_rows, Crew& crew);

}  // namespace certifit
