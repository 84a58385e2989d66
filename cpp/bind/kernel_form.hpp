// The form of a kernel from Python.
#pragma once

#include "../kernels.hpp"
#include "check.hpp"

namespace certifit {

inline KernelForm form_of(const std::string& kind, double constant, int degree) {
  check(degree >= 0, "degree must be >= 0");
  if (kind == "gaussian") return {KernelForm::Kind::gaussian};
  if (kind == "linear") return {KernelForm::Kind::linear};
  check(kind == "polynomial", "unknown kind of kernel: " + kind);
  return {KernelForm::Kind::polynomial, constant, degree};
}

}  // namespace certifit
