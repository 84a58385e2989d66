#include "kernels.hpp"

#include <algorithm>
#include <vector>

#include "elementary.hpp"

namespace certifit {
namespace {

constexpr size_t tile = 256;    // rows and columns of a tile of K: half a megabyte
constexpr size_t depth = 1024;  // terms of a sum that are added before they join the others
constexpr size_t product_rows = 128;
constexpr size_t most_below = size_t{1} << 24;  // numbers that `symmetric_times` holds

// C = A B' + beta C of row-major blocks: C is a x b, A a x k, B b x k; lda, ldb, ldc are the lengths of whole rows.
void times_transposed(Gemm gemm, size_t a, size_t b, size_t k, const double* A, size_t lda, const double* B, size_t ldb,
                      double beta, double* C, size_t ldc) {
  char transposed = 'T', plain = 'N';
  int m = static_cast<int>(b), n = static_cast<int>(a), kk = static_cast<int>(k);
  int la = static_cast<int>(ldb), lb = static_cast<int>(lda), lc = static_cast<int>(ldc);
  double one = 1.0;
  gemm(&transposed, &plain, &m, &n, &kk, &one, const_cast<double*>(B), &la, const_cast<double*>(A), &lb, &beta, C, &lc);
}

// C = A B + beta C, or A' B + beta C, of row-major blocks: C is a x b, the sums have k terms.
template <class T>
void times(GemmOf<T> gemm, bool is_transposed, size_t a, size_t b, size_t k, const T* A, size_t lda, const T* B,
           size_t ldb, T beta, T* C, size_t ldc) {
  char plain = 'N', of_a = is_transposed ? 'T' : 'N';
  int m = static_cast<int>(b), n = static_cast<int>(a), kk = static_cast<int>(k);
  int la = static_cast<int>(ldb), lb = static_cast<int>(lda), lc = static_cast<int>(ldc);
  T one = 1;
  gemm(&plain, &of_a, &m, &n, &kk, &one, const_cast<T*>(B), &la, const_cast<T*>(A), &lb, &beta, C, &lc);
}

// |x_i|^2 / 2
std::vector<double> half_squares(DenseMatrix X) {
  std::vector<double> sums(X.n_rows, 0.0);
  for (size_t i = 0; i < X.n_rows; ++i) {
    const double* x = X.values + i * X.n_columns;
    for (size_t j = 0; j < X.n_columns; ++j) sums[i] += x[j] * x[j];
    sums[i] /= 2;
  }
  return sums;
}

double power(double base, int degree) {
  double result = 1.0;
  for (; degree > 0; degree >>= 1, base *= base)
    if (degree & 1) result *= base;
  return result;
}

// exp(g_j - a - b_j) in place, a and b halves of squares; a squared distance that rounding made negative is 0.
void gaussian_row(double a, const double* b, double* g, size_t n) {
  const Vec zero = broadcast(0.0), whole = broadcast(a);
  auto of = [&](Vec product, Vec other) {
    const Vec exponent = product - (whole + other);
    return exponential_below_zero(choose(exponent < zero, exponent, zero));
  };
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) store(g + j, of(load(g + j), load(b + j)));
  if (j == n) return;
  double product[lanes] = {}, other[lanes] = {}, result[lanes];
  std::copy(g + j, g + n, product);
  std::copy(b + j, b + n, other);
  store(result, of(load(product), load(other)));
  std::copy(result, result + (n - j), g + j);
}

// Tiles of K: products of rows by the BLAS, then the form of the kernel.
class Tiles {
 public:
  Tiles(Gemm gemm, const KernelForm& form, DenseMatrix X, DenseMatrix Z) : gemm_(gemm), form_(form), X_(X), Z_(Z) {
    if (form.kind != KernelForm::Kind::gaussian) return;
    of_x_ = half_squares(X);
    of_z_ = half_squares(Z);
  }

  // Rows [i, i + a) and columns [j, j + b), written to C whose rows are ldc apart.
  void make(size_t i, size_t a, size_t j, size_t b, double* C, size_t ldc) const {
    const size_t d = X_.n_columns;
    times_transposed(gemm_, a, b, d, X_.values + i * d, d, Z_.values + j * d, d, 0.0, C, ldc);
    for (size_t row = 0; row < a; ++row) {
      double* g = C + row * ldc;
      if (form_.kind == KernelForm::Kind::gaussian) gaussian_row(of_x_[i + row], of_z_.data() + j, g, b);
      if (form_.kind == KernelForm::Kind::polynomial)
        for (size_t k = 0; k < b; ++k) g[k] = power(form_.constant + g[k], form_.degree);
    }
  }

 private:
  Gemm gemm_;
  KernelForm form_;
  DenseMatrix X_, Z_;
  std::vector<double> of_x_, of_z_;
};

size_t n_tiles(size_t n, size_t size) { return (n + size - 1) / size; }

// How many numbers the tiles below the diagonal add to rows above them.
size_t n_below(size_t n, size_t k) {
  const size_t across = n_tiles(n, tile);
  return across * (across - 1) / 2 * tile * k;
}

// K V of the points with themselves: a tile below the diagonal is made once, and used as its transpose too.
void symmetric_times(Gemm gemm, const Tiles& tiles, size_t n, DenseMatrix V, double* out, Crew& crew) {
  const size_t k = V.n_columns, across = n_tiles(n, tile);
  std::vector<double> below(n_below(n, k));
  auto of = [&](size_t row, size_t column) { return below.data() + (row * (row - 1) / 2 + column) * tile * k; };
  crew.for_each_block(across, [&](size_t number) {
    const size_t row = across - 1 - number, i = row * tile, a = std::min(tile, n - i);  // the longest rows first
    std::vector<double> C(a * tile);
    std::fill(out + i * k, out + (i + a) * k, 0.0);
    for (size_t column = 0; column <= row && crew.keep_going(); ++column) {
      const size_t j = column * tile, b = std::min(tile, n - j);
      tiles.make(i, a, j, b, C.data(), tile);
      times(gemm, false, a, k, b, C.data(), tile, V.values + j * k, k, 1.0, out + i * k, k);
      if (column < row) times(gemm, true, b, k, a, C.data(), tile, V.values + i * k, k, 0.0, of(row, column), k);
    }
  });
  crew.for_each_block(across, [&](size_t column) {
    double* to = out + column * tile * k;
    for (size_t row = column + 1; row < across; ++row)
      for (size_t t = 0; t < tile * k; ++t) to[t] += of(row, column)[t];
  });
}

}  // namespace

template <class T>
void kernel_matrix(Gemm gemm, const KernelForm& form, DenseMatrix X, DenseMatrix Z, T* K, Crew& crew) {
  const Tiles tiles(gemm, form, X, Z);
  const size_t n = X.n_rows, m = Z.n_rows, across = n_tiles(m, tile);
  const bool is_symmetric = X.values == Z.values && n == m;
  crew.for_each_block(n_tiles(n, tile) * across, [&](size_t number) {
    const size_t i = number / across * tile, j = number % across * tile;
    if (is_symmetric && j > i) return;
    const size_t a = std::min(tile, n - i), b = std::min(tile, m - j);
    std::vector<double> made(a * b);
    tiles.make(i, a, j, b, made.data(), b);
    for (size_t row = 0; row < a; ++row) {
      double* C = made.data() + row * b;
      if (is_symmetric && i == j && form.kind == KernelForm::Kind::gaussian) C[row] = 1.0;
      const size_t end = is_symmetric && i == j ? row + 1 : b;
      std::copy(C, C + end, K + (i + row) * m + j);
    }
    if (!is_symmetric) return;
    // The same numbers across the diagonal, eight rows of K at a time: a line of the tile is read once.
    for (size_t first = 0; first < b; first += 8)
      for (size_t row = i == j ? first + 1 : 0; row < a; ++row) {
        const size_t last = std::min(first + 8, i == j ? std::min(b, row) : b);
        for (size_t k = first; k < last; ++k) K[(j + k) * m + i + row] = static_cast<T>(made[row * b + k]);
      }
  });
}

template void kernel_matrix<double>(Gemm, const KernelForm&, DenseMatrix, DenseMatrix, double*, Crew&);
template void kernel_matrix<float>(Gemm, const KernelForm&, DenseMatrix, DenseMatrix, float*, Crew&);

void kernel_times(Gemm gemm, const KernelForm& form, DenseMatrix X, DenseMatrix Z, DenseMatrix V, double* out,
                  Crew& crew) {
  const Tiles tiles(gemm, form, X, Z);
  const size_t n = X.n_rows, m = Z.n_rows, k = V.n_columns;
  if (X.values == Z.values && n == m && n > tile && n_below(n, k) <= most_below)
    return symmetric_times(gemm, tiles, n, V, out, crew);
  crew.for_each_block(n_tiles(n, tile), [&](size_t number) {
    const size_t i = number * tile, a = std::min(tile, n - i);
    std::vector<double> C(a * tile);
    std::fill(out + i * k, out + (i + a) * k, 0.0);
    for (size_t j = 0; j < m && crew.keep_going(); j += tile) {
      const size_t b = std::min(tile, m - j);
      tiles.make(i, a, j, b, C.data(), tile);
      times(gemm, false, a, k, b, C.data(), tile, V.values + j * k, k, 1.0, out + i * k, k);
    }
  });
}

template <class T>
void multiply(GemmOf<T> gemm, MatrixOf<T> A, bool is_transposed, MatrixOf<T> B, T* out, Crew& crew) {
  const size_t n = is_transposed ? A.n_columns : A.n_rows, terms = B.n_rows, k = B.n_columns;
  const size_t width = std::min<size_t>(k, 512), across = n_tiles(k, std::max<size_t>(width, 1));
  crew.for_each_block(n_tiles(n, product_rows) * across, [&](size_t number) {
    const size_t i = number / across * product_rows, a = std::min(product_rows, n - i);
    const size_t j = number % across * width, b = std::min(width, k - j);
    for (size_t row = i; row < i + a; ++row) std::fill(out + row * k + j, out + row * k + j + b, T(0));
    for (size_t t = 0; t < terms && crew.keep_going(); t += depth) {
      const size_t c = std::min(depth, terms - t);
      const T* from = is_transposed ? A.values + t * A.n_columns + i : A.values + i * A.n_columns + t;
      times(gemm, is_transposed, a, b, c, from, A.n_columns, B.values + t * k + j, k, T(1), out + i * k + j, k);
    }
  });
}

template void multiply<double>(Gemm, DenseMatrix, bool, DenseMatrix, double*, Crew&);
template void multiply<float>(GemmOf<float>, MatrixOf<float>, bool, MatrixOf<float>, float*, Crew&);

namespace {

struct Products {
  std::vector<double> values;

  void add(const Products& other) {
    for (size_t k = 0; k < values.size(); ++k) values[k] += other.values[k];
  }
};

}  // namespace

std::vector<double> inner_products(Syrk syrk, DenseMatrix A, size_t block_rows, Crew& crew) {
  const size_t n = A.n_columns, n_blocks = n_tiles(A.n_rows, block_rows);
  const size_t at_once = std::max<size_t>((size_t{1} << 31) / (n * n), 64);  // rows: half a second
  SumTree<Products> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    const size_t first = block * block_rows, last = std::min(first + block_rows, A.n_rows);
    char half = 'L', plain = 'N';
    int size = static_cast<int>(n);
    double one = 1;
    Products sum{std::vector<double>(n * n)};
    for (size_t begin = first; begin < last; begin += at_once) {
      if (!crew.keep_going()) return;
      int terms = static_cast<int>(std::min(at_once, last - begin));
      syrk(&half, &plain, &size, &terms, &one, const_cast<double*>(A.values + begin * n), &size, &one,
           sum.values.data(), &size);
    }
    tree.add(block, std::move(sum));
  });
  std::vector<double> out = std::move(tree.root().values);
  out.resize(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) out[i * n + j] = out[j * n + i];  // Fortran's lower half is the upper one here
  return out;
}

}  // namespace certifit
