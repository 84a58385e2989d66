// What every binding needs: arrays checked before the GIL is released, Ctrl-C, vectors handed to NumPy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <string>
#include <vector>

#include "../parallel.hpp"
#include "../tile.hpp"

namespace certifit {

namespace nb = nanobind;

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void check(bool claim, const std::string& message) {
  if (!claim) throw nb::value_error(message.c_str());
}

inline void check_size(const char* name, size_t got, size_t wanted) {
  check(got == wanted, std::string(name) + " has " + std::to_string(got) + " entries, needs " + std::to_string(wanted));
}

inline Dtype dtype_of(const AnyArray& array) {
  const auto type = array.dtype();
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  using Code = nb::dlpack::dtype_code;
  if (code == Code::Float && type.bits == 64) return Dtype::f64;
  if (code == Code::Float && type.bits == 32) return Dtype::f32;
  if (code == Code::Bool) return Dtype::u8;
  const bool is_signed = code == Code::Int;
  check(is_signed || code == Code::UInt, "rows must be float32, float64, integers or bool");
  switch (type.bits) {
    case 64: return is_signed ? Dtype::i64 : Dtype::u64;
    case 32: return is_signed ? Dtype::i32 : Dtype::u32;
    case 16: return is_signed ? Dtype::i16 : Dtype::u16;
    default: return is_signed ? Dtype::i8 : Dtype::u8;
  }
}

// Rows from Python: a 2-D array, or (values, indices, offsets, n_columns) of a CSR matrix whose indices the
// validation gate has checked. Keeps the arrays alive.
struct HeldRows {
  Rows rows;
  std::vector<AnyArray> held;

  explicit HeldRows(const nb::object& x) {
    if (!nb::isinstance<nb::tuple>(x)) {
      AnyArray array = nb::cast<AnyArray>(x, false);
      check(array.ndim() == 2, "rows must be a 2-D array");
      rows.n_rows = array.shape(0);
      rows.n_columns = array.shape(1);
      rows.dtype = dtype_of(array);
      rows.values = array.data();
      rows.row_stride = array.stride(0);
      rows.column_stride = array.stride(1);
      held = {std::move(array)};
      return;
    }
    nb::tuple parts = nb::cast<nb::tuple>(x);
    check(parts.size() == 4, "CSR rows are (values, indices, offsets, n_columns)");
    AnyArray values = nb::cast<AnyArray>(parts[0], false), indices = nb::cast<AnyArray>(parts[1], false),
             offsets = nb::cast<AnyArray>(parts[2], false);
    rows.is_sparse = true;
    rows.n_columns = nb::cast<size_t>(parts[3]);
    rows.dtype = dtype_of(values);
    check(rows.dtype == Dtype::f64 || rows.dtype == Dtype::f32, "CSR values must be float32 or float64");
    const Dtype index = dtype_of(indices);
    check(index == dtype_of(offsets) && (index == Dtype::i32 || index == Dtype::i64),
          "CSR indices and offsets must both be int32 or both int64");
    for (const AnyArray* a : {&values, &indices, &offsets})
      check(a->ndim() == 1 && (a->shape(0) < 2 || a->stride(0) == 1), "CSR arrays must be contiguous and 1-D");
    check(offsets.shape(0) >= 1, "CSR offsets are empty");
    check_size("CSR indices", indices.shape(0), values.shape(0));
    rows.n_rows = offsets.shape(0) - 1;
    rows.wide_index = index == Dtype::i64;
    rows.values = values.data();
    rows.indices = indices.data();
    rows.offsets = offsets.data();
    check(rows.offset(rows.n_rows) <= static_cast<int64_t>(values.shape(0)), "CSR offsets point beyond the values");
    held = {std::move(values), std::move(indices), std::move(offsets)};
  }
};

// Runs `work(crew)` without the GIL; a pending signal (Ctrl-C) ends it and its exception is raised.
template <class Work>
auto run(int n_threads, Work work) {
  auto poll = [] {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
  };
  try {
    nb::gil_scoped_release nogil;
    Crew crew(n_threads, poll);
    return work(crew);
  } catch (const Interrupted&) {
    if (PyErr_Occurred()) throw nb::python_error();
    throw;
  }
}

template <size_t ndim>
nb::ndarray<nb::numpy, double, nb::ndim<ndim>> to_numpy(std::vector<double>&& values, const size_t (&shape)[ndim]) {
  auto* kept = new std::vector<double>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return nb::ndarray<nb::numpy, double, nb::ndim<ndim>>(kept->data(), ndim, shape, owner);
}
inline auto to_numpy(std::vector<double>&& values) {
  const size_t shape[1] = {values.size()};
  return to_numpy<1>(std::move(values), shape);
}

}  // namespace certifit
