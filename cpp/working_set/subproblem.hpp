// The problem on the working set: coordinate descent finds the support, a direct solve on the support ends it.
#pragma once

#include <memory>
#include <vector>

#include "engine.hpp"
#include "factor.hpp"
#include "penalty.hpp"

namespace certifit {

class Subproblem {
 public:
  struct Outcome {
    size_t sweeps = 0;      // a direct solve counts with the sweep that follows it
    bool is_still = false;  // the last round moved no weight by more than rounding
  };

  explicit Subproblem(const Columns& columns) : columns_(columns), gram_(columns) {}

  size_t size() const { return ids_.size(); }
  size_t support_size() const;
  const std::vector<size_t>& ids() const { return ids_; }
  double weight(size_t p) const { return weights_[p]; }

  void add(const std::vector<size_t>& ids);
  void keep(const std::vector<size_t>& positions);
  // of_column(id) is the penalty of a column from now on.
  template <class OfColumn>
  void set_penalties(OfColumn of_column, bool ridge_changes) {
    penalties_.clear();
    for (size_t id : ids_) penalties_.push_back(of_column(id));
    if (ridge_changes) factor_.clear();
    has_ridge_ = has_ridge_ || ridge_changes;
  }

  // From slopes (by position) or weighted residual q, both of the present weights, until the gap on the working set
  // is at most `target`, or nothing moves, or the sweeps are used up. `squares` = <r, r>.
  Outcome solve(const std::vector<double>& slopes, const std::vector<double>& q, double squares, double rounding,
                double target, size_t max_sweeps, Crew& crew);

 private:
  void start(const std::vector<double>& slopes, const std::vector<double>& q, Crew& crew);
  bool use_gram() const;
  void sweep(Crew& crew);
  bool has_settled() const;
  size_t solve_on_support(size_t max_sweeps, Crew& crew);
  void solve_directly(std::vector<size_t> wanted, Crew& crew);
  size_t solve_by_conjugate_gradients(const std::vector<size_t>& members, size_t max_steps, Crew& crew);
  void slide(size_t p);
  struct Ray {
    double slope = 0, curvature = 0;                   // of the objective at t = 0
    double pull = 0, bend = 0;                         // <r, r>(t) = <r, r> - 2 t pull + t^2 bend
    double end = infinity;                             // where the first weight meets its bound
    std::vector<std::pair<double, size_t>> crossings;  // t and member, where a weight changes its sign
  };
  Ray look_along(const std::vector<size_t>& members, const std::vector<double>& d);
  void line_search(const std::vector<size_t>& members, const std::vector<double>& d);
  std::vector<size_t> interior() const;
  double pull_left(size_t p);
  double gap(double rounding);
  double square(size_t p) const { return columns_.norm(ids_[p]) * columns_.norm(ids_[p]); }
  void moved(size_t p, double step);

  const Columns& columns_;
  std::vector<size_t> ids_;
  std::vector<double> weights_;
  std::vector<Penalty> penalties_;
  Gram gram_;
  ChangingFactor factor_;
  std::unique_ptr<Engine> engine_;
  bool has_ridge_ = false;
  bool needs_factor_ = false;  // conjugate gradients were too slow here
  double squares_ = 0;         // <r, r> as weights move
  double largest_move_ = 0;    // of a weight, this round
};

}  // namespace certifit
