// Cholesky factor U'U of a matrix whose rows and columns come and go: a column is appended or taken out in O(k^2).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "../parallel.hpp"

namespace certifit {

class ChangingFactor {
 public:
  // Entries of the matrix between `column` and `others`.
  using Products = std::function<void(size_t column, const std::vector<size_t>& others, double* out)>;

  const std::vector<size_t>& members() const { return members_; }
  void clear() { members_.clear(); }

  // Makes `wanted` the members, where independent; returns those left out because they depend on the others.
  // diagonal(p) is the matrix entry (p, p), the ridge included.
  std::vector<size_t> make(const std::vector<size_t>& wanted, const Products& products,
                           const std::function<double(size_t)>& diagonal, Crew& crew);

  // Solves U'U x = b in place, in the order of the members.
  void solve(double* b) const;
  // Numbers change, the matrix does not: member p becomes place[p].
  void rename(const std::vector<size_t>& place);

 private:
  static constexpr size_t at_once = 4;  // columns that are appended together, rows that are eliminated together
  struct Group {
    size_t size = 0;
    size_t ids[at_once] = {};
    double* columns[at_once] = {};
  };

  void remove_all_but(const std::vector<size_t>& wanted);
  void append(Group group, const std::function<double(size_t)>& diagonal, std::vector<size_t>& dependent);
  void forward(double* const* columns, size_t count) const;
  void remove(size_t at);
  void reserve(size_t size);
  double* row(size_t i) const { return &u_[i * room_]; }

  std::vector<size_t> members_;
  std::unique_ptr<double[]> u_;  // row-major, `room_` a row
  size_t room_ = 0;
};

}  // namespace certifit
