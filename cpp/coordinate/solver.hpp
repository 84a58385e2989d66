// The lasso of one Gram matrix, from one penalty to the next, each from the answer before it. A round has three parts:
//
//   settle   Newton steps on the active columns with their signs held: (G_AA + L2) step = q_A - L2 w_A - l1 sign.
//            A step ends at the first weight that reaches 0 or a bound, which leaves the active columns.
//   check    q anew, the conditions of the optimum on every column, the gap.
//   sweep    One coordinate step for every column that breaks a condition; it becomes active.
//
// Every part lowers the objective, and settle ends at the lowest point of a face. There are finitely many faces.
#pragma once

#include <utility>

#include "../coordinate.hpp"
#include "gap.hpp"

namespace certifit {

class PathSolver {
 public:
  PathSolver(const GramSystem& system, Crew& crew);

  // Until the relative gap is at most tol, for at most max_iter rounds.
  void solve(std::vector<Penalty> penalty, double tol, size_t max_iter);

  // The system has more columns behind those there were, or another origin, which must be the weights.
  void follow();
  // Columns are to be dropped from the system: only these stay, in this order. Active ones must.
  void keep(const std::vector<size_t>& columns);
  void set_weights(const std::vector<double>& weights);

  const std::vector<double>& weights() const { return w_; }
  const std::vector<double>& q() const { return q_; }
  Certified certified() const { return certified_; }
  bool is_active(size_t j) const { return place_[j] != nowhere; }
  PathStatus status() const { return status_; }
  size_t iterations() const { return iterations_; }

 private:
  static constexpr size_t nowhere = static_cast<size_t>(-1);

  struct Block {
    double step;   // how much of the step can be taken
    size_t place;  // of the active column that ends it
    double end;    // where its weight comes to rest
  };

  void set_penalty(std::vector<Penalty> penalty);
  void activate_support();
  void approach();
  double l1_excess() const;
  void settle();
  Block first_block(const std::vector<double>& step, double longest) const;
  double sign_of(size_t j) const { return penalty_[j].l1 == 0 ? 0 : (w_[j] > 0 ? 1 : -1); }
  double slope_of(size_t j) const { return q_[j] - penalty_[j].l2 * w_[j]; }  // without l1
  double pull(size_t place) const { return penalty_[active_[place]].l1 * sign_[place]; }
  double violation(size_t j) const;
  void check();
  void sweep();
  bool no_progress();
  void push_active(size_t j);
  void activate_entering();
  bool append(size_t j);
  bool extend(const std::vector<size_t>& columns);
  void resolve_dependences();
  bool leave_dependence(size_t j);
  void deactivate(size_t place);
  void refactor();

  const GramSystem& system_;
  Crew& crew_;
  GapCertifier certifier_;
  ActiveFactor factor_;
  std::vector<Penalty> penalty_;
  std::vector<double> w_, q_, root_, products_, residual_, step_;
  std::vector<size_t> active_, place_, entering_, dependent_;
  std::vector<double> sign_;  // of the active weights; 0 for a column without l1
  std::vector<std::pair<double, size_t>> broken_;
  double size_ = 0, allowed_ = 0;  // |y| + sum_j |x_j||w_j|, and the rounding of q_j / |x_j|
  bool is_gram_ = true;
  double least_objective_ = 0, least_gap_ = 0;
  size_t idle_rounds_ = 0, iterations_ = 0, max_iter_ = 0;
  Certified certified_{};
  PathStatus status_ = PathStatus::converged;
};

}  // namespace certifit
