#include "../stochastic.hpp"

#include "../dual_descent.hpp"
#include "rows.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

using RowNumbers = Array<int64_t, 1>;
using Passes = Array<uint8_t, 1>;

Order checked_order(const Rows& rows, const std::optional<RowNumbers>& order) {
  if (!order) return {nullptr, rows.n_rows};
  const auto limit = static_cast<int64_t>(rows.n_rows);
  bool within = true;
  for (size_t k = 0; k < order->shape(0); ++k) within = within && order->data()[k] >= 0 && order->data()[k] < limit;
  check(within, "order holds a row that is not there");
  return {order->data(), order->shape(0)};
}

// A vector of whole numbers, as an array that owns it.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> whole_numbers(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const size_t shape[1] = {kept->size()};
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), 1, shape, owner);
}

Learned copied(const Rows& rows, const Vector& weights, double intercept) {
  check_size("weights", weights.shape(0), rows.n_columns);
  Learned state;
  state.weights.assign(weights.data(), weights.data() + weights.shape(0));
  state.intercept = intercept;
  return state;
}

nb::object stochastic_pass_py(nb::list x, Vector y, std::optional<Vector> offset, std::optional<RowNumbers> order,
                              Vector strengths, bool fit_intercept, int loss, double parameter, size_t batch_rows,
                              int schedule, double step, double decay, Vector weights, double intercept,
                              std::optional<Vector> sums, double sum_intercept, uint64_t n_steps) {
  HeldRows held(x);
  check_rows(held.rows, y, offset, batch_rows);
  check_size("strengths", strengths.shape(0), held.rows.n_columns);
  check(loss >= 0 && loss < n_losses, "there is no such loss");
  check(schedule >= 0 && schedule < n_schedules, "there is no such schedule");
  const Order checked = checked_order(held.rows, order);
  Learned state = copied(held.rows, weights, intercept);
  if (sums) {
    check_size("sums", sums->shape(0), held.rows.n_columns);
    state.sums.assign(sums->data(), sums->data() + sums->shape(0));
  }
  state.sum_intercept = sum_intercept;
  state.n_steps = n_steps;
  const StochasticTask task{y.data(),
                            data_of(offset),
                            strengths.data(),
                            fit_intercept,
                            static_cast<Loss>(loss),
                            parameter,
                            batch_rows,
                            {static_cast<Schedule::Kind>(schedule), step, decay}};
  run(1, [&](Crew& crew) { stochastic_pass(held.rows, task, checked, state, crew); });
  nb::object summed = nb::none();
  if (sums) summed = nb::cast(to_numpy(std::move(state.sums)));
  return nb::make_tuple(to_numpy(std::move(state.weights)), state.intercept, summed, state.sum_intercept, state.n_steps,
                        state.is_finite);
}

nb::object perceptron_pass_py(nb::list x, Vector y, std::optional<RowNumbers> order, double threshold, double step,
                              bool fit_intercept, Vector weights, double intercept) {
  HeldRows held(x);
  check_rows(held.rows, y, std::nullopt, 1);
  const Order checked = checked_order(held.rows, order);
  Learned state = copied(held.rows, weights, intercept);
  const Mistakes mistakes = run(1, [&](Crew& crew) {
    return perceptron_pass(held.rows, y.data(), checked, threshold, step, fit_intercept, state, crew);
  });
  return nb::make_tuple(to_numpy(std::move(state.weights)), state.intercept, mistakes.count, mistakes.is_finite);
}

std::vector<uint8_t> checked_passes(const char* name, const Passes& passes, size_t n, uint8_t least) {
  check_size(name, passes.shape(0), n);
  std::vector<uint8_t> copy(passes.data(), passes.data() + n);
  for (const uint8_t count : copy)
    check(count >= least && count <= longest_wait, std::string(name) + " holds a number of passes that is not legal");
  return copy;
}

nb::object dual_descent_py(nb::list x, Vector y, Vector bound, Vector diagonal, Vector squares, double ridge, Vector a,
                           Vector weights, double intercept, Passes wait, Passes due, size_t n_visits, uint64_t seed) {
  HeldRows held(x);
  check_rows(held.rows, y, std::nullopt, 1);
  const size_t n = held.rows.n_rows;
  check(n < size_t{1} << 32, "there are too many rows");
  check_size("bound", bound.shape(0), n);
  check_size("diagonal", diagonal.shape(0), n);
  check_size("squares", squares.shape(0), n);
  check_size("a", a.shape(0), n);
  check_size("weights", weights.shape(0), held.rows.n_columns);
  DualState state{{a.data(), a.data() + n},
                  {weights.data(), weights.data() + weights.shape(0)},
                  intercept,
                  checked_passes("wait", wait, n, 1),
                  checked_passes("due", due, n, 0)};
  const DualTask task{y.data(), bound.data(), diagonal.data(), squares.data(), ridge};
  DualRound round = run(1, [&](Crew& crew) { return dual_descent(held.rows, task, n_visits, seed, state, crew); });
  nb::object at = nb::make_tuple(to_numpy(std::move(state.a)), to_numpy(std::move(state.weights)), state.intercept,
                                 whole_numbers(std::move(state.wait)), whole_numbers(std::move(state.due)));
  return nb::make_tuple(at, to_numpy(std::move(round.mean)), round.worst, round.n_visits);
}

nb::object margin_steps_py(nb::list x, Vector y, std::optional<RowNumbers> order, Vector factor, Vector late,
                           Vector weights, Vector sums) {
  HeldRows held(x);
  check_rows(held.rows, y, std::nullopt, 1);
  const Order checked = checked_order(held.rows, order);
  check_size("factor", factor.shape(0), checked.count);
  check_size("late", late.shape(0), checked.count);
  check_size("sums", sums.shape(0), held.rows.n_columns);
  Learned state = copied(held.rows, weights, 0.0);
  state.sums.assign(sums.data(), sums.data() + sums.shape(0));
  run(1, [&](Crew& crew) { margin_steps(held.rows, y.data(), checked, factor.data(), late.data(), state, crew); });
  return nb::make_tuple(to_numpy(std::move(state.weights)), to_numpy(std::move(state.sums)));
}

nb::object row_squares_py(nb::list x, int threads) {
  HeldRows held(x);
  return nb::cast(to_numpy(run(threads, [&](Crew& crew) { return row_squares(held.rows, crew); })));
}

nb::object row_hashes_py(nb::list x, std::optional<Vector> y, std::optional<Vector> offset, int threads) {
  HeldRows held(x);
  check_rows(held.rows, y, offset, 1);
  const double* beside[2] = {data_of(y), data_of(offset)};
  return nb::cast(whole_numbers(run(threads, [&](Crew& crew) { return row_hashes(held.rows, beside, crew); })));
}

}  // namespace

void bind_stochastic(nb::module_& m) {
  m.def("stochastic_pass", stochastic_pass_py, "x"_a, "y"_a.noconvert(), "offset"_a.noconvert().none(),
        "order"_a.noconvert().none(), "strengths"_a.noconvert(), "fit_intercept"_a, "loss"_a, "parameter"_a,
        "batch_rows"_a, "schedule"_a, "step"_a, "decay"_a, "weights"_a.noconvert(), "intercept"_a,
        "sums"_a.noconvert().none(), "sum_intercept"_a, "n_steps"_a);
  m.def("perceptron_pass", perceptron_pass_py, "x"_a, "y"_a.noconvert(), "order"_a.noconvert().none(), "threshold"_a,
        "step"_a, "fit_intercept"_a, "weights"_a.noconvert(), "intercept"_a);
  m.def("dual_descent", dual_descent_py, "x"_a, "y"_a.noconvert(), "bound"_a.noconvert(), "diagonal"_a.noconvert(),
        "squares"_a.noconvert(), "ridge"_a, "a"_a.noconvert(), "weights"_a.noconvert(), "intercept"_a,
        "wait"_a.noconvert(), "due"_a.noconvert(), "n_visits"_a, "seed"_a);
  m.def("margin_steps", margin_steps_py, "x"_a, "y"_a.noconvert(), "order"_a.noconvert().none(), "factor"_a.noconvert(),
        "late"_a.noconvert(), "weights"_a.noconvert(), "sums"_a.noconvert());
  m.def("row_squares", row_squares_py, "x"_a, "threads"_a);
  m.def("row_hashes", row_hashes_py, "x"_a, "y"_a.noconvert().none(), "offset"_a.noconvert().none(), "threads"_a);
}

}  // namespace certifit
