#include "../working_set.hpp"

#include "../weighted_descent.hpp"
#include "../working_set/sparse_sums.hpp"
#include "rows.hpp"

namespace certifit {
namespace {

using namespace nb::literals;

// X by columns: ("dense", array) with contiguous columns, or ("csc", values, indices, offsets, n_rows).
class HeldColumns {
 public:
  ColumnData data;

  explicit HeldColumns(const nb::tuple& parts) {
    const std::string kind = parts.size() ? nb::cast<std::string>(parts[0]) : "";
    check((kind == "dense" && parts.size() == 2) || (kind == "csc" && parts.size() == 5),
          "columns must be ('dense', array) or ('csc', values, indices, offsets, n_rows)");
    kind == "dense" ? dense(parts) : csc(parts);
    check(data.n_rows > 0 && data.n_columns > 0, "columns must have at least one row and one column");
  }

 private:
  AnyArray hold(nb::handle object, size_t n_dimensions) {
    held_.push_back(nb::cast<AnyArray>(object, false));
    const AnyArray& array = held_.back();
    check(array.ndim() == n_dimensions, "columns have an array of the wrong number of dimensions");
    check(n_dimensions == 1 || array.shape(0) * array.shape(1) > 0,
          "columns must have at least one row and one column");
    check(array.shape(0) < 2 || array.stride(0) == 1, "columns must be contiguous (Fortran order)");
    return array;
  }

  void dense(const nb::tuple& parts) {
    const AnyArray array = hold(parts[1], 2);
    check(dtype_of(array) == Dtype::f64, "columns must be float64");
    data.n_rows = array.shape(0);
    data.n_columns = array.shape(1);
    data.values = static_cast<const double*>(array.data());
    check(data.n_columns < 2 || array.stride(1) >= static_cast<int64_t>(data.n_rows),
          "columns must be contiguous (Fortran order)");
    data.column_stride = data.n_columns < 2 ? data.n_rows : static_cast<size_t>(array.stride(1));
  }

  void csc(const nb::tuple& parts) {
    const AnyArray values = hold(parts[1], 1), indices = hold(parts[2], 1), offsets = hold(parts[3], 1);
    check(dtype_of(values) == Dtype::f64, "columns must be float64");
    const Dtype index = dtype_of(indices);
    check(index == dtype_of(offsets) && (index == Dtype::i32 || index == Dtype::i64),
          "CSC indices and offsets must both be int32 or both int64");
    check_size("CSC indices", indices.shape(0), values.shape(0));
    check(offsets.shape(0) >= 1, "CSC offsets are empty");
    data.n_rows = nb::cast<size_t>(parts[4]);
    data.n_columns = offsets.shape(0) - 1;
    data.values = static_cast<const double*>(values.data());
    for (size_t j = 0; j <= data.n_columns; ++j) data.offsets.push_back(offset(offsets, j));
    bool within = data.offsets.front() >= 0 && data.offsets.back() <= static_cast<int64_t>(values.shape(0));
    for (size_t j = 0; j < data.n_columns; ++j) within = within && data.offsets[j] <= data.offsets[j + 1];
    check(within, "CSC offsets decrease or point beyond the values");
    if (index == Dtype::i32)
      data.narrow = static_cast<const int32_t*>(indices.data());
    else
      data.wide = static_cast<const int64_t*>(indices.data());
  }

  static int64_t offset(const AnyArray& offsets, size_t j) {
    if (dtype_of(offsets) == Dtype::i32) return static_cast<const int32_t*>(offsets.data())[j];
    return static_cast<const int64_t*>(offsets.data())[j];
  }

  std::vector<AnyArray> held_;
};

struct Arguments {
  HeldColumns columns;
  Vector y;
  std::optional<Vector> weight, factor, lower, upper;
  WideProblem problem;

  Arguments(const nb::tuple& x, Vector y_, std::optional<Vector> weight_, bool fit_intercept, double ratio,
            std::optional<Vector> factor_, std::optional<Vector> lower_, std::optional<Vector> upper_)
      : columns(x), y(y_), weight(weight_), factor(factor_), lower(lower_), upper(upper_) {
    const size_t n = columns.data.n_rows, d = columns.data.n_columns;
    auto entries = [](const char* name, const std::optional<Vector>& v, size_t size, auto is_legal, const char* legal) {
      if (!v) return;
      check_size(name, v->shape(0), size);
      for (size_t i = 0; i < size; ++i)
        if (!is_legal(v->data()[i]))
          check(false, std::string(name) + " must be " + legal + ". Entry " + std::to_string(i) + " is " +
                           std::to_string(v->data()[i]) + ".");
    };
    auto is_size = [](double v) { return v >= 0 && std::isfinite(v); };
    entries("y", y, n, [](double v) { return std::fabs(v) <= 1e300; }, "finite and within 1e300");
    entries("weight", weight, n, is_size, "finite and >= 0");
    entries("factor", factor, d, is_size, "finite and >= 0");
    entries("lower", lower, d, [](double v) { return v <= 0; }, "<= 0");
    entries("upper", upper, d, [](double v) { return v >= 0; }, ">= 0");
    check(ratio > 0 && ratio <= 1, "ratio must be in (0, 1]. Got " + std::to_string(ratio) +
                                       ". Without an l1 part no weight is zero: use ridge regression.");
    problem = {columns.data,   y.data(),       data_of(weight), data_of(factor),
               data_of(lower), data_of(upper), ratio,           fit_intercept};
  }
};

template <class T>
nb::object array_of(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const size_t shape[1] = {kept->size()};
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), 1, shape, owner));
}

template <class T, class Of>
nb::object each(const std::vector<WideSolution>& solutions, Of of) {
  std::vector<T> out;
  for (const WideSolution& s : solutions) out.push_back(of(s));
  return array_of(std::move(out));
}

constexpr const char* status_names[] = {"converged", "max_iter", "rounding"};

nb::dict to_dict(const std::vector<WideSolution>& solutions) {
  std::vector<int64_t> offsets = {0}, columns;
  std::vector<double> weights;
  nb::list status;
  for (const WideSolution& s : solutions) {
    columns.insert(columns.end(), s.columns.begin(), s.columns.end());
    weights.insert(weights.end(), s.weights.begin(), s.weights.end());
    offsets.push_back(static_cast<int64_t>(columns.size()));
    status.append(status_names[static_cast<size_t>(s.status)]);
  }
  nb::dict out;
  out["offsets"] = array_of(std::move(offsets));
  out["columns"] = array_of(std::move(columns));
  out["weights"] = array_of(std::move(weights));
  out["intercepts"] = each<double>(solutions, [](const WideSolution& s) { return s.intercept; });
  out["objectives"] = each<double>(solutions, [](const WideSolution& s) { return s.objective; });
  out["gaps"] = each<double>(solutions, [](const WideSolution& s) { return s.gap; });
  out["relative_gaps"] = each<double>(solutions, [](const WideSolution& s) { return s.relative_gap; });
  out["iterations"] = each<int64_t>(solutions, [](const WideSolution& s) { return static_cast<int64_t>(s.sweeps); });
  out["columns_read"] =
      each<int64_t>(solutions, [](const WideSolution& s) { return static_cast<int64_t>(s.columns_read); });
  out["status"] = status;
  return out;
}

nb::dict path_py(nb::tuple x, Vector y, std::optional<Vector> weight, bool fit_intercept, Vector alphas, double ratio,
                 std::optional<Vector> factor, std::optional<Vector> lower, std::optional<Vector> upper, double tol,
                 size_t max_iter, int threads) {
  Arguments given(x, y, weight, fit_intercept, ratio, factor, lower, upper);
  const std::vector<double> values(alphas.data(), alphas.data() + alphas.shape(0));
  for (double alpha : values)
    check(alpha > 0 && std::isfinite(alpha), "alphas must be finite and > 0. Got " + std::to_string(alpha) + ".");
  check(tol > 0, "tol must be > 0. Got " + std::to_string(tol) + ".");
  return to_dict(run(threads, [&](Crew& crew) { return wide_lasso_path(given.problem, values, tol, max_iter, crew); }));
}

double alpha_max_py(nb::tuple x, Vector y, std::optional<Vector> weight, bool fit_intercept, double ratio,
                    std::optional<Vector> factor, std::optional<Vector> lower, std::optional<Vector> upper,
                    int threads) {
  Arguments given(x, y, weight, fit_intercept, ratio, factor, lower, upper);
  return run(threads, [&](Crew& crew) { return wide_alpha_max(given.problem, crew); });
}

using Places = Array<int64_t, 1>;

nb::tuple gap_py(nb::tuple x, Vector y, std::optional<Vector> weight, bool fit_intercept, double alpha, double ratio,
                 std::optional<Vector> factor, std::optional<Vector> lower, std::optional<Vector> upper, Places columns,
                 Vector weights, double intercept, int threads) {
  Arguments given(x, y, weight, fit_intercept, ratio, factor, lower, upper);
  check(alpha > 0 && std::isfinite(alpha), "alpha must be finite and > 0. Got " + std::to_string(alpha) + ".");
  check_size("weights", weights.shape(0), columns.shape(0));
  const std::vector<int64_t> places(columns.data(), columns.data() + columns.shape(0));
  for (size_t k = 0; k < places.size(); ++k)
    check(places[k] >= (k ? places[k - 1] + 1 : 0) && places[k] < static_cast<int64_t>(given.problem.x.n_columns),
          "columns must increase and be columns of X");
  const std::vector<double> values(weights.data(), weights.data() + weights.shape(0));
  const WideSolution s =
      run(threads, [&](Crew& crew) { return wide_lasso_gap(given.problem, alpha, places, values, intercept, crew); });
  return nb::make_tuple(s.objective, s.gap, s.relative_gap);
}

nb::tuple column_sums_py(nb::tuple columns, Vector weight, int threads) {
  const HeldColumns held(columns);
  check(held.data.is_sparse(), "columns must be CSC");
  check_size("weight", weight.shape(0), held.data.n_rows);
  ColumnSums sums = run(threads, [&](Crew& crew) { return column_sums(held.data, weight.data(), crew); });
  return nb::make_tuple(to_numpy(std::move(sums.sizes)), to_numpy(std::move(sums.sums)),
                        to_numpy(std::move(sums.squares)));
}

nb::tuple column_residual_py(nb::tuple columns, Vector y, std::optional<Vector> weight, double scale, double y_scale,
                             double weight_scale, Vector weights, double intercept, int threads) {
  const HeldColumns held(columns);
  check(held.data.is_sparse(), "columns must be CSC");
  check_size("y", y.shape(0), held.data.n_rows);
  if (weight) check_size("weight", weight->shape(0), held.data.n_rows);
  check_size("weights", weights.shape(0), held.data.n_columns);
  const ColumnTarget target{y.data(), data_of(weight), y_scale, weight_scale};
  ResidualSums sums = run(
      threads, [&](Crew& crew) { return column_residual(held.data, scale, target, weights.data(), intercept, crew); });
  return nb::make_tuple(to_numpy(std::move(sums.gradient_hi)), to_numpy(std::move(sums.gradient_lo)), sums.squares_hi,
                        sums.squares_lo, sums.magnitude);
}

nb::object weighted_step_py(nb::tuple columns, Vector curvatures, Vector slopes, Vector weights, Vector l1, Vector l2,
                            Vector lower, Vector upper, Vector units, bool fit_intercept, double tol, size_t max_sweeps,
                            int threads) {
  const HeldColumns held(columns);
  const size_t d = held.data.n_columns;
  check(held.data.is_sparse() && held.data.narrow, "columns must be CSC with int32 indices");
  check_size("curvatures", curvatures.shape(0), held.data.n_rows);
  check_size("slopes", slopes.shape(0), d + 1);
  for (const Vector* part : {&weights, &l1, &l2, &lower, &upper, &units})
    check_size("weights, penalties and units", part->shape(0), d);
  for (int64_t k = held.data.offsets.front(); k < held.data.offsets.back(); ++k)
    check(held.data.narrow[k] >= 0 && static_cast<size_t>(held.data.narrow[k]) < held.data.n_rows,
          "CSC indices must be rows");
  std::vector<Penalty> penalty(d);
  for (size_t j = 0; j < d; ++j) {
    penalty[j] = {l1.data()[j], l2.data()[j], lower.data()[j], upper.data()[j]};
    check(penalty[j].l1 >= 0 && penalty[j].l2 >= 0 && units.data()[j] > 0, "l1 and l2 must be >= 0, units > 0");
    check(penalty[j].lower <= weights.data()[j] && weights.data()[j] <= penalty[j].upper,
          "weights must lie within their bounds");
  }
  WeightedStep out = run(threads, [&](Crew& crew) {
    return weighted_lasso_step(held.data, curvatures.data(), slopes.data(), weights.data(), penalty, units.data(),
                               fit_intercept, tol, max_sweeps, crew);
  });
  return nb::make_tuple(to_numpy(std::move(out.weights)), out.intercept, out.sweeps);
}

}  // namespace

void bind_working_set(nb::module_& m) {
  m.def("wide_lasso_path", path_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "fit_intercept"_a,
        "alphas"_a.noconvert(), "ratio"_a, "factor"_a.noconvert().none(), "lower"_a.noconvert().none(),
        "upper"_a.noconvert().none(), "tol"_a, "max_iter"_a, "threads"_a);
  m.def("wide_alpha_max", alpha_max_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "fit_intercept"_a,
        "ratio"_a, "factor"_a.noconvert().none(), "lower"_a.noconvert().none(), "upper"_a.noconvert().none(),
        "threads"_a);
  m.def("wide_lasso_gap", gap_py, "x"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "fit_intercept"_a, "alpha"_a,
        "ratio"_a, "factor"_a.noconvert().none(), "lower"_a.noconvert().none(), "upper"_a.noconvert().none(),
        "columns"_a.noconvert(), "weights"_a.noconvert(), "intercept"_a, "threads"_a);
  m.def("column_sums", column_sums_py, "columns"_a, "weight"_a.noconvert(), "threads"_a);
  m.def("column_residual", column_residual_py, "columns"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "scale"_a,
        "y_scale"_a, "weight_scale"_a, "weights"_a.noconvert(), "intercept"_a, "threads"_a);
  m.def("weighted_lasso_step", weighted_step_py, "columns"_a, "curvatures"_a.noconvert(), "slopes"_a.noconvert(),
        "weights"_a.noconvert(), "l1"_a.noconvert(), "l2"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(),
        "units"_a.noconvert(), "fit_intercept"_a, "tol"_a, "max_sweeps"_a, "threads"_a);
}

}  // namespace certifit
