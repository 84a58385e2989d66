#include <cstring>
#include <memory>
#include <mutex>

#include "../margin/working_set.hpp"
#include "gemm.hpp"
#include "kernel_form.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using margin::KernelPool;

// A pool of one of two precisions that Python holds; calls on it come one after the other.
struct HeldPool {
  std::unique_ptr<KernelPool<float>> single;
  std::unique_ptr<KernelPool<double>> twofold;
  std::mutex lock;

  size_t n_rows() const { return single ? single->n_rows() : twofold->n_rows(); }
};

constexpr const char* pool_name = "certifit.KernelPool";

nb::capsule held(std::unique_ptr<HeldPool> pool) {
  return nb::capsule(pool.release(), pool_name, [](void* p) noexcept { delete static_cast<HeldPool*>(p); });
}

void check_rows(size_t n, size_t d) {
  const size_t limit = (size_t{1} << 31) - 1;
  check(n > 0 && n <= limit && d <= limit, "a kernel needs 1 to 2^31 - 1 rows and columns");
}

nb::capsule pool_py(nb::capsule gemm, bool is_single, const std::string& kind, double constant, int degree,
                    Matrix points, size_t most_rows) {
  const size_t n = points.shape(0), d = points.shape(1);
  check_rows(n, d);
  const KernelForm form = form_of(kind, constant, degree);
  auto pool = std::make_unique<HeldPool>();
  if (is_single)
    pool->single = std::make_unique<KernelPool<float>>(gemm_of<float>(gemm), form, points.data(), n, d, most_rows);
  else
    pool->twofold = std::make_unique<KernelPool<double>>(gemm_of<double>(gemm), form, points.data(), n, d, most_rows);
  return held(std::move(pool));
}

nb::capsule given_pool_py(bool is_single, Matrix matrix) {
  const size_t n = matrix.shape(0);
  check_rows(n, n);
  check_size("a row of the matrix", matrix.shape(1), n);
  auto pool = std::make_unique<HeldPool>();
  if (is_single)
    pool->single = std::make_unique<KernelPool<float>>(matrix.data(), n);
  else
    pool->twofold = std::make_unique<KernelPool<double>>(matrix.data(), n);
  return held(std::move(pool));
}

HeldPool& pool_of(const nb::capsule& capsule) {
  const char* name = capsule.name();
  check(name != nullptr && std::strcmp(name, pool_name) == 0, "pool must come from margin_pool");
  return *static_cast<HeldPool*>(capsule.data());
}

using PoolRows = Array<uint32_t, 1>;

void check_variables(const PoolRows& row, const Vector& sign, const Vector& target, const Vector& bound,
                     const Vector& a, size_t n_rows) {
  const size_t n = row.shape(0);
  check_size("sign", sign.shape(0), n);
  check_size("target", target.shape(0), n);
  check_size("bound", bound.shape(0), n);
  check_size("a", a.shape(0), n);
  for (size_t t = 0; t < n; ++t) {
    check(row.data()[t] < n_rows, "a variable has no row");
    check(sign.data()[t] == 1 || sign.data()[t] == -1, "a sign must be -1 or 1");
    check(bound.data()[t] >= 0 && a.data()[t] >= 0 && a.data()[t] <= bound.data()[t], "a must be within its bounds");
  }
}

nb::tuple solve_py(nb::capsule capsule, PoolRows row, Vector sign, Vector target, Vector bound, Vector a, Vector f,
                   PoolRows set, bool has_intercept, double violation, size_t most_steps, size_t most_rounds,
                   size_t size, bool is_summed_again, int threads) {
  HeldPool& pool = pool_of(capsule);
  check_variables(row, sign, target, bound, a, pool.n_rows());
  check_size("f", f.shape(0), pool.n_rows());
  check(size >= 2, "a working set needs two variables");
  const margin::Variables variables{row.shape(0), row.data(), sign.data(), target.data(), bound.data(), has_intercept};
  const margin::Limits limits{violation, most_steps, most_rounds, size, is_summed_again};
  std::vector<double> multipliers(a.data(), a.data() + a.shape(0)), values(f.data(), f.data() + f.shape(0));
  std::vector<margin::Round> rounds;
  std::vector<uint32_t> working(set.data(), set.data() + set.shape(0));
  for (uint32_t t : working) check(t < variables.n, "the working set names no variable");
  const margin::End end = run(threads, [&](Crew& crew) {
    std::lock_guard<std::mutex> alone(pool.lock);
    auto with = [&](auto& kernel) {
      return margin::solve_dual(kernel, variables, limits, multipliers.data(), values.data(), working, rounds, crew);
    };
    return pool.single ? with(*pool.single) : with(*pool.twofold);
  });
  std::vector<double> trace;
  for (const auto& round : rounds) {
    const double numbers[] = {round.primal, round.dual, round.violation, static_cast<double>(round.n_steps)};
    trace.insert(trace.end(), numbers, numbers + 4);
  }
  const size_t shape[2] = {rounds.size(), 4};
  const char* words[] = {"converged", "stalled", "limit", "pause", "solved"};
  return nb::make_tuple(to_numpy(std::move(multipliers)), to_numpy(std::move(values)),
                        to_numpy<2>(std::move(trace), shape), words[static_cast<int>(end)],
                        array_of(std::move(working)));
}

nb::tuple counts_py(nb::capsule capsule) {
  const HeldPool& pool = pool_of(capsule);
  return pool.single ? nb::make_tuple(pool.single->n_made, pool.single->n_reused)
                     : nb::make_tuple(pool.twofold->n_made, pool.twofold->n_reused);
}

// f += the rows of the kernel times coefficients
nb::object add_py(nb::capsule capsule, PoolRows row, Vector coefficients, Vector f, int threads) {
  HeldPool& pool = pool_of(capsule);
  check_size("coefficients", coefficients.shape(0), row.shape(0));
  check_size("f", f.shape(0), pool.n_rows());
  for (size_t t = 0; t < row.shape(0); ++t) check(row.data()[t] < pool.n_rows(), "there is no such row");
  const std::vector<uint32_t> rows(row.data(), row.data() + row.shape(0));
  const std::vector<double> times(coefficients.data(), coefficients.data() + coefficients.shape(0));
  std::vector<double> values(f.data(), f.data() + f.shape(0));
  run(threads, [&](Crew& crew) {
    std::lock_guard<std::mutex> alone(pool.lock);
    pool.single ? pool.single->add(rows, times, values.data(), crew)
                : pool.twofold->add(rows, times, values.data(), crew);
  });
  return nb::cast(to_numpy(std::move(values)));
}

// Sums of Gaussian kernels in float32.
nb::object gaussian_sums_py(Matrix X, Matrix Z, Vector c, int threads) {
  check_rows(X.shape(0), X.shape(1));
  check_size("a row of Z", Z.shape(1), X.shape(1));
  check_size("c", c.shape(0), Z.shape(0));
  std::vector<double> sums(X.shape(0));
  run(threads, [&](Crew& crew) {
    margin::gaussian_sums(X.data(), X.shape(0), Z.data(), Z.shape(0), X.shape(1), c.data(), sums.data(), crew);
  });
  return nb::cast(to_numpy(std::move(sums)));
}

}  // namespace

void bind_margin(nb::module_& m) {
  m.def("margin_pool", pool_py, "gemm"_a, "is_single"_a, "kind"_a, "constant"_a, "degree"_a, "points"_a.noconvert(),
        "most_rows"_a);
  m.def("margin_given_pool", given_pool_py, "is_single"_a, "matrix"_a.noconvert());
  m.def("margin_solve", solve_py, "pool"_a, "row"_a.noconvert(), "sign"_a.noconvert(), "target"_a.noconvert(),
        "bound"_a.noconvert(), "a"_a.noconvert(), "f"_a.noconvert(), "set"_a.noconvert(), "has_intercept"_a,
        "violation"_a, "most_steps"_a, "most_rounds"_a, "size"_a, "is_summed_again"_a, "threads"_a);
  m.def("margin_counts", counts_py, "pool"_a);
  m.def("gaussian_sums", gaussian_sums_py, "X"_a.noconvert(), "Z"_a.noconvert(), "c"_a.noconvert(), "threads"_a);
  m.def("margin_add", add_py, "pool"_a, "row"_a.noconvert(), "coefficients"_a.noconvert(), "f"_a.noconvert(),
        "threads"_a);
}

}  // namespace certifit
