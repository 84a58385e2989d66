#include "ranks.hpp"

#include <numeric>

namespace certifit {
namespace {

template <class Record>
double sum_of(std::span<Record> records, size_t begin, size_t end, const double* weight) {
  if (!weight) return static_cast<double>(end - begin);
  double sum = 0;
  if constexpr (requires { records[0].row; })
    for (size_t i = begin; i < end; ++i) sum += weight[records[i].row];
  return sum;
}

// Calls work(sorted): rows are sorted along only where weights are asked for.
template <class Work>
auto with_sorted(const Scores& scores, const double* weight, Crew& crew, Work work) {
  return weight ? work(sort_scores<KeyAndRow>(scores, crew)) : work(sort_scores<KeyOnly>(scores, crew));
}

}  // namespace

PlacementSums placement_sums(const Scores& scores, Crew& crew) {
  const auto sorted = sort_scores<KeyOnly>(scores, crew);
  std::vector<PlacementSums> sums(sorted.n_buckets());
  crew.for_each_block(sorted.n_buckets(), [&](size_t b) {
    PlacementSums own;
    const uint64_t below = sorted.negatives_below[b], above = sorted.n_positives() - sorted.positives_below[b];
    for_each_distinct(sorted.negatives(b), sorted.positives(b),
                      [&](Key, size_t i, size_t i_end, size_t j, size_t j_end) {
                        const uint64_t negatives = i_end - i, positives = j_end - j;
                        const uint64_t positive_t = 2 * below + i + i_end, negative_t = 2 * above - j - j_end;
                        own.twice += positives * positive_t;
                        own.positive_squares += Wide{positive_t} * positive_t * positives;
                        own.negative_squares += Wide{negative_t} * negative_t * negatives;
                      });
    sums[b] = own;
  });
  PlacementSums total;
  for (const PlacementSums& own : sums) {
    total.twice += own.twice;
    total.positive_squares += own.positive_squares;
    total.negative_squares += own.negative_squares;
  }
  total.n_negatives = sorted.n_negatives();
  total.n_positives = sorted.n_positives();
  return total;
}

std::vector<double> placements(const Scores& scores, Crew& crew) {
  const auto sorted = sort_scores<KeyAndRow>(scores, crew);
  std::vector<double> share(scores.n_rows);
  const auto all_negatives = 2.0 * static_cast<double>(sorted.n_negatives());
  const auto all_positives = 2.0 * static_cast<double>(sorted.n_positives());
  crew.for_each_block(sorted.n_buckets(), [&](size_t b) {
    const auto negatives = sorted.negatives(b), positives = sorted.positives(b);
    const size_t below = sorted.negatives_below[b], above = sorted.n_positives() - sorted.positives_below[b];
    for_each_distinct(negatives, positives, [&](Key, size_t i, size_t i_end, size_t j, size_t j_end) {
      const double positive_share = static_cast<double>(2 * below + i + i_end) / all_negatives;
      const double negative_share = static_cast<double>(2 * above - j - j_end) / all_positives;
      for (size_t k = i; k < i_end; ++k) share[negatives[k].row] = negative_share;
      for (size_t k = j; k < j_end; ++k) share[positives[k].row] = positive_share;
    });
  });
  return share;
}

double weighted_auc(const Scores& scores, const double* weight, Crew& crew) {
  struct Part {
    double negatives = 0, positives = 0, area = 0;  // area: the part's own pairs
  };
  const auto sorted = sort_scores<KeyAndRow>(scores, crew);
  std::vector<Part> parts(sorted.n_buckets());
  crew.for_each_block(sorted.n_buckets(), [&](size_t b) {
    Part own;
    const auto negatives = sorted.negatives(b), positives = sorted.positives(b);
    for_each_distinct(negatives, positives, [&](Key, size_t i, size_t i_end, size_t j, size_t j_end) {
      const double equal = sum_of(negatives, i, i_end, weight), positive = sum_of(positives, j, j_end, weight);
      own.area += positive * (own.negatives + equal / 2);
      own.negatives += equal;
      own.positives += positive;
    });
    parts[b] = own;
  });
  Part total;
  for (const Part& own : parts) {
    total.area += own.area + own.positives * total.negatives;
    total.negatives += own.negatives;
    total.positives += own.positives;
  }
  return total.area / total.negatives / total.positives;
}

ScoreGroups score_groups(const Scores& scores, const double* weight, Crew& crew) {
  return with_sorted(scores, weight, crew, [&](const auto& sorted) {
    const size_t n_buckets = sorted.n_buckets();
    std::vector<size_t> end(n_buckets);  // buckets in descending order: where their groups end
    crew.for_each_block(n_buckets, [&](size_t b) {
      size_t n_groups = 0;
      for_each_distinct(sorted.negatives(b), sorted.positives(b), [&](auto&&...) { ++n_groups; });
      end[n_buckets - 1 - b] = n_groups;
    });
    std::inclusive_scan(end.begin(), end.end(), end.begin());
    ScoreGroups groups;
    for (auto* column : {&groups.score, &groups.positives, &groups.negatives}) column->resize(end.back());
    crew.for_each_block(n_buckets, [&](size_t b) {
      size_t place = end[n_buckets - 1 - b];
      const auto negatives = sorted.negatives(b), positives = sorted.positives(b);
      for_each_distinct(negatives, positives, [&](Key key, size_t i, size_t i_end, size_t j, size_t j_end) {
        --place;
        groups.score[place] = score_of(key);
        groups.negatives[place] = sum_of(negatives, i, i_end, weight);
        groups.positives[place] = sum_of(positives, j, j_end, weight);
      });
    });
    return groups;
  });
}

}  // namespace certifit
