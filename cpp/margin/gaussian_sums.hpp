// Sums of Gaussian kernels in float32, sum_j c_j exp(-|x_i - z_j|^2 / 2), of points with few coordinates: products,
// kernel and sums of sixteen x by six z stay in registers.
//
// How far such a sum can be off, u = 2^-24: coordinates are rounded to float32, 2u (|x|^2 + |z|^2) of the exponent; a
// product of d terms is off by at most d u |x| |z|, halves of squares and the three sums with them by 3u (|x|^2 +
// |z|^2), the power of float32 by 5u of itself (every float was tried), a coefficient and a sum of six terms by 7u.
// Together, relative to sum_j |c_j| exp(...):  ((d / 2 + 6) (|x|^2 + |z|^2) + 12) u, and 2^-125 for what is
// smaller. Sums of six terms are added in float64.
#pragma once

#include <cstddef>
#include <vector>

#include "../parallel.hpp"

namespace certifit::margin {

// Points in float32, sixteen side by side, with halves of their squares; the last panel is filled up with 0. They are
// multiplied by `scale_of_points` already, as those of the terms are.
struct Panels {
  static constexpr size_t width = 16;

  Panels(const float* points, const float* halves, size_t n, size_t d);

  size_t n, d;
  std::vector<float> values, halves;
  float largest = 0;  // half of a square
};

// Points with their coefficients, in sixes; the last are filled up with coefficients of 0.
class Terms {
 public:
  // room for n points
  Terms(size_t n, size_t d);

  void add(const float* point, float half, float coefficient);
  // f[i] += the sum of all terms at point i of the panels, for every i.
  void add_sums(const Panels& x, double* f, Crew& crew) const;

 private:
  template <bool is_near>
  void add_tile(const Panels& x, size_t panel, size_t first, size_t last, double* sums) const;

  size_t d_, n_ = 0;
  float largest_ = 0;
  std::vector<float> points_, halves_, coefficients_;
};

// out_i = sum_j c_j exp(-|x_i - z_j|^2 / 2); X and Z are rounded to float32 first. The same bits for any threads.
void gaussian_sums(const double* X, size_t n, const double* Z, size_t m, size_t d, const double* c, double* out,
                   Crew& crew);

}  // namespace certifit::margin
