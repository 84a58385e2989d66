#include "softmax.hpp"

#include "../elementary.hpp"
#include "many_scores.hpp"

namespace certifit {
namespace {

constexpr double nowhere = -1e308;  // a score whose chance is 0

// Chances of one row from its scores, which stand in panels [first, ...) of row k. All digits of small ones are right,
// and `rest`, the sum of all but the largest, relative to it, keeps those of a loss near 0.
struct Chances {
  std::vector<double> values;  // filled up with zeros to whole panels
  size_t n_classes, largest = 0;
  double top = 0, rest = 0;

  explicit Chances(size_t classes) : values((classes + lanes - 1) / lanes * lanes), n_classes(classes) {}

  void read(const Panels& scores, size_t first, size_t k, const double* lift) {
    for (size_t c = 0; c < values.size(); ++c) {
      const double z = scores.at(first + c / lanes, k)[c % lanes];
      values[c] = c < n_classes ? (lift ? z + lift[c] : z) : nowhere;
    }
    largest = static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
    top = values[largest];
    for (size_t c = 0; c < values.size(); c += lanes) store(&values[c], exponential(load(&values[c]) - broadcast(top)));
    values[largest] = 0;
    rest = 0;
    for (size_t c = 0; c < n_classes; ++c) rest += values[c];
    values[largest] = 1;
    const Vec whole = broadcast(1 + rest);
    for (size_t c = 0; c < values.size(); c += lanes) store(&values[c], load(&values[c]) / whole);
  }

  double log_sum() const { return top + logarithm_of_one_plus(broadcast(rest))[0]; }
  // One less the chance, without cancelling where the chance is near 1.
  double others(size_t c) const { return c == largest ? rest / (1 + rest) : 1 - values[c]; }
};

double score(const Panels& scores, size_t k, size_t c) { return scores.at(c / lanes, k)[c % lanes]; }

class Loss {
 public:
  Loss(const double* y, size_t n_classes) : y_(y), n_classes_(n_classes), p_(n_classes) {}
  size_t n_slopes() const { return n_classes_; }
  size_t n_sums() const { return 1; }

  void operator()(size_t row, double weight, size_t k, const Panels& scores, Panels& slopes,
                  std::vector<double>& sums) {
    p_.read(scores, 0, k, nullptr);
    const size_t own = static_cast<size_t>(y_[row]);
    sums[0] += weight * ((p_.top - score(scores, k, own)) + logarithm_of_one_plus(broadcast(p_.rest))[0]);
    const double off = p_.others(own);
    for (size_t q = 0; q < slopes.n_panels; ++q)
      store(slopes.at(q, k), load(&p_.values[q * lanes]) * broadcast(weight));
    slopes.at(own / lanes, k)[own % lanes] = -off * weight;
  }

 private:
  const double* y_;
  size_t n_classes_;
  Chances p_;
};

// The slopes of w p_k (q_k - p'q), where the scores q of the direction stand in the panels behind those of the point.
class Product {
 public:
  explicit Product(size_t n_classes) : n_classes_(n_classes), p_(n_classes) {}
  size_t n_slopes() const { return n_classes_; }
  size_t n_sums() const { return 0; }

  void operator()(size_t, double weight, size_t k, const Panels& scores, Panels& slopes, std::vector<double>&) {
    p_.read(scores, 0, k, nullptr);
    const size_t behind = slopes.n_panels;
    double mean = 0;
    for (size_t c = 0; c < n_classes_; ++c) mean += p_.values[c] * scores.at(behind + c / lanes, k)[c % lanes];
    for (size_t q = 0; q < slopes.n_panels; ++q) {
      const Vec about = load(scores.at(behind + q, k)) - broadcast(mean);
      store(slopes.at(q, k), load(&p_.values[q * lanes]) * about * broadcast(weight));
    }
  }

 private:
  size_t n_classes_;
  Chances p_;
};

class Dual {
 public:
  Dual(const double* y, size_t n_classes, const Mixture& mixture)
      : y_(y), n_classes_(n_classes), mixture_(mixture), at_(n_classes), lifted_(n_classes) {}
  size_t n_slopes() const { return n_classes_; }
  size_t n_sums() const { return 1 + n_classes_ * n_classes_; }

  void operator()(size_t row, double weight, size_t k, const Panels& scores, Panels& slopes,
                  std::vector<double>& sums) {
    at_.read(scores, 0, k, nullptr);
    lifted_.read(scores, 0, k, mixture_.lift);
    const size_t own = static_cast<size_t>(y_[row]);
    const double base = at_.log_sum(), keep = 1 - mixture_.share;
    double divergence = 0;  // sum_k q log(q / p) - q + p: every term is >= 0
    for (size_t c = 0; c < n_classes_; ++c) {
      const double more = mixture_.share * mixture_.mix[c], q = keep * lifted_.values[c] + more;
      divergence += divergence_term(q, at_.values[c], score(scores, k, c) - base);
      // q - 1 = -(keep (1 - p') + share - more), without cancelling where p' is near 1.
      const double slope = c == own ? -(keep * lifted_.others(c) + (mixture_.share - more)) : q;
      slopes.at(c / lanes, k)[c % lanes] = weight * slope;
      double* to = &sums[1 + c * n_classes_];
      for (size_t b = 0; b < n_classes_; ++b) to[b] -= weight * lifted_.values[c] * lifted_.values[b];
      to[c] += weight * lifted_.values[c];
    }
    for (size_t c = n_classes_; c < slopes.n_panels * lanes; ++c) slopes.at(c / lanes, k)[c % lanes] = 0;
    sums[0] += weight * divergence;
  }

 private:
  // q log(q / p) - q + p, log p given: by its series where q is near p.
  static double divergence_term(double q, double p, double log_p) {
    if (!(q > 0)) return p;
    const double t = p > 0 ? (q - p) / p : 1e300;
    if (std::abs(t) < 1e-3) return p * t * t * (0.5 - t * (1.0 / 6 - t * (1.0 / 12 - t * (1.0 / 20))));
    return std::max(q * (logarithm(broadcast(q))[0] - log_p) - q + p, 0.0);
  }

  const double* y_;
  size_t n_classes_;
  Mixture mixture_;
  Chances at_, lifted_;
};

}  // namespace

ManySums softmax(const Rows& rows, const double* y, const double* weight, const Scaling& scaling,
                 const ScoreWeights& state, size_t block_rows, Crew& crew) {
  return many_scores(rows, weight, scaling, {&state, 1}, Loss(y, state.n_scores), block_rows, crew);
}

ManySums softmax_product(const Rows& rows, const double* weight, const Scaling& scaling, const ScoreWeights& state,
                         const ScoreWeights& direction, size_t block_rows, Crew& crew) {
  const ScoreWeights sets[2] = {state, direction};
  return many_scores(rows, weight, scaling, sets, Product(state.n_scores), block_rows, crew);
}

ManySums softmax_dual(const Rows& rows, const double* y, const double* weight, const Scaling& scaling,
                      const ScoreWeights& state, const Mixture& mixture, size_t block_rows, Crew& crew) {
  return many_scores(rows, weight, scaling, {&state, 1}, Dual(y, state.n_scores, mixture), block_rows, crew);
}

std::vector<double> softmax_pairs(const Rows& rows, const double* weight, const Scaling& scaling,
                                  const ScoreWeights& state, size_t block_rows, Crew& crew) {
  const SquareLayout layout(rows, false);
  const PackedWeights weights(layout, {&state, 1});
  const size_t n_classes = state.n_scores, n_pairs = n_classes * (n_classes - 1) / 2;
  const size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows, square = layout.size();
  SumTree<BlockSums> tree(n_blocks);
  crew.for_each_block(n_blocks, [&](size_t block) {
    BlockSums sums;
    sums.hi.assign(n_pairs * square, 0.0);
    ManyScores many(rows, layout, scaling, weights, 1);
    Panels scaled(layout.n_packed, many.panels.capacity);
    Entries entries(rows, scaling, layout.first_thin);
    Chances p(n_classes);
    std::vector<double> chances(many.panels.capacity * n_classes), roots_of_pair(many.panels.capacity);
    auto work = [&](std::span<const size_t> tile, std::span<const double> roots) {
      many.read(tile, roots);
      for (size_t k = 0; k < tile.size(); ++k) {
        p.read(many.scores, 0, k, nullptr);
        std::copy_n(p.values.begin(), n_classes, &chances[k * n_classes]);
      }
      size_t pair = 0;
      for (size_t a = 0; a < n_classes; ++a)
        for (size_t b = a + 1; b < n_classes; ++b, ++pair) {
          for (size_t k = 0; k < tile.size(); ++k) {
            const double own = weight ? weight[tile[k]] * scaling.weight_scale : 1.0;
            const double share = chances[k * n_classes + a] * chances[k * n_classes + b];
            roots_of_pair[k] = roots[k] != 0 ? std::sqrt(own * share) : 0.0;
          }
          for (size_t q = 0; q < scaled.n_panels; ++q)
            for (size_t k = 0; k < tile.size(); ++k)
              store(scaled.at(q, k), load(many.panels.at(q, k)) * broadcast(roots_of_pair[k]));
          add_tile(scaled, tile.size(), sums, pair * square, layout.stride, Ahead(rows, rows.n_rows, 0));
          if (layout.n_thin == 0) continue;
          for (size_t k = 0; k < tile.size(); ++k)
            entries.add(tile[k], roots_of_pair[k], scaled, k, sums, pair * square, layout.stride);
        }
    };
    for_each_tile(many, weight, block * block_rows, std::min((block + 1) * block_rows, rows.n_rows), crew, work);
    tree.add(block, std::move(sums));
  });
  return layout.unfolded(tree.root().hi, n_pairs, n_blocks > 0);
}

}  // namespace certifit
