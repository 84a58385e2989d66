#include "levels.hpp"

#include "kinds.hpp"

namespace certifit {
namespace {

Plan plan_of(const TreeRows& rows, const LevelPlan& plan) {
  return {rows, plan.criterion, plan.n_classes, plan.stops, plan.columns, plan.whole};
}

// Rows [begin, end) of every node.
std::vector<std::vector<uint32_t>> rows_of_slots(const LevelPart& part, size_t begin, size_t end, size_t n_slots) {
  std::vector<std::vector<uint32_t>> rows(n_slots);
  for (size_t i = begin; i < end; ++i)
    if (part.slot[i] >= 0) rows[static_cast<size_t>(part.slot[i])].push_back(static_cast<uint32_t>(i));
  return rows;
}

NodeSums node_of(const double* sums, Criterion criterion, size_t n_classes) {
  if (n_classes > 0) return class_node({sums, sums + n_classes}, criterion);
  return NumberSums{sums[0], sums[1], sums[2], sums[3], sums[4] != 0}.node();
}

}  // namespace

size_t level_words(const LevelPlan& plan) {
  const TreeRows none{};
  return with_kind(plan_of(none, plan), nullptr, [&](const auto& kind) {
    using Word = typename std::decay_t<decltype(kind)>::Word;
    return plan.n_columns * n_bins * kind.stride * sizeof(Word) / sizeof(int64_t);
  });
}

std::vector<int64_t> level_histograms(const LevelPart& part, size_t n_slots, const LevelPlan& plan, Crew& crew) {
  return with_kind(plan_of(part.rows, plan), part.codes, [&](const auto& kind) {
    using Word = typename std::decay_t<decltype(kind)>::Word;
    const size_t size = plan.n_columns * n_bins * kind.stride, n_words = size * sizeof(Word) / sizeof(int64_t);
    const std::vector<std::vector<uint32_t>> rows = rows_of_slots(part, 0, part.rows.n_rows, n_slots);
    std::vector<int64_t> words(n_slots * n_words);
    crew.for_each_block(n_slots, [&](size_t k) {
      std::vector<Word> cells(size, Word{});
      kind.add(rows[k].data(), rows[k].size(), cells.data());
      std::memcpy(words.data() + k * n_words, cells.data(), n_words * sizeof(int64_t));
    });
    return words;
  });
}

std::vector<double> block_sums(const LevelPart& part, size_t n_slots, Criterion criterion, size_t n_classes) {
  const size_t width = level_width(n_classes), n_rows = part.rows.n_rows;
  const RowArrays arrays{part.rows.y.data(), part.rows.weight.data(), nullptr, true};
  std::vector<double> out;
  for (size_t begin = 0; begin < n_rows; begin += summed_block) {
    const auto rows = rows_of_slots(part, begin, std::min(n_rows, begin + summed_block), n_slots);
    for (const std::vector<uint32_t>& of_node : rows) {
      std::vector<double> sums(width, 0.0);
      if (n_classes > 0) {
        add_classes(arrays, of_node.data(), of_node.size(), sums);
      } else if (!of_node.empty()) {
        const NumberSums block = number_block(arrays, of_node.data(), of_node.size(), criterion);
        sums = {block.weight, block.mean, block.spread, block.first, block.is_pure ? 1.0 : 0.0};
      }
      out.insert(out.end(), sums.begin(), sums.end());
    }
  }
  return out;
}

void add_block_sums(double* sums, const double* blocks, size_t n_blocks, size_t n_slots, Criterion criterion,
                    size_t n_classes) {
  const size_t width = level_width(n_classes);
  for (size_t k = 0; k < n_slots; ++k) {
    double* of_node = sums + k * width;
    for (size_t b = 0; b < n_blocks; ++b) {
      const double* block = blocks + (b * n_slots + k) * width;
      if (n_classes > 0) {
        for (size_t c = 0; c < width; ++c) of_node[c] += block[c];
        continue;
      }
      NumberSums merged{of_node[0], of_node[1], of_node[2], of_node[3], of_node[4] != 0};
      merged.add({block[0], block[1], block[2], block[3], block[4] != 0}, criterion);
      const double now[5] = {merged.weight, merged.mean, merged.spread, merged.first, merged.is_pure ? 1.0 : 0.0};
      std::copy_n(now, 5, of_node);
    }
  }
}

LevelSplit level_split(const LevelNode& node, const LevelPlan& plan, Crew& crew) {
  TreeRows none{};
  none.n_columns = plan.n_columns;
  const Plan all = plan_of(none, plan);
  LevelSplit out;
  out.sums = node_of(node.sums, plan.criterion, plan.n_classes);
  if (stays_leaf(plan.stops, out.sums, node.depth, node.n_rows)) return out;
  with_kind(all, nullptr, [&](const auto& kind) {
    using Kind = std::decay_t<decltype(kind)>;
    const size_t size = plan.n_columns * n_bins * kind.stride;
    std::vector<typename Kind::Word> cells(size);
    std::memcpy(cells.data(), node.words, size * sizeof(typename Kind::Word));
    const Open at{0, node.depth, {0, node.n_rows}, node.low, node.high};
    out.split = best_split(kind, all, cells.data(), out.sums, at, node.n_rows,
                           [&](size_t n, auto work) { crew.for_each_block(n, work); });
    out.is_exact = Kind::is_exact;
    return 0;
  });
  out.decrease = out.split.gain / plan.whole.total;
  if (out.split.is_found && out.decrease < plan.stops.min_decrease) out.split = {};
  return out;
}

}  // namespace certifit
