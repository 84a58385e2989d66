// Texts to a sparse matrix with a column a term: the terms found in them, those of a vocabulary, or hashed.
// Terms are sorted by their code points and counts are whole numbers, so any number of threads gives the same result.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "matrix.hpp"
#include "terms.hpp"

namespace certifit::text {

// Which terms get a column: those of `low` to `high` texts, of them the `most` frequent (ties: first in order).
struct Limits {
  double low = 1, high = std::numeric_limits<double>::infinity();
  int64_t most = -1;  // -1: all
};

struct TermTable {
  std::vector<char> letters;       // terms one after the other
  std::vector<int64_t> ends;       // where each ends
  std::vector<int64_t> documents;  // texts that hold it
  std::vector<int64_t> times;      // how often it occurs in all
};

struct Found {
  TermTable terms;
  Matrix matrix;  // without rows where it is not wanted
};

// Frequency is the number of texts where `binary`, else how often the term occurs.
Found find_terms(const Texts& texts, const Analysis& analysis, const Texts& stop_words, const Limits& limits,
                 bool binary, bool with_matrix, Crew& crew);

struct Vocabulary {
  Terms terms;
  std::vector<uint32_t> column;  // of each term, or none

  // Terms are the columns in order; throws std::invalid_argument for one that is empty, repeated or has a stop word.
  Vocabulary(const Texts& columns, const Texts& stop_words);
};

Matrix count_terms(const Texts& texts, const Analysis& analysis, const Vocabulary& vocabulary, bool binary, Crew& crew);

// Column of a term: |h| mod n_columns, h = MurmurHash3_x86_32 (seed 0) of its UTF-8 bytes as a signed number.
// With `is_signed` a term counts -1 where h < 0.
Matrix hash_terms(const Texts& texts, const Analysis& analysis, const Texts& stop_words, uint32_t n_columns,
                  bool is_signed, bool binary, Crew& crew);
uint32_t murmur3(std::string_view bytes);

// The terms of both, counts added.
TermTable added(const TermTable& a, const TermTable& b);

}  // namespace certifit::text
