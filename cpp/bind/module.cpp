// The extension module: functions only. Docstrings live with the Python callers.
#include <nanobind/nanobind.h>

namespace certifit {
void bind_passes(nanobind::module_& m);
void bind_factor(nanobind::module_& m);
void bind_ranks(nanobind::module_& m);
void bind_information(nanobind::module_& m);
void bind_coordinate(nanobind::module_& m);
void bind_working_set(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_classes(nanobind::module_& m);
void bind_oracle(nanobind::module_& m);
void bind_stochastic(nanobind::module_& m);
void bind_signs(nanobind::module_& m);
void bind_many(nanobind::module_& m);
void bind_thin(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_tree(nanobind::module_& m);
void bind_forest(nanobind::module_& m);
void bind_forest_levels(nanobind::module_& m);
void bind_optimal(nanobind::module_& m);
void bind_margin(nanobind::module_& m);
void bind_local(nanobind::module_& m);
void bind_newton(nanobind::module_& m);
void bind_newton_levels(nanobind::module_& m);
void bind_streamed(nanobind::module_& m);
void bind_network(nanobind::module_& m);
}  // namespace certifit

NB_MODULE(CERTIFIT_MODULE, m) {
  certifit::bind_passes(m);
  certifit::bind_factor(m);
  certifit::bind_ranks(m);
  certifit::bind_information(m);
  certifit::bind_coordinate(m);
  certifit::bind_working_set(m);
  certifit::bind_text(m);
  certifit::bind_classes(m);
  certifit::bind_oracle(m);
  certifit::bind_stochastic(m);
  certifit::bind_signs(m);
  certifit::bind_many(m);
  certifit::bind_thin(m);
  certifit::bind_kernels(m);
  certifit::bind_tree(m);
  certifit::bind_forest(m);
  certifit::bind_forest_levels(m);
  certifit::bind_optimal(m);
  certifit::bind_margin(m);
  certifit::bind_local(m);
  certifit::bind_newton(m);
  certifit::bind_newton_levels(m);
  certifit::bind_streamed(m);
  certifit::bind_network(m);
  m.def("cpu_has_avx2", [] {
#if defined(__x86_64__) || defined(_M_X64)
    __builtin_cpu_init();
    return static_cast<bool>(__builtin_cpu_supports("avx2")) && static_cast<bool>(__builtin_cpu_supports("fma"));
#else
    return false;
#endif
  });
}
