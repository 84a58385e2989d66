#include "solver.hpp"

#include <algorithm>
#include <limits>

#include "row_sums.hpp"

namespace certifit {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double approach_ratio = 0.7;
constexpr size_t most_approaches = 60;  // 0.7^60 = 5e-10: smaller l1 is reached at once

// Where a weight of this sign (0: no kink at 0) must stop when it moves this way.
double end_of(const Penalty& h, double sign, double way) {
  return way > 0 ? (sign < 0 ? 0 : h.upper) : (sign > 0 ? 0 : h.lower);
}

}  // namespace

PathSolver::PathSolver(const GramSystem& system, Crew& crew) : system_(system), crew_(crew), certifier_(system, crew) {
  follow();
}

void PathSolver::follow() {
  const size_t d = system_.n_columns;
  for (size_t j = root_.size(); j < d; ++j) root_.push_back(std::sqrt(std::max(0.0, system_.diagonal[j])));
  w_.resize(d, 0.0);
  place_.resize(d, nowhere);
  q_.assign(system_.moment, system_.moment + d);
}

void PathSolver::keep(const std::vector<size_t>& columns) {
  auto select = [&](auto& values) {
    for (size_t j = 0; j < columns.size(); ++j) values[j] = values[columns[j]];
    values.resize(columns.size());
  };
  select(w_);
  select(q_);
  select(root_);
  select(place_);
  if (!penalty_.empty()) select(penalty_);
  for (size_t j = 0; j < columns.size(); ++j)
    if (is_active(j)) active_[place_[j]] = j;
  certifier_.forget();
}

void PathSolver::set_weights(const std::vector<double>& weights) {
  w_ = weights;
  place_.assign(w_.size(), nowhere);
  active_.clear();
  sign_.clear();
  factor_.clear();
  penalty_.clear();
}

// A ridge that changes, changes the matrix of the active columns.
void PathSolver::set_penalty(std::vector<Penalty> penalty) {
  const bool is_first = penalty_.empty();
  bool same_matrix = true;
  if (!is_first)
    for (size_t j : active_) same_matrix = same_matrix && penalty[j].l2 == penalty_[j].l2;
  penalty_ = std::move(penalty);
  for (size_t p = 0; p < active_.size(); ++p) sign_[p] = sign_of(active_[p]);  // l1 may have become 0
  if (is_first) activate_support();
  if (!same_matrix) refactor();
}

void PathSolver::activate_support() {
  for (size_t j = 0; j < w_.size(); ++j)
    if (w_[j] != 0 && w_[j] > penalty_[j].lower && w_[j] < penalty_[j].upper) push_active(j);
  refactor();
}

void PathSolver::solve(std::vector<Penalty> penalty, double tol, size_t max_iter) {
  is_gram_ = true;
  max_iter_ = max_iter;
  set_penalty(std::move(penalty));
  iterations_ = idle_rounds_ = 0;
  least_objective_ = least_gap_ = infinity;
  approach();
  for (;;) {
    if (!crew_.keep_going()) throw Interrupted();
    ++iterations_;
    settle();
    check();
    certified_ = certifier_.certify(penalty_, w_.data(), q_.data());
    status_ = certified_.gap <= tol ? PathStatus::converged : PathStatus::rounding;
    if (!is_gram_) status_ = PathStatus::not_gram;
    if (status_ != PathStatus::rounding || broken_.empty() || no_progress()) return;
    if (iterations_ == max_iter_) {
      status_ = PathStatus::max_iter;
      return;
    }
    sweep();
  }
}

// Far from the answer the first signs are poor guesses: goes there by way of larger l1, one round each.
void PathSolver::approach() {
  double excess = l1_excess();
  if (!(excess > 2)) return;
  const std::vector<Penalty> target = penalty_;
  for (; excess > 2 && iterations_ < std::min(most_approaches, max_iter_ - 1); ++iterations_) {
    if (!crew_.keep_going()) throw Interrupted();
    excess *= approach_ratio;
    for (size_t j = 0; j < target.size(); ++j) penalty_[j].l1 = target[j].l1 * excess;
    settle();
    check();
    sweep();
  }
  penalty_ = target;
}

// The factor by which l1 would have to grow for no column to enter.
double PathSolver::l1_excess() const {
  double excess = 1;
  for (size_t j = 0; j < w_.size(); ++j)
    if (penalty_[j].l1 > 0 && place_[j] == nowhere && !system_.is_dead[j])
      excess = std::max(excess, 1 + violation(j) / penalty_[j].l1);
  return excess;
}

// Three rounds that lower neither the objective nor the gap: what is left is rounding.
bool PathSolver::no_progress() {
  const bool better = certified_.objective < least_objective_ * (1 - 2 * epsilon) || certified_.gap < 0.5 * least_gap_;
  idle_rounds_ = better ? 0 : idle_rounds_ + 1;
  least_objective_ = std::min(least_objective_, certified_.objective);
  least_gap_ = std::min(least_gap_, certified_.gap);
  if (idle_rounds_ == 1) refactor();  // rid of the roundings of many changes
  return idle_rounds_ >= 3;
}

void PathSolver::settle() {
  residual_.resize(active_.size());
  for (size_t p = 0; p < active_.size(); ++p) residual_[p] = slope_of(active_[p]) - pull(p);
  while (!active_.empty()) {
    if (!crew_.keep_going()) throw Interrupted();
    step_ = residual_;
    factor_.solve(step_.data());
    const Block block = first_block(step_, 1);
    for (size_t p = 0; p < active_.size(); ++p) w_[active_[p]] += block.step * step_[p];
    if (block.place == nowhere) return;
    // Along the step the residual of every active column shrinks in proportion.
    for (double& value : residual_) value *= 1 - block.step;
    w_[active_[block.place]] = block.end;
    residual_.erase(residual_.begin() + static_cast<ptrdiff_t>(block.place));
    deactivate(block.place);
  }
}

PathSolver::Block PathSolver::first_block(const std::vector<double>& step, double longest) const {
  Block first{longest, nowhere, 0};
  for (size_t p = 0; p < active_.size(); ++p) {
    const double length = std::fabs(step[p]), end = end_of(penalty_[active_[p]], sign_[p], step[p]);
    const double room = step[p] > 0 ? end - w_[active_[p]] : w_[active_[p]] - end;
    if (length == 0 || std::isinf(room) || room > length * first.step) continue;
    first = {std::max(0.0, room / length), p, end};
  }
  return first;
}

// How far the derivative is on the wrong side: moving w_j up (or down) would lower the objective at this rate.
double PathSolver::violation(size_t j) const {
  const Penalty& h = penalty_[j];
  const double w = w_[j], slope = slope_of(j);
  const double up = w < h.upper ? slope - (w >= 0 ? h.l1 : -h.l1) : 0;
  const double down = w > h.lower ? -slope - (w <= 0 ? h.l1 : -h.l1) : 0;
  return std::max({0.0, up, down});
}

void PathSolver::check() {
  const size_t d = system_.n_columns;
  correlations(system_, w_.data(), q_.data());
  size_ = std::sqrt(system_.square);
  for (size_t j = 0; j < d; ++j) size_ += root_[j] * std::fabs(w_[j]);
  allowed_ = (8 + std::sqrt(static_cast<double>(active_.size()))) * epsilon * size_;
  broken_.clear();
  for (size_t j = 0; j < d; ++j) {
    const double broken = violation(j);
    if (broken > allowed_ * root_[j] && !system_.is_dead[j]) broken_.emplace_back(-broken / root_[j], j);
  }
}

// Unpenalised columns go first: what they explain is not left to the others.
void PathSolver::sweep() {
  std::sort(broken_.begin(), broken_.end());
  auto waits = [&](size_t j) { return place_[j] == nowhere && penalty_[j].l1 == 0; };
  const bool free_first = std::any_of(broken_.begin(), broken_.end(), [&](const auto& b) { return waits(b.second); });
  for (const auto& [size, j] : broken_) {
    if (place_[j] != nowhere || (free_first && penalty_[j].l1 > 0)) continue;  // settle moves those in place
    const double square = system_.diagonal[j];
    const double moved = penalty_[j].best(w_[j], q_[j], square);
    if (moved == w_[j]) continue;
    subtract_row(q_.data(), system_.column(j), moved - w_[j], system_.n_columns);
    w_[j] = moved;
    const bool at_bound = moved == penalty_[j].lower || moved == penalty_[j].upper;
    if (!at_bound && (moved != 0 || penalty_[j].l1 == 0)) entering_.push_back(j);
  }
  activate_entering();
}

// Few columns are appended one by one, many in blocks.
void PathSolver::activate_entering() {
  if (entering_.size() < 8 || !extend(entering_))
    for (size_t j : entering_)
      if (!append(j)) dependent_.push_back(j);
  entering_.clear();
  resolve_dependences();
}

bool PathSolver::extend(const std::vector<size_t>& columns) {
  const size_t old = active_.size(), k = old + columns.size();
  std::vector<double> entries(columns.size() * k);
  for (size_t a = 0; a < columns.size(); ++a) {
    const double* column = system_.column(columns[a]);
    double* to = &entries[a * k];
    for (size_t p = 0; p < old; ++p) to[p] = column[active_[p]];
    for (size_t b = a; b < columns.size(); ++b) to[old + b] = column[columns[b]];
    to[old + a] += penalty_[columns[a]].l2;
  }
  if (!factor_.extend(entries, columns.size(), crew_)) return false;
  for (size_t j : columns) push_active(j);
  return true;
}

bool PathSolver::append(size_t j) {
  products_.resize(active_.size());
  const double* column = system_.column(j);
  for (size_t p = 0; p < active_.size(); ++p) products_[p] = column[active_[p]];
  if (!factor_.append(products_.data(), system_.diagonal[j] + penalty_[j].l2)) return false;
  push_active(j);
  return true;
}

void PathSolver::push_active(size_t j) {
  place_[j] = active_.size();
  active_.push_back(j);
  sign_.push_back(sign_of(j));
}

// Columns that depend on active ones: one of these or the column itself leaves.
void PathSolver::resolve_dependences() {
  for (size_t j : dependent_) {
    do {
      settle();
      correlations(system_, w_.data(), q_.data());
    } while ((w_[j] != 0 || penalty_[j].l1 == 0) && !append(j) && leave_dependence(j));
  }
  dependent_.clear();
}

// x_j = X_A a to rounding: along w_j + t, w_A - t a the residual stays and the objective is all but linear. Goes down
// to the first weight that reaches 0 or a bound. True if that was an active one, which leaves.
bool PathSolver::leave_dependence(size_t j) {
  const Penalty& h = penalty_[j];
  const double sign = sign_of(j), slope = slope_of(j) - h.l1 * sign;
  const double curvature = factor_.last_pivot(), square = system_.diagonal[j] + h.l2;
  factor_.solve(products_.data());
  double length = root_[j];
  for (size_t p = 0; p < active_.size(); ++p) length += std::fabs(products_[p]) * root_[active_[p]];
  const bool is_flat = std::fabs(slope) <= allowed_ * length;
  const double way = is_flat ? (w_[j] > 0 ? -1 : 1) : (slope > 0 ? 1 : -1);
  const double end = is_flat ? 0 : end_of(h, sign, way), room = std::fabs(end - w_[j]);
  const double lowest =
      !is_flat && curvature > 64 * epsilon * length * length ? std::fabs(slope) / curvature : infinity;
  for (double& value : products_) value *= -way;
  const Block block = first_block(products_, std::min(room, lowest));
  if (std::isinf(block.step) || curvature < -1e-6 * square) {
    // Downhill without end. Within 1e-8 of level it is taken for rounding.
    is_gram_ = is_gram_ && curvature >= -1e-6 * square && std::fabs(slope) <= 1e-8 * root_[j] * size_;
    return false;
  }
  for (size_t p = 0; p < active_.size(); ++p) w_[active_[p]] += block.step * products_[p];
  w_[j] = block.place == nowhere && room <= lowest ? end : w_[j] + way * block.step;
  if (block.place != nowhere) w_[active_[block.place]] = block.end;
  correlations(system_, w_.data(), q_.data());
  if (block.place == nowhere) return false;
  deactivate(block.place);
  return true;
}

void PathSolver::deactivate(size_t place) {
  factor_.remove(place);
  place_[active_[place]] = nowhere;
  active_.erase(active_.begin() + static_cast<ptrdiff_t>(place));
  sign_.erase(sign_.begin() + static_cast<ptrdiff_t>(place));
  for (size_t p = place; p < active_.size(); ++p) place_[active_[p]] = p;
}

void PathSolver::refactor() {
  const std::vector<size_t> columns = std::move(active_);
  factor_.clear();
  active_.clear();
  sign_.clear();
  for (size_t j : columns) place_[j] = nowhere;
  if (extend(columns)) return;
  for (size_t j : columns)
    if (!append(j)) dependent_.push_back(j);
  resolve_dependences();
}

}  // namespace certifit
