#include "working_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "pairs.hpp"

namespace certifit::margin {
namespace {

constexpr double share_of_violation = 0.1;  // to which a working set is solved
constexpr size_t steps_per_variable = 200;

// The state of a run: which variables may move, and what F they have.
struct Position {
  const Variables& of;
  const double *a, *f;

  double F(size_t t) const { return f[of.row[t]] - of.target[t]; }
  bool rises(size_t t) const { return of.sign[t] > 0 ? a[t] < of.bound[t] : a[t] > 0; }
  bool falls(size_t t) const { return of.sign[t] > 0 ? a[t] > 0 : a[t] < of.bound[t]; }

  // The least F of those that may rise, and the largest of those that may fall; without an intercept 0 is both.
  std::pair<double, double> ends() const {
    const double none = std::numeric_limits<double>::infinity();
    double least = of.has_intercept ? none : 0.0, most = of.has_intercept ? -none : 0.0;
    for (size_t t = 0; t < of.n; ++t) {
      if (rises(t)) least = std::min(least, F(t));
      if (falls(t)) most = std::max(most, F(t));
    }
    return {least, most};
  }

  // Objectives of the state and of the multipliers; b is in the middle of the ends.
  Round measured(std::pair<double, double> ends) const {
    const bool is_bounded = std::isfinite(ends.first) && std::isfinite(ends.second);
    const double b = of.has_intercept && is_bounded ? -(ends.first + ends.second) / 2 : 0.0;
    double gap = 0.0, linear = 0.0, square = 0.0;
    for (size_t t = 0; t < of.n; ++t) {
      const double value = f[of.row[t]], slack = -of.sign[t] * (value - of.target[t] + b);
      gap += (slack > 0 ? of.bound[t] * slack : 0.0) - a[t] * slack;
      linear += of.sign[t] * of.target[t] * a[t];
      square += of.sign[t] * a[t] * value;
    }
    const double dual = linear - square / 2;
    return {dual + gap, dual, is_bounded ? std::max(ends.second - ends.first, 0.0) : 0.0, 0};
  }
};

// The working set: the newer half of the one before, and those that violate most on either side.
class Chooser {
 public:
  Chooser(size_t n, size_t size, std::vector<uint32_t>& set) : size_(std::min(n, size)), is_in_(n, 0), set_(set) {}

  void choose(const Position& at, std::pair<double, double> ends) {
    rising_.clear();
    falling_.clear();
    for (size_t t = 0; t < at.of.n; ++t) {
      const double F = at.F(t);
      if (at.rises(t) && F < ends.second) rising_.push_back({F, static_cast<uint32_t>(t)});
      if (at.falls(t) && F > ends.first) falling_.push_back({-F, static_cast<uint32_t>(t)});
    }
    const size_t keep = std::min(set_.size(), size_ / 2);
    set_.erase(set_.begin(), set_.end() - static_cast<std::ptrdiff_t>(keep));
    for (uint32_t t : set_) is_in_[t] = 1;
    const size_t half = (size_ - set_.size()) / 2;
    take(rising_, std::max<size_t>(half, 1));
    take(falling_, size_ - set_.size());
    take(rising_, size_ - set_.size());
    for (uint32_t t : set_) is_in_[t] = 0;
  }

  void forget() { set_.clear(); }

 private:
  using Candidates = std::vector<std::pair<double, uint32_t>>;

  void take(Candidates& from, size_t most) {
    const size_t enough = std::min(from.size(), most + size_);
    std::nth_element(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(enough), from.end());
    std::sort(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(enough));
    for (size_t k = 0, taken = 0; k < enough && taken < most; ++k) {
      if (is_in_[from[k].second]) continue;
      is_in_[from[k].second] = 1;
      set_.push_back(from[k].second);
      ++taken;
    }
  }

  size_t size_;
  std::vector<char> is_in_;
  std::vector<uint32_t>& set_;
  Candidates rising_, falling_;
};

// What the steps on a working set changed, by row of the kernel.
struct Changes {
  std::vector<uint32_t> rows;
  std::vector<double> coefficients;
};

template <class Real>
Changes solve_set(const KernelPool<Real>& pool, const Position& at, const std::vector<uint32_t>& set, double tolerance,
                  size_t most_steps, double* a, size_t& n_steps, Crew& crew) {
  const Variables& of = at.of;
  Pairs<Real> pairs(set.size());
  std::vector<uint32_t> rows(set.size());
  for (size_t s = 0; s < set.size(); ++s) rows[s] = of.row[set[s]];
  pool.among(rows, pairs.K.data(), pairs.stride, crew);
  for (size_t s = 0; s < set.size(); ++s) {
    const uint32_t t = set[s];
    pairs.a[s] = a[t];
    pairs.sign[s] = of.sign[t];
    pairs.bound[s] = of.bound[t];
    pairs.diagonal[s] = pool.diagonal(rows[s]);
    pairs.F[s] = static_cast<Real>(at.F(t));
    pairs.admit(s);
  }
  n_steps = pairs.run(tolerance, std::min(most_steps, steps_per_variable * set.size()), of.has_intercept, crew);
  std::vector<std::pair<uint32_t, double>> changed;
  for (size_t s = 0; s < set.size(); ++s) {
    const uint32_t t = set[s];
    if (pairs.a[s] == a[t]) continue;
    changed.push_back({of.row[t], of.sign[t] * (pairs.a[s] - a[t])});
    a[t] = pairs.a[s];
  }
  std::sort(changed.begin(), changed.end());
  Changes out;
  for (const auto& [row, coefficient] : changed) {
    if (out.rows.empty() || out.rows.back() != row) {
      out.rows.push_back(row);
      out.coefficients.push_back(0.0);
    }
    out.coefficients.back() += coefficient;
  }
  return out;
}

}  // namespace

template <class Real>
End solve_dual(KernelPool<Real>& pool, const Variables& variables, const Limits& limits, double* a, double* f,
               std::vector<uint32_t>& set, std::vector<Round>& rounds, Crew& crew) {
  const Position at{variables, a, f};
  Chooser chooser(variables.n, limits.size, set);
  size_t left = limits.most_steps, idle = 0;
  for (;;) {
    if (!crew.keep_going()) throw Interrupted();
    const auto ends = at.ends();
    Round round = at.measured(ends);
    rounds.push_back(round);
    if (round.violation <= limits.violation) return End::converged;
    if (left == 0) return End::limit;
    chooser.choose(at, ends);
    const double tolerance = std::max(limits.violation / 2, share_of_violation * round.violation);
    const Changes changes = solve_set(pool, at, set, tolerance, left, a, rounds.back().n_steps, crew);
    left -= rounds.back().n_steps;
    if (changes.rows.empty()) {
      // A set that holds older variables may hide the two that violate most; a fresh one has both.
      if (++idle > 1) return End::stalled;
      chooser.forget();
      continue;
    }
    idle = 0;
    pool.add(changes.rows, changes.coefficients, f, crew);
    if (rounds.size() >= limits.most_rounds) return End::pause;
  }
}

template End solve_dual(KernelPool<float>&, const Variables&, const Limits&, double*, double*, std::vector<uint32_t>&,
                        std::vector<Round>&, Crew&);
template End solve_dual(KernelPool<double>&, const Variables&, const Limits&, double*, double*, std::vector<uint32_t>&,
                        std::vector<Round>&, Crew&);

}  // namespace certifit::margin
