#include "../network/network.hpp"

#include <algorithm>

#include "gemm.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Indices = Array<int64_t, 1>;
template <class T>
using VectorOf = Array<T, 1>;
template <class T>
using MatrixOf = Array<T, 2>;

NetworkLayout layout_of(const Indices& sizes, bool has_biases, bool has_output_bias, const std::string& activation,
                        double slope) {
  check(sizes.shape(0) >= 2, "a network needs inputs and outputs");
  NetworkLayout layout;
  for (size_t t = 0; t < sizes.shape(0); ++t) {
    check(sizes.data()[t] >= 1 && sizes.data()[t] < (1 << 24), "a layer has from 1 to 2^24 units");
    layout.sizes.push_back(static_cast<size_t>(sizes.data()[t]));
  }
  layout.has_biases = has_biases;
  layout.has_output_bias = has_output_bias;
  layout.slope = slope;
  if (activation == "sigmoid") {
    layout.activation = Activation::sigmoid;
  } else if (activation == "tanh") {
    layout.activation = Activation::tanh;
  } else if (activation == "relu") {
    layout.activation = Activation::relu;
  } else {
    check(activation == "identity", "unknown activation: " + activation);
    layout.activation = Activation::identity;
  }
  return layout;
}

NetworkLoss loss_of(const std::string& kind, int formula, double parameter, double scale, size_t n_outputs) {
  NetworkLoss loss;
  loss.parameter = parameter;
  loss.scale = scale;
  if (kind == "softmax") {
    loss.kind = NetworkLoss::Kind::softmax;
    return loss;
  }
  check(n_outputs == 1, "a loss of one score needs one output");
  if (kind == "huber") {
    check(parameter > 0, "the width of Huber's loss must be above 0");
    loss.kind = NetworkLoss::Kind::huber;
    return loss;
  }
  if (kind == "inverse-gaussian") {
    loss.kind = NetworkLoss::Kind::inverse_gaussian;
    return loss;
  }
  check(kind == "score", "unknown kind of loss: " + kind);
  check(formula >= 0 && formula < n_losses, "unknown loss");
  loss.formula = static_cast<Loss>(formula);
  return loss;
}

template <class T>
NetworkRows<T> rows_of(const NetworkLayout& layout, const NetworkLoss& loss, const MatrixOf<T>& X, const Vector& y,
                       const std::optional<Vector>& offset, const std::optional<Vector>& weight) {
  const size_t n = X.shape(0);
  check_size("a row of X", X.shape(1), layout.sizes[0]);
  check_size("y", y.shape(0), n);
  if (offset) check_size("offset", offset->shape(0), n);
  if (weight) check_size("weight", weight->shape(0), n);
  const auto n_classes = static_cast<double>(layout.sizes.back());
  check(loss.kind != NetworkLoss::Kind::softmax ||
            std::all_of(y.data(), y.data() + n, [&](double code) { return code >= 0 && code < n_classes; }),
        "a class is not there");
  return {X.data(), y.data(), offset ? offset->data() : nullptr, weight ? weight->data() : nullptr, n};
}

template <class T>
nb::tuple train_py(nb::capsule gemm, Indices sizes, bool biases, bool output_bias, const std::string& activation,
                   double slope, const std::string& loss_kind, int formula, double parameter, double scale,
                   MatrixOf<T> X, Vector y, std::optional<Vector> offset, Indices visits, VectorOf<T> parameters,
                   VectorOf<T> first, VectorOf<T> second, int64_t n_steps, const std::string& method,
                   const std::string& schedule, Vector pace, size_t batch, int threads) {
  const NetworkLayout layout = layout_of(sizes, biases, output_bias, activation, slope);
  const NetworkLoss loss = loss_of(loss_kind, formula, parameter, scale, layout.sizes.back());
  const NetworkRows<T> rows = rows_of<T>(layout, loss, X, y, offset, std::nullopt);
  const size_t size = layout.n_parameters();
  check_size("parameters", parameters.shape(0), size);
  check_size("first", first.shape(0), size);
  check_size("second", second.shape(0), size);
  check_size("pace", pace.shape(0), 7);
  check(batch >= 1, "a batch has at least one row");
  check(n_steps >= 0 && n_steps < int64_t{1} << 62, "n_steps is out of range");
  check(method == "descent" || method == "adam", "unknown method: " + method);
  check(std::all_of(visits.data(), visits.data() + visits.shape(0),
                    [&](int64_t row) { return row >= 0 && row < static_cast<int64_t>(rows.n); }),
        "a visit to a row that is not there");
  const double* p = pace.data();
  Pace chosen{method == "adam" ? Pace::Method::adam : Pace::Method::descent,
              schedule == "inverse"        ? Pace::Schedule::inverse
              : schedule == "inverse-root" ? Pace::Schedule::inverse_root
                                           : Pace::Schedule::constant,
              p[0],
              p[1],
              p[2],
              p[3],
              p[4],
              p[5],
              p[6],
              std::min(batch, std::max<size_t>(visits.shape(0), 1))};
  auto copied = [](const VectorOf<T>& v) { return std::vector<T>(v.data(), v.data() + v.shape(0)); };
  Training<T> state{copied(parameters), copied(first), copied(second), n_steps, 0.0};
  const GemmOf<T> blas = gemm_of<T>(gemm);
  run(threads, [&](Crew& crew) {
    train<T>(blas, layout, loss, rows, {visits.data(), visits.shape(0)}, chosen, state, threads, crew);
  });
  return nb::make_tuple(array_of(std::move(state.parameters)), array_of(std::move(state.first)),
                        array_of(std::move(state.second)), state.n_steps, state.loss);
}

template <class T, class R>
nb::tuple gradient_py(nb::capsule gemm, Indices sizes, bool biases, bool output_bias, const std::string& activation,
                      double slope, const std::string& loss_kind, int formula, double parameter, double scale,
                      MatrixOf<R> X, Vector y, std::optional<Vector> offset, std::optional<Vector> weight,
                      VectorOf<T> parameters, int threads) {
  const NetworkLayout layout = layout_of(sizes, biases, output_bias, activation, slope);
  const NetworkLoss loss = loss_of(loss_kind, formula, parameter, scale, layout.sizes.back());
  const NetworkRows<R> rows = rows_of<R>(layout, loss, X, y, offset, weight);
  check_size("parameters", parameters.shape(0), layout.n_parameters());
  const GemmOf<T> blas = gemm_of<T>(gemm);
  std::vector<double> out;
  const double value = run(threads, [&](Crew& crew) {
    return gradient<T, R>(blas, layout, loss, rows, {parameters.data(), parameters.shape(0)}, out, crew);
  });
  return nb::make_tuple(value, to_numpy(std::move(out)));
}

template <class T>
nb::object scores_py(nb::capsule gemm, Indices sizes, bool biases, bool output_bias, const std::string& activation,
                     double slope, MatrixOf<T> X, VectorOf<T> parameters, int threads) {
  const NetworkLayout layout = layout_of(sizes, biases, output_bias, activation, slope);
  check_size("a row of X", X.shape(1), layout.sizes[0]);
  check_size("parameters", parameters.shape(0), layout.n_parameters());
  const NetworkRows<T> rows{X.data(), nullptr, nullptr, nullptr, X.shape(0)};
  const GemmOf<T> blas = gemm_of<T>(gemm);
  std::vector<T> out(rows.n * layout.sizes.back());
  run(threads,
      [&](Crew& crew) { scores<T>(blas, layout, rows, {parameters.data(), parameters.shape(0)}, out.data(), crew); });
  return array_of(std::move(out));
}

template <class T>
void bind_kind(nb::module_& m, const std::string& end) {
  m.def(("network_train" + end).c_str(), train_py<T>, "gemm"_a, "sizes"_a.noconvert(), "biases"_a, "output_bias"_a,
        "activation"_a, "slope"_a, "loss"_a, "formula"_a, "parameter"_a, "scale"_a, "X"_a.noconvert(),
        "y"_a.noconvert(), "offset"_a.noconvert().none(), "visits"_a.noconvert(), "parameters"_a.noconvert(),
        "first"_a.noconvert(), "second"_a.noconvert(), "n_steps"_a, "method"_a, "schedule"_a, "pace"_a.noconvert(),
        "batch"_a, "threads"_a);
  m.def(("network_scores" + end).c_str(), scores_py<T>, "gemm"_a, "sizes"_a.noconvert(), "biases"_a, "output_bias"_a,
        "activation"_a, "slope"_a, "X"_a.noconvert(), "parameters"_a.noconvert(), "threads"_a);
}

template <class T, class R>
void bind_gradient(nb::module_& m, const char* name) {
  m.def(name, gradient_py<T, R>, "gemm"_a, "sizes"_a.noconvert(), "biases"_a, "output_bias"_a, "activation"_a,
        "slope"_a, "loss"_a, "formula"_a, "parameter"_a, "scale"_a, "X"_a.noconvert(), "y"_a.noconvert(),
        "offset"_a.noconvert().none(), "weight"_a.noconvert().none(), "parameters"_a.noconvert(), "threads"_a);
}

}  // namespace

void bind_network(nb::module_& m) {
  bind_kind<float>(m, "_short");
  bind_kind<double>(m, "");
  bind_gradient<float, float>(m, "network_gradient_short");
  bind_gradient<double, double>(m, "network_gradient");
  bind_gradient<double, float>(m, "network_gradient_of_short");  // short rows, sums in float64
}

}  // namespace certifit
