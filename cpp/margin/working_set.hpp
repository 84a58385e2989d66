// The dual of every support vector machine, by large working sets.
//
//   maximise  sum_t s_t t_t a_t - c'Kc / 2,   0 <= a_t <= bound_t,   c_i = sum of s_t a_t over the variables of row i,
//             sum_t s_t a_t = 0 where there is an intercept
//
// A variable t has a row, a sign s = -1 or 1 and a target. Classes: one variable per row, s = y and target y. Numbers
// within epsilon: two per row, s = 1 with target y - epsilon and s = -1 with target y + epsilon. With f = Kc and
// F_t = f_row - target_t the minimum is where F_i >= F_j for all i that may rise in s a and all j that may fall.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "pool.hpp"

namespace certifit::margin {

struct Variables {
  size_t n;
  const uint32_t* row;
  const double *sign, *target, *bound;  // a bound may be infinite, or 0: the variable then stays at 0
  bool has_intercept;
};

struct Limits {
  double violation;   // stop when max F_j - min F_i is at most this
  size_t most_steps;  // of two variables
  size_t most_rounds;
  size_t size;  // of a working set
  // The caller sums f again after the last round: it is not added to then, and the end is `solved`.
  bool is_summed_again = false;
};

// A round: a working set, its steps, then the rows of the kernel of what changed.
struct Round {
  double primal, dual, violation;
  size_t n_steps;
};

// solved: as it seems; f is that of the multipliers before the last round.
enum class End { converged, stalled, limit, pause, solved };

// set: the working set before, and the last one. a, n of the variables, and f, n of the rows, are where it begins and
// ends. f must be Kc; it is kept so by adding rows of the pool, whose rounding adds up.
template <class Real>
End solve_dual(KernelPool<Real>& pool, const Variables& variables, const Limits& limits, double* a, double* f,
               std::vector<uint32_t>& set, std::vector<Round>& rounds, Crew& crew);

extern template End solve_dual(KernelPool<float>&, const Variables&, const Limits&, double*, double*,
                               std::vector<uint32_t>&, std::vector<Round>&, Crew&);
extern template End solve_dual(KernelPool<double>&, const Variables&, const Limits&, double*, double*,
                               std::vector<uint32_t>&, std::vector<Round>&, Crew&);

}  // namespace certifit::margin
