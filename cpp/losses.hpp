// Losses l(y, z) of a row's score z: half the deviance, so that the least over z is 0. One struct each, four rows at
// a time; slope and curvature are the first two derivatives by z.
#pragma once

#include <cmath>
#include <variant>

#include "elementary.hpp"
#include "loss.hpp"

namespace certifit {

struct LossAt {
  Vec value, slope, curvature;
};

// l = log(1 + e^z) - y z, y 0 or 1; for a share y between them less what y alone decides.
struct Logistic {
  LossAt operator()(Vec y, Vec z) const {
    const Vec one = broadcast(1.0), a = exponential(-absolute(z));
    const Vec near = one / (one + a), far = a * near;  // chances of the sign of z, and of the other
    const Int positive = z > broadcast(0.0);
    const Vec p = choose(positive, near, far), q = choose(positive, far, near);
    // max(z, 0) - y z without cancelling: (1 - y) z for z > 0, -y z else.
    const Vec line = choose(positive, (one - y) * z, -y * z);
    return {line + logarithm_of_one_plus(a), (one - y) * p - y * q, near * far};
  }
};

// l = y (e^u - 1 - u), u = z - log y; e^z for y = 0.
struct PoissonLog {
  LossAt operator()(Vec y, Vec z) const {
    const Vec zero = broadcast(0.0), one = broadcast(1.0), mu = exponential(z);
    const Int counted = y > zero;
    if (!(counted[0] | counted[1] | counted[2] | counted[3])) return {mu, mu - y, mu};  // most counts are often 0
    const Vec u = z - logarithm(choose(counted, y, one));
    return {choose(counted, (mu - y) - y * u, mu), mu - y, mu};
  }
};

// l = e^u - 1 - u, u = log y - z.
struct GammaLog {
  LossAt operator()(Vec y, Vec z) const {
    const Vec one = broadcast(1.0), u = logarithm(y) - z, ratio = exponential(u);
    return {(ratio - one) - u, one - ratio, ratio};
  }
};

// l = (y - z)^2 / 2.
struct Squared {
  LossAt operator()(Vec y, Vec z) const {
    const Vec r = z - y;
    return {r * r * broadcast(0.5), r, broadcast(1.0)};
  }
};

// Tweedie deviance of power p between 1 and 2, mean e^z: y^(2-p) / ((1-p)(2-p)) - y e^((1-p) z) / (1-p)
// + e^((2-p) z) / (2-p), halves of deviances.
struct TweedieLog {
  double power;
  LossAt operator()(Vec y, Vec z) const {
    const Vec a = broadcast(2 - power), b = broadcast(power - 1), zero = broadcast(0.0);
    const Vec up = exponential(a * z), down = exponential(-b * z) * y;
    const Int counted = y > zero;
    const Vec own = choose(counted, exponential(a * logarithm(choose(counted, y, broadcast(1.0)))), zero);
    return {up / a + down / b - own / (a * b), up - down, a * up + b * down};
  }
};

// Negative binomial deviance, mean e^z, k = 1 / alpha: with t = z + log alpha and the odds of s and q alpha e^z and
// alpha y, l = (y + k) log(1 + e^t) - y t + y log q + k log(1 - q).
struct NegativeBinomialLog {
  double alpha, log_alpha;
  LossAt operator()(Vec y, Vec z) const {
    const Vec zero = broadcast(0.0), one = broadcast(1.0), k = broadcast(1 / alpha), m = y + k;
    const Vec t = z + broadcast(log_alpha), a = exponential(-absolute(t));
    const Vec near = one / (one + a), far = a * near;  // s and 1 - s, the larger first
    const Int positive = t > zero, counted = y > zero;
    const Vec s = choose(positive, near, far), rest = choose(positive, far, near);
    const Vec line = choose(positive, k * t, -y * t);
    const Vec own = choose(counted, y * logarithm(choose(counted, y / m, one)), zero);
    const Vec value = line + m * logarithm_of_one_plus(a) + own - k * logarithm_of_one_plus(y / k);
    return {value, k * s - y * rest, m * near * far};
  }
};

using AnyLoss = std::variant<Logistic, PoissonLog, GammaLog, Squared, TweedieLog, NegativeBinomialLog>;

template <class Use>
auto with_loss(Loss loss, double parameter, Use use) {
  switch (loss) {
    case Loss::poisson_log: return use(PoissonLog{});
    case Loss::gamma_log: return use(GammaLog{});
    case Loss::squared: return use(Squared{});
    case Loss::tweedie_log: return use(TweedieLog{parameter});
    case Loss::negative_binomial_log: return use(NegativeBinomialLog{parameter, std::log(parameter)});
    default: return use(Logistic{});
  }
}

inline AnyLoss any_loss(Loss loss, double parameter) {
  return with_loss(loss, parameter, [](auto loss_of) { return AnyLoss(loss_of); });
}

}  // namespace certifit
