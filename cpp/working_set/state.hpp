// The whole problem at given weights: exact residual, slopes of all columns or bounds on them, objective and gap.
#pragma once

#include "../coordinate/penalty.hpp"
#include "../working_set.hpp"

namespace certifit {

class WideState {
 public:
  WideState(const WideProblem& problem, Crew& crew);

  const Columns& columns() const { return columns_; }
  void set_alpha(double alpha) { alpha_ = alpha; }
  double alpha() const { return alpha_; }
  Penalty penalty(size_t j) const {  // in units of the scaled columns and of y
    Penalty h;
    if (base_[j] > 0) {  // alpha may be infinite
      h.l1 = alpha_ * base_[j];
      if (alpha_ < infinity) h.l2 = alpha_ * ridge_[j] * columns_.scale(j);
    }
    if (!lower_.empty()) h.lower = lower_[j];
    if (!upper_.empty()) h.upper = upper_[j];
    return h;
  }
  double base(size_t j) const { return base_[j]; }  // l1 at alpha 1
  double to_user(size_t j, double weight) const { return weight * columns_.scale(j) * unit_; }
  double from_user(size_t j, double weight) const { return weight / unit_ / columns_.scale(j); }

  // Residual y - b - Xw of the weights given, its square and its distance to the residuals remembered.
  void set_weights(const std::vector<size_t>& ids, const std::vector<double>& weights);
  void set_intercept(double user_intercept);  // instead of the best one
  double intercept() const;                   // the best one, user units

  const std::vector<double>& weighted_residual() const { return q_; }
  double squares() const { return squares_; }
  double rounding() const { return rounding_; }
  double slope(size_t j) const { return slopes_[j]; }  // as of the last time it was computed

  void pull(const std::vector<size_t>& ids);               // slopes at this residual
  void pull_where_needed(const std::vector<size_t>& ids);  // of those that could now exceed their l1
  // The same for all columns, and the slopes of the support: no other slope exceeds its l1.
  void pull_all();

  double objective() const;  // scaled
  double least_objective() const { return 1e-14 * null_objective_; }
  double gap(const std::vector<size_t>& ids) const;  // over these columns alone
  double gap() const;                                // after pull_all
  double user_objective(double scaled) const { return scaled * unit_ * unit_; }
  size_t columns_read() const { return columns_read_; }

 private:
  void set_target(const double* y);
  std::vector<double> scaled_bounds(const double* user, double free) const;  // empty where all are free
  void remember();
  bool may_exceed(size_t j) const;

  static constexpr size_t n_remembered = 32;
  Crew& crew_;
  Columns columns_;
  std::vector<double> lower_, upper_;  // scaled; empty: no bounds
  double unit_ = 1, y_mean_ = 0, alpha_ = infinity, null_objective_ = 0, rounding_ = 0;
  std::vector<double> y_;      // centred, divided by unit_
  std::vector<double> base_;   // l1 at alpha 1
  std::vector<double> ridge_;  // l2 at alpha 1, over the scale of the column

  std::vector<double> weights_;  // by column; zero off the support
  std::vector<size_t> support_;
  std::vector<double> residual_, q_;
  double squares_ = 0, off_centre_ = 0;  // off_centre_: mean of the residual, zero at the best intercept
  std::vector<double> slopes_;
  std::vector<uint8_t> computed_at_;  // which remembered residual a slope belongs to
  std::vector<std::vector<double>> remembered_;
  std::vector<double> distance_;
  size_t now_ = 0, columns_read_ = 0;
};

}  // namespace certifit
