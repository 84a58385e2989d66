// The product of matrices that Python hands over.
#pragma once

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

}  // namespace certifit
