#include "folds.hpp"

#include "../losses.hpp"
#include "many_scores.hpp"

namespace certifit {
namespace {

class Folds {
 public:
  Folds(const double* y, const double* offset, const Training& training, size_t n_scores, const AnyLoss& loss,
        bool with_value)
      : y_(y), offset_(offset), cells_(training.cells), n_scores_(n_scores), loss_(loss), with_value_(with_value) {
    width_ = (n_scores + lanes - 1) / lanes * lanes;
    train_ = by_cell(training.train);
    validation_ = by_cell(training.validation);
  }
  size_t n_slopes() const { return n_scores_; }
  size_t n_sums() const { return 3 * width_; }
  size_t width() const { return width_; }

  void operator()(size_t row, double weight, size_t k, const Panels& scores, Panels& slopes,
                  std::vector<double>& sums) const {
    std::visit(
        [&](const auto& loss_of) {
          if (with_value_) return add<true>(loss_of, row, weight, k, scores, slopes, sums);
          add<false>(loss_of, row, weight, k, scores, slopes, sums);
        },
        loss_);
  }

 private:
  template <bool with_value, class LossOf>
  void add(const LossOf& loss_of, size_t row, double weight, size_t k, const Panels& scores, Panels& slopes,
           std::vector<double>& sums) const {
    const int32_t cell = cells_.of_row ? cells_.of_row[row] : 0;
    if (cell < 0) {
      for (size_t q = 0; q < slopes.n_panels; ++q) store(slopes.at(q, k), Vec{});
      return;
    }
    const double* train = &train_[static_cast<size_t>(cell) * width_];
    const double* validation = &validation_[static_cast<size_t>(cell) * width_];
    const Vec y = broadcast(y_[row]), offset = broadcast(offset_ ? offset_[row] : 0.0), own = broadcast(weight);
    for (size_t q = 0; q < slopes.n_panels; ++q) {
      const LossAt at = loss_of(y, load(scores.at(q, k)) + offset);
      const Vec trained = load(train + q * lanes) * own, validated = load(validation + q * lanes) * own;
      store(slopes.at(q, k), times(trained, at.slope));
      double* to = &sums[q * lanes];
      if constexpr (with_value) {
        store(to, load(to) + times(trained, at.value));
        store(to + width_, load(to + width_) + times(validated, at.value));
      }
      store(to + 2 * width_, load(to + 2 * width_) + validated);
    }
  }

  // A row that does not count is no row, even where its loss is not finite.
  static Vec times(Vec weight, Vec value) { return choose(weight > broadcast(0.0), weight * value, Vec{}); }

  std::vector<double> by_cell(const double* by_score) const {
    std::vector<double> out(cells_.count * width_, 0.0);
    for (size_t k = 0; k < n_scores_; ++k)
      for (size_t c = 0; c < cells_.count; ++c) out[c * width_ + k] = by_score[k * cells_.count + c];
    return out;
  }

  const double* y_;
  const double* offset_;
  Cells cells_;
  size_t n_scores_, width_;
  AnyLoss loss_;
  bool with_value_;
  std::vector<double> train_, validation_;
};

}  // namespace

ManySums fold_scores(const Rows& rows, const double* y, const double* weight, const double* offset,
                     const Training& training, const Scaling& scaling, const ScoreWeights& state, Loss loss,
                     double parameter, bool with_value, size_t block_rows, Crew& crew) {
  const Folds rule(y, offset, training, state.n_scores, any_loss(loss, parameter), with_value);
  ManySums sums = many_scores(rows, weight, scaling, {&state, 1}, rule, block_rows, crew);
  std::vector<double> of_scores(3 * state.n_scores);
  for (size_t part = 0; part < 3; ++part)
    std::copy_n(&sums.own[part * rule.width()], state.n_scores, &of_scores[part * state.n_scores]);
  sums.own = std::move(of_scores);
  return sums;
}

}  // namespace certifit
