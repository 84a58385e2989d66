// What a split is worth, as rows move from the right side to the left one by one.
//
//   squared error   gain = s^2 W / (W_L W_R),  s = sum over the left of w (y - mean of the node)
//   Gini            two classes: twice the gain of squared error of the codes; more: sum_k c_k^2 / W of both sides
//   entropy         sum_k c_k log c_k - W log W of both sides
//   Poisson         S log(S / W) of both sides, S = sum w y: half the deviance; a side of S = 0 is not allowed
//
// The mean of a side is that of y, or of two classes the share of the second: what directions of columns go by.
// A gain is the decrease of weight times impurity. Gains that differ by less than `tie` count as equal. A side whose
// share of the weight is below that has lost its sums in rounding: it is no side.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace certifit {

constexpr double tie_share = 1e-12;

inline bool both_are_seen(double mass, double total) {
  return mass > tie_share * total && total - mass > tie_share * total;
}

// The numbers of a node that its splits are measured against, and arrays by row. A row is known by its place.
struct NodeSums {
  double weight = 0, impurity = 0;  // impurity: of the node, not times its weight
  std::vector<double> values;       // weights of the classes, or the mean of y
  bool is_pure = true;
};

struct RowArrays {
  const double *y, *weight;
  double* moment;  // w (y - mean of the node), written for every node of squared error
  bool is_weighted;
  double mass(size_t row) const { return is_weighted ? weight[row] : 1.0; }
};

class SquaredGain {
 public:
  SquaredGain(const RowArrays& rows, const NodeSums& node, double times)
      : rows_(rows),
        total_(node.weight),
        times_(times),
        tie_(tie_share * node.weight * node.impurity / times),
        mean_(node.values.size() == 2 ? node.values[1] / node.weight : node.values[0]) {}
  void start() { sum_ = mass_ = 0; }
  void add(size_t row) {
    sum_ += rows_.moment[row];
    mass_ += rows_.mass(row);
  }
  // Without a division: s^2 W > bar W_L W_R.
  bool beats(double bar) const { return sum_ * sum_ * total_ > (bar + tie_) * (mass_ * (total_ - mass_)); }
  double gain() const { return sum_ * sum_ * total_ / (mass_ * (total_ - mass_)); }
  double in_units(double gain) const { return gain * times_; }
  bool has_sides() const { return both_are_seen(mass_, total_); }
  double left_mean() const { return mean_ + sum_ / mass_; }
  double right_mean() const { return mean_ - sum_ / (total_ - mass_); }

 private:
  const RowArrays& rows_;
  double total_, times_, tie_, mean_, sum_ = 0, mass_ = 0;
};

// Sums of squares of the class weights of both sides follow each row: c^2 grows by w (2 c + w). Those of the right are
// added up anew whenever its weight has halved: what is rounded of them is then no more than rounding of that weight.
class GiniGain {
 public:
  GiniGain(const RowArrays& rows, const NodeSums& node)
      : rows_(rows), node_(node), left_(node.values.size()), right_(node.values.size()) {
    for (double c : node.values) squares_ += c * c;
    whole_ = squares_ / node.weight;
    tie_ = tie_share * whole_;
  }
  void start() {
    std::fill(left_.begin(), left_.end(), 0.0);
    right_ = node_.values;
    mass_ = on_left_ = 0;
    on_right_ = squares_;
    due_ = node_.weight / 2;
  }
  void add(size_t row) {
    const double w = rows_.mass(row);
    double &l = left_[static_cast<size_t>(rows_.y[row])], &r = right_[static_cast<size_t>(rows_.y[row])];
    on_left_ += w * (2 * l + w);
    on_right_ -= w * (2 * r - w);
    l += w;
    r -= w;
    mass_ += w;
    const double rest = node_.weight - mass_;
    if (rest > due_) return;
    due_ = rest / 2;
    on_right_ = 0;
    for (double c : right_) on_right_ += c * c;
  }
  double gain() const { return on_left_ / mass_ + on_right_ / (node_.weight - mass_) - whole_; }
  bool beats(double bar) const { return gain() > bar + tie_; }
  double in_units(double gain) const { return gain; }
  bool has_sides() const { return both_are_seen(mass_, node_.weight); }
  double left_mean() const { return left_[1] / mass_; }
  double right_mean() const { return right_[1] / (node_.weight - mass_); }

 private:
  const RowArrays& rows_;
  const NodeSums& node_;
  std::vector<double> left_, right_;
  double squares_ = 0, whole_ = 0, tie_ = 0, mass_ = 0, on_left_ = 0, on_right_ = 0, due_ = 0;
};

inline double x_log_x(double x) { return x > 0 ? x * std::log(x) : 0.0; }

class EntropyGain {
 public:
  EntropyGain(const RowArrays& rows, const NodeSums& node)
      : rows_(rows), node_(node), left_(node.values.size()), right_(node.values.size()) {
    for (double c : node.values) logs_ += x_log_x(c);
    whole_ = logs_ - x_log_x(node.weight);
    tie_ = tie_share * (1 + std::fabs(whole_));
  }
  void start() {
    std::fill(left_.begin(), left_.end(), 0.0);
    right_ = node_.values;
    mass_ = on_left_ = 0;
    on_right_ = logs_;
  }
  void add(size_t row) {
    const double w = rows_.mass(row);
    double &l = left_[static_cast<size_t>(rows_.y[row])], &r = right_[static_cast<size_t>(rows_.y[row])];
    on_left_ += x_log_x(l + w) - x_log_x(l);
    on_right_ += x_log_x(r - w) - x_log_x(r);
    l += w;
    r -= w;
    mass_ += w;
  }
  double gain() const { return on_left_ - x_log_x(mass_) + on_right_ - x_log_x(node_.weight - mass_) - whole_; }
  bool beats(double bar) const { return gain() > bar + tie_; }
  double in_units(double gain) const { return gain; }
  bool has_sides() const { return both_are_seen(mass_, node_.weight); }
  double left_mean() const { return left_[1] / mass_; }
  double right_mean() const { return right_[1] / (node_.weight - mass_); }

 private:
  const RowArrays& rows_;
  const NodeSums& node_;
  std::vector<double> left_, right_;
  double logs_ = 0, whole_ = 0, tie_ = 0, mass_ = 0, on_left_ = 0, on_right_ = 0;
};

class PoissonGain {
 public:
  PoissonGain(const RowArrays& rows, const NodeSums& node)
      : rows_(rows), total_(node.weight), sum_(node.weight * node.values[0]) {
    whole_ = of_side(sum_, total_);
    tie_ = tie_share * (1 + std::fabs(whole_));
  }
  void start() { mass_ = on_left_ = 0; }
  void add(size_t row) {
    const double w = rows_.mass(row);
    on_left_ += w * rows_.y[row];
    mass_ += w;
  }
  double gain() const { return of_side(on_left_, mass_) + of_side(sum_ - on_left_, total_ - mass_) - whole_; }
  bool beats(double bar) const {
    // What is left of a sum on the right is rounding where it is below its last digits.
    return on_left_ > 0 && sum_ - on_left_ > tie_share * sum_ && gain() > bar + tie_;
  }
  double in_units(double gain) const { return gain; }
  bool has_sides() const { return both_are_seen(mass_, total_); }
  double left_mean() const { return on_left_ / mass_; }
  double right_mean() const { return (sum_ - on_left_) / (total_ - mass_); }

 private:
  static double of_side(double sum, double mass) { return sum > 0 ? sum * std::log(sum / mass) : 0.0; }
  const RowArrays& rows_;
  double total_, sum_, whole_ = 0, tie_ = 0, mass_ = 0, on_left_ = 0;
};

}  // namespace certifit
