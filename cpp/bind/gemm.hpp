// The product of matrices that Python hands over.
#pragma once

#include <algorithm>
#include <cstring>

#include "../gemm.hpp"
#include "check.hpp"

namespace certifit {

// scipy.linalg.cython_blas has its functions as capsules that are named by their signature.
template <class T>
GemmOf<T> gemm_of(const nb::capsule& capsule) {
  constexpr bool is_double = sizeof(T) == sizeof(double);
  const char* name = capsule.name();
  const char* start = "void (char *, char *, int *, int *, int *, ";
  const char* number = is_double ? "cython_blas_d *" : "cython_blas_s *";
  check(name != nullptr && std::strncmp(name, start, std::strlen(start)) == 0 && std::strstr(name, number) != nullptr,
        is_double ? "gemm must be the capsule of dgemm in scipy.linalg.cython_blas"
                  : "gemm must be the capsule of sgemm in scipy.linalg.cython_blas");
  return reinterpret_cast<GemmOf<T>>(capsule.data());
}

inline Syrk syrk_of(const nb::capsule& capsule) {
  const char* name = capsule.name();
  const char* start = "void (char *, char *, int *, int *, ";
  // Ten arguments, four of them numbers, the fifth one of these.
  const auto is_wanted = [](const std::string& text, size_t at) {
    size_t n_numbers = 0;
    for (size_t k = 0; (k = text.find("cython_blas_d *", k)) != std::string::npos; ++k) ++n_numbers;
    return n_numbers == 4 && text.compare(at, 3, "int") != 0 && std::count(text.begin(), text.end(), ',') == 9;
  };
  check(name != nullptr && std::strncmp(name, start, std::strlen(start)) == 0 && is_wanted(name, std::strlen(start)),
        "syrk must be the capsule of dsyrk in scipy.linalg.cython_blas");
  return reinterpret_cast<Syrk>(capsule.data());
}

}  // namespace certifit
