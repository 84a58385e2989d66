#include "../factor.hpp"

#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

TwofoldMatrix to_twofold(const char* name, const Matrix& hi, const Matrix& lo) {
  check(hi.shape(0) == lo.shape(0) && hi.shape(1) == lo.shape(1), std::string(name) + ": hi and lo differ in shape");
  const size_t n = hi.shape(0) * hi.shape(1);
  return {hi.shape(0), hi.shape(1), {hi.data(), hi.data() + n}, {lo.data(), lo.data() + n}};
}

nb::object to_pair(TwofoldMatrix&& a) {
  const size_t shape[2] = {a.n_rows, a.n_columns};
  return nb::make_tuple(to_numpy<2>(std::move(a.hi), shape), to_numpy<2>(std::move(a.lo), shape));
}

nb::object cholesky_py(Matrix hi, Matrix lo, Vector floor, int threads) {
  check(hi.shape(0) == hi.shape(1), "the matrix must be square");
  check_size("floor", floor.shape(0), hi.shape(0));
  TwofoldMatrix a = to_twofold("matrix", hi, lo);
  std::vector<double> floors(floor.data(), floor.data() + floor.shape(0));
  TwofoldFactor factor =
      run(threads, [&](Crew& crew) { return twofold_cholesky(std::move(a), std::move(floors), crew); });
  nb::list kept;
  for (int64_t k : factor.kept) kept.append(k);
  return nb::make_tuple(kept, to_numpy(std::move(factor.pivots)), to_pair(std::move(factor.upper)));
}

nb::object solve_py(Matrix upper_hi, Matrix upper_lo, Matrix b_hi, Matrix b_lo, int threads) {
  check(upper_hi.shape(0) == upper_hi.shape(1), "the factor must be square");
  check_size("right-hand side", b_hi.shape(0), upper_hi.shape(0));
  TwofoldMatrix upper = to_twofold("factor", upper_hi, upper_lo), b = to_twofold("right-hand side", b_hi, b_lo);
  return to_pair(run(threads, [&](Crew& crew) { return twofold_solve(upper, std::move(b), crew); }));
}

nb::object dot_py(Vector a, Vector b) {
  check_size("b", b.shape(0), a.shape(0));
  const auto [hi, lo] = twofold_dot(a.data(), b.data(), a.shape(0));
  return nb::make_tuple(hi, lo);
}

}  // namespace

void bind_factor(nb::module_& m) {
  m.def("twofold_cholesky", cholesky_py, "hi"_a.noconvert(), "lo"_a.noconvert(), "floor"_a.noconvert(), "threads"_a);
  m.def("twofold_solve", solve_py, "upper_hi"_a.noconvert(), "upper_lo"_a.noconvert(), "b_hi"_a.noconvert(),
        "b_lo"_a.noconvert(), "threads"_a);
  m.def("twofold_dot", dot_py, "a"_a.noconvert(), "b"_a.noconvert());
}

}  // namespace certifit
