// Multi-layer perceptrons: states x_t = act(W_t x_{t-1} + b_t), the last one without activation; back-propagation of
// costates; steps of stochastic gradient descent and Adam. Parameters lie end to end: W_1 (outputs x inputs), b_1, W_2
// ... Rows of a batch are cut into tiles by the size of the batch alone: any number of threads gives the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../gemm.hpp"
#include "../loss.hpp"
#include "../parallel.hpp"

namespace certifit {

enum class Activation { identity, sigmoid, tanh, relu };  // relu(z) = max(z, slope z); its derivative at 0 is the slope

struct NetworkLayout {
  std::vector<size_t> sizes;  // of the states, the inputs first
  bool has_biases, has_output_bias;
  Activation activation;
  double slope = 0;

  size_t n_layers() const { return sizes.size() - 1; }
  bool has_bias(size_t layer) const { return layer + 1 == n_layers() ? has_output_bias : has_biases; }
  size_t weights_at(size_t layer) const {
    size_t at = 0;
    for (size_t t = 0; t < layer; ++t) at += sizes[t] * sizes[t + 1] + (has_bias(t) ? sizes[t + 1] : 0);
    return at;
  }
  size_t bias_at(size_t layer) const { return weights_at(layer) + sizes[layer] * sizes[layer + 1]; }
  size_t n_parameters() const { return weights_at(n_layers()); }
};

// Loss of a row: of its one score by a compiled formula, softmax of the scores with y a class, Huber's of width
// `parameter`, or that of the inverse Gaussian; times `scale`.
struct NetworkLoss {
  enum class Kind { score, softmax, huber, inverse_gaussian } kind = Kind::score;
  Loss formula = Loss::squared;
  double parameter = 0, scale = 1;
};

template <class T>
struct NetworkRows {
  const T* X;                         // n x inputs
  const double *y, *offset, *weight;  // offset of the score and weight: may be null
  size_t n;
};

struct Pace {
  enum class Method { descent, adam } method;
  enum class Schedule { constant, inverse, inverse_root } schedule;
  double step, decay, momentum, beta1, beta2, epsilon, alpha;
  size_t batch;
};

template <class T>
struct Training {
  std::vector<T> parameters, first, second;  // velocity or moments
  int64_t n_steps = 0;
  double loss = 0;  // sum over the rows visited, each before the step of its batch
};

// One pass over the visits of some rows, batch by batch.
template <class T>
void train(GemmOf<T> gemm, const NetworkLayout& layout, const NetworkLoss& loss, const NetworkRows<T>& rows,
           std::span<const int64_t> visits, const Pace& pace, Training<T>& state, int n_threads, Crew& crew);

// Sum over rows of weight * loss, and its gradient. R: of the rows as they are stored; T: of all that is computed.
template <class T, class R>
double gradient(GemmOf<T> gemm, const NetworkLayout& layout, const NetworkLoss& loss, const NetworkRows<R>& rows,
                std::span<const T> parameters, std::vector<double>& out, Crew& crew);

// The scores of rows, n x outputs.
template <class T>
void scores(GemmOf<T> gemm, const NetworkLayout& layout, const NetworkRows<T>& rows, std::span<const T> parameters,
            T* out, Crew& crew);

}  // namespace certifit
