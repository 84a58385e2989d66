// The problem on many columns, by their weighted residual: coordinate descent finds the support, conjugate gradients
// on the support end it. A sweep or a step of the gradients costs about two reads of the columns.
#pragma once

#include <utility>
#include <vector>

#include "../coordinate/penalty.hpp"
#include "../parallel.hpp"
#include "columns.hpp"

namespace certifit {

class ResidualDescent {
 public:
  // q is the weighted residual of the weights, `squares` = <r, r>.
  ResidualDescent(const Columns& columns, const std::vector<size_t>& ids, const std::vector<Penalty>& penalties,
                  std::vector<double> weights, std::vector<double> q, double squares);

  // Until the gap on these columns is at most `target` or nothing moves. Returns the sweeps.
  size_t solve(double rounding, double target, size_t max_sweeps, Crew& crew);

  const std::vector<double>& weights() const { return weights_; }
  bool has_settled() const;  // the last round moved no weight by more than rounding

 private:
  void sweep(Crew& crew);
  std::vector<size_t> interior() const;
  size_t solve_on_support(size_t max_steps, Crew& crew);
  struct Ray {
    double slope = 0, curvature = 0;                   // of the objective at t = 0
    double pull = 0, bend = 0;                         // <r, r>(t) = <r, r> - 2 t pull + t^2 bend
    double end = infinity;                             // where the first weight meets its bound
    std::vector<std::pair<double, size_t>> crossings;  // t and member, where a weight changes its sign
  };
  Ray look_along(const std::vector<size_t>& members, const std::vector<double>& d);
  void line_search(const std::vector<size_t>& members, const std::vector<double>& d);
  double gap(double rounding);

  // The true residual is q + shift omega. Its sum is 0 where columns are centred; sum_i omega_i z_ij is 0 too, so
  // that only the stored values of a sparse column, whose weighted sum is mean_j, meet the shift.
  double slope(size_t p) const { return columns_.pull(ids_[p], q_.data(), -shift_); }
  double pull_left(size_t p) const;
  double square(size_t p) const { return columns_.norm(ids_[p]) * columns_.norm(ids_[p]); }
  double whole(size_t p) const { return square(p) + penalties_[p].l2; }
  double make_image(const std::vector<size_t>& members, const double* d);
  void pull_image(const std::vector<size_t>& members, double* out);
  void moved(size_t p, double step);

  const Columns& columns_;
  const std::vector<size_t>& ids_;
  const std::vector<Penalty>& penalties_;
  std::vector<double> weights_, q_, image_, weighted_;  // image_: Z d
  double shift_ = 0, image_shift_ = 0;
  double squares_ = 0;       // <r, r> as weights move
  double largest_move_ = 0;  // of a weight, this round
};

}  // namespace certifit
