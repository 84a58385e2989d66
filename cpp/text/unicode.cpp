#include "unicode.hpp"

#include <algorithm>
#include <iterator>

namespace certifit::text {

const Characters& Characters::tables() {
  static const Characters only;
  return only;
}

Characters::Characters() : flags_(0x110000, 0) {
  const auto mark = [&](const auto& ranges, uint8_t flag) {
    for (const CodeRange& range : ranges)
      for (uint32_t code = range.first; code <= range.last; ++code) flags_[code] |= flag;
  };
  mark(word_ranges, word);
  mark(cased_ranges, cased);
  mark(ignorable_ranges, ignorable);
  for (const LowerRun& run : lower_runs)
    for (uint32_t code = run.first; code <= run.last; code += run.step) flags_[code] |= changes;
}

uint32_t Characters::find_lower(uint32_t code) {
  const LowerRun* run = std::upper_bound(std::begin(lower_runs), std::end(lower_runs), code,
                                         [](uint32_t c, const LowerRun& r) { return c < r.first; }) -
                        1;
  return static_cast<uint32_t>(static_cast<int32_t>(code) + run->distance);
}

uint32_t Characters::lower_sigma(std::string_view text, size_t at) const {
  constexpr uint32_t sigma = 0x3C3, final_sigma = 0x3C2;
  bool is_final = false;
  for (size_t i = at; i > 0;) {
    const size_t end = i;
    do --i;
    while (i > 0 && end - i < 4 && (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80);
    const Decoded before = decode(text, i);
    if (i + before.size != end) break;  // bytes that are no character
    if (is_ignorable(before.code)) continue;
    is_final = is_cased(before.code);
    break;
  }
  for (size_t i = at + 2; is_final && i < text.size();) {
    const Decoded after = decode(text, i);
    i += after.size;
    if (is_ignorable(after.code)) continue;
    is_final = !is_cased(after.code);
    break;
  }
  return is_final ? final_sigma : sigma;
}

}  // namespace certifit::text
