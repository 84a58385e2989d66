// Products <z_p, z_q> of the columns in the working set.
#pragma once

#include <memory>

#include "../parallel.hpp"
#include "columns.hpp"

namespace certifit {

class WorkingGram {
 public:
  explicit WorkingGram(const Columns& columns);
  size_t size() const { return ids_.size(); }
  size_t stride() const { return room_; }
  const double* data() const { return gram_.get(); }
  double square(size_t p) const { return gram_[p * room_ + p]; }
  void append(const std::vector<size_t>& ids, Crew& crew);  // more columns behind those there are
  void keep(const std::vector<size_t>& positions);          // only these, in this order
  void clear() { keep({}); }

 private:
  void reserve(size_t size);
  void append_dense(size_t before, Crew& crew);
  void append_sparse(size_t before, Crew& crew);
  void fill_tile(size_t p, size_t q);

  const Columns& columns_;
  size_t stride_, room_ = 0;
  std::vector<size_t> ids_;
  std::unique_ptr<double[]> packed_, gram_;  // dense columns side by side; `room_` squared
};

}  // namespace certifit
