// Bootstrap of ranking measures: rank once, then count how often each row is drawn. With F the running sum of the drawn
// weight of the negatives in ascending order, G that of the positives,
//   AUC = sum over positives of drawn weight * (F(below) + F(not above)) / (2 F(all) G(all)),
// and no replicate sorts anything.
#include <atomic>

#include "philox.hpp"
#include "ranks.hpp"

namespace certifit {
namespace {

struct Ranks {
  std::vector<uint32_t> negatives, positives;  // rows, ascending
  // Of each positive: negatives with a smaller score, negatives with no greater score, the first positive of its score.
  std::vector<uint32_t> below, not_above, tied_from;
};

Ranks rank(const Scores& scores, Crew& crew) {
  const auto sorted = sort_scores<KeyAndRow>(scores, crew);
  Ranks ranks;
  ranks.negatives.resize(sorted.n_negatives());
  for (auto* column : {&ranks.positives, &ranks.below, &ranks.not_above, &ranks.tied_from})
    column->resize(sorted.n_positives());
  crew.for_each_block(sorted.n_buckets(), [&](size_t b) {
    const auto negatives = sorted.negatives(b), positives = sorted.positives(b);
    const size_t below = sorted.negatives_below[b], before = sorted.positives_below[b];
    for (size_t i = 0; i < negatives.size(); ++i) ranks.negatives[below + i] = negatives[i].row;
    for_each_distinct(negatives, positives, [&](Key, size_t i, size_t i_end, size_t j, size_t j_end) {
      for (size_t k = j; k < j_end; ++k) {
        ranks.positives[before + k] = positives[k].row;
        ranks.below[before + k] = static_cast<uint32_t>(below + i);
        ranks.not_above[before + k] = static_cast<uint32_t>(below + i_end);
        ranks.tied_from[before + k] = static_cast<uint32_t>(before + j);
      }
    });
  });
  return ranks;
}

// Number: uint32_t counts drawn rows exactly (fewer than 2^32 of them), double adds their weights.
template <class Number>
class Replicate {
 public:
  Replicate(const Ranks& ranks, const double* weight, Crew& crew)
      : ranks_(ranks),
        weight_(weight),
        crew_(crew),
        drawn_(ranks.negatives.size() + ranks.positives.size()),
        negatives_(ranks.negatives.size() + 1),
        positives_(ranks.positives.size() + 1) {}

  // Draws until both classes are there; returns how many draws were thrown away.
  uint64_t draw(uint64_t seed, uint64_t number) {
    for (uint32_t attempt = 0;; ++attempt) {
      // Streams of replicates and of their further attempts do not meet: there are fewer than 2^40 replicates.
      count(Philox(seed, number | uint64_t{attempt} << 40));
      add_up(ranks_.negatives, negatives_);
      add_up(ranks_.positives, positives_);
      if ((negatives_.back() > 0 && positives_.back() > 0) || !crew_.keep_going()) return attempt;
    }
  }

  double auc() const {
    using Sum = std::conditional_t<std::is_integral_v<Number>, uint64_t, double>;
    Sum twice = 0;
    for (size_t i = 0; i < ranks_.positives.size(); ++i) {
      const Sum around = Sum{negatives_[ranks_.below[i]]} + negatives_[ranks_.not_above[i]];
      twice += (positives_[i + 1] - positives_[i]) * around;
    }
    return static_cast<double>(twice) / (2.0 * static_cast<double>(negatives_.back())) /
           static_cast<double>(positives_.back());
  }

  // sum over positives of drawn weight * precision where its score is the threshold / drawn weight of all positives
  double average_precision() const {
    double sum = 0;
    for (size_t i = 0; i < ranks_.positives.size(); ++i) {
      const auto own = static_cast<double>(positives_[i + 1] - positives_[i]);
      const auto kept = static_cast<double>(positives_.back() - positives_[ranks_.tied_from[i]]);
      const auto wrong = static_cast<double>(negatives_.back() - negatives_[ranks_.below[i]]);
      sum += own > 0 ? own * kept / (kept + wrong) : 0.0;
    }
    return sum / static_cast<double>(positives_.back());
  }

 private:
  static constexpr size_t between_polls = size_t{1} << 16;

  void count(Philox random) {
    std::fill(drawn_.begin(), drawn_.end(), uint16_t{0});
    const auto n_rows = static_cast<uint32_t>(drawn_.size());
    // A row is drawn once on average: 2^16 times has a chance below 10^-280000 where there are so many draws.
    for (size_t i = 0; i < n_rows; ++i) {
      ++drawn_[random.below(n_rows)];
      if (i % between_polls == 0 && !crew_.keep_going()) return;
    }
  }

  void add_up(const std::vector<uint32_t>& rows, std::vector<Number>& sums) {
    Number sum = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Number times = drawn_[rows[i]];
      if constexpr (std::is_integral_v<Number>)
        sum += times;
      else
        sum += times * weight_[rows[i]];
      sums[i + 1] = sum;
    }
  }

  const Ranks& ranks_;
  const double* weight_;
  Crew& crew_;
  std::vector<uint16_t> drawn_;
  std::vector<Number> negatives_, positives_;  // running sums, from 0
};

template <class Number>
Replicates replicates(const Ranks& ranks, const double* weight, double (Replicate<Number>::*measure)() const,
                      size_t n_replicates, uint64_t seed, Crew& crew) {
  Replicates result;
  result.values.resize(n_replicates);
  std::atomic<uint64_t> redrawn{0};
  constexpr size_t together = 8;  // replicates that share one allocation
  crew.for_each_block((n_replicates + together - 1) / together, [&](size_t block) {
    Replicate<Number> replicate(ranks, weight, crew);
    for (size_t b = block * together; b < std::min((block + 1) * together, n_replicates) && crew.keep_going(); ++b) {
      redrawn += replicate.draw(seed, b);
      result.values[b] = (replicate.*measure)();
    }
  });
  result.redrawn = redrawn;
  return result;
}

}  // namespace

Replicates bootstrap(const Scores& scores, const double* weight, Measure measure, size_t n_replicates, uint64_t seed,
                     Crew& crew) {
  const Ranks ranks = rank(scores, crew);
  auto run = [&]<class Number>(Number) {
    const auto value = measure == Measure::auc ? &Replicate<Number>::auc : &Replicate<Number>::average_precision;
    return replicates<Number>(ranks, weight, value, n_replicates, seed, crew);
  };
  return weight ? run(double{}) : run(uint32_t{});
}

}  // namespace certifit
