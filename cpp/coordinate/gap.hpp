// The duality gap from a Gram matrix alone. Holds for any weights within the bounds.
#pragma once

#include "../parallel.hpp"
#include "factor.hpp"
#include "penalty.hpp"
#include "system.hpp"

namespace certifit {

struct Certified {
  double objective, gap;  // the gap is divided by the objective
};

class GapCertifier {
 public:
  GapCertifier(const GramSystem& system, Crew& crew) : system_(system), crew_(crew) {}
  Certified certify(const std::vector<Penalty>& penalty, const double* weights, const double* q);
  void forget() { factored_.clear(); }  // the columns have other numbers now

 private:
  void project(const std::vector<Penalty>& penalty, const double* weights, const double* q);
  void factor_projected();
  double gap_at(double scale, const std::vector<Penalty>& penalty, const double* weights, double squares) const;

  const GramSystem& system_;
  Crew& crew_;
  ActiveFactor factor_;
  std::vector<size_t> factored_, kept_, projected_;  // columns the dual point must be orthogonal to
  std::vector<char> is_projected_;
  std::vector<double> dual_;  // X'u of the projected residual
  double shift_ = 0;          // |r - u|^2 of the projection
};

}  // namespace certifit
