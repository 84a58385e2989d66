#include "subproblem.hpp"

#include <algorithm>

#include "descent.hpp"

namespace certifit {
namespace {

constexpr size_t small_gram = 4096;  // columns: 128 MB of products

}  // namespace

size_t Subproblem::support_size() const {
  return static_cast<size_t>(std::count_if(weights_.begin(), weights_.end(), [](double w) { return w != 0; }));
}

void Subproblem::add(const std::vector<size_t>& ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  weights_.resize(ids_.size(), 0.0);
}

void Subproblem::keep(const std::vector<size_t>& positions) {
  std::vector<size_t> in_gram;
  for (size_t a = 0; a < positions.size(); ++a) {
    const size_t p = positions[a];
    ids_[a] = ids_[p];
    weights_[a] = weights_[p];
    penalties_[a] = penalties_[p];
    if (p < gram_.size()) in_gram.push_back(p);
  }
  ids_.resize(positions.size());
  weights_.resize(positions.size());
  penalties_.resize(positions.size());
  gram_.keep(in_gram);
  if (!solver_) return;
  solver_->keep(in_gram);
  for (size_t a = 0; a < in_gram.size(); ++a) system_.diagonal[a] = system_.diagonal[in_gram[a]];
  system_.diagonal.resize(in_gram.size());
}

// Products take at most a quarter of the memory of X. With a ridge there may be many more weights than rows; then a
// product with the columns is cheaper than one with the products, and the ridge makes conjugate gradients fast.
bool Subproblem::use_gram() const {
  const auto quarter = static_cast<size_t>(std::sqrt(0.25 * static_cast<double>(columns_.stored())));
  if (size() > std::max(small_gram, quarter)) return false;
  const bool has_ridge = std::any_of(penalties_.begin(), penalties_.end(), [](const Penalty& h) { return h.l2 > 0; });
  return !has_ridge || size() <= 2 * columns_.n_rows() + 256;
}

Subproblem::Outcome Subproblem::solve(const Start& start, double target, size_t max_sweeps) {
  if (use_gram()) return solve_by_gram(start, target, max_sweeps);
  solver_.reset();
  gram_.clear();
  return solve_by_residual(start, target, max_sweeps);
}

// The exact slopes of the present weights are the origin: what the products lose to rounding concerns the way from
// there alone.
Subproblem::Outcome Subproblem::solve_by_gram(const Start& start, double target, size_t max_sweeps) {
  const std::vector<double> origin = weights_;
  gram_.append({ids_.begin() + static_cast<std::ptrdiff_t>(gram_.size()), ids_.end()}, crew_);
  if (!solver_) system_.diagonal.clear();
  for (size_t p = system_.diagonal.size(); p < size(); ++p) system_.diagonal.push_back(gram_.square(p));
  system_.n_columns = size();
  system_.stride = gram_.stride();
  system_.gram = gram_.data();
  system_.moment = start.slopes.data();
  system_.origin = origin.data();
  system_.square = start.squares;
  system_.least = start.least_objective;
  system_.is_dead.assign(size(), 0);
  if (solver_) {
    solver_->follow();
  } else {
    solver_.emplace(system_, crew_);
    solver_->set_weights(weights_);
  }
  solver_->solve(penalties_, target / std::max(start.objective, start.least_objective), max_sweeps);
  weights_ = solver_->weights();
  const PathStatus status = solver_->status();
  return {solver_->iterations(), status == PathStatus::rounding || status == PathStatus::not_gram};
}

Subproblem::Outcome Subproblem::solve_by_residual(const Start& start, double target, size_t max_sweeps) {
  ResidualDescent descent(columns_, ids_, penalties_, weights_, start.q, start.squares);
  const size_t sweeps = descent.solve(start.rounding, target, max_sweeps, crew_);
  weights_ = descent.weights();
  return {sweeps, descent.has_settled()};
}

}  // namespace certifit
