// Slopes v_p = <z_p, r> of the columns in the working set while their weights move.
#pragma once

#include <memory>

#include "../parallel.hpp"
#include "columns.hpp"

namespace certifit {

// Working-set columns packed side by side and their products; dense columns only.
class Gram {
 public:
  explicit Gram(const Columns& columns);
  size_t size() const { return ids_.size(); }
  const double* row(size_t p) const { return &gram_[p * room_]; }
  void append(const std::vector<size_t>& ids, Crew& crew);  // more columns behind those there are
  void keep(const std::vector<size_t>& positions);          // only these, in this order
  void clear() { keep({}); }

 private:
  void reserve(size_t size);
  void fill_tile(size_t p, size_t q, size_t size);

  const Columns& columns_;
  size_t stride_, room_ = 0;
  std::vector<size_t> ids_;
  std::unique_ptr<double[]> packed_, gram_;  // `room_` columns; `room_` squared
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual double slope(size_t p) = 0;
  virtual void move(size_t p, double step) = 0;  // weight p grows by `step`
  // <Z d, Z d> for d on some members; Z d is remembered for `advance`.
  virtual double curvature(const std::vector<size_t>& members, const double* d) = 0;
  virtual void advance(double t) = 0;  // weights grow by t d
  // out[k] = <z_members[k], Z d>
  virtual void pull_image(const std::vector<size_t>& members, double* out) = 0;
  virtual void products(size_t p, const std::vector<size_t>& others, double* out) = 0;
};

// Keeps all slopes: a move costs one row of the Gram matrix.
std::unique_ptr<Engine> gram_engine(const Gram& gram, std::vector<double> slopes);
// Keeps the weighted residual q: a slope or a move costs one column.
std::unique_ptr<Engine> residual_engine(const Columns& columns, const std::vector<size_t>& ids, std::vector<double> q);

}  // namespace certifit
