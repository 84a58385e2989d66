#include <stdexcept>
#include <string>

#include "vocabulary.hpp"

namespace certifit::text {
namespace {

// make_row(tokenizer, text, block) -> whether the text is valid; it adds the row to the block.
template <class MakeRow>
Matrix by_row(const Texts& texts, const Analysis& analysis, bool binary, Crew& crew, MakeRow make_row) {
  std::vector<RowBlock> blocks(n_text_blocks(texts));
  crew.for_each_block(blocks.size(), [&](size_t b) {
    Tokenizer tokenizer(analysis);
    std::vector<uint64_t> keys;
    for_each_text(texts, b, crew, [&](size_t row) {
      keys.clear();
      const bool is_valid = make_row(tokenizer, texts[row], keys, blocks[b]);
      if (!is_valid && blocks[b].invalid_row < 0) blocks[b].invalid_row = static_cast<int64_t>(row);
    });
  });
  return assembled(blocks, binary, crew);
}

}  // namespace

Vocabulary::Vocabulary(const Texts& columns, const Texts& stop_words) : terms(stop_words) {
  for (size_t j = 0; j < columns.size(); ++j) {
    std::string_view rest = columns[j];
    uint32_t term = none;
    for (bool is_first = true, is_last = false; !is_last; is_first = false) {
      const size_t space = rest.find(' ');
      is_last = space == std::string_view::npos;
      const uint32_t word = terms.find_or_add_word(rest.substr(0, space));
      if (space == 0 || rest.empty() || terms.is_stop(word))
        throw std::invalid_argument("term " + std::to_string(j) + " of the vocabulary is no term");
      term = is_first ? terms.of_word(word) : terms.find_or_add(term, word);
      if (!is_last) rest.remove_prefix(space + 1);
    }
    if (column.size() < terms.size()) column.resize(std::max<size_t>(terms.size(), 2 * column.size()), none);
    if (column[term] != none)
      throw std::invalid_argument("term " + std::to_string(j) + " of the vocabulary stands there twice");
    column[term] = static_cast<uint32_t>(j);
  }
  column.resize(terms.size(), none);
}

Matrix count_terms(const Texts& texts, const Analysis& analysis, const Vocabulary& vocabulary, bool binary,
                   Crew& crew) {
  const Terms& terms = vocabulary.terms;
  return by_row(texts, analysis, binary, crew, [&](Tokenizer& tokenizer, auto text, auto& keys, RowBlock& block) {
    std::vector<uint32_t> words;
    Patience patience(crew);
    const bool is_valid = tokenizer.read(text, [&](std::string_view word) {
      patience.step();
      const uint32_t found = terms.find_word(word);
      if (found == none || !terms.is_stop(found)) words.push_back(found);
      return false;
    });
    for (size_t i = 0; i < words.size(); ++i) {
      patience.step();
      uint32_t term = words[i] == none ? none : terms.of_word(words[i]);
      const size_t end = std::min(words.size(), i + analysis.max_n);
      for (size_t k = i + 1; term != none; ++k) {
        if (vocabulary.column[term] != none) keys.push_back(static_cast<uint64_t>(vocabulary.column[term]) << 32);
        term = k < end && words[k] != none ? terms.find(term, words[k]) : none;
      }
    }
    block.add_row(keys, [](uint64_t) { return 1; });
    return is_valid;
  });
}

Matrix hash_terms(const Texts& texts, const Analysis& analysis, const Texts& stop_words, uint32_t n_columns,
                  bool is_signed, bool binary, Crew& crew) {
  const Terms stop(stop_words);
  return by_row(texts, analysis, binary, crew, [&](Tokenizer& tokenizer, auto text, auto& keys, RowBlock& block) {
    std::vector<size_t> ends;  // of the words, in the joined text
    size_t n_joined = 0;
    Patience patience(crew);
    const bool is_valid = tokenizer.read(text, [&](std::string_view word) {
      patience.step();
      if (!stop_words.empty() && stop.find_word(word) != none) return false;
      ends.push_back(n_joined + word.size());
      n_joined += word.size() + 1;
      return true;
    });
    const std::string_view joined = tokenizer.joined();
    for (size_t i = 0; i < ends.size(); ++i) {
      patience.step();
      const size_t begin = i ? ends[i - 1] + 1 : 0;
      for (size_t k = i + analysis.min_n - 1; k < std::min(ends.size(), i + analysis.max_n); ++k) {
        const auto hash = static_cast<int64_t>(static_cast<int32_t>(murmur3(joined.substr(begin, ends[k] - begin))));
        const auto column = static_cast<uint64_t>(hash < 0 ? -hash : hash) % n_columns;
        keys.push_back(column << 32 | static_cast<uint64_t>(is_signed && hash < 0));
      }
    }
    block.add_row(keys, [](uint64_t key) { return key & 1 ? -1 : 1; });
    return is_valid;
  });
}

uint32_t murmur3(std::string_view bytes) {
  const auto turn = [](uint32_t x, int by) { return x << by | x >> (32 - by); };
  const auto scrambled = [&](uint32_t k) { return turn(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
  uint32_t hash = 0;
  size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    uint32_t k = 0;
    for (size_t b = 0; b < 4; ++b) k |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + b])) << (8 * b);
    hash = turn(hash ^ scrambled(k), 13) * 5 + 0xe6546b64u;
  }
  uint32_t tail = 0;
  for (size_t b = 0; at + b < bytes.size(); ++b)
    tail |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + b])) << (8 * b);
  if (at < bytes.size()) hash ^= scrambled(tail);
  hash ^= static_cast<uint32_t>(bytes.size());
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

TermTable added(const TermTable& a, const TermTable& b) {
  const auto term = [](const TermTable& table, size_t i) {
    const int64_t begin = i ? table.ends[i - 1] : 0;
    return std::string_view(table.letters.data() + begin, static_cast<size_t>(table.ends[i] - begin));
  };
  TermTable sum;
  const auto take = [&](const TermTable& table, size_t i, int64_t documents, int64_t times) {
    const std::string_view letters = term(table, i);
    sum.letters.insert(sum.letters.end(), letters.begin(), letters.end());
    sum.ends.push_back(static_cast<int64_t>(sum.letters.size()));
    sum.documents.push_back(table.documents[i] + documents);
    sum.times.push_back(table.times[i] + times);
  };
  size_t i = 0, k = 0;
  while (i < a.ends.size() || k < b.ends.size()) {
    const int order = i == a.ends.size() ? 1 : k == b.ends.size() ? -1 : term(a, i).compare(term(b, k));
    if (order < 0) {
      take(a, i++, 0, 0);
    } else if (order > 0) {
      take(b, k++, 0, 0);
    } else {
      take(a, i++, b.documents[k], b.times[k]);
      ++k;
    }
  }
  return sum;
}

}  // namespace certifit::text
