#include <algorithm>

#include "vocabulary.hpp"

namespace certifit::text {
namespace {

struct Frequency {
  uint64_t times = 0;
  uint32_t documents = 0;
  uint32_t last_text = none;  // the text that counted it last, and where its entry stands
  uint32_t entry = 0;
};

// The terms that one thread has seen, numbered as they came.
class Counter {
 public:
  Counter(const Analysis& analysis, const Texts& stop_words, size_t number)
      : terms(stop_words), number(static_cast<uint32_t>(number)), analysis_(analysis), tokenizer_(analysis) {}

  Terms terms;
  std::vector<Frequency> frequencies;
  uint32_t number;

  bool read(std::string_view text, uint32_t row, RowBlock& block, Crew& crew) {
    words_.clear();
    Patience patience(crew);
    const bool is_valid = tokenizer_.read(text, [&](std::string_view word) {
      patience.step();
      const uint32_t found = terms.find_or_add_word(word);
      if (!terms.is_stop(found)) words_.push_back(found);
      return false;
    });
    const size_t before = block.columns.size();
    for (size_t i = 0; i < words_.size(); ++i) {
      patience.step();
      uint32_t term = terms.of_word(words_[i]);
      if (analysis_.min_n == 1) count(term, row, block);
      const size_t end = std::min(words_.size(), i + analysis_.max_n);
      for (size_t k = i + 1; k < end; ++k) {
        term = terms.find_or_add(term, words_[k]);
        if (k - i + 1 >= analysis_.min_n) count(term, row, block);
      }
    }
    block.sizes.push_back(static_cast<uint32_t>(block.columns.size() - before));
    return is_valid;
  }

  // Adds what another thread has seen; the numbers here of its terms.
  std::vector<uint32_t> absorb(const Counter& other, Crew& crew) {
    const Words& words = other.terms.words();
    Patience patience(crew);
    std::vector<uint32_t> word_here(words.size()), term_here(other.terms.size());
    for (uint32_t i = 0; i < words.size(); ++i) {
      patience.step();
      word_here[i] = terms.find_or_add_word(words[i]);
    }
    for (uint32_t i = 0; i < other.terms.size(); ++i) {
      patience.step();
      const auto& term = other.terms[i];
      const uint32_t word = word_here[term.word];
      term_here[i] = term.before == none ? terms.of_word(word) : terms.find_or_add(term_here[term.before], word);
    }
    frequencies.resize(terms.size());
    const size_t n_counted = std::min(other.frequencies.size(), term_here.size());  // room is made ahead
    for (size_t i = 0; i < n_counted; ++i) {
      frequencies[term_here[i]].times += other.frequencies[i].times;
      frequencies[term_here[i]].documents += other.frequencies[i].documents;
    }
    return term_here;
  }

 private:
  void count(uint32_t term, uint32_t row, RowBlock& block) {
    if (term >= frequencies.size()) frequencies.resize(std::max<size_t>(terms.size(), 2 * frequencies.size()));
    Frequency& found = frequencies[term];
    ++found.times;
    if (found.last_text == row) {
      ++block.values[found.entry];
      return;
    }
    found.last_text = row;
    found.entry = static_cast<uint32_t>(block.columns.size());
    ++found.documents;
    block.columns.push_back(term);
    block.values.push_back(1);
  }

  Analysis analysis_;
  Tokenizer tokenizer_;
  std::vector<uint32_t> words_;
};

// Column of each term, or none.
std::vector<uint32_t> chosen_columns(const Counter& counter, const Limits& limits, bool binary) {
  const auto& frequencies = counter.frequencies;
  std::vector<uint8_t> wanted(counter.terms.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double documents = frequencies[i].documents;
    wanted[i] = documents > 0 && documents >= limits.low && documents <= limits.high;
  }
  std::vector<uint32_t> places = sorted_places(counter.terms, wanted);
  const size_t n_wanted = static_cast<size_t>(std::count(wanted.begin(), wanted.end(), 1));
  if (limits.most < 0 || n_wanted <= static_cast<size_t>(limits.most)) return places;
  struct Candidate {
    uint64_t frequency;
    uint32_t place, term;
  };
  std::vector<Candidate> candidates;
  for (uint32_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) candidates.push_back({binary ? frequencies[i].documents : frequencies[i].times, places[i], i});
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.frequency != b.frequency ? a.frequency > b.frequency : a.place < b.place;
  });
  candidates.resize(static_cast<size_t>(limits.most));
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.place < b.place; });
  std::fill(places.begin(), places.end(), none);
  for (uint32_t k = 0; k < candidates.size(); ++k) places[candidates[k].term] = k;
  return places;
}

void append(const Terms& terms, uint32_t i, std::vector<char>& letters) {
  if (terms[i].before != none) {
    append(terms, terms[i].before, letters);
    letters.push_back(' ');
  }
  const std::string_view word = terms.words()[terms[i].word];
  letters.insert(letters.end(), word.begin(), word.end());
}

TermTable table_of(const Counter& counter, const std::vector<uint32_t>& columns) {
  std::vector<uint32_t> term_of(columns.size() - static_cast<size_t>(std::count(columns.begin(), columns.end(), none)));
  for (uint32_t i = 0; i < columns.size(); ++i)
    if (columns[i] != none) term_of[columns[i]] = i;
  TermTable table;
  for (uint32_t i : term_of) {
    append(counter.terms, i, table.letters);
    table.ends.push_back(static_cast<int64_t>(table.letters.size()));
    table.documents.push_back(counter.frequencies[i].documents);
    table.times.push_back(static_cast<int64_t>(counter.frequencies[i].times));
  }
  return table;
}

// The block with columns in place of terms.
RowBlock in_columns(const RowBlock& block, const std::vector<uint32_t>& columns) {
  RowBlock out;
  out.invalid_row = block.invalid_row;
  out.columns.reserve(block.columns.size());
  out.values.reserve(block.columns.size());
  std::vector<uint64_t> keys;
  size_t entry = 0;
  for (uint32_t size : block.sizes) {
    keys.clear();
    for (const size_t end = entry + size; entry < end; ++entry) {
      const uint64_t column = columns[block.columns[entry]];
      if (column != none) keys.push_back(column << 32 | static_cast<uint32_t>(block.values[entry]));
    }
    out.add_row(keys, [](uint64_t key) { return static_cast<int32_t>(key); });
  }
  return out;
}

}  // namespace

Found find_terms(const Texts& texts, const Analysis& analysis, const Texts& stop_words, const Limits& limits,
                 bool binary, bool with_matrix, Crew& crew) {
  std::vector<RowBlock> blocks(n_text_blocks(texts));
  std::vector<uint32_t> counted_by(blocks.size());
  Pool<Counter> pool;
  crew.for_each_block(blocks.size(), [&](size_t b) {
    Counter* counter =
        pool.take([&](size_t number) { return std::make_unique<Counter>(analysis, stop_words, number); });
    counted_by[b] = counter->number;
    for_each_text(texts, b, crew, [&](size_t row) {
      const bool is_valid = counter->read(texts[row], static_cast<uint32_t>(row), blocks[b], crew);
      if (!is_valid && blocks[b].invalid_row < 0) blocks[b].invalid_row = static_cast<int64_t>(row);
      if (with_matrix) return;
      blocks[b].columns.clear();
      blocks[b].values.clear();
    });
    pool.give_back(counter);
  });
  auto& counters = pool.all();
  if (counters.empty()) counters.push_back(std::make_unique<Counter>(analysis, stop_words, 0));
  std::vector<std::vector<uint32_t>> columns(counters.size());
  for (size_t k = 1; k < counters.size(); ++k) columns[k] = counters[0]->absorb(*counters[k], crew);
  counters[0]->frequencies.resize(counters[0]->terms.size());
  columns[0] = chosen_columns(*counters[0], limits, binary);
  for (size_t k = 1; k < counters.size(); ++k)
    for (uint32_t& term : columns[k]) term = columns[0][term];
  Found found;
  found.terms = table_of(*counters[0], columns[0]);
  if (!with_matrix) {
    found.matrix.invalid_row = first_invalid(blocks);
    return found;
  }
  crew.for_each_block(blocks.size(), [&](size_t b) { blocks[b] = in_columns(blocks[b], columns[counted_by[b]]); });
  found.matrix = assembled(blocks, binary, crew);
  return found;
}

}  // namespace certifit::text
