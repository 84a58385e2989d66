#include "weighted_descent.hpp"

#include <algorithm>
#include <cmath>

namespace certifit {
namespace {

constexpr double no_curvature = 1e-13;  // of a column's squares: what centring leaves below it is rounding
constexpr size_t most_inner = 20;       // sweeps over the columns with a weight between two over all

class Descent {
 public:
  Descent(const ColumnData& columns, const double* curvatures, const double* slopes, const double* weights,
          const std::vector<Penalty>& penalty, const double* units, bool fit_intercept)
      : x_(columns),
        h_(curvatures),
        slopes_(slopes),
        penalty_(penalty),
        units_(units),
        w_(weights, weights + columns.n_columns),
        square_(columns.n_columns),
        level_(columns.n_columns),
        move_(columns.n_rows) {
    if (fit_intercept)
      for (size_t i = 0; i < x_.n_rows; ++i) total_ += h_[i];
    for (size_t j = 0; j < x_.n_columns; ++j) {
      for (int64_t k = x_.offsets[j]; k < x_.offsets[j + 1]; ++k) {
        const double hx = h_[x_.narrow[k]] * x_.values[k];
        level_[j] += hx;
        square_[j] += hx * x_.values[k];
      }
      const double whole = square_[j];
      if (total_ > 0) square_[j] -= level_[j] * level_[j] / total_;
      if (!(square_[j] > no_curvature * whole)) square_[j] = 0;
    }
  }

  // One coordinate step; how far its slope was off, in its unit.
  double step(size_t j) {
    const Penalty& h = penalty_[j];
    if (square_[j] == 0) return 0;
    double slope = slopes_[j] + level_[j] * intercept();
    for (int64_t k = x_.offsets[j]; k < x_.offsets[j + 1]; ++k) {
      const size_t i = static_cast<size_t>(x_.narrow[k]);
      slope += h_[i] * x_.values[k] * move_[i];
    }
    const double next = h.best(w_[j], -slope, square_[j]), change = next - w_[j];
    if (change == 0) return 0;
    for (int64_t k = x_.offsets[j]; k < x_.offsets[j + 1]; ++k)
      move_[static_cast<size_t>(x_.narrow[k])] += change * x_.values[k];
    pulled_ += change * level_[j];
    w_[j] = next;
    return std::fabs(change) * square_[j] / units_[j];
  }

  double intercept() const { return total_ > 0 ? -(slopes_[x_.n_columns] + pulled_) / total_ : 0; }
  const std::vector<double>& weights() const { return w_; }

 private:
  const ColumnData& x_;
  const double *h_, *slopes_;
  const std::vector<Penalty>& penalty_;
  const double* units_;
  std::vector<double> w_, square_, level_, move_;  // level: sum_i h_i x_ij; move: x_i'(w - w0)
  double total_ = 0, pulled_ = 0;                  // sum_i h_i, sum_i h_i x_i'(w - w0)
};

}  // namespace

WeightedStep weighted_lasso_step(const ColumnData& columns, const double* curvatures, const double* slopes,
                                 const double* weights, const std::vector<Penalty>& penalty, const double* units,
                                 bool fit_intercept, double tol, size_t max_sweeps, Crew& crew) {
  Descent descent(columns, curvatures, slopes, weights, penalty, units, fit_intercept);
  size_t sweeps = 0;
  std::vector<size_t> held;
  while (sweeps < max_sweeps) {
    if (!crew.keep_going()) throw Interrupted();
    double off = 0;
    for (size_t j = 0; j < columns.n_columns; ++j) off = std::max(off, descent.step(j));
    ++sweeps;
    if (off <= tol) break;
    held.clear();
    for (size_t j = 0; j < columns.n_columns; ++j)
      if (descent.weights()[j] != 0) held.push_back(j);
    for (size_t inner = 0; inner < most_inner && sweeps < max_sweeps; ++inner, ++sweeps) {
      if (!crew.keep_going()) throw Interrupted();
      off = 0;
      for (size_t j : held) off = std::max(off, descent.step(j));
      if (off <= tol) break;
    }
  }
  return {descent.weights(), descent.intercept(), sweeps};
}

}  // namespace certifit
