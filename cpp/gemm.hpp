// Products of matrices of a BLAS that the caller hands over.
#pragma once

namespace certifit {

// sgemm or dgemm of Fortran: column-major, every argument by address.
template <class T>
using GemmOf = void (*)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);
using Gemm = GemmOf<double>;
using Syrk = void (*)(char*, char*, int*, int*, double*, double*, int*, double*, double*, int*);  // dsyrk

}  // namespace certifit
