// The quadratic part of a lasso: 1/2 |y - Xw|^2 / W by its Gram matrix, given at some weights w0 ("origin"):
//   G = X'X / W,   moment = X'(y - X w0) / W,   square = |y - X w0|^2 / W.
// The correlations with the residual are q = moment - G (w - w0).
#pragma once

#include <cstddef>
#include <vector>

namespace certifit {

struct GramSystem {
  size_t n_columns = 0, stride = 0;
  const double* gram = nullptr;  // G, symmetric; `stride` from a row to the next
  const double* moment = nullptr;
  const double* origin = nullptr;  // none: 0
  double square = 0;
  double least = 0;  // an objective below it is an exact fit to rounding
  std::vector<double> diagonal;
  std::vector<char> is_dead;  // columns of which only rounding is left: their weight stays 0

  const double* column(size_t j) const { return gram + j * stride; }
  double moved(const double* weights, size_t j) const { return origin ? weights[j] - origin[j] : weights[j]; }
};

// Of a whole data set: at weights 0, n x n entries.
GramSystem gram_system(size_t n, const double* gram, const double* moment, double square);

// q, summed anew.
void correlations(const GramSystem& system, const double* weights, double* q);

// |y - Xw|^2 / W
double residual_squares(const GramSystem& system, const double* weights, const double* q);

}  // namespace certifit
