// Forward and backward through a tile of rows, on one thread.
#pragma once

#include <algorithm>
#include <cmath>

#include "../losses.hpp"
#include "network.hpp"
#include "update.hpp"

namespace certifit {

// C = op(A) op(B) + beta C, row-major: C is a x b, sums have k terms.
template <class T>
void product(GemmOf<T> gemm, bool of_a, bool of_b, size_t a, size_t b, size_t k, const T* A, size_t lda, const T* B,
             size_t ldb, T beta, T* C) {
  char first = of_b ? 'T' : 'N', second = of_a ? 'T' : 'N';
  int m = static_cast<int>(b), n = static_cast<int>(a), kk = static_cast<int>(k);
  int la = static_cast<int>(std::max<size_t>(ldb, 1)), lb = static_cast<int>(std::max<size_t>(lda, 1)), lc = m;
  T one = 1;
  if (a == 0 || b == 0) return;
  gemm(&first, &second, &m, &n, &kk, &one, const_cast<T*>(B), &la, const_cast<T*>(A), &lb, &beta, C, &lc);
}

// The products of a layer with one output, whose matrix is a row: no call of the BLAS, which is slow on these.
// z = X w + beta z.
template <class T>
void row_scores(size_t n, size_t d, const T* X, const T* w, T beta, T* z) {
  constexpr size_t width = sizeof(Pack<T>) / sizeof(T);
  for (size_t i = 0; i < n; ++i, X += d) {
    Pack<T> sums{};
    size_t j = 0;
    for (; j + width <= d; j += width) {
      Pack<T> x, weights;
      std::memcpy(&x, X + j, sizeof x);
      std::memcpy(&weights, w + j, sizeof weights);
      sums += x * weights;
    }
    T sum = 0;
    for (size_t k = 0; k < width; ++k) sum += sums[k];
    for (; j < d; ++j) sum += X[j] * w[j];
    z[i] = beta == 0 ? sum : beta * z[i] + sum;
  }
}

// g = X'p + beta g of the columns that some packs hold; p null: ones. The sums stay in registers.
template <size_t n_packs, class T>
void sum_columns(size_t n, size_t d, const T* X, const T* p, T beta, T* g) {
  Pack<T> sums[n_packs] = {};
  for (size_t i = 0; i < n; ++i, X += d)
    for (size_t k = 0; k < n_packs; ++k) {
      Pack<T> x;
      std::memcpy(&x, X + k * (sizeof x / sizeof(T)), sizeof x);
      sums[k] += p == nullptr ? x : p[i] * x;
    }
  for (size_t k = 0; k < n_packs; ++k)
    for (size_t j = 0; j < sizeof(Pack<T>) / sizeof(T); ++j, ++g) *g = beta == 0 ? sums[k][j] : beta * *g + sums[k][j];
}

template <class T>
void row_gradient(size_t n, size_t d, const T* X, const T* p, T beta, T* g) {
  constexpr size_t width = sizeof(Pack<T>) / sizeof(T);
  size_t j = 0;
  for (; j + 4 * width <= d; j += 4 * width) sum_columns<4>(n, d, X + j, p, beta, g + j);
  for (; j + width <= d; j += width) sum_columns<1>(n, d, X + j, p, beta, g + j);
  for (; j < d; ++j) {
    T sum = 0;
    for (size_t i = 0; i < n; ++i) sum += (p == nullptr ? T(1) : p[i]) * X[i * d + j];
    g[j] = beta == 0 ? sum : beta * g[j] + sum;
  }
}

// below = p w'.
template <class T>
void row_costate(size_t n, size_t d, const T* p, const T* w, T* below) {
  for (size_t i = 0; i < n; ++i, below += d)
    for (size_t j = 0; j < d; ++j) below[j] = p[i] * w[j];
}

// In packs: the compiler makes of a choice between a number and a product a jump, which is guessed wrong half the time.
// z = z where it is above 0, slope z elsewhere.
template <class T>
void relu(T slope, T* z, size_t n) {
  constexpr size_t width = sizeof(Pack<T>) / sizeof(T);
  size_t i = 0;
  for (; i + width <= n; i += width) {
    Pack<T> x;
    std::memcpy(&x, z + i, sizeof x);
    x = x > 0 ? x : slope * x;
    std::memcpy(z + i, &x, sizeof x);
  }
  for (; i < n; ++i) z[i] = z[i] > 0 ? z[i] : slope * z[i];
}

// p = p where the unit a is above 0, slope p elsewhere.
template <class T>
void relu_slopes(T slope, const T* a, T* p, size_t n) {
  constexpr size_t width = sizeof(Pack<T>) / sizeof(T);
  size_t i = 0;
  for (; i + width <= n; i += width) {
    Pack<T> unit, costate;
    std::memcpy(&unit, a + i, sizeof unit);
    std::memcpy(&costate, p + i, sizeof costate);
    costate = unit > 0 ? costate : slope * costate;
    std::memcpy(p + i, &costate, sizeof costate);
  }
  for (; i < n; ++i) p[i] = a[i] > 0 ? p[i] : slope * p[i];
}

// l = r^2 / 2 up to `delta`, linear beyond it; r = z - y.
struct HuberOfWidth {
  double delta;
  LossAt operator()(Vec y, Vec z) const {
    const Vec r = z - y, width = broadcast(delta), half = broadcast(0.5), zero = broadcast(0.0);
    const Vec size = absolute(r);
    const Int near = size <= width;
    const Vec slope = choose(near, r, choose(r > zero, width, -width));
    return {choose(near, half * r * r, width * size - half * width * width), slope, zero};
  }
};

// Half the deviance of the inverse Gaussian with mean e^z: l = (y e^-z - 1)^2 / (2 y).
struct InverseGaussianLog {
  LossAt operator()(Vec y, Vec z) const {
    const Vec one = broadcast(1.0), a = exponential(-z), r = y * a - one;
    return {r * r / (y + y), -r * a, broadcast(0.0)};
  }
};

template <class T>
class Tile {
 public:
  Tile(GemmOf<T> gemm, const NetworkLayout& layout, const NetworkLoss& loss, size_t most_rows)
      : gemm_(gemm), layout_(layout), loss_(loss), states_(layout.sizes.size()), target_(most_rows), share_(most_rows) {
    size_t widest = 0;
    for (size_t t = 0; t < states_.size(); ++t) {
      states_[t].resize(most_rows * layout.sizes[t]);
      if (t > 0) widest = std::max(widest, layout.sizes[t]);
    }
    if (loss.kind == NetworkLoss::Kind::softmax) chance_.resize(most_rows * layout.sizes.back() + lanes);
    costate_.resize(most_rows * widest);
    below_.resize(most_rows * widest);
  }

  // Rows by number, from `visits`; null: those from `first` on. Rows of float32 may be read into a tile of float64.
  template <class R>
  void read(const NetworkRows<R>& rows, const int64_t* visits, size_t first, size_t n) {
    n_ = n;
    y_ = rows.y;
    offset_ = rows.offset;
    weight_ = rows.weight;
    visits_ = visits;
    first_ = first;
    const size_t d = layout_.sizes[0];
    for (size_t i = 0; i < n; ++i) std::copy(rows.X + row(i) * d, rows.X + (row(i) + 1) * d, &states_[0][i * d]);
  }

  void forward(const T* parameters) {
    for (size_t t = 0; t < layout_.n_layers(); ++t) {
      const size_t in = layout_.sizes[t], out = layout_.sizes[t + 1];
      T* state = states_[t + 1].data();
      if (layout_.has_bias(t)) {
        const T* bias = parameters + layout_.bias_at(t);
        for (size_t i = 0; i < n_; ++i) std::copy(bias, bias + out, state + i * out);
      }
      const T *weights = parameters + layout_.weights_at(t), *inputs = states_[t].data();
      const T beta = layout_.has_bias(t) ? T(1) : T(0);
      if (out == 1) {
        row_scores(n_, in, inputs, weights, beta, state);
      } else {
        product<T>(gemm_, false, true, n_, out, in, inputs, in, weights, in, beta, state);
      }
      if (t + 1 < layout_.n_layers()) activate(state, n_ * out);
    }
  }

  const T* output() const { return states_.back().data(); }

  // Sum of the losses; the costate of the output is the slope times `share` of every row.
  double lose(double share) {
    const size_t k = layout_.sizes.back();
    for (size_t i = 0; i < n_; ++i) {
      target_[i] = y_[row(i)];
      share_[i] = weight_ == nullptr ? 1.0 : weight_[row(i)];
    }
    if (loss_.kind == NetworkLoss::Kind::softmax) return softmax(k, share);
    if (loss_.kind == NetworkLoss::Kind::huber) return by_formula(HuberOfWidth{loss_.parameter}, share);
    if (loss_.kind == NetworkLoss::Kind::inverse_gaussian) return by_formula(InverseGaussianLog{}, share);
    return with_loss(loss_.formula, loss_.parameter, [&](auto formula) { return by_formula(formula, share); });
  }

  // gradient = beta gradient + that of the sum, in the layout of the parameters.
  void backward(const T* parameters, T* gradient, T beta) {
    T *costate = costate_.data(), *below = below_.data();
    for (size_t t = layout_.n_layers(); t-- > 0;) {
      const size_t in = layout_.sizes[t], out = layout_.sizes[t + 1];
      const T *weights = parameters + layout_.weights_at(t), *inputs = states_[t].data();
      T* slope = gradient + layout_.weights_at(t);
      if (out == 1) {
        row_gradient(n_, in, inputs, costate, beta, slope);
      } else {
        product<T>(gemm_, true, false, out, in, n_, costate, out, inputs, in, beta, slope);
      }
      if (layout_.has_bias(t)) row_gradient<T>(n_, out, costate, nullptr, beta, gradient + layout_.bias_at(t));
      if (t == 0) return;
      if (out == 1) {
        row_costate(n_, in, costate, weights, below);
      } else {
        product<T>(gemm_, false, false, n_, in, out, costate, out, weights, in, T(0), below);
      }
      slopes(states_[t].data(), below, n_ * in);
      std::swap(costate, below);
    }
  }

 private:
  size_t row(size_t i) const { return visits_ == nullptr ? first_ + i : static_cast<size_t>(visits_[first_ + i]); }
  double offset(size_t i) const { return offset_ == nullptr ? 0.0 : offset_[row(i)]; }

  // z = f(z), four at a time.
  template <class F>
  static void each(T* z, size_t n, F f) {
    for (size_t i = 0; i < n; i += lanes) {
      const size_t m = std::min(lanes, n - i);
      Vec x = broadcast(0.0);
      for (size_t j = 0; j < m; ++j) x[j] = static_cast<double>(z[i + j]);
      x = f(x);
      for (size_t j = 0; j < m; ++j) z[i + j] = static_cast<T>(x[j]);
    }
  }

  void activate(T* z, size_t n) const {
    const T slope = static_cast<T>(layout_.slope);
    const Vec one = broadcast(1.0), zero = broadcast(0.0);
    switch (layout_.activation) {
      case Activation::relu: relu(slope, z, n); return;
      case Activation::tanh:
        each(z, n, [&](Vec x) {
          const Vec a = exponential(broadcast(-2.0) * absolute(x)), size = (one - a) / (one + a);
          return choose(x > zero, size, -size);
        });
        return;
      case Activation::sigmoid:
        each(z, n, [&](Vec x) {
          const Vec a = exponential(-absolute(x)), near = one / (one + a);
          return choose(x > zero, near, a * near);
        });
        return;
      case Activation::identity: return;
    }
  }

  // Times the derivative of the activation, which follows from its value.
  void slopes(const T* a, T* p, size_t n) const {
    const T slope = static_cast<T>(layout_.slope);
    switch (layout_.activation) {
      case Activation::relu: relu_slopes(slope, a, p, n); return;
      case Activation::tanh:
        for (size_t i = 0; i < n; ++i) p[i] *= 1 - a[i] * a[i];
        return;
      case Activation::sigmoid:
        for (size_t i = 0; i < n; ++i) p[i] *= a[i] * (1 - a[i]);
        return;
      case Activation::identity: return;
    }
  }

  template <class Formula>
  double by_formula(Formula formula, double share) {
    double sum = 0;
    for (size_t i = 0; i < n_; i += lanes) {
      double y[lanes], z[lanes];
      const size_t m = std::min(lanes, n_ - i);
      for (size_t j = 0; j < lanes; ++j) {
        const size_t at = i + std::min(j, m - 1);
        y[j] = target_[at];
        z[j] = static_cast<double>(output()[at]) + offset(at);
      }
      const LossAt loss = formula(load(y), load(z));
      for (size_t j = 0; j < m; ++j) {
        sum += share_[i + j] * loss_.scale * loss.value[j];
        costate_[i + j] = static_cast<T>(share * share_[i + j] * loss_.scale * loss.slope[j]);
      }
    }
    return sum;
  }

  double softmax(size_t k, double share) {
    for (size_t i = 0; i < n_; ++i) {
      const T* z = output() + i * k;
      const double largest = *std::max_element(z, z + k);
      for (size_t j = 0; j < k; ++j) chance_[i * k + j] = static_cast<double>(z[j]) - largest;
    }
    for (size_t i = 0; i < n_ * k; i += lanes) store(&chance_[i], exponential(load(&chance_[i])));  // and past the end
    double sum = 0;
    for (size_t i = 0; i < n_; ++i) {
      const T* z = output() + i * k;
      const double* chance = &chance_[i * k];
      double total = 0;
      for (size_t j = 0; j < k; ++j) total += chance[j];
      const auto of = static_cast<size_t>(target_[i]);
      const double weight = share_[i] * loss_.scale, largest = *std::max_element(z, z + k);
      sum += weight * (std::log(total) + largest - static_cast<double>(z[of]));
      T* costate = &costate_[i * k];
      for (size_t j = 0; j < k; ++j) costate[j] = static_cast<T>(share * weight * (chance[j] / total));
      costate[of] = static_cast<T>(share * weight * (chance[of] / total - 1.0));
    }
    return sum;
  }

  GemmOf<T> gemm_;
  const NetworkLayout& layout_;
  NetworkLoss loss_;
  std::vector<std::vector<T>> states_;
  std::vector<T> costate_, below_;
  std::vector<double> target_, share_, chance_;
  const double *y_ = nullptr, *offset_ = nullptr, *weight_ = nullptr;
  const int64_t* visits_ = nullptr;
  size_t n_ = 0, first_ = 0;
};

}  // namespace certifit
