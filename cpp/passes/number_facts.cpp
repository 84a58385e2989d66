#include "number_facts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "../elementary.hpp"

namespace certifit {
namespace {

constexpr size_t run = 256;  // numbers that are summed before sums are added: roundings stay few

// The high half of a number is mixed into the low one: floats of few digits have only zeros there. 0 and -0 are one
// number, and a zero must not count as a missing value.
template <class Number, class Word>
Word mixed(Number x, Word key) {
  const auto word = std::bit_cast<Word>(x + 0.0);
  return (((word >> 32) ^ word) + 0x9E3779B97F4A7C15u) * key;
}

// What the first reading of a line tells. Sums and words wait for different units of the processor: side by side.
struct Line {
  double least, most, sum = 0;
  uint64_t fingerprint = 0;

  Line(const double* x, size_t m, const uint64_t* keys) : least(x[0]), most(x[0]) {
    Vec lower[2] = {broadcast(x[0]), broadcast(x[0])}, upper[2] = {lower[0], lower[0]};
    Wrapping words{};
    for (size_t begin = 0; begin < m; begin += run) {
      const size_t end = std::min(begin + run, m);
      Vec part[2] = {};
      size_t i = begin;
      for (; i + 2 * lanes <= end; i += 2 * lanes)
        for (size_t k = 0; k < 2; ++k) {
          const Vec now = load(x + i + k * lanes);
          Wrapping key;
          std::memcpy(&key, keys + i + k * lanes, sizeof key);
          part[k] += now;
          lower[k] = now < lower[k] ? now : lower[k];
          upper[k] = now > upper[k] ? now : upper[k];
          words += mixed(now, key);
        }
      const Vec both = part[0] + part[1];
      double total = (both[0] + both[1]) + (both[2] + both[3]);
      for (; i < end; ++i) {
        total += x[i];
        least = std::min(least, x[i]);
        most = std::max(most, x[i]);
        fingerprint += mixed(x[i], keys[i]);
      }
      sum += total;
    }
    for (size_t k = 0; k < 2; ++k)
      for (size_t l = 0; l < lanes; ++l) {
        least = std::min(least, lower[k][l]);
        most = std::max(most, upper[k][l]);
      }
    for (size_t l = 0; l < lanes; ++l) fingerprint += words[l];
  }
};

// sum_i (x_i - centre)^2
double squares_about(double centre, const double* x, size_t m) {
  const Vec centres = broadcast(centre);
  double total = 0;
  for (size_t begin = 0; begin < m; begin += run) {
    const size_t end = std::min(begin + run, m);
    Vec sum[2] = {};
    size_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes)
      for (size_t k = 0; k < 2; ++k) {
        const Vec apart = load(x + i + k * lanes) - centres;
        sum[k] += apart * apart;
      }
    const Vec both = sum[0] + sum[1];
    double part = (both[0] + both[1]) + (both[2] + both[3]);
    for (; i < end; ++i) part += (x[i] - centre) * (x[i] - centre);
    total += part;
  }
  return total;
}

}  // namespace

NumberFacts number_facts(const double* x, size_t n, size_t m, const uint64_t* keys, size_t key_stride) {
  NumberFacts out;
  for (auto* part : {&out.lower, &out.upper, &out.mean, &out.squares}) part->resize(n);
  out.fingerprint.resize(n);
  for (size_t k = 0; k < n; ++k, x += m) {
    const Line line(x, m, keys + k * key_stride);
    const double mean = line.sum / static_cast<double>(m);
    const double held = std::clamp(mean, line.least, line.most), centre = mean - mean == 0 ? held : mean;
    out.lower[k] = line.least;
    out.upper[k] = line.most;
    out.mean[k] = centre;
    out.squares[k] = squares_about(centre, x, m);
    out.fingerprint[k] = line.fingerprint;
  }
  return out;
}

}  // namespace certifit
