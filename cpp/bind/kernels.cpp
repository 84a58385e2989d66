#include "../kernels.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "../narrow.hpp"
#include "../pages.hpp"
#include "gemm.hpp"
#include "kernel_form.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

template <class A>
auto dense(const char* name, const A& a) -> MatrixOf<std::remove_cv_t<std::remove_pointer_t<decltype(a.data())>>> {
  const size_t limit = (size_t{1} << 31) - 1;
  check(a.shape(0) <= limit && a.shape(1) <= limit, std::string(name) + " has 2^31 rows or columns or more");
  return {a.data(), a.shape(0), a.shape(1)};
}

// An array of NumPy's that is filled before it is returned.
template <class T, class Fill>
nb::object filled(size_t n_rows, size_t n_columns, Fill fill) {
  Pages<T> values = pages<T>(n_rows * n_columns);
  fill(values.get());
  T* data = values.release();
  nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
  const size_t shape[2] = {n_rows, n_columns};
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(data, 2, shape, owner));
}

template <class T>
nb::object matrix_py(nb::capsule dgemm, const std::string& kind, double constant, int degree, Matrix X, Matrix Z,
                     int threads) {
  const Gemm gemm = gemm_of<double>(dgemm);
  const KernelForm form = form_of(kind, constant, degree);
  const DenseMatrix x = dense("X", X), z = dense("Z", Z);
  check_size("a row of Z", z.n_columns, x.n_columns);
  return filled<T>(x.n_rows, z.n_rows,
                   [&](T* K) { run(threads, [&](Crew& crew) { kernel_matrix(gemm, form, x, z, K, crew); }); });
}

nb::object times_py(nb::capsule dgemm, const std::string& kind, double constant, int degree, Matrix X, Matrix Z,
                    Matrix V, int threads) {
  const Gemm gemm = gemm_of<double>(dgemm);
  const KernelForm form = form_of(kind, constant, degree);
  const DenseMatrix x = dense("X", X), z = dense("Z", Z), v = dense("V", V);
  check_size("a row of Z", z.n_columns, x.n_columns);
  check_size("V", v.n_rows, z.n_rows);
  return filled<double>(x.n_rows, v.n_columns, [&](double* out) {
    run(threads, [&](Crew& crew) { kernel_times(gemm, form, x, z, v, out, crew); });
  });
}

template <class T>
nb::object multiply_py(nb::capsule blas, Array<T, 2> A, Array<T, 2> B, bool is_transposed, int threads) {
  const GemmOf<T> gemm = gemm_of<T>(blas);
  const MatrixOf<T> a = dense("A", A), b = dense("B", B);
  check_size("B", b.n_rows, is_transposed ? a.n_rows : a.n_columns);
  return filled<T>(is_transposed ? a.n_columns : a.n_rows, b.n_columns,
                   [&](T* out) { run(threads, [&](Crew& crew) { multiply(gemm, a, is_transposed, b, out, crew); }); });
}

template <class T>
nb::object narrow_py(Array<T, 2> A, Array<T, 2> V, Array<int64_t, 1> bounds, Array<uint8_t, 2> is_on, int threads) {
  const MatrixOf<T> a = dense("A", A), v = dense("V", V);
  check_size("V", v.n_rows, a.n_columns);
  check(bounds.shape(0) >= 2, "bounds must have two numbers or more");
  check_size("is_on", is_on.shape(0), bounds.shape(0) - 1);
  check_size("a row of is_on", is_on.shape(1), v.n_columns);
  const std::span<const int64_t> rows(bounds.data(), bounds.shape(0));
  const int64_t whole[2] = {0, static_cast<int64_t>(a.n_columns)};
  const bool has_groups = rows.size() > 2;
  check(rows.front() == 0 && std::is_sorted(rows.begin(), rows.end()) && rows.back() == static_cast<int64_t>(a.n_rows),
        "bounds must rise from 0 to the number of rows");
  check(!has_groups || a.n_rows == a.n_columns, "a matrix with groups of rows must be square");
  const Groups groups{rows, has_groups ? rows : std::span<const int64_t>(whole), is_on.data()};
  return filled<T>(a.n_rows, v.n_columns,
                   [&](T* out) { run(threads, [&](Crew& crew) { narrow_product(a, v, groups, out, crew); }); });
}

nb::object inner_products_py(nb::capsule dsyrk, Matrix A, size_t block_rows, int threads) {
  const Syrk syrk = syrk_of(dsyrk);
  const DenseMatrix a = dense("A", A);
  constexpr size_t most = (size_t{1} << 31) - 1;  // that the BLAS counts
  check(a.n_columns > 0 && block_rows > 0, "A needs a column, and blocks a row");
  check(a.n_columns <= most && block_rows <= most, "columns or rows of a block are 2^31 or more");
  const size_t shape[2] = {a.n_columns, a.n_columns};
  return nb::cast(
      to_numpy<2>(run(threads, [&](Crew& crew) { return inner_products(syrk, a, block_rows, crew); }), shape));
}

}  // namespace

void bind_kernels(nb::module_& m) {
  m.def("kernel_matrix", matrix_py<double>, "dgemm"_a, "kind"_a, "constant"_a, "degree"_a, "X"_a.noconvert(),
        "Z"_a.noconvert(), "threads"_a);
  m.def("kernel_matrix_short", matrix_py<float>, "dgemm"_a, "kind"_a, "constant"_a, "degree"_a, "X"_a.noconvert(),
        "Z"_a.noconvert(), "threads"_a);
  m.def("inner_products", inner_products_py, "dsyrk"_a, "A"_a.noconvert(), "block_rows"_a, "threads"_a);
  m.def("kernel_times", times_py, "dgemm"_a, "kind"_a, "constant"_a, "degree"_a, "X"_a.noconvert(), "Z"_a.noconvert(),
        "V"_a.noconvert(), "threads"_a);
  m.def("multiply", multiply_py<double>, "dgemm"_a, "A"_a.noconvert(), "B"_a.noconvert(), "is_transposed"_a,
        "threads"_a);
  m.def("narrow_product", narrow_py<double>, "A"_a.noconvert(), "V"_a.noconvert(), "bounds"_a.noconvert(),
        "is_on"_a.noconvert(), "threads"_a);
  m.def("narrow_product_short", narrow_py<float>, "A"_a.noconvert(), "V"_a.noconvert(), "bounds"_a.noconvert(),
        "is_on"_a.noconvert(), "threads"_a);
  m.def("multiply_short", multiply_py<float>, "sgemm"_a, "A"_a.noconvert(), "B"_a.noconvert(), "is_transposed"_a,
        "threads"_a);
}

}  // namespace certifit
