#include "../passes/signs.hpp"

#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

nb::object exact_signs_py(nb::list x, Vector weights, double intercept, int threads) {
  HeldRows held(x);
  check_size("weights", weights.shape(0), held.rows.n_columns);
  Signs signs = run(threads, [&](Crew& crew) { return exact_signs(held.rows, weights.data(), intercept, crew); });
  auto* kept = new std::vector<int8_t>(std::move(signs.sign));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<int8_t>*>(p); });
  const size_t shape[1] = {kept->size()};
  return nb::make_tuple(nb::ndarray<nb::numpy, int8_t, nb::ndim<1>>(kept->data(), 1, shape, owner),
                        to_numpy(std::move(signs.ratio)));
}

}  // namespace

void bind_signs(nb::module_& m) {
  m.def("exact_signs", exact_signs_py, "x"_a, "weights"_a.noconvert(), "intercept"_a, "threads"_a);
}

}  // namespace certifit
