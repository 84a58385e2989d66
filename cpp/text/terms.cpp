#include "terms.hpp"

namespace certifit::text {
namespace {

// First eight bytes as a number that sorts as they do.
uint64_t leading_bytes(std::string_view word) {
  uint64_t key = 0;
  for (size_t k = 0; k < 8; ++k) key = key << 8 | (k < word.size() ? static_cast<uint8_t>(word[k]) : 0);
  return key;
}

std::vector<uint32_t> word_ranks(const Words& words, const std::vector<uint8_t>& used) {
  struct Key {
    uint64_t leading;
    uint32_t word;
  };
  std::vector<Key> keys;
  for (uint32_t i = 0; i < words.size(); ++i)
    if (used[i]) keys.push_back({leading_bytes(words[i]), i});
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    return a.leading != b.leading ? a.leading < b.leading : words[a.word] < words[b.word];
  });
  std::vector<uint32_t> ranks(words.size(), none);
  for (uint32_t rank = 0; rank < keys.size(); ++rank) ranks[keys[rank].word] = rank;
  return ranks;
}

}  // namespace

std::vector<uint32_t> sorted_places(const Terms& terms, const std::vector<uint8_t>& wanted) {
  std::vector<uint8_t> on_path(wanted);  // wanted, or the beginning of a wanted term
  std::vector<uint8_t> used(terms.words().size(), 0);
  for (uint32_t i = terms.size(); i-- > 0;) {
    if (!on_path[i]) continue;
    used[terms[i].word] = 1;
    if (terms[i].before != none) on_path[terms[i].before] = 1;
  }
  const std::vector<uint32_t> ranks = word_ranks(terms.words(), used);
  struct Key {
    uint64_t place;  // (term before it or 0, rank of its word)
    uint32_t term;
  };
  std::vector<Key> keys;
  for (uint32_t i = 0; i < terms.size(); ++i)
    if (on_path[i]) keys.push_back({static_cast<uint64_t>(terms[i].before + 1) << 32 | ranks[terms[i].word], i});
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.place < b.place; });
  // A term comes before those it begins: the tree in preorder, with the keys as lists of children.
  std::vector<uint32_t> first_child(terms.size() + 1, none);
  for (size_t k = keys.size(); k-- > 0;) first_child[keys[k].place >> 32] = static_cast<uint32_t>(k);
  std::vector<uint32_t> places(terms.size(), none), path;
  uint32_t next = 0;
  if (!keys.empty()) path.push_back(0);
  while (!path.empty()) {
    const uint32_t k = path.back();
    if (k + 1 < keys.size() && keys[k + 1].place >> 32 == keys[k].place >> 32)
      path.back() = k + 1;
    else
      path.pop_back();
    const uint32_t term = keys[k].term;
    if (wanted[term]) places[term] = next++;
    if (first_child[term + 1] != none) path.push_back(first_child[term + 1]);
  }
  return places;
}

}  // namespace certifit::text
