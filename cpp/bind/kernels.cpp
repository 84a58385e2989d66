#include "../kernels.hpp"

#include <cstring>

#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

// scipy.linalg.cython_blas has its functions as capsules that are named by their signature.
Gemm gemm_of(const nb::capsule& capsule) {
  const char* name = capsule.name();
  check(name != nullptr && std::strncmp(name, "void (char *, char *, int *, int *, int *, ", 43) == 0,
        "dgemm must be the capsule of scipy.linalg.cython_blas");
  return reinterpret_cast<Gemm>(capsule.data());
}

DenseMatrix dense(const char* name, const Matrix& A) {
  const size_t limit = (size_t{1} << 31) - 1;
  check(A.shape(0) <= limit && A.shape(1) <= limit, std::string(name) + " has 2^31 rows or columns or more");
  return {A.data(), A.shape(0), A.shape(1)};
}

KernelForm form_of(const std::string& kind, double constant, int degree) {
  check(degree >= 0, "degree must be >= 0");
  if (kind == "gaussian") return {KernelForm::Kind::gaussian};
  if (kind == "linear") return {KernelForm::Kind::linear};
  check(kind == "polynomial", "unknown kind of kernel: " + kind);
  return {KernelForm::Kind::polynomial, constant, degree};
}

// An array of NumPy's that is filled before it is returned.
template <class Fill>
nb::object filled(size_t n_rows, size_t n_columns, Fill fill) {
  const size_t size = n_rows * n_columns;
  std::unique_ptr<double[]> values(new double[std::max<size_t>(size, 1)]);
  fill(values.get());
  double* data = values.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  const size_t shape[2] = {n_rows, n_columns};
  return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<2>>(data, 2, shape, owner));
}

nb::object matrix_py(nb::capsule dgemm, const std::string& kind, double constant, int degree, Matrix X, Matrix Z,
                     int threads) {
  const Gemm gemm = gemm_of(dgemm);
  const KernelForm form = form_of(kind, constant, degree);
  const DenseMatrix x = dense("X", X), z = dense("Z", Z);
  check_size("a row of Z", z.n_columns, x.n_columns);
  return filled(x.n_rows, z.n_rows,
                [&](double* K) { run(threads, [&](Crew& crew) { kernel_matrix(gemm, form, x, z, K, crew); }); });
}

nb::object times_py(nb::capsule dgemm, const std::string& kind, double constant, int degree, Matrix X, Matrix Z,
                    Matrix V, int threads) {
  const Gemm gemm = gemm_of(dgemm);
  const KernelForm form = form_of(kind, constant, degree);
  const DenseMatrix x = dense("X", X), z = dense("Z", Z), v = dense("V", V);
  check_size("a row of Z", z.n_columns, x.n_columns);
  check_size("V", v.n_rows, z.n_rows);
  return filled(x.n_rows, v.n_columns,
                [&](double* out) { run(threads, [&](Crew& crew) { kernel_times(gemm, form, x, z, v, out, crew); }); });
}

nb::object multiply_py(nb::capsule dgemm, Matrix A, Matrix B, bool is_transposed, int threads) {
  const Gemm gemm = gemm_of(dgemm);
  const DenseMatrix a = dense("A", A), b = dense("B", B);
  check_size("B", b.n_rows, is_transposed ? a.n_rows : a.n_columns);
  return filled(is_transposed ? a.n_columns : a.n_rows, b.n_columns, [&](double* out) {
    run(threads, [&](Crew& crew) { multiply(gemm, a, is_transposed, b, out, crew); });
  });
}

}  // namespace

void bind_kernels(nb::module_& m) {
  m.def("kernel_matrix", matrix_py, "dgemm"_a, "kind"_a, "constant"_a, "degree"_a, "X"_a.noconvert(), "Z"_a.noconvert(),
        "threads"_a);
  m.def("kernel_times", times_py, "dgemm"_a, "kind"_a, "constant"_a, "degree"_a, "X"_a.noconvert(), "Z"_a.noconvert(),
        "V"_a.noconvert(), "threads"_a);
  m.def("multiply", multiply_py, "dgemm"_a, "A"_a.noconvert(), "B"_a.noconvert(), "is_transposed"_a, "threads"_a);
}

}  // namespace certifit
