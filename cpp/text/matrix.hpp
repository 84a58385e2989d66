// Rows of a sparse matrix, made in blocks by many threads and put together in the order of the blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "../parallel.hpp"

namespace certifit::text {

using Texts = std::vector<std::string_view>;

struct Matrix {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<double> values;
  int64_t invalid_row = -1;  // the first text that is not valid UTF-8
};

inline constexpr size_t block_texts = 256;
inline size_t n_text_blocks(const Texts& texts) { return (texts.size() + block_texts - 1) / block_texts; }

// Asks now and then, in work of many small steps, whether to stop.
class Patience {
 public:
  explicit Patience(Crew& crew) : crew_(crew) {}
  void step() {
    if (++n_steps_ % asked_every == 0 && !crew_.keep_going()) throw Interrupted();
  }

 private:
  static constexpr uint32_t asked_every = 1 << 16;
  Crew& crew_;
  uint32_t n_steps_ = 0;
};

struct RowBlock {
  std::vector<uint32_t> columns;
  std::vector<int32_t> values;
  std::vector<uint32_t> sizes;  // entries of each row
  int64_t invalid_row = -1;

  // A row of keys (column << 32 | anything), each worth value(key): sorted, equal columns added, zeros left out.
  template <class Value>
  void add_row(std::vector<uint64_t>& keys, Value value) {
    std::sort(keys.begin(), keys.end());
    const size_t before = columns.size();
    for (size_t i = 0; i < keys.size();) {
      const auto column = static_cast<uint32_t>(keys[i] >> 32);
      int32_t sum = 0;
      for (; i < keys.size() && keys[i] >> 32 == column; ++i) sum += value(keys[i]);
      if (sum == 0) continue;
      columns.push_back(column);
      values.push_back(sum);
    }
    sizes.push_back(static_cast<uint32_t>(columns.size() - before));
  }
};

// use(row) for the rows of a block; false, and the rest is left out, once the crew must stop.
template <class Use>
bool for_each_text(const Texts& texts, size_t block, Crew& crew, Use use) {
  constexpr size_t asked_every = 1 << 16;  // bytes
  const size_t end = std::min(texts.size(), (block + 1) * block_texts);
  size_t n_bytes = 0;
  for (size_t row = block * block_texts; row < end; ++row) {
    use(row);
    n_bytes += texts[row].size();
    if (n_bytes < asked_every) continue;
    if (!crew.keep_going()) return false;
    n_bytes = 0;
  }
  return true;
}

inline int64_t first_invalid(const std::vector<RowBlock>& blocks) {
  for (const RowBlock& block : blocks)
    if (block.invalid_row >= 0) return block.invalid_row;
  return -1;
}

inline Matrix assembled(const std::vector<RowBlock>& blocks, bool binary, Crew& crew) {
  Matrix matrix;
  matrix.invalid_row = first_invalid(blocks);
  std::vector<size_t> begins;
  size_t n_entries = 0;
  matrix.offsets.push_back(0);
  for (const RowBlock& block : blocks) {
    begins.push_back(n_entries);
    n_entries += block.columns.size();
    for (uint32_t size : block.sizes) matrix.offsets.push_back(matrix.offsets.back() + size);
  }
  matrix.columns.resize(n_entries);
  matrix.values.resize(n_entries);
  crew.for_each_block(blocks.size(), [&](size_t b) {
    std::copy(blocks[b].columns.begin(), blocks[b].columns.end(), matrix.columns.begin() + begins[b]);
    std::transform(blocks[b].values.begin(), blocks[b].values.end(), matrix.values.begin() + begins[b],
                   [&](int32_t value) { return binary ? 1.0 : static_cast<double>(value); });
  });
  return matrix;
}

// What each thread needs for itself: taken for a block, given back after it.
template <class State>
class Pool {
 public:
  template <class Make>
  State* take(Make make) {
    std::lock_guard<std::mutex> hold(lock_);
    if (free_.empty()) {
      all_.push_back(make(all_.size()));
      return all_.back().get();
    }
    State* state = free_.back();
    free_.pop_back();
    return state;
  }
  void give_back(State* state) {
    std::lock_guard<std::mutex> hold(lock_);
    free_.push_back(state);
  }
  std::vector<std::unique_ptr<State>>& all() { return all_; }

 private:
  std::mutex lock_;
  std::vector<std::unique_ptr<State>> all_;
  std::vector<State*> free_;
};

}  // namespace certifit::text
