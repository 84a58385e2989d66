#include "descent.hpp"

#include <algorithm>

#include "gap.hpp"

namespace certifit {
namespace {

constexpr size_t sweeps_a_round = 4;
constexpr size_t most_steps = 100;       // of conjugate gradients a round
constexpr double gradient_share = 1e-2;  // of the gradient that they leave
constexpr double unit_roundoff = 0x1p-53;

}  // namespace

ResidualDescent::ResidualDescent(const Columns& columns, const std::vector<size_t>& ids,
                                 const std::vector<Penalty>& penalties, std::vector<double> weights,
                                 std::vector<double> q, double squares)
    : columns_(columns),
      ids_(ids),
      penalties_(penalties),
      weights_(std::move(weights)),
      q_(std::move(q)),
      squares_(squares) {}

size_t ResidualDescent::solve(double rounding, double target, size_t max_sweeps, Crew& crew) {
  size_t sweeps = 0;
  while (sweeps < max_sweeps) {
    largest_move_ = 0;
    sweeps += 1 + solve_on_support(max_sweeps - sweeps - 1, crew);
    if (gap(rounding) <= target) break;
    for (size_t k = 1; k < sweeps_a_round && sweeps < max_sweeps; ++k, ++sweeps) sweep(crew);
    sweep(crew);
    if (has_settled() || gap(rounding) <= target) break;
  }
  return sweeps;
}

bool ResidualDescent::has_settled() const {
  double size = 0;
  for (double w : weights_) size = std::max(size, std::fabs(w));
  return largest_move_ <= 8 * unit_roundoff * size;
}

// What is left of the optimality condition of a weight that is not zero.
double ResidualDescent::pull_left(size_t p) const {
  const Penalty& h = penalties_[p];
  return slope(p) - (h.l1 > 0 ? std::copysign(h.l1, weights_[p]) : 0.0) - h.l2 * weights_[p];
}

void ResidualDescent::moved(size_t p, double step) {
  weights_[p] += step;
  largest_move_ = std::max(largest_move_, std::fabs(step));
}

void ResidualDescent::sweep(Crew& crew) {
  for (size_t p = 0; p < ids_.size(); ++p) {
    if (p % 256 == 0 && !crew.keep_going()) throw Interrupted();
    const double pull = slope(p), next = penalties_[p].best(weights_[p], pull, square(p)), step = next - weights_[p];
    if (step == 0) continue;
    columns_.add_weighted(ids_[p], -step, q_.data(), shift_);
    squares_ += step * (step * square(p) - 2 * pull);
    moved(p, step);
    weights_[p] = next;
  }
}

// Weights that gradients may move: not zero unless free of l1, not at a bound.
std::vector<size_t> ResidualDescent::interior() const {
  std::vector<size_t> out;
  for (size_t p = 0; p < ids_.size(); ++p) {
    const Penalty& h = penalties_[p];
    if ((weights_[p] != 0 || h.l1 == 0) && weights_[p] > h.lower && weights_[p] < h.upper) out.push_back(p);
  }
  return out;
}

// On the support the objective is a quadratic: (G + l2) d = pull_left by conjugate gradients, scaled by the diagonal,
// then the best point on the way along d.
size_t ResidualDescent::solve_on_support(size_t max_steps, Crew& crew) {
  const std::vector<size_t> members = interior();
  const size_t k = members.size();
  std::vector<double> d(k, 0.0), left(k), scaled(k), direction(k), image(k);
  double product = 0;
  for (size_t a = 0; a < k; ++a) {
    left[a] = pull_left(members[a]);
    direction[a] = left[a] / whole(members[a]);
    product += left[a] * direction[a];
  }
  const double enough = gradient_share * gradient_share * product;
  size_t steps = 0;
  for (max_steps = std::min(max_steps, most_steps); steps < max_steps && product > enough; ++steps) {
    if (!crew.keep_going()) throw Interrupted();
    double curvature = make_image(members, direction.data());
    pull_image(members, image.data());
    for (size_t a = 0; a < k; ++a) {
      image[a] += penalties_[members[a]].l2 * direction[a];
      curvature += penalties_[members[a]].l2 * direction[a] * direction[a];
    }
    if (!(curvature > 0)) break;
    const double t = product / curvature, before = product;
    product = 0;
    for (size_t a = 0; a < k; ++a) {
      d[a] += t * direction[a];
      left[a] -= t * image[a];
      scaled[a] = left[a] / whole(members[a]);
      product += left[a] * scaled[a];
    }
    for (size_t a = 0; a < k; ++a) direction[a] = scaled[a] + product / before * direction[a];
  }
  if (steps > 0) line_search(members, d);
  return steps;
}

// <Z d, Z d>
double ResidualDescent::make_image(const std::vector<size_t>& members, const double* d) {
  image_.assign(columns_.n_rows(), 0.0);
  image_shift_ = 0;
  for (size_t k = 0; k < members.size(); ++k) columns_.add(ids_[members[k]], d[k], image_.data(), image_shift_);
  double sum = 0;
  for (size_t i = 0; i < image_.size(); ++i) {
    const double z = image_[i] + image_shift_;
    sum += columns_.omega()[i] * z * z;
  }
  return sum;
}

// out[k] = <z_members[k], Z d>
void ResidualDescent::pull_image(const std::vector<size_t>& members, double* out) {
  weighted_.resize(image_.size());
  for (size_t i = 0; i < image_.size(); ++i) weighted_[i] = columns_.omega()[i] * image_[i];
  for (size_t k = 0; k < members.size(); ++k) out[k] = columns_.pull(ids_[members[k]], weighted_.data(), -image_shift_);
}

ResidualDescent::Ray ResidualDescent::look_along(const std::vector<size_t>& members, const std::vector<double>& d) {
  Ray ray;
  ray.bend = ray.curvature = make_image(members, d.data());
  for (size_t k = 0; k < members.size(); ++k) {
    const double w = weights_[members[k]], pull = slope(members[k]);
    const Penalty& h = penalties_[members[k]];
    ray.slope -= d[k] * (pull - (h.l1 > 0 ? std::copysign(h.l1, w) : 0.0) - h.l2 * w);
    ray.pull += d[k] * pull;
    ray.curvature += h.l2 * d[k] * d[k];
    if (d[k] != 0) ray.end = std::min(ray.end, (h.limit(d[k]) - w) / d[k]);
    if (w * d[k] < 0 && h.l1 > 0) ray.crossings.push_back({-w / d[k], k});
  }
  std::sort(ray.crossings.begin(), ray.crossings.end());
  return ray;
}

// Minimises along w + t d. The slope grows by the curvature, and jumps by 2 l1 |d| where a weight changes its sign.
void ResidualDescent::line_search(const std::vector<size_t>& members, const std::vector<double>& d) {
  const Ray ray = look_along(members, d);
  double slope = ray.slope, t = ray.curvature > 0 ? -slope / ray.curvature : infinity;
  if (!(slope < 0)) return;
  size_t stops = members.size();  // the member that ends at zero
  for (const auto& [at, k] : ray.crossings) {
    if (at >= std::min(t, ray.end)) break;
    slope += 2 * penalties_[members[k]].l1 * std::fabs(d[k]);
    t = slope < 0 && !(ray.curvature > 0) ? infinity : std::max(at, -slope / ray.curvature);
    if (t != at) continue;
    stops = k;
    break;
  }
  t = std::min(t, ray.end);
  if (!(t > 0) || t == infinity) return;
  for (size_t i = 0; i < q_.size(); ++i) q_[i] -= t * columns_.omega()[i] * image_[i];
  shift_ -= t * image_shift_;
  squares_ += t * (t * ray.bend - 2 * ray.pull);
  for (size_t k = 0; k < members.size(); ++k) {
    const Penalty& h = penalties_[members[k]];
    double& w = weights_[members[k]];
    const bool meets_bound = d[k] != 0 && t == (h.limit(d[k]) - w) / d[k];
    moved(members[k], t * d[k]);
    w = k == stops ? 0.0 : meets_bound ? h.limit(d[k]) : std::clamp(w, h.lower, h.upper);
  }
}

double ResidualDescent::gap(double rounding) {
  std::vector<double> slopes(ids_.size());
  for (size_t p = 0; p < ids_.size(); ++p) slopes[p] = slope(p);
  return duality_gap(std::max(squares_, 0.0), rounding, [&](auto use) {
    for (size_t p = 0; p < ids_.size(); ++p)
      if (weights_[p] != 0 || penalties_[p].excess(slopes[p]) > 0) use(penalties_[p], weights_[p], slopes[p]);
  });
}

}  // namespace certifit
