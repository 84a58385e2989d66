#include "number_facts.hpp"

#include <algorithm>
#include <bit>

#include "../elementary.hpp"

namespace certifit {
namespace {

constexpr size_t run = 256;  // numbers that are summed before sums are added: roundings stay few

// The sum of f(four numbers) over the whole vectors of x, and of f(one number) over the rest.
template <class OfVec, class OfOne>
double summed(const double* x, size_t m, OfVec of_vec, OfOne of_one) {
  double total = 0;
  for (size_t begin = 0; begin < m; begin += run) {
    const size_t end = std::min(begin + run, m);
    Vec sum[2] = {};
    size_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      sum[0] += of_vec(load(x + i));
      sum[1] += of_vec(load(x + i + lanes));
    }
    const Vec both = sum[0] + sum[1];
    double part = (both[0] + both[1]) + (both[2] + both[3]);
    for (; i < end; ++i) part += of_one(x[i]);
    total += part;
  }
  return total;
}

// The high half of a number is mixed into the low one: floats of few digits have only zeros there. 0 and -0 are one
// number, and a zero must not count as a missing value.
uint64_t fingerprint(const double* x, size_t m, const uint64_t* keys) {
  uint64_t sum = 0;
  for (size_t i = 0; i < m; ++i) {
    const auto word = std::bit_cast<uint64_t>(x[i] + 0.0);
    sum += (((word >> 32) ^ word) + 0x9E3779B97F4A7C15u) * keys[i];
  }
  return sum;
}

}  // namespace

NumberFacts number_facts(const double* x, size_t n, size_t m, const uint64_t* keys, size_t key_stride) {
  NumberFacts out;
  for (auto* part : {&out.lower, &out.upper, &out.mean, &out.squares}) part->resize(n);
  out.fingerprint.resize(n);
  for (size_t k = 0; k < n; ++k, x += m) {
    double low[lanes], high[lanes];
    Vec lower = broadcast(x[0]), upper = lower;
    size_t i = 0;
    for (; i + lanes <= m; i += lanes) {
      const Vec now = load(x + i);
      lower = choose(now < lower, now, lower);
      upper = choose(now > upper, now, upper);
    }
    store(low, lower);
    store(high, upper);
    double least = *std::min_element(low, low + lanes), most = *std::max_element(high, high + lanes);
    for (; i < m; ++i) {
      least = std::min(least, x[i]);
      most = std::max(most, x[i]);
    }
    const double sum = summed(x, m, [](Vec v) { return v; }, [](double v) { return v; });
    const double mean = sum / static_cast<double>(m);
    const double held = std::clamp(mean, least, most), centre = mean - mean == 0 ? held : mean;
    const Vec centres = broadcast(centre);
    out.lower[k] = least;
    out.upper[k] = most;
    out.mean[k] = centre;
    out.squares[k] = summed(
        x, m, [&](Vec v) { return (v - centres) * (v - centres); },
        [&](double v) { return (v - centre) * (v - centre); });
    out.fingerprint[k] = fingerprint(x, m, keys + k * key_stride);
  }
  return out;
}

}  // namespace certifit
