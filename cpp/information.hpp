// Mutual information of columns with a target, in nats, from distances to nearest neighbours.
//
// Row i has the k-th nearest neighbour at distance d_i. Rows strictly nearer than d_i are counted, the row itself
// included: j_i in both variables, a_i in the one, b_i in the other, and
//
//   I = psi(n) + mean_i [psi(j_i) - psi(a_i) - psi(b_i)],    psi = digamma,  not below 0.
//
// Without ties j_i = k: the estimator of Kraskov, Stoegbauer and Grassberger (2004, their first) for two numbers with
// the distance max(|dx| / sd x, |dy| / sd y), and that of Ross (2014) for a number and a class, where rows of another
// class are infinitely far. Where distances tie, j_i is what the ball holds; where d_i = 0 all counts are of the rows
// that coincide with row i, and its term is that of the table of counts. Nothing depends on the order of the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace certifit {

// Finite numbers or class codes: n_columns rows of n_rows values each, one after the other.
template <class Value>
struct ColumnsOf {
  const Value* values;
  size_t n_columns;
  size_t n_rows;
  const Value* column(size_t j) const { return values + j * n_rows; }
};

// psi holds digamma(m) at m = 1 .. n_rows. A class with one row has no neighbour: its row is left out.
struct Neighbours {
  size_t k;
  const double* psi;
};

// Numbers with one classification of the rows: codes 0 .. n_classes - 1.
std::vector<double> information_of_numbers_and_classes(ColumnsOf<double> numbers, const int32_t* classes,
                                                       size_t n_classes, Neighbours neighbours, Crew& crew);

// Several classifications of the rows with one number: codes of column j are 0 .. n_classes[j] - 1.
std::vector<double> information_of_classes_and_number(ColumnsOf<int32_t> classes, const int64_t* n_classes,
                                                      const double* number, Neighbours neighbours, Crew& crew);

// Numbers with a number; needs k < n_rows.
std::vector<double> information_of_numbers(ColumnsOf<double> numbers, const double* target, Neighbours neighbours,
                                           Crew& crew);

}  // namespace certifit
