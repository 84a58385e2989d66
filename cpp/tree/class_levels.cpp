#include "class_levels.hpp"

#include "kinds.hpp"

namespace certifit {
namespace {

// Two classes, as the search for cuts reads them.
struct TwoClasses {
  int64_t rows = 0, mass = 0, second = 0;
  TwoClasses& operator+=(const TwoClasses& other) {
    rows += other.rows;
    mass += other.mass;
    second += other.second;
    return *this;
  }
};

struct TwoClassesRead {
  double sum(const TwoClasses& cell) const { return static_cast<double>(cell.second); }
  double mass(const TwoClasses& cell) const { return static_cast<double>(cell.mass); }
  size_t rows(const TwoClasses& cell) const { return static_cast<size_t>(cell.rows); }
};

class ClassSearch {
 public:
  ClassSearch(const ClassPlan& plan, const int64_t* words)
      : plan_(plan), cell_(class_cell(plan.n_classes)), words_(words), all_{no_rows_,   plan.criterion, plan.n_classes,
                                                                            plan.stops, plan.columns,   plan.total} {}

  ClassNode best(size_t depth) const {
    ClassNode node;
    std::vector<int64_t> counts(cell_, 0);
    for (size_t code = 0; code < n_bins; ++code)
      for (size_t c = 0; c < cell_; ++c) counts[c] += words_[code * cell_ + c];
    node.n_rows = static_cast<size_t>(counts[0]);
    node.sums = sums_of(counts);
    const Stops& stops = plan_.stops;
    if (node.sums.is_pure || depth >= stops.max_depth || node.n_rows < stops.min_rows_split ||
        node.n_rows < 2 * stops.min_rows_leaf)
      return node;
    for (size_t j = 0; j < plan_.n_columns; ++j) {
      const BinSplit split = scan(j, node);
      if (is_better(split, node.split, node.sums)) node.split = split;
    }
    node.decrease = node.split.gain / plan_.total;
    if (node.split.is_found && node.decrease < stops.min_decrease) node.split = {};
    if (node.split.is_found) divide(node, counts);
    return node;
  }

 private:
  NodeSums sums_of(const std::vector<int64_t>& counts) const {
    std::vector<double> labels, weights;
    std::vector<uint32_t> order;
    for (size_t c = 1; c < cell_; ++c) {
      labels.push_back(static_cast<double>(c - 1));
      weights.push_back(static_cast<double>(counts[c]));
      order.push_back(static_cast<uint32_t>(c - 1));
    }
    return class_sums(all_, {labels.data(), weights.data(), nullptr, true}, order.data(), order.size());
  }

  BinSplit scan(size_t column, const ClassNode& node) const {
    const int64_t* words = words_ + column * n_bins * cell_;
    std::vector<uint8_t> met;
    for (size_t code = 0; code < Bins::missing; ++code)
      if (words[code * cell_] > 0) met.push_back(static_cast<uint8_t>(code));
    const ColumnView view{column, node.n_rows, met.data(), met.size()};
    return all_.is_two_class_gini() ? scan_two(words, view, node.sums) : scan_classes(words, view, node.sums);
  }

  BinSplit scan_two(const int64_t* words, const ColumnView& view, const NodeSums& node) const {
    TwoClasses cells[n_bins];
    for (size_t code = 0; code < n_bins; ++code) {
      const int64_t* at = words + code * cell_;
      cells[code] = {at[0], at[1] + at[2], at[2]};
    }
    const SquaredCut gain{node.values[1], node.weight, 2.0, node.weight * node.impurity};
    const size_t n_levels = plan_.columns.is_levels(view.column) ? plan_.columns.n_levels[view.column] : 0;
    return split_of(TwoClassesRead{}, cells, view, n_levels, plan_.stops.min_rows_leaf, gain);
  }

  BinSplit scan_classes(const int64_t* words, const ColumnView& view, const NodeSums& node) const {
    const ClassScore score{plan_.n_classes, plan_.criterion == Criterion::entropy};
    const BinnedRows none{0, plan_.n_columns, plan_.n_classes, nullptr, {}, {}};
    const GeneralKind kind(all_, none, score, 0.0);
    std::vector<double> cells;
    for (size_t code = 0; code < n_bins; ++code) {
      const int64_t* at = words + code * cell_;
      int64_t mass = 0;
      for (size_t c = 1; c < cell_; ++c) mass += at[c];
      cells.insert(cells.end(), {static_cast<double>(at[0]), static_cast<double>(mass)});
      for (size_t c = 1; c < cell_; ++c) cells.push_back(static_cast<double>(at[c]));
    }
    return kind.scan(cells.data(), view, node, Open{});
  }

  // What goes left; the decrease is that of both sides where rows in memory are searched in other units.
  void divide(ClassNode& node, const std::vector<int64_t>& counts) const {
    bool goes_left[n_bins];
    sides_of(node.split, plan_.columns.is_levels(node.split.feature), goes_left);
    std::vector<int64_t> left(cell_, 0), right(cell_);
    const int64_t* words = words_ + node.split.feature * n_bins * cell_;
    for (size_t code = 0; code < n_bins; ++code)
      for (size_t c = 0; goes_left[code] && c < cell_; ++c) left[c] += words[code * cell_ + c];
    for (size_t c = 0; c < cell_; ++c) right[c] = counts[c] - left[c];
    node.left_rows = static_cast<size_t>(left[0]);
    if (all_.is_two_class_gini() && plan_.is_weighted)
      node.decrease = squared_decrease(sums_of(left), sums_of(right), node.sums.weight, all_);
  }

  const ClassPlan& plan_;
  const size_t cell_;
  const int64_t* words_;
  const TreeRows no_rows_{};
  const Plan all_;
};

}  // namespace

std::vector<int64_t> class_histograms(const ClassPart& part, size_t n_slots, size_t n_classes, Crew& crew) {
  const size_t cell = class_cell(n_classes), p = part.n_columns, size = p * n_bins * cell;
  std::vector<int64_t> words(n_slots * size, 0);
  for (size_t i = 0; i < part.n_rows; ++i) {
    if (i % 65536 == 0 && !crew.keep_going()) throw Interrupted();
    if (part.slot[i] < 0) continue;
    const uint8_t* codes = part.codes + i * p;
    int64_t* of_node = words.data() + static_cast<size_t>(part.slot[i]) * size;
    const auto mass = static_cast<int64_t>(part.weight[i]);
    const size_t label = 1 + static_cast<size_t>(part.y[i]);
    for (size_t j = 0; j < p; ++j) {
      int64_t* at = of_node + (j * n_bins + codes[j]) * cell;
      at[0] += 1;
      at[label] += mass;
    }
  }
  return words;
}

std::vector<ClassNode> class_splits(const int64_t* words, const int64_t* depth, size_t n_nodes, const ClassPlan& plan,
                                    Crew& crew) {
  std::vector<ClassNode> nodes(n_nodes);
  const size_t size = plan.n_columns * n_bins * class_cell(plan.n_classes);
  crew.for_each_block(
      n_nodes, [&](size_t k) { nodes[k] = ClassSearch(plan, words + k * size).best(static_cast<size_t>(depth[k])); });
  return nodes;
}

}  // namespace certifit
