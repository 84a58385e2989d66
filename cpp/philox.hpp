// Random numbers by counter: word i of stream s is a function of (seed, s, i), so any part of any stream can be made
// anywhere, in any order. Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace certifit {

class Philox {
 public:
  static constexpr size_t n_words = 1024;

  Philox(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  uint32_t next() {
    if (used_ == n_words) fill();
    return words_[used_++];
  }

  // Uniform in [0, bound), bound > 0: the high half of word * bound, without the words that would favour some results.
  uint32_t below(uint32_t bound) {
    for (;;) {
      const uint64_t product = uint64_t{next()} * bound;
      const auto low = static_cast<uint32_t>(product);
      // The words to leave out are those whose low half is less than 2^32 mod bound, which is below the bound.
      if (low >= bound || low >= -bound % bound) return static_cast<uint32_t>(product >> 32);
    }
  }

 private:
  static constexpr size_t lanes = n_words / 4;

  // One block of four words a lane; the lanes are independent, so the compiler can use vectors. The first words of all
  // lanes come first, then the second words, and so on.
  void fill() {
    std::array<uint32_t, lanes> a, b, c, d;
    for (size_t l = 0; l < lanes; ++l) {
      const uint64_t counter = counter_ + l;
      a[l] = static_cast<uint32_t>(counter);
      b[l] = static_cast<uint32_t>(counter >> 32);
      c[l] = static_cast<uint32_t>(stream_);
      d[l] = static_cast<uint32_t>(stream_ >> 32);
    }
    uint32_t key_low = static_cast<uint32_t>(seed_), key_high = static_cast<uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      for (size_t l = 0; l < lanes; ++l) {
        const uint64_t first = uint64_t{0xD2511F53u} * a[l], second = uint64_t{0xCD9E8D57u} * c[l];
        a[l] = static_cast<uint32_t>(second >> 32) ^ b[l] ^ key_low;
        c[l] = static_cast<uint32_t>(first >> 32) ^ d[l] ^ key_high;
        b[l] = static_cast<uint32_t>(second);
        d[l] = static_cast<uint32_t>(first);
      }
      key_low += 0x9E3779B9u;
      key_high += 0xBB67AE85u;
    }
    size_t place = 0;
    for (const auto* part : {&a, &b, &c, &d})
      for (const uint32_t word : *part) words_[place++] = word;
    counter_ += lanes;
    used_ = 0;
  }

  uint64_t seed_, stream_, counter_ = 0;
  std::array<uint32_t, n_words> words_{};
  size_t used_ = n_words;
};

}  // namespace certifit
