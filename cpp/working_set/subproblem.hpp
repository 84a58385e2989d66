// The problem on the working set: by Gram matrix where that is small, else by residuals.
#pragma once

#include <optional>
#include <vector>

#include "../coordinate/solver.hpp"
#include "gram.hpp"

namespace certifit {

class Subproblem {
 public:
  struct Outcome {
    size_t sweeps = 0;
    bool is_still = false;  // nothing moves any more
  };
  // The present weights: <r, r>, the weighted residual, the slopes by position; the objective, and the least that a
  // gap is compared with.
  struct Start {
    std::vector<double> slopes;
    const std::vector<double>& q;
    double squares, rounding, objective, least_objective;
  };

  Subproblem(const Columns& columns, Crew& crew) : columns_(columns), crew_(crew), gram_(columns) {}
  Subproblem(const Subproblem&) = delete;

  size_t size() const { return ids_.size(); }
  size_t support_size() const;
  const std::vector<size_t>& ids() const { return ids_; }
  double weight(size_t p) const { return weights_[p]; }
  bool is_needed(size_t p) const { return weights_[p] != 0 || (solver_ && p < gram_.size() && solver_->is_active(p)); }

  void add(const std::vector<size_t>& ids);
  void keep(const std::vector<size_t>& positions);  // with all that are needed
  // of_column(id) is the penalty of a column from now on.
  template <class OfColumn>
  void set_penalties(OfColumn of_column) {
    penalties_.clear();
    for (size_t id : ids_) penalties_.push_back(of_column(id));
  }

  // Until the gap on the working set is at most `target`, or nothing moves, or the sweeps are used up.
  Outcome solve(const Start& start, double target, size_t max_sweeps);

 private:
  bool use_gram() const;
  Outcome solve_by_gram(const Start& start, double target, size_t max_sweeps);
  Outcome solve_by_residual(const Start& start, double target, size_t max_sweeps);

  const Columns& columns_;
  Crew& crew_;
  std::vector<size_t> ids_;
  std::vector<double> weights_;
  std::vector<Penalty> penalties_;
  WorkingGram gram_;
  GramSystem system_;
  std::optional<PathSolver> solver_;
};

}  // namespace certifit
