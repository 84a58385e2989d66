#include "subproblem.hpp"

#include <algorithm>

#include "gap.hpp"

namespace certifit {
namespace {

constexpr size_t largest_gram = 4096;      // columns: 128 MB of products
constexpr size_t largest_factor = 4096;    // members of the direct solve
constexpr size_t sweeps_on_residuals = 8;  // between direct solves: a sweep costs less there, a factor more
constexpr size_t slides_at_once = 64;
constexpr size_t small_factor = 256;     // members for which a new factor costs nothing
constexpr size_t most_steps = 100;       // of conjugate gradients in one solve
constexpr double gradient_share = 1e-2;  // of the gradient that they leave
constexpr double unit_roundoff = 0x1p-53;

}  // namespace

size_t Subproblem::support_size() const {
  return static_cast<size_t>(std::count_if(weights_.begin(), weights_.end(), [](double w) { return w != 0; }));
}

void Subproblem::add(const std::vector<size_t>& ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  weights_.resize(ids_.size(), 0.0);
}

void Subproblem::keep(const std::vector<size_t>& positions) {
  std::vector<size_t> ids, place(ids_.size(), 0), in_gram;
  std::vector<double> weights;
  std::vector<Penalty> penalties;
  for (size_t p : positions) {
    place[p] = ids.size();
    ids.push_back(ids_[p]);
    weights.push_back(weights_[p]);
    penalties.push_back(penalties_[p]);
    if (p < gram_.size()) in_gram.push_back(p);
  }
  std::vector<char> stays(ids_.size(), 0);
  for (size_t p : positions) stays[p] = 1;
  const auto& members = factor_.members();
  if (std::all_of(members.begin(), members.end(), [&](size_t p) { return stays[p]; }))
    factor_.rename(place);
  else
    factor_.clear();
  gram_.keep(in_gram);
  ids_ = std::move(ids);
  weights_ = std::move(weights);
  penalties_ = std::move(penalties);
}

// A sweep costs |set| for every weight that moves, or about two columns for every weight.
bool Subproblem::use_gram() const {
  if (columns_.is_sparse() || size() > largest_gram) return false;
  return size() <= 4 * columns_.n_rows() + 64;
}

void Subproblem::start(const std::vector<double>& slopes, const std::vector<double>& q, Crew& crew) {
  if (use_gram()) {
    gram_.append({ids_.begin() + static_cast<std::ptrdiff_t>(gram_.size()), ids_.end()}, crew);
    engine_ = gram_engine(gram_, slopes);
  } else {
    gram_.clear();
    engine_ = residual_engine(columns_, ids_, q);
  }
}

Subproblem::Outcome Subproblem::solve(const std::vector<double>& slopes, const std::vector<double>& q, double squares,
                                      double rounding, double target, size_t max_sweeps, Crew& crew) {
  start(slopes, q, crew);
  squares_ = squares;
  const size_t batch = use_gram() ? 1 : sweeps_on_residuals;
  Outcome outcome;
  while (outcome.sweeps < max_sweeps) {
    largest_move_ = 0;
    outcome.sweeps += 1 + solve_on_support(max_sweeps - outcome.sweeps - 1, crew);
    if (gap(rounding) <= target) break;
    for (size_t k = 1; k < batch && outcome.sweeps < max_sweeps; ++k, ++outcome.sweeps) sweep(crew);
    sweep(crew);
    if (has_settled() || gap(rounding) <= target) break;
  }
  outcome.is_still = has_settled();
  engine_.reset();
  return outcome;
}

bool Subproblem::has_settled() const {
  double size = 0;
  for (double w : weights_) size = std::max(size, std::fabs(w));
  return largest_move_ <= 8 * unit_roundoff * size;
}

// What is left of the optimality condition of a weight that is not zero.
double Subproblem::pull_left(size_t p) {
  const Penalty& h = penalties_[p];
  return engine_->slope(p) - (h.l1 > 0 ? std::copysign(h.l1, weights_[p]) : 0.0) - h.l2 * weights_[p];
}

void Subproblem::moved(size_t p, double step) {
  weights_[p] += step;
  largest_move_ = std::max(largest_move_, std::fabs(step));
}

void Subproblem::sweep(Crew& crew) {
  if (!crew.keep_going()) throw Interrupted();
  for (size_t p = 0; p < ids_.size(); ++p) {
    const double slope = engine_->slope(p);
    const double next = penalties_[p].best(weights_[p], slope, square(p));
    const double step = next - weights_[p];
    if (step == 0) continue;
    engine_->move(p, step);
    squares_ += step * (step * square(p) - 2 * slope);
    moved(p, step);
    weights_[p] = next;
  }
}

// Weights that a direct solve may move: not zero unless free of l1, not at a bound.
std::vector<size_t> Subproblem::interior() const {
  std::vector<size_t> out;
  for (size_t p = 0; p < ids_.size(); ++p) {
    const Penalty& h = penalties_[p];
    if ((weights_[p] != 0 || h.l1 == 0) && weights_[p] > h.lower && weights_[p] < h.upper) out.push_back(p);
  }
  return out;
}

// On the support the objective is a quadratic: step to its minimum, or to the best point on the way. A ridge changes
// all factors with alpha, but bounds the condition: then conjugate gradients are cheaper for many columns.
size_t Subproblem::solve_on_support(size_t max_sweeps, Crew& crew) {
  const std::vector<size_t> members = interior();
  if (members.empty()) return 0;
  const bool is_large = members.size() > largest_factor;
  if (is_large || (has_ridge_ && !needs_factor_ && factor_.members().empty() && members.size() > small_factor))
    return solve_by_conjugate_gradients(members, max_sweeps, crew);
  solve_directly(members, crew);
  return 0;
}

void Subproblem::solve_directly(std::vector<size_t> wanted, Crew& crew) {
  auto products = [&](size_t p, const std::vector<size_t>& others, double* out) { engine_->products(p, others, out); };
  auto diagonal = [&](size_t p) { return square(p) + penalties_[p].l2; };
  std::vector<size_t> dependent = factor_.make(wanted, products, diagonal, crew);
  for (size_t k = 0; k < slides_at_once && !dependent.empty(); ++k) {
    slide(dependent.front());
    wanted = interior();
    dependent = factor_.make(wanted, products, diagonal, crew);
  }
  const std::vector<size_t>& members = factor_.members();
  std::vector<double> d(members.size());
  for (size_t k = 0; k < members.size(); ++k) d[k] = pull_left(members[k]);
  factor_.solve(d.data());
  line_search(members, d);
}

// (G + l2) d = pull_left, scaled by the diagonal; a step costs what a sweep costs.
size_t Subproblem::solve_by_conjugate_gradients(const std::vector<size_t>& members, size_t max_steps, Crew& crew) {
  const size_t k = members.size();
  std::vector<double> d(k, 0.0), left(k), scaled(k), direction(k), image(k);
  double product = 0, first = 0;
  for (size_t a = 0; a < k; ++a) {
    left[a] = pull_left(members[a]);
    direction[a] = left[a] / (square(members[a]) + penalties_[members[a]].l2);
    product += left[a] * direction[a];
  }
  first = product;
  size_t steps = 0;
  max_steps = std::min(max_steps, most_steps);
  for (; steps < max_steps && product > gradient_share * gradient_share * first; ++steps) {
    if (!crew.keep_going()) throw Interrupted();
    double curvature = engine_->curvature(members, direction.data());
    engine_->pull_image(members, image.data());
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
      scaled[a] = left[a] / (square(members[a]) + penalties_[members[a]].l2);
      product += left[a] * scaled[a];
    }
    for (size_t a = 0; a < k; ++a) direction[a] = scaled[a] + product / before * direction[a];
  }
  needs_factor_ = needs_factor_ || steps == most_steps;
  line_search(members, d);
  return steps;
}

// Column p is a combination of the factor's columns: along that direction the fit stays and the penalty changes.
void Subproblem::slide(size_t p) {
  std::vector<size_t> members = factor_.members();
  std::vector<double> d(members.size());
  engine_->products(p, members, d.data());
  factor_.solve(d.data());
  members.push_back(p);
  d.push_back(-1.0);
  double slope = 0;
  for (size_t k = 0; k < members.size(); ++k) slope -= d[k] * pull_left(members[k]);
  if (slope > 0)
    for (double& part : d) part = -part;
  line_search(members, d);
}

Subproblem::Ray Subproblem::look_along(const std::vector<size_t>& members, const std::vector<double>& d) {
  Ray ray;
  ray.bend = ray.curvature = engine_->curvature(members, d.data());
  for (size_t k = 0; k < members.size(); ++k) {
    const double w = weights_[members[k]];
    const Penalty& h = penalties_[members[k]];
    ray.slope -= d[k] * pull_left(members[k]);
    ray.pull += d[k] * engine_->slope(members[k]);
    ray.curvature += h.l2 * d[k] * d[k];
    if (d[k] != 0) ray.end = std::min(ray.end, (h.limit(d[k]) - w) / d[k]);
    if (w * d[k] < 0 && h.l1 > 0) ray.crossings.push_back({-w / d[k], k});
  }
  std::sort(ray.crossings.begin(), ray.crossings.end());
  return ray;
}

// Minimises along w + t d. The slope grows by the curvature, and jumps by 2 l1 |d| where a weight changes its sign.
void Subproblem::line_search(const std::vector<size_t>& members, const std::vector<double>& d) {
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
  engine_->advance(t);
  squares_ += t * (t * ray.bend - 2 * ray.pull);
  for (size_t k = 0; k < members.size(); ++k) {
    const Penalty& h = penalties_[members[k]];
    double& w = weights_[members[k]];
    const bool meets_bound = d[k] != 0 && t == (h.limit(d[k]) - w) / d[k];
    moved(members[k], t * d[k]);
    w = k == stops ? 0.0 : meets_bound ? h.limit(d[k]) : std::clamp(w, h.lower, h.upper);
  }
}

double Subproblem::gap(double rounding) {
  std::vector<double> slopes(ids_.size());
  for (size_t p = 0; p < ids_.size(); ++p) slopes[p] = engine_->slope(p);
  return duality_gap(std::max(squares_, 0.0), rounding, [&](auto use) {
    for (size_t p = 0; p < ids_.size(); ++p)
      if (weights_[p] != 0 || penalties_[p].excess(slopes[p]) > 0) use(penalties_[p], weights_[p], slopes[p]);
  });
}

}  // namespace certifit
