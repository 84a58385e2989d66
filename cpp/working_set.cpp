#include "working_set.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "working_set/state.hpp"
#include "working_set/subproblem.hpp"

namespace certifit {
namespace {

constexpr size_t first_set = 100;          // columns let in at once, at first
constexpr size_t first_candidates = 1000;  // columns looked at between looks at all
constexpr double inner_share = 0.3;        // of the gap allowed that the working set may use up
constexpr double candidate_share = 0.9;    // of l1: a slope above it makes a candidate
// Alphas on the way down: a quarter of the last, then halves, not nearer than this to the goal; to this tolerance.
constexpr double first_leap = 0.25, leap = 0.5, leap_end = 0.7, leap_tol = 0.03;
constexpr double longest_way = 0x1p40;  // from the first of these alphas to the goal
constexpr size_t patience = 3;          // rounds without a smaller gap

class WideSolver {
 public:
  WideSolver(const WideProblem& problem, Crew& crew)
      : crew_(crew), state_(problem, crew), subproblem_(state_.columns(), crew), in_set_(state_.columns().size(), 0) {
    all_columns_.resize(in_set_.size());
    std::iota(all_columns_.begin(), all_columns_.end(), size_t{0});
  }

  WideSolution solve(double alpha, double tol, size_t max_iter);
  double alpha_max();

 private:
  void change_alpha(double alpha);
  void prune();
  std::vector<size_t> strongest(const std::vector<size_t>& ids, size_t at_most) const;
  bool admit(const std::vector<size_t>& from);
  void choose_candidates(double threshold);
  double look();
  Subproblem::Start start() const;
  struct Descent {
    double gap = 0;
    size_t sweeps = 0;
    WideStatus status = WideStatus::converged;
  };
  Descent descend(double alpha, double tol, size_t max_iter);
  double largest_alpha() const;
  WideSolution solution(const Descent& descent, size_t sweeps) const;
  double allowed(double tol) const { return tol * std::max(state_.objective(), state_.least_objective()); }

  Crew& crew_;
  WideState state_;
  Subproblem subproblem_;
  std::vector<char> in_set_;
  std::vector<size_t> all_columns_;
  std::vector<size_t> candidates_;  // columns outside the set that may soon belong to it
  bool more_are_likely_ = false;    // than the candidates
};

// The columns that pull hardest beyond their l1, relative to their norm; the lower number first where equal.
std::vector<size_t> WideSolver::strongest(const std::vector<size_t>& ids, size_t at_most) const {
  std::vector<std::pair<double, size_t>> scored;
  for (size_t j : ids) scored.push_back({-state_.penalty(j).excess(state_.slope(j)) / state_.columns().norm(j), j});
  if (scored.size() > at_most) {
    std::nth_element(scored.begin(), scored.begin() + static_cast<std::ptrdiff_t>(at_most), scored.end());
    scored.resize(at_most);
  }
  std::vector<size_t> out;
  for (const auto& [score, j] : scored) out.push_back(j);
  std::sort(out.begin(), out.end());
  return out;
}

bool WideSolver::admit(const std::vector<size_t>& from) {
  std::vector<size_t> pulling;
  for (size_t j : from)
    if (!in_set_[j] && state_.columns().norm(j) > 0 && state_.penalty(j).excess(state_.slope(j)) > 0)
      pulling.push_back(j);
  pulling = strongest(pulling, std::max(first_set, subproblem_.support_size() / 2));
  for (size_t j : pulling) in_set_[j] = 1;
  subproblem_.add(pulling);
  subproblem_.set_penalties([&](size_t j) { return state_.penalty(j); });
  return !pulling.empty();
}

// Columns with |slope| >= threshold l1: those that the strong rule expects to matter.
void WideSolver::choose_candidates(double threshold) {
  std::vector<size_t> likely;
  for (size_t j = 0; j < in_set_.size(); ++j) {
    if (in_set_[j] || state_.columns().norm(j) == 0) continue;
    const Penalty h = state_.penalty(j);
    if (h.bound(state_.slope(j)) > 0 && std::fabs(state_.slope(j)) >= threshold * h.l1) likely.push_back(j);
  }
  const size_t at_most = std::max(first_candidates, 2 * subproblem_.size());
  more_are_likely_ = likely.size() > at_most;
  candidates_ = strongest(likely, at_most);
}

// What is not needed leaves once there is much of it; what pulls may come back at once.
void WideSolver::prune() {
  if (2 * subproblem_.size() < 3 * subproblem_.support_size() + 4 * first_set) return;
  std::vector<size_t> stay;
  for (size_t p = 0; p < subproblem_.size(); ++p) {
    if (subproblem_.is_needed(p))
      stay.push_back(p);
    else
      in_set_[subproblem_.ids()[p]] = 0;
  }
  subproblem_.keep(stay);
}

void WideSolver::change_alpha(double alpha) {
  const double threshold = std::clamp((2 * alpha - state_.alpha()) / alpha, 0.0, 1.0);
  state_.set_alpha(alpha);
  subproblem_.set_penalties([&](size_t j) { return state_.penalty(j); });
  prune();
  admit(all_columns_);
  choose_candidates(threshold);
}

// The exact residual of the present weights, slopes of the set and the candidates there, and the gap over these.
double WideSolver::look() {
  std::vector<double> weights;
  for (size_t p = 0; p < subproblem_.size(); ++p) weights.push_back(subproblem_.weight(p));
  state_.set_weights(subproblem_.ids(), weights);
  state_.pull(subproblem_.ids());
  state_.pull_where_needed(candidates_);
  std::vector<size_t> near = subproblem_.ids();
  near.insert(near.end(), candidates_.begin(), candidates_.end());
  return state_.gap(near);
}

Subproblem::Start WideSolver::start() const {
  std::vector<double> slopes;
  for (size_t j : subproblem_.ids()) slopes.push_back(state_.slope(j));
  return {std::move(slopes), state_.weighted_residual(), state_.squares(),
          state_.rounding(), state_.objective(),         state_.least_objective()};
}

// Far below the last alpha, a few alphas on the way lead to the support with less work than one leap.
WideSolution WideSolver::solve(double alpha, double tol, size_t max_iter) {
  size_t sweeps = 0;
  if (alpha < state_.alpha() * first_leap) {
    // largest_alpha is infinite where l1 is all but 0: the way down must begin at a number.
    const double start = std::min({state_.alpha(), largest_alpha(), alpha * longest_way, 0x1p1000});
    for (double way = start * first_leap; alpha < way && sweeps < max_iter; way *= leap)
      if (alpha < leap_end * way) sweeps += descend(way, leap_tol, max_iter - sweeps).sweeps;
  }
  const Descent descent = descend(alpha, tol, max_iter - sweeps);
  return solution(descent, sweeps + descent.sweeps);
}

WideSolver::Descent WideSolver::descend(double alpha, double tol, size_t max_iter) {
  change_alpha(alpha);
  Descent out;
  size_t idle = 0;  // rounds that neither let columns in nor made the gap smaller
  double last = infinity, full_gap = 0;
  bool is_still = false;
  for (;;) {
    if (!crew_.keep_going()) throw Interrupted();
    double gap = look();
    bool grew = false;
    if (last == infinity && more_are_likely_) full_gap = gap;  // at least: do not polish the candidates alone
    if (out.sweeps >= max_iter || is_still || gap <= std::max(allowed(tol), inner_share * full_gap)) {
      state_.pull_all();
      gap = full_gap = out.gap = state_.gap();
      if (gap <= allowed(tol)) return out;
      out.status = WideStatus::max_iter;
      if (out.sweeps >= max_iter) return out;
      grew = admit(all_columns_);
      choose_candidates(candidate_share);
      out.status = WideStatus::rounding;
      if (!grew && is_still) return out;
      out.status = WideStatus::converged;
    } else {
      grew = admit(candidates_);
    }
    idle = grew || gap < 0.9 * last ? 0 : idle + 1;
    last = gap;
    // Where the last answer was not good enough, a better one.
    const double target =
        inner_share * std::max(allowed(tol), inner_share * gap) * std::pow(0.1, static_cast<double>(idle));
    const auto outcome = subproblem_.solve(start(), target, max_iter - out.sweeps);
    out.sweeps += outcome.sweeps;
    is_still = !grew && idle >= (outcome.is_still ? 1 : patience);
  }
}

WideSolution WideSolver::solution(const Descent& descent, size_t sweeps) const {
  WideSolution out;
  std::vector<std::pair<size_t, double>> support;
  for (size_t p = 0; p < subproblem_.size(); ++p)
    if (subproblem_.weight(p) != 0) support.push_back({subproblem_.ids()[p], subproblem_.weight(p)});
  std::sort(support.begin(), support.end());
  for (const auto& [j, weight] : support) {
    if (!std::isfinite(state_.to_user(j, weight)))
      throw std::invalid_argument("The weight of column " + std::to_string(j) +
                                  " is beyond float64. Multiply the column by a constant.");
    out.columns.push_back(static_cast<int64_t>(j));
    out.weights.push_back(state_.to_user(j, weight));
  }
  const double objective = state_.objective();
  out.intercept = state_.intercept();
  out.objective = state_.user_objective(objective);
  out.gap = state_.user_objective(descent.gap);
  out.relative_gap = descent.gap > 0 ? descent.gap / std::max(objective, state_.least_objective()) : 0.0;
  out.sweeps = sweeps;
  out.columns_read = state_.columns_read();
  out.status = descent.status;
  return out;
}

// max_j |slope_j| / (l1 at alpha 1): where the next penalised weight leaves zero, if all slopes are those of now.
double WideSolver::largest_alpha() const {
  double largest = 0;
  for (size_t j = 0; j < in_set_.size(); ++j)
    if (state_.base(j) > 0 && state_.penalty(j).bound(state_.slope(j)) > 0)
      largest = std::max(largest, std::fabs(state_.slope(j)) / state_.base(j));
  return largest;
}

double WideSolver::alpha_max() {
  descend(infinity, 1e-14, 100'000);  // the unpenalised columns alone
  state_.pull(all_columns_);
  return largest_alpha();
}

}  // namespace

std::vector<WideSolution> wide_lasso_path(const WideProblem& problem, const std::vector<double>& alphas, double tol,
                                          size_t max_iter, Crew& crew) {
  WideSolver solver(problem, crew);
  std::vector<WideSolution> out;
  for (double alpha : alphas) out.push_back(solver.solve(alpha, tol, max_iter));
  return out;
}

double wide_alpha_max(const WideProblem& problem, Crew& crew) { return WideSolver(problem, crew).alpha_max(); }

WideSolution wide_lasso_gap(const WideProblem& problem, double alpha, const std::vector<int64_t>& columns,
                            const std::vector<double>& weights, double intercept, Crew& crew) {
  WideState state(problem, crew);
  state.set_alpha(alpha);
  std::vector<size_t> ids;
  std::vector<double> scaled;
  for (size_t k = 0; k < columns.size(); ++k) {
    const size_t j = static_cast<size_t>(columns[k]);
    const Penalty h = state.penalty(j);
    const double w = state.from_user(j, weights[k]);
    if (!(w >= h.lower && w <= h.upper))
      throw std::invalid_argument("The weight of column " + std::to_string(j) + " is outside its bounds.");
    ids.push_back(j);
    scaled.push_back(w);
  }
  state.set_weights(ids, scaled);
  if (problem.fit_intercept) state.set_intercept(intercept);
  state.pull_all();
  WideSolution out;
  const double objective = state.objective(), gap = state.gap();
  out.objective = state.user_objective(objective);
  out.gap = state.user_objective(gap);
  out.relative_gap = gap > 0 ? gap / std::max(objective, state.least_objective()) : 0.0;
  return out;
}

}  // namespace certifit
