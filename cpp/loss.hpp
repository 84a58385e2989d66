// The compiled losses by number, for those who only pass one on; the formulas are in losses.hpp.
#pragma once

namespace certifit {

enum class Loss { logistic, poisson_log, gamma_log, squared, tweedie_log, negative_binomial_log };
inline constexpr int n_losses = 6;

}  // namespace certifit
