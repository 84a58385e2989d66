#include "../information.hpp"

#include <cstdint>
#include <limits>

#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

using Codes = Array<int32_t, 1>;
using CodeMatrix = Array<int32_t, 2>;
using Counts = Array<int64_t, 1>;

Neighbours checked_neighbours(size_t n_neighbors, const Vector& psi, size_t n_rows) {
  check(n_rows >= 2 && n_rows < std::numeric_limits<uint32_t>::max(), "needs 2 to 2^32 - 2 rows");
  check(n_neighbors >= 1 && n_neighbors < n_rows, "n_neighbors must be at least 1 and below the number of rows");
  check_size("psi", psi.shape(0), n_rows);
  return {n_neighbors, psi.data()};
}

void check_codes(const int32_t* codes, size_t n_rows, int64_t n_classes) {
  bool within = n_classes <= static_cast<int64_t>(n_rows);
  for (size_t i = 0; i < n_rows; ++i) within = within && codes[i] >= 0 && codes[i] < n_classes;
  check(within, "codes of classes must be 0 .. n_classes - 1, with n_classes at most the number of rows");
}

void check_finite(const double* values, size_t n) {
  bool finite = true;
  for (size_t i = 0; i < n; ++i) finite = finite && std::isfinite(values[i]);
  check(finite, "numbers must be finite");
}

nb::object numbers_and_classes_py(Matrix numbers, Codes classes, int64_t n_classes, size_t n_neighbors, Vector psi,
                                  int threads) {
  const size_t n_rows = numbers.shape(1);
  check_size("classes", classes.shape(0), n_rows);
  const Neighbours neighbours = checked_neighbours(n_neighbors, psi, n_rows);
  check_codes(classes.data(), n_rows, n_classes);
  check_finite(numbers.data(), numbers.size());
  return nb::cast(to_numpy(run(threads, [&](Crew& crew) {
    return information_of_numbers_and_classes({numbers.data(), numbers.shape(0), n_rows}, classes.data(),
                                              static_cast<size_t>(n_classes), neighbours, crew);
  })));
}

nb::object classes_and_number_py(CodeMatrix classes, Counts n_classes, Vector number, size_t n_neighbors, Vector psi,
                                 int threads) {
  const size_t n_rows = classes.shape(1);
  check_size("number", number.shape(0), n_rows);
  check_size("n_classes", n_classes.shape(0), classes.shape(0));
  const Neighbours neighbours = checked_neighbours(n_neighbors, psi, n_rows);
  for (size_t j = 0; j < classes.shape(0); ++j) check_codes(classes.data() + j * n_rows, n_rows, n_classes.data()[j]);
  check_finite(number.data(), n_rows);
  return nb::cast(to_numpy(run(threads, [&](Crew& crew) {
    return information_of_classes_and_number({classes.data(), classes.shape(0), n_rows}, n_classes.data(),
                                             number.data(), neighbours, crew);
  })));
}

nb::object numbers_py(Matrix numbers, Vector target, size_t n_neighbors, Vector psi, int threads) {
  const size_t n_rows = numbers.shape(1);
  check_size("target", target.shape(0), n_rows);
  const Neighbours neighbours = checked_neighbours(n_neighbors, psi, n_rows);
  check_finite(numbers.data(), numbers.size());
  check_finite(target.data(), n_rows);
  return nb::cast(to_numpy(run(threads, [&](Crew& crew) {
    return information_of_numbers({numbers.data(), numbers.shape(0), n_rows}, target.data(), neighbours, crew);
  })));
}

}  // namespace

void bind_information(nb::module_& m) {
  m.def("information_of_numbers_and_classes", numbers_and_classes_py, "numbers"_a.noconvert(), "classes"_a.noconvert(),
        "n_classes"_a, "n_neighbors"_a, "psi"_a.noconvert(), "threads"_a);
  m.def("information_of_classes_and_number", classes_and_number_py, "classes"_a.noconvert(), "n_classes"_a.noconvert(),
        "number"_a.noconvert(), "n_neighbors"_a, "psi"_a.noconvert(), "threads"_a);
  m.def("information_of_numbers", numbers_py, "numbers"_a.noconvert(), "target"_a.noconvert(), "n_neighbors"_a,
        "psi"_a.noconvert(), "threads"_a);
}

}  // namespace certifit
