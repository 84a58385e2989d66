// Terms of one word or several, as a tree: a term of n words is the term of its first n - 1 words and its last word.
// A word is found by its letters, a longer term by two numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "tokenizer.hpp"

namespace certifit::text {

inline constexpr uint32_t none = 0xFFFFFFFF;

// Open addressing over entries 0, 1, 2, ...; a slot holds the upper half of the hash beside the entry.
class Slots {
 public:
  template <class Same>
  uint32_t find(uint64_t hash, Same same) const {
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.entry == none) return none;
      if (slot.tag == tag && same(slot.entry)) return slot.entry;
    }
  }

  template <class HashOf>
  void add(uint64_t hash, uint32_t entry, HashOf hash_of_entry) {
    if (2 * (n_ + 1) > slots_.size()) {
      slots_.assign(2 * slots_.size(), {});
      mask_ = slots_.size() - 1;
      for (uint32_t i = 0; i < n_; ++i) put(hash_of_entry(i), i);
    }
    if (n_ == none - 1) throw std::length_error("a text has more than 2^32 different terms");
    put(hash, entry);
    ++n_;
  }

 private:
  struct Slot {
    uint32_t tag = 0, entry = none;
  };
  void put(uint64_t hash, uint32_t entry) {
    size_t i = hash & mask_;
    while (slots_[i].entry != none) i = (i + 1) & mask_;
    slots_[i] = {static_cast<uint32_t>(hash >> 32), entry};
  }
  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  size_t mask_ = 1023;
  uint32_t n_ = 0;
};

class Words {
 public:
  uint32_t find(std::string_view word, uint64_t hash) const {
    return slots_.find(hash, [&](uint32_t i) { return (*this)[i] == word; });
  }
  uint32_t find(std::string_view word) const { return find(word, hash_of(word)); }

  uint32_t find_or_add(std::string_view word) {
    const uint64_t hash = hash_of(word);
    const uint32_t found = find(word, hash);
    if (found != none) return found;
    const uint32_t added = size();
    slots_.add(hash, added, [&](uint32_t i) { return hashes_[i]; });
    hashes_.push_back(hash);
    letters_.insert(letters_.end(), word.begin(), word.end());
    ends_.push_back(letters_.size());
    return added;
  }

  uint32_t size() const { return static_cast<uint32_t>(hashes_.size()); }
  std::string_view operator[](uint32_t i) const {
    const size_t begin = i ? ends_[i - 1] : 0;
    return {letters_.data() + begin, ends_[i] - begin};
  }

 private:
  Slots slots_;
  std::vector<uint64_t> hashes_;
  std::vector<size_t> ends_;
  std::vector<char> letters_;
};

class Terms {
 public:
  struct Term {
    uint32_t before, word;  // the term of all words but the last, or none; the last word
  };

  // Stop words are known from the start and make no term.
  explicit Terms(const std::vector<std::string_view>& stop_words = {}) {
    for (std::string_view word : stop_words) words_.find_or_add(word);
    n_stop_ = words_.size();
    term_of_word_.assign(n_stop_, none);
  }

  bool is_stop(uint32_t word) const { return word < n_stop_; }
  uint32_t find_word(std::string_view word) const { return words_.find(word); }
  uint32_t find_or_add_word(std::string_view word) {
    const uint32_t found = words_.find_or_add(word);
    if (found == term_of_word_.size()) {
      term_of_word_.push_back(size());
      terms_.push_back({none, found});
    }
    return found;
  }

  // The term of one word; none for a stop word.
  uint32_t of_word(uint32_t word) const { return term_of_word_[word]; }
  uint32_t find(uint32_t before, uint32_t word) const {
    const uint32_t found = slots_.find(hash(before, word), [&](uint32_t i) {
      const Term& term = terms_[longer_[i]];
      return term.before == before && term.word == word;
    });
    return found == none ? none : longer_[found];
  }
  uint32_t find_or_add(uint32_t before, uint32_t word) {
    const uint32_t found = find(before, word);
    if (found != none) return found;
    const uint32_t added = size();
    if (added == none - 1) throw std::length_error("the texts have more than 2^32 different terms");
    slots_.add(hash(before, word), static_cast<uint32_t>(longer_.size()), [&](uint32_t i) {
      const Term& term = terms_[longer_[i]];
      return hash(term.before, term.word);
    });
    longer_.push_back(added);
    terms_.push_back({before, word});
    return added;
  }

  uint32_t size() const { return static_cast<uint32_t>(terms_.size()); }
  const Term& operator[](uint32_t i) const { return terms_[i]; }
  const Words& words() const { return words_; }

 private:
  static uint64_t hash(uint32_t before, uint32_t word) {
    return mixed((static_cast<uint64_t>(before) << 32 | word) ^ 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9);
  }
  Words words_;
  uint32_t n_stop_ = 0;
  std::vector<uint32_t> term_of_word_;
  std::vector<Term> terms_;  // a term comes after the one it lengthens
  Slots slots_;              // of longer_
  std::vector<uint32_t> longer_;
};

// Places of the terms in the order of their texts (words joined by spaces, compared by code points) among those that
// are `wanted`; none for the others. A space sorts before every word character, so a term sorts word by word.
std::vector<uint32_t> sorted_places(const Terms& terms, const std::vector<uint8_t>& wanted);

}  // namespace certifit::text
