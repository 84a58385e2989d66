#include "../ranks.hpp"

#include <cmath>

#include "check.hpp"

namespace certifit {
namespace {

using namespace nb::literals;
using Labels = Array<uint8_t, 1>;

Scores checked_scores(const AnyArray& scores, const Labels& labels) {
  check(scores.ndim() == 1, "scores must be a 1-D array");
  const Dtype dtype = dtype_of(scores);
  check(dtype == Dtype::f64 || dtype == Dtype::f32, "scores must be float32 or float64");
  const size_t n_rows = scores.shape(0);
  check_size("labels", labels.shape(0), n_rows);
  check(n_rows > 0, "there are no scores");
  check(n_rows < size_t{1} << 32, "ranks need fewer than 2^32 rows, got " + std::to_string(n_rows));
  const uint8_t* label = labels.data();
  uint8_t any = 0;
  size_t n_positives = 0;
  for (size_t i = 0; i < n_rows; ++i) {
    any |= label[i];
    n_positives += label[i];
  }
  check(any <= 1, "labels must be 0 or 1");
  check(n_positives > 0 && n_positives < n_rows, "ranks need rows of both classes");
  return {scores.data(), scores.stride(0), dtype == Dtype::f32, label, n_rows};
}

const double* checked_weight(const std::optional<Vector>& weight, const Scores& scores) {
  if (!weight) return nullptr;
  check_size("weight", weight->shape(0), scores.n_rows);
  double sums[2] = {0, 0};
  bool legal = true;
  for (size_t i = 0; i < scores.n_rows; ++i) {
    const double w = weight->data()[i];
    legal = legal && w >= 0;
    sums[scores.label[i]] += w;
  }
  check(legal && sums[0] < INFINITY && sums[1] < INFINITY, "weights must be >= 0, their sum finite");
  check(sums[0] > 0 && sums[1] > 0, "both classes need a positive weight");
  return weight->data();
}

template <class Work>
auto run_on_scores(int threads, Work work) {
  try {
    return run(threads, work);
  } catch (const NotANumber& nan) {
    check(false, "The score of row " + std::to_string(nan.row) + " is NaN. Remove such rows, or fill the scores.");
    throw;
  }
}

nb::tuple halves(Wide number) {
  return nb::make_tuple(static_cast<uint64_t>(number >> 64), static_cast<uint64_t>(number));
}

nb::object placement_sums_py(AnyArray scores, Labels labels, int threads) {
  const Scores checked = checked_scores(scores, labels);
  const auto sums = run_on_scores(threads, [&](Crew& crew) { return placement_sums(checked, crew); });
  return nb::make_tuple(sums.n_negatives, sums.n_positives, sums.twice, halves(sums.negative_squares),
                        halves(sums.positive_squares));
}

nb::object placements_py(AnyArray scores, Labels labels, int threads) {
  const Scores checked = checked_scores(scores, labels);
  return nb::cast(to_numpy(run_on_scores(threads, [&](Crew& crew) { return placements(checked, crew); })));
}

double weighted_auc_py(AnyArray scores, Labels labels, Vector weight, int threads) {
  const Scores checked = checked_scores(scores, labels);
  const double* weights = checked_weight(weight, checked);
  return run_on_scores(threads, [&](Crew& crew) { return weighted_auc(checked, weights, crew); });
}

nb::object score_groups_py(AnyArray scores, Labels labels, std::optional<Vector> weight, int threads) {
  const Scores checked = checked_scores(scores, labels);
  const double* weights = checked_weight(weight, checked);
  auto groups = run_on_scores(threads, [&](Crew& crew) { return score_groups(checked, weights, crew); });
  return nb::make_tuple(to_numpy(std::move(groups.score)), to_numpy(std::move(groups.positives)),
                        to_numpy(std::move(groups.negatives)));
}

nb::object bootstrap_py(AnyArray scores, Labels labels, std::optional<Vector> weight, const std::string& measure,
                        size_t n_replicates, uint64_t seed, int threads) {
  const std::map<std::string, Measure> measures = {{"auc", Measure::auc},
                                                   {"average_precision", Measure::average_precision}};
  const auto found = measures.find(measure);
  check(found != measures.end(), "unknown measure: " + measure);
  check(n_replicates < size_t{1} << 40, "a bootstrap needs fewer than 2^40 replicates");
  const Scores checked = checked_scores(scores, labels);
  const double* weights = checked_weight(weight, checked);
  auto replicates = run_on_scores(
      threads, [&](Crew& crew) { return bootstrap(checked, weights, found->second, n_replicates, seed, crew); });
  return nb::make_tuple(to_numpy(std::move(replicates.values)), replicates.redrawn);
}

}  // namespace

void bind_ranks(nb::module_& m) {
  m.def("placement_sums", placement_sums_py, "scores"_a.noconvert(), "labels"_a.noconvert(), "threads"_a);
  m.def("placements", placements_py, "scores"_a.noconvert(), "labels"_a.noconvert(), "threads"_a);
  m.def("weighted_auc", weighted_auc_py, "scores"_a.noconvert(), "labels"_a.noconvert(), "weight"_a.noconvert(),
        "threads"_a);
  m.def("score_groups", score_groups_py, "scores"_a.noconvert(), "labels"_a.noconvert(), "weight"_a.noconvert().none(),
        "threads"_a);
  m.def("bootstrap_ranking", bootstrap_py, "scores"_a.noconvert(), "labels"_a.noconvert(),
        "weight"_a.noconvert().none(), "measure"_a, "n_replicates"_a, "seed"_a, "threads"_a);
}

}  // namespace certifit
