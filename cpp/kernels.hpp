// Matrices of kernels, and products of large matrices, in tiles of a fixed shape: any number of threads gives the same
// bits. The products inside a tile are those of a BLAS that the caller hands over, on one thread per tile.
#pragma once

#include <cstddef>

#include "parallel.hpp"

namespace certifit {

// dgemm of Fortran: column-major, every argument by address.
using Gemm = void (*)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*, double*, int*);

// What becomes of the inner product g of two rows.
struct KernelForm {
  enum class Kind { linear, polynomial, gaussian } kind;
  double constant = 0.0;  // (constant + g)^degree
  int degree = 1;
};

// Row-major, n_rows x n_columns, without gaps.
struct DenseMatrix {
  const double* values;
  size_t n_rows, n_columns;
};

// K_ij = k(x_i, z_j), n x m, row-major. gaussian: exp(-|x - z|^2 / 2). Z the same array as X: K is symmetric to the
// bit.
void kernel_matrix(Gemm gemm, const KernelForm& form, DenseMatrix X, DenseMatrix Z, double* K, Crew& crew);

// K V without holding K, n x k.
void kernel_times(Gemm gemm, const KernelForm& form, DenseMatrix X, DenseMatrix Z, DenseMatrix V, double* out,
                  Crew& crew);

// A B, or A' B.
void multiply(Gemm gemm, DenseMatrix A, bool is_transposed, DenseMatrix B, double* out, Crew& crew);

}  // namespace certifit
