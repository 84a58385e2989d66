// Scores of two classes in ascending order, without comparing floats: every score becomes an integer key of the same
// order. Keys go to buckets of about equal size (splitters from a sample), buckets are sorted one by one in cache by
// splitting their range evenly. Sorts are stable and depend on the rows alone, never on the number of threads.
//
// Extra memory for n rows: n records and 2 n bytes, plus one bucket of records a thread: n / 1024 rows or some
// thousand, and n rows at worst, where most rows share one score.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "parallel.hpp"

namespace certifit {

using Key = uint64_t;

// -inf < ... < -0.0 = 0.0 < ... < inf as unsigned integers.
inline Key key_of(double score) {
  const auto bits = std::bit_cast<uint64_t>(score + 0.0);  // -0.0 + 0.0 is 0.0
  const uint64_t negative = -(bits >> 63);
  return bits ^ (negative | uint64_t{1} << 63);
}
inline double score_of(Key key) {
  const uint64_t negative = (key >> 63) - 1;
  return std::bit_cast<double>(key ^ (negative | uint64_t{1} << 63));
}

// What is sorted, and where it comes from. label: 0 or 1 a row. Fewer than 2^32 rows.
struct Scores {
  const void* values;
  std::ptrdiff_t stride;  // in values
  bool is_single;         // float32, else float64
  const uint8_t* label;
  size_t n_rows;

  template <class Work>
  auto with_values(Work work) const {
    return is_single ? work(static_cast<const float*>(values)) : work(static_cast<const double*>(values));
  }
  double at(size_t row) const {
    const auto place = static_cast<std::ptrdiff_t>(row) * stride;
    return with_values([&](const auto* v) { return static_cast<double>(v[place]); });
  }
};

struct NotANumber : std::exception {
  size_t row;
  explicit NotANumber(size_t row) : row(row) {}
  const char* what() const noexcept override { return "a score is NaN"; }
};

struct KeyOnly {
  Key key;
  static KeyOnly of(Key key, uint32_t) { return {key}; }
};
struct KeyAndRow {
  Key key;
  uint32_t row;
  static KeyAndRow of(Key key, uint32_t row) { return {key, row}; }
};

// Buckets in ascending order of scores; equal scores are in one bucket.
template <class Record>
struct SortedScores {
  std::unique_ptr<Record[]> records;
  std::vector<size_t> begin;  // bucket b: negatives from begin[2b], positives from begin[2b + 1]; the end of all last
  std::vector<size_t> negatives_below, positives_below;  // rows in the buckets before b; all rows last

  size_t n_buckets() const { return begin.size() / 2; }
  size_t n_negatives() const { return negatives_below.back(); }
  size_t n_positives() const { return positives_below.back(); }
  std::span<Record> negatives(size_t b) const { return part(2 * b); }
  std::span<Record> positives(size_t b) const { return part(2 * b + 1); }

 private:
  std::span<Record> part(size_t i) const { return {records.get() + begin[i], begin[i + 1] - begin[i]}; }
};

// visit(key, first and last + 1 of the negatives, first and last + 1 of the positives) for every distinct key,
// ascending.
template <class Record, class Visit>
void for_each_distinct(std::span<Record> negatives, std::span<Record> positives, Visit visit) {
  size_t i = 0, j = 0;
  while (i < negatives.size() || j < positives.size()) {
    const bool from_negatives = j == positives.size() || (i < negatives.size() && negatives[i].key <= positives[j].key);
    const Key key = from_negatives ? negatives[i].key : positives[j].key;
    const size_t i_begin = i, j_begin = j;
    while (i < negatives.size() && negatives[i].key == key) ++i;
    while (j < positives.size() && positives[j].key == key) ++j;
    visit(key, i_begin, i, j_begin, j);
  }
}

namespace sorting {

inline constexpr size_t max_buckets = 1024, bucket_rows = 4096, sample_per_bucket = 16;
inline constexpr size_t max_cells = 4096, few = 24;

template <class Record>
void insert_in_order(const Record* from, Record* to, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const Record record = from[i];
    size_t j = i;
    for (; j > 0 && record.key < to[j - 1].key; --j) to[j] = to[j - 1];
    to[j] = record;
  }
}

// Stable. Each level splits the range of keys evenly into cells of a few records. A level uses up at least four of the
// 64 bits of a key, so skewed keys cost some levels more, never a quadratic time.
template <class Record>
void sort(Record* records, Record* scratch, size_t n) {
  if (n <= few) {
    std::copy_n(records, n, scratch);
    return insert_in_order(scratch, records, n);
  }
  Key low = records[0].key, high = low;
  for (size_t i = 1; i < n; ++i) {
    low = std::min(low, records[i].key);
    high = std::max(high, records[i].key);
  }
  if (low == high) return;
  const int cell_bits = static_cast<int>(std::bit_width(std::min(n / 2, max_cells - 1)));
  const int shift = std::max(0, static_cast<int>(std::bit_width(high - low)) - cell_bits);
  std::vector<uint32_t> end(size_t{1} << cell_bits);
  for (size_t i = 0; i < n; ++i) ++end[(records[i].key - low) >> shift];
  uint32_t total = 0, largest = 0;
  for (uint32_t& place : end) {
    const uint32_t size = place;
    largest = std::max(largest, size);
    place = total;
    total += size;
  }
  for (size_t i = 0; i < n; ++i) scratch[end[(records[i].key - low) >> shift]++] = records[i];
  if (largest <= few) return insert_in_order(scratch, records, n);
  std::copy_n(scratch, n, records);
  if (shift == 0) return;  // equal keys in every cell
  for (size_t cell = 0, begin = 0; cell < end.size(); begin = end[cell++])
    sort(records + begin, scratch + begin, end[cell] - begin);
}

// Splitters s_1 <= ... of a sample; a key's bucket is the number of splitters <= key.
struct Splitters {
  std::vector<Key> keys;
  explicit Splitters(const Scores& scores) {
    size_t n_buckets = 1;
    while (n_buckets < max_buckets && n_buckets * bucket_rows < scores.n_rows) n_buckets *= 2;
    const size_t n_sample = n_buckets == 1 ? 0 : n_buckets * sample_per_bucket;
    std::vector<Key> sample(n_sample);
    // Multiples of the golden ratio modulo 1: spread evenly over the rows, in step with no pattern of theirs.
    for (size_t i = 0; i < n_sample; ++i) {
      const uint64_t fraction = (i + 1) * 0x9E3779B97F4A7C15ull >> 32;
      sample[i] = key_of(scores.at(fraction * scores.n_rows >> 32));
    }
    std::sort(sample.begin(), sample.end());
    for (size_t b = 1; b < n_buckets; ++b) keys.push_back(sample[b * sample_per_bucket]);
  }
  size_t n_buckets() const { return keys.size() + 1; }
  size_t bucket(Key key) const {
    size_t place = 0;
    for (size_t step = n_buckets() / 2; step > 0; step /= 2) place += keys[place + step - 1] <= key ? step : 0;
    return place;
  }
};

}  // namespace sorting

template <class Record>
class Sorter {
 public:
  Sorter(const Scores& scores, Crew& crew) : scores_(scores), crew_(crew), splitters_(scores) {}

  SortedScores<Record> run() {
    count();
    SortedScores<Record> sorted = allocated();
    scores_.with_values([&](const auto* values) {
      crew_.for_each_block(n_blocks(), [&](size_t block) { scatter(block, values, sorted.records.get()); });
    });
    crew_.for_each_block(sorted.n_buckets(), [&](size_t b) {
      std::span<Record> parts[2] = {sorted.negatives(b), sorted.positives(b)};
      auto scratch = std::make_unique_for_overwrite<Record[]>(std::max(parts[0].size(), parts[1].size()));
      for (auto part : parts) sorting::sort(part.data(), scratch.get(), part.size());
    });
    return sorted;
  }

 private:
  // Fixed by the number of rows: the order of equal keys must not depend on the threads.
  size_t block_rows() const { return std::max<size_t>(size_t{1} << 17, (scores_.n_rows + 63) / 64); }
  size_t n_blocks() const { return (scores_.n_rows + block_rows() - 1) / block_rows(); }
  size_t n_places() const { return 2 * splitters_.n_buckets(); }

  void count() {
    next_.resize(n_blocks());
    place_ = std::make_unique_for_overwrite<uint16_t[]>(scores_.n_rows);
    std::vector<size_t> first_nan(n_blocks(), scores_.n_rows);
    scores_.with_values([&](const auto* values) {
      crew_.for_each_block(n_blocks(), [&](size_t block) { first_nan[block] = count(block, values); });
    });
    const size_t row = *std::min_element(first_nan.begin(), first_nan.end());
    if (row < scores_.n_rows) throw NotANumber(row);
  }

  template <class Value>
  size_t count(size_t block, const Value* values) {
    std::vector<size_t> sizes(n_places());
    const size_t begin = block * block_rows(), end = std::min(begin + block_rows(), scores_.n_rows);
    size_t nan = scores_.n_rows;
    for (size_t row = end; row-- > begin;) {
      const auto value = static_cast<double>(values[static_cast<std::ptrdiff_t>(row) * scores_.stride]);
      if (value != value) nan = row;
      const size_t place = 2 * splitters_.bucket(key_of(value)) + scores_.label[row];
      place_[row] = static_cast<uint16_t>(place);
      ++sizes[place];
    }
    next_[block] = std::move(sizes);
    return nan;
  }

  // Turns the sizes into places: buckets in order, negatives first, blocks in order within.
  SortedScores<Record> allocated() {
    SortedScores<Record> sorted;
    sorted.negatives_below.push_back(0);
    sorted.positives_below.push_back(0);
    size_t total = 0;
    for (size_t place = 0; place < n_places(); ++place) {
      sorted.begin.push_back(total);
      const size_t before = total;
      for (auto& next : next_) total += std::exchange(next[place], total);
      auto& below = place % 2 == 0 ? sorted.negatives_below : sorted.positives_below;
      below.push_back(below.back() + total - before);
    }
    sorted.begin.push_back(total);
    sorted.records = std::make_unique_for_overwrite<Record[]>(total);
    return sorted;
  }

  template <class Value>
  void scatter(size_t block, const Value* values, Record* records) {
    size_t* next = next_[block].data();
    const size_t begin = block * block_rows(), end = std::min(begin + block_rows(), scores_.n_rows);
    for (size_t row = begin; row < end; ++row) {
      const auto value = static_cast<double>(values[static_cast<std::ptrdiff_t>(row) * scores_.stride]);
      records[next[place_[row]]++] = Record::of(key_of(value), static_cast<uint32_t>(row));
    }
  }

  const Scores& scores_;
  Crew& crew_;
  sorting::Splitters splitters_;
  std::vector<std::vector<size_t>> next_;  // a block: sizes, then the next free place, of each half bucket
  std::unique_ptr<uint16_t[]> place_;      // a row: twice its bucket plus its label
};

template <class Record>
SortedScores<Record> sort_scores(const Scores& scores, Crew& crew) {
  return Sorter<Record>(scores, crew).run();
}

}  // namespace certifit
