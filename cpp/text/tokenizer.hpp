// Words of a text: the longest runs of word characters, of `min_length` characters or more. With the default of two
// they are the matches of \b\w\w+\b.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "unicode.hpp"

namespace certifit::text {

struct Analysis {
  bool lowercase = true;
  uint32_t min_length = 2;
  uint32_t min_n = 1, max_n = 1;  // words of a term
};

__extension__ typedef unsigned __int128 Product;

inline uint64_t mixed(uint64_t a, uint64_t b) {
  const Product product = static_cast<Product>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// For tables in memory only: no result depends on it.
inline uint64_t hash_of(std::string_view word) {
  uint64_t hash = 0x9E3779B97F4A7C15 ^ word.size(), part = 0;
  const char* at = word.data();
  size_t left = word.size();
  for (; left > 8; left -= 8, at += 8) {
    std::memcpy(&part, at, 8);
    hash = mixed(hash ^ part, 0xBF58476D1CE4E5B9);
  }
  if (left == 8) {
    std::memcpy(&part, at, 8);
  } else if (left >= 4) {  // two loads that may overlap; the size tells what they mean
    uint32_t low = 0, high = 0;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + left - 4, 4);
    part = static_cast<uint64_t>(high) << 32 | low;
  } else if (left > 0) {
    const auto byte = [&](size_t k) { return static_cast<uint64_t>(static_cast<uint8_t>(at[k])); };
    part = byte(0) | byte(left / 2) << 8 | byte(left - 1) << 16;
  }
  return mixed(hash ^ part, 0x94D049BB133111EB);
}

class Tokenizer {
 public:
  explicit Tokenizer(const Analysis& analysis) : analysis_(analysis), characters_(Characters::tables()) {
    for (uint32_t byte = 0; byte < 128; ++byte)
      if (characters_.is_word(byte))
        bytes_[byte] = static_cast<uint8_t>(analysis.lowercase ? characters_.lower(byte) : byte);
    for (uint32_t byte = 128; byte < 256; ++byte) bytes_[byte] = beyond_ascii;
  }

  // keep(word) for every word in order; words that it keeps stay in `joined`, a space between them. False where the
  // bytes are not valid UTF-8: such bytes are no word characters.
  template <class Keep>
  bool read(std::string_view text, Keep keep) {
    // A lower-case letter has at most half as many bytes again as its capital; a word is followed by a separator.
    if (joined_.size() < 2 * text.size() + 16) joined_.resize(2 * text.size() + 16);
    const auto* at = reinterpret_cast<const uint8_t*>(text.data());
    const auto *begin = at, *end = at + text.size();
    char *out = joined_.data(), *word = out;
    uint32_t n_continuing = 0;  // bytes of the word that begin no character
    bool is_valid = true;
    const auto finish = [&] {
      if (out == word) return;
      const bool is_long = static_cast<size_t>(out - word) - n_continuing >= analysis_.min_length;
      n_continuing = 0;
      if (is_long && keep(std::string_view(word, static_cast<size_t>(out - word)))) {
        *out++ = ' ';
        word = out;
      } else {
        out = word;
      }
    };
    while (at < end) {
      uint8_t letter = 0;
      while (at < end && (letter = bytes_[*at]) > beyond_ascii) {
        *out++ = static_cast<char>(letter);
        ++at;
      }
      if (at == end) break;
      if (letter == separator) {
        finish();
        ++at;
        continue;
      }
      const auto place = static_cast<size_t>(at - begin);
      const Decoded read = decode(text, place);
      is_valid = is_valid && read.is_valid;
      at += read.size;
      const uint32_t code = analysis_.lowercase ? lower(read.code, text, place) : read.code;
      if (characters_.is_word(code)) {
        const char* first = out;
        out = encode(code, out);
        n_continuing += static_cast<uint32_t>(out - first) - 1;
        if (analysis_.lowercase && read.code == dotted_capital_i) finish();
      } else {
        finish();
      }
    }
    finish();
    n_joined_ = static_cast<size_t>(word - joined_.data());
    return is_valid;
  }

  std::string_view joined() const { return {joined_.data(), n_joined_ ? n_joined_ - 1 : 0}; }

 private:
  enum : uint8_t { separator = 0, beyond_ascii = 1 };

  uint32_t lower(uint32_t code, std::string_view text, size_t place) const {
    if (code == dotted_capital_i) return 'i';
    return code == capital_sigma ? characters_.lower_sigma(text, place) : characters_.lower(code);
  }

  Analysis analysis_;
  const Characters& characters_;
  std::array<uint8_t, 256> bytes_{};  // lower case of an ASCII word character, or one of the two marks
  std::vector<char> joined_;
  size_t n_joined_ = 0;
};

}  // namespace certifit::text
