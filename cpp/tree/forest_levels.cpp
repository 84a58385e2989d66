#include "forest_levels.hpp"

#include "forest_split.hpp"

namespace certifit {
namespace {

// A cell of more than two classes: rows, draws, and those of every class.
size_t stride_of(const ForestPlan& plan) { return plan.n_classes > 2 ? 2 + plan.n_classes : 2; }

Cell cell_of(const int64_t* words) { return {words[0], static_cast<uint64_t>(words[1])}; }

// A column of a node in the form that splits are searched in.
class NodeCells {
 public:
  NodeCells(const ForestPlan& plan, const PackedUnits& units, const ForestNode& node)
      : plan_(plan), units_(units), node_(node), stride_(stride_of(plan)) {}

  // False where all rows are in one bin.
  bool read(size_t column) {
    const int64_t* words = node_.words + column * n_bins * stride_;
    met_.clear();
    for (size_t bin = 0; bin < n_bins; ++bin)
      if (words[bin * stride_ + (plan_.n_classes > 2 ? 0 : 1)] != 0) met_.push_back(static_cast<uint8_t>(bin));
    if (plan_.n_classes > 2)
      numbers_.assign(words, words + n_bins * stride_);
    else
      for (size_t bin = 0; bin < n_bins; ++bin) cells_[bin] = cell_of(words + bin * stride_);
    return met_.size() > 1;
  }

  // Of the column that was read last: what all rows of the node add up to.
  void total() {
    node_cell_.assign(stride_, 0.0);
    total_ = {};
    for (const uint8_t bin : met_) {
      if (plan_.n_classes > 2)
        for (size_t s = 0; s < stride_; ++s) node_cell_[s] += numbers_[bin * stride_ + s];
      else
        total_ += cells_[bin];
    }
  }

  std::vector<double> shares() const {
    if (plan_.n_classes == 0) return {};
    std::vector<double> shares(plan_.n_classes);
    if (plan_.n_classes > 2) {
      for (size_t c = 0; c < shares.size(); ++c) shares[c] = node_cell_[2 + c] / node_cell_[1];
      return shares;
    }
    const double mass = units_.mass(total_) * units_.mass_unit(), second = units_.sum(total_) * units_.sum_unit();
    return {(mass - second) / mass, second / mass};
  }

  BinSplit split(size_t column) {
    const bool has_missing = met_.back() == Bins::missing;
    if (plan_.n_classes > 2) {
      if (has_missing) met_.pop_back();
      return class_split(plan_, numbers_.data(), column, met_, node_cell_.data(), work_);
    }
    const ColumnView view{column, node_.n_rows, met_.data(), met_.size() - has_missing};
    return packed_split(plan_, units_, cells_, view, total_);
  }

 private:
  const ForestPlan& plan_;
  const PackedUnits& units_;
  const ForestNode& node_;
  size_t stride_;
  std::vector<uint8_t> met_;
  std::vector<double> numbers_, node_cell_, work_;
  Cell cells_[n_bins], total_{};
};

}  // namespace

size_t forest_words(const ForestPlan& plan, size_t n_columns) { return n_columns * n_bins * stride_of(plan); }

std::vector<int64_t> forest_histograms(const ForestPart& part, size_t n_slots, const ForestPlan& plan,
                                       const PackedUnits& units, Crew& crew) {
  const size_t p = part.rows.n_columns, stride = stride_of(plan), size = forest_words(plan, p);
  std::vector<std::vector<uint32_t>> rows(n_slots);
  for (size_t i = 0; i < part.rows.n_rows; ++i)
    if (part.slot[i] >= 0) rows[static_cast<size_t>(part.slot[i])].push_back(static_cast<uint32_t>(i));
  std::vector<int64_t> words(n_slots * size, 0);
  crew.for_each_block(n_slots, [&](size_t k) {
    int64_t* cells = words.data() + k * size;
    for (const uint32_t row : rows[k]) {
      const uint8_t* code = part.codes + row * p;
      const double y = part.rows.y[row], draws = part.draws[row];
      if (plan.n_classes > 2) {
        for (size_t j = 0; j < p; ++j) {
          int64_t* cell = cells + (j * n_bins + code[j]) * stride;
          cell[0] += 1;
          cell[1] += part.draws[row];
          cell[2 + static_cast<size_t>(y)] += part.draws[row];
        }
        continue;
      }
      const Cell term = units.term(drawn_moment(plan, y, draws), draws);
      const TwoWords two{static_cast<uint64_t>(term.sum), term.mass};
      for (size_t j = 0; j < p; ++j) *reinterpret_cast<TwoWords*>(cells + (j * n_bins + code[j]) * 2) += two;
    }
  });
  return words;
}

ForestChoice forest_choice(const ForestNode& node, size_t n_columns, const ForestPlan& plan, const PackedUnits& units) {
  NodeCells cells(plan, units, node);
  cells.read(0);
  cells.total();
  ForestChoice out{{}, cells.shares()};
  const bool is_pure =
      node.is_pure || std::any_of(out.shares.begin(), out.shares.end(), [](double share) { return share == 1.0; });
  const Stops& stops = plan.stops;
  if (is_pure || node.depth >= stops.max_depth || node.n_rows < stops.min_rows_split ||
      node.n_rows < 2 * stops.min_rows_leaf)
    return out;
  ColumnDraws columns(n_columns);
  columns.begin(node.key);
  for (size_t n_tried = 0; n_tried < plan.n_tried && columns.n_left() > 0;) {
    const size_t j = columns.next();
    if (!cells.read(j)) continue;
    ++n_tried;
    const BinSplit split = cells.split(j);
    if (is_larger(split, out.split)) out.split = split;
  }
  return out;
}

}  // namespace certifit
