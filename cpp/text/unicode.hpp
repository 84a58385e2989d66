// Characters of UTF-8 text: which belong to a word, and their lower case. Word characters are those of \w in Python's
// re; lower case is that of str.lower, Greek final sigma and U+0130 included. The tables are of one Unicode version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "unicode_tables.hpp"

namespace certifit::text {

struct Decoded {
  uint32_t code = 0xFFFD;  // U+FFFD where the bytes are not valid
  uint32_t size = 1;       // bytes
  bool is_valid = false;
};

// The character that begins at `at`. Refuses overlong forms, surrogates and what lies beyond U+10FFFF.
inline Decoded decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t k) { return static_cast<uint8_t>(text[at + k]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const uint32_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || size > text.size() - at) return {};
  uint32_t code = lead & (0x7Fu >> size);
  for (uint32_t k = 1; k < size; ++k) {
    if ((byte(k) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(k) & 0x3F);
  }
  static constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, size, true};
}

inline char* encode(uint32_t code, char* out) {
  const auto put = [&](uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
  return out;
}

class Characters {
 public:
  static const Characters& tables();

  bool is_word(uint32_t code) const { return flags_[code] & word; }
  bool is_cased(uint32_t code) const { return flags_[code] & cased; }
  bool is_ignorable(uint32_t code) const { return flags_[code] & ignorable; }

  // Lower case of one character to one character. U+0130 is i and a dot: the dot is no word character, so the caller
  // ends the word after the i.
  uint32_t lower(uint32_t code) const { return flags_[code] & changes ? find_lower(code) : code; }

  // Lower case of the capital sigma at `at`: final where a cased letter stands before it and none after it,
  // case-ignorable characters skipped.
  uint32_t lower_sigma(std::string_view text, size_t at) const;

 private:
  enum : uint8_t { word = 1, cased = 2, ignorable = 4, changes = 8 };
  Characters();
  static uint32_t find_lower(uint32_t code);
  std::vector<uint8_t> flags_;  // a byte a character
};

inline constexpr uint32_t dotted_capital_i = 0x130, capital_sigma = 0x3A3;

}  // namespace certifit::text
