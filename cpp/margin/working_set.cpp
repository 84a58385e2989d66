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
constexpr size_t largest_matrix = 1024;  // of a working set whose whole matrix is made
constexpr size_t largest_part = 4096;    // of the variables that are a problem of their own
constexpr size_t most_inner_rounds = 200;
constexpr double last_round = 16;  // times the violation asked for, from which one round of all that may move will do

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

// The working set: all that may yet move, where they are few; else the newer half of the set before, and those that
// violate most on either side.
class Chooser {
 public:
  Chooser(size_t n, size_t size, std::vector<uint32_t>& set) : size_(std::min(n, size)), is_in_(n, 0), set_(set) {}

  // Whether it holds all that may yet move.
  bool choose(const Position& at, std::pair<double, double> ends) {
    if (take_all(at, ends)) return true;
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
    return false;
  }

  void forget() { set_.clear(); }

 private:
  // The variables that violate, or would if the ends moved by their distance; false where they are too many.
  bool take_all(const Position& at, std::pair<double, double> ends) {
    const double apart = ends.second - ends.first, low = ends.first - 0.25 * apart, high = ends.second + 0.25 * apart;
    if (!(apart > 0) || at.of.n <= largest_part) return false;
    few_.clear();
    for (size_t t = 0; t < at.of.n && few_.size() <= largest_part; ++t) {
      const double F = at.F(t);
      if ((at.rises(t) && F < high) || (at.falls(t) && F > low)) few_.push_back(static_cast<uint32_t>(t));
    }
    if (few_.size() > largest_part) return false;
    set_ = few_;
    return true;
  }

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
  std::vector<uint32_t> few_;
};

// What the steps on a working set changed, by row of the kernel.
struct Changes {
  std::vector<uint32_t> rows;
  std::vector<double> coefficients;

  void add(uint32_t row, double coefficient) {
    if (rows.empty() || rows.back() != row) {
      rows.push_back(row);
      coefficients.push_back(0.0);
    }
    coefficients.back() += coefficient;
  }
};

// The variables of a working set, each with a row of its own.
struct Part {
  std::vector<uint32_t> row, of;  // of: rows of the whole problem
  std::vector<double> sign, target, bound, a, f;

  Part(const Position& at, const std::vector<uint32_t>& set) {
    for (uint32_t t : set) {
      row.push_back(static_cast<uint32_t>(row.size()));
      of.push_back(at.of.row[t]);
      sign.push_back(at.of.sign[t]);
      target.push_back(at.of.target[t]);
      bound.push_back(at.of.bound[t]);
      a.push_back(at.a[t]);
      f.push_back(at.f[at.of.row[t]]);
    }
  }
  size_t size() const { return row.size(); }
};

// Steps of two variables on the whole matrix of a part; how many.
template <class Real>
size_t step_in_pairs(KernelPool<Real>& pool, Part& part, bool has_intercept, double tolerance, size_t most_steps,
                     Crew& crew) {
  Pairs<Real> pairs(part.size(), pool.among(part.of, Pairs<Real>::padded(part.size()), crew));
  pairs.a = part.a;
  pairs.sign = part.sign;
  pairs.bound = part.bound;
  for (size_t s = 0; s < part.size(); ++s) {
    pairs.diagonal[s] = pool.diagonal(part.of[s]);
    pairs.F[s] = static_cast<Real>(part.f[s] - part.target[s]);
    pairs.admit(s);
  }
  const size_t n = pairs.run(tolerance, std::min(most_steps, steps_per_variable * part.size()), has_intercept, crew);
  part.a = pairs.a;
  return n;
}

// A part too large for its whole matrix is a problem of its own, with rows as short as the part; the number of steps.
template <class Real>
size_t step_in_sets(KernelPool<Real>& pool, Part& part, bool has_intercept, double tolerance, size_t most_steps,
                    Crew& crew) {
  KernelPool<Real> own(pool, part.of, crew);
  const Variables variables{part.size(),        part.row.data(),   part.sign.data(),
                            part.target.data(), part.bound.data(), has_intercept};
  std::vector<uint32_t> set;
  std::vector<Round> rounds;
  solve_dual(own, variables, {tolerance, most_steps, most_inner_rounds, largest_matrix}, part.a.data(), part.f.data(),
             set, rounds, crew);
  pool.memory_of_parts = own.released();
  size_t n = 0;
  for (const Round& round : rounds) n += round.n_steps;
  return n;
}

template <class Real>
Changes solve_set(KernelPool<Real>& pool, const Position& at, const std::vector<uint32_t>& set, double tolerance,
                  size_t most_steps, double* a, size_t& n_steps, Crew& crew) {
  const Variables& of = at.of;
  Part part(at, set);
  const auto step = part.size() > largest_matrix ? step_in_sets<Real> : step_in_pairs<Real>;
  n_steps = step(pool, part, of.has_intercept, tolerance, most_steps, crew);
  std::vector<std::pair<uint32_t, uint32_t>> changed;  // row, place in the set
  for (uint32_t s = 0; s < set.size(); ++s)
    if (part.a[s] != a[set[s]]) changed.push_back({part.of[s], s});
  std::sort(changed.begin(), changed.end());
  Changes out;
  for (const auto& [row, s] : changed) {
    const uint32_t t = set[s];
    out.add(row, of.sign[t] * (part.a[s] - a[t]));
    a[t] = part.a[s];
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
    const bool has_all = chooser.choose(at, ends);
    const bool is_last = limits.is_summed_again && has_all && round.violation <= last_round * limits.violation;
    const double tolerance = std::max(limits.violation / 2, is_last ? 0.0 : share_of_violation * round.violation);
    const Changes changes = solve_set(pool, at, set, tolerance, left, a, rounds.back().n_steps, crew);
    left -= rounds.back().n_steps;
    if (changes.rows.empty()) {
      // A set that holds older variables may hide the two that violate most; a fresh one has both.
      if (++idle > 1) return End::stalled;
      chooser.forget();
      continue;
    }
    if (is_last) return End::solved;
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
