"""CrossValidated against scikit-learn's grid search, refits and its own rules; on arrays, files and Dask."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certifit as cf
from certifit.selection.compare.rules import choose, simplicity

GRID = {"alpha": [1e-4, 1e-2, 1.0, 30.0]}


def rows(rng, n=150, d=5):
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) + 3
    return X, X @ rng.normal(size=d) + rng.normal(size=n)


SPLITTERS = {
    "folds": cf.Folds(5),
    "repeated": cf.Folds(3, repeats=2),
    "bootstrap": cf.Bootstrap(5),
    "KFold": KFold(4, shuffle=True, random_state=0),
    "RepeatedKFold": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "ShuffleSplit": ShuffleSplit(6, random_state=0),
    "TimeSeriesSplit": TimeSeriesSplit(4),
}


@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "neg_root_mean_squared_error"])
@pytest.mark.parametrize("cv", SPLITTERS)
@pytest.mark.slow
def test_scores_without_refits_are_those_of_a_grid_search(rng, cv, scoring):
    X, y = rows(rng)
    ours = cf.CrossValidated(cf.Ridge(), GRID, cv=SPLITTERS[cv], scoring=scoring).fit(X, y)
    search = GridSearchCV(cf.Ridge(), GRID, cv=SPLITTERS[cv], scoring=scoring, return_train_score=True).fit(X, y)
    assert ours.route_ == "statistics" and ours.best_params_ == search.best_params_
    for name in search.cv_results_:
        if name.endswith("_score"):
            assert ours.cv_results_[name] == pytest.approx(search.cv_results_[name], rel=1e-8, abs=1e-12), name
    assert ours.best_score_ == pytest.approx(search.best_score_)
    assert np.allclose(ours.predict(X), search.predict(X), rtol=1e-10)


def test_scores_need_refits_where_sums_do_not_tell(rng):
    X, y = rows(rng)
    folds = cf.Folds(4)
    ours = cf.CrossValidated(cf.Ridge(), GRID, cv=folds, scoring="neg_mean_absolute_error").fit(X, y)
    search = GridSearchCV(cf.Ridge(), GRID, cv=folds, scoring="neg_mean_absolute_error").fit(X, y)
    assert ours.route_ == "refits"
    assert np.allclose(ours.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-10)


@pytest.mark.parametrize("basis", [None, cf.Polynomial(2), cf.Functions([np.sin, np.cos])], ids=str)
@pytest.mark.parametrize("model", [cf.LinearRegression, cf.Ridge])
def test_bases_give_the_scores_of_refits(rng, model, basis):
    X, y = rng.normal(size=(80, 2)), rng.normal(size=80)
    folds = cf.Folds(4)
    ours = cf.CrossValidated(model(basis=basis), {}, cv=folds).fit(X, y)
    assert ours.best_score_ == pytest.approx(cross_val_score(model(basis=basis), X, y, cv=folds).mean(), rel=1e-8)


def test_degrees_of_a_polynomial_are_candidates(rng):
    x = rng.uniform(-1, 1, size=(200, 1))
    y = x[:, 0] ** 3 - x[:, 0] + 0.1 * rng.normal(size=200)
    grid = {"basis": [cf.Polynomial(k) for k in range(1, 8)]}
    best = cf.CrossValidated(cf.LinearRegression(), grid).fit(x, y)
    simple = cf.CrossValidated(cf.LinearRegression(), grid, rule="1se").fit(x, y)
    assert best.route_ == "statistics" and best.best_params_["basis"].degree >= 3
    assert simple.best_params_["basis"].degree == 3


def test_a_weight_of_two_is_the_row_twice_in_fit_and_score(rng):
    X, y = rows(rng, 60)
    weight = rng.integers(1, 4, size=60)
    fold = cf.Folds(3).split(X)
    pairs = list(fold)
    twice = np.repeat(np.arange(60), weight)
    places = [(np.flatnonzero(np.isin(twice, a)), np.flatnonzero(np.isin(twice, b))) for a, b in pairs]
    for scoring in (None, "neg_mean_absolute_error"):
        weighted = cf.CrossValidated(cf.Ridge(), GRID, cv=pairs, scoring=scoring).fit(X, y, weight)
        repeated = cf.CrossValidated(cf.Ridge(), GRID, cv=places, scoring=scoring).fit(X[twice], y[twice])
        for name in ("mean_test_score", "standard_error", "mean_train_score"):
            assert np.allclose(weighted.cv_results_[name], repeated.cv_results_[name], rtol=1e-9)


@pytest.mark.slow
def test_groups_and_rare_levels_of_a_frame(rng):
    frame = pd.DataFrame({"x": rng.normal(size=90), "kind": pd.Categorical(["rare", *rng.choice(["a", "b"], 89)])})
    y, groups = frame["x"] + (frame["kind"] == "b"), np.arange(90) // 9
    for model in (cf.Ridge(0.1, encoder="auto"), cf.DecisionTreeRegressor(encoder="auto", max_depth=4)):
        for table in (frame, frame.astype({"kind": object})):
            assert cf.CrossValidated(model, cv=GroupKFold(3)).fit(table, y, groups=groups).best_score_ > 0.5
        assert np.isfinite(cross_val_score(model, frame, y, cv=5, error_score="raise")).all()


def test_leave_one_out_chooses_as_ridge_cv_does(rng):
    X, y = rows(rng, 80)
    alphas = np.geomspace(1e-4, 10, 9)
    ours = cf.CrossValidated(cf.Ridge(), {"alpha": alphas}, cv="loo", scoring="neg_mean_squared_error").fit(X, y)
    errors = np.array([y[i] - Ridge(a * 79).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0]
                       for a in alphas for i in range(80)]).reshape(9, 80)  # fmt: skip
    assert ours.route_ == "leave-one-out" and ours.n_splits_ == 80
    assert np.allclose(-ours.cv_results_["mean_test_score"], (errors**2).mean(axis=1), rtol=1e-9)
    assert np.allclose(ours.cv_results_["standard_error"], (errors**2).std(axis=1) / np.sqrt(80), rtol=1e-4)
    # RidgeCV's penalty is that of all rows, not of n - 1: near, not equal
    peer = RidgeCV(alphas * 80).fit(X, y)
    assert abs(np.log10(ours.best_params_["alpha"]) - np.log10(peer.alpha_ / 80)) < 1


def test_leave_one_out_by_refits_needs_a_score_of_one_row(rng):
    X, y = rows(rng, 20, 2)
    with pytest.raises(ValueError, match="R2 of one row"):
        cf.CrossValidated(Ridge(), GRID, cv=LeaveOneOut()).fit(X, y)
    ours = cf.CrossValidated(Ridge(), GRID, cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X, y)
    search = GridSearchCV(Ridge(), GRID, cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X, y)
    assert np.allclose(ours.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-10, 10), st.floats(0, 5)), min_size=1, max_size=12),
    st.permutations(range(12)),
)
def test_one_standard_error_never_picks_a_less_penalised_model(scores, order):
    mean, error = (np.array(column) for column in zip(*scores, strict=True))
    candidates = [{"alpha": 10.0 ** order[i]} for i in range(len(mean))]
    best, simple = (choose(mean, error, candidates, rule) for rule in ("min", "1se"))
    assert candidates[simple]["alpha"] >= candidates[best]["alpha"]
    assert mean[simple] >= mean[best] - error[best]


def test_candidates_that_no_rule_orders_are_refused():
    with pytest.raises(ValueError, match="rule='min'"):
        simplicity([{"alpha": 1.0, "tol": 1e-8}, {"alpha": 2.0, "tol": 1e-6}])
    with pytest.raises(ValueError, match="kernel"):
        simplicity([{"kernel": "rbf"}, {"kernel": "linear"}])


def test_the_default_grid_brackets_the_optimum(rng):
    X, y = rows(rng, 60, 20)
    model = cf.CrossValidated(cf.Ridge()).fit(X, y)
    assert len(model.cv_results_["params"]) == 50 and 0 < model.best_index_ < 49


def table(rng, n=600):
    gap = rng.random(n) < 0.15
    x = rng.normal(size=n) * 2 + 50
    city = rng.choice(["Oslo", "Rome", "Lima"], p=[0.6, 0.38, 0.02], size=n)
    y = 0.3 * x + (city == "Rome") + rng.normal(size=n)
    return pa.table({"x": pa.array(np.where(gap, np.nan, x), from_pandas=True), "city": city, "y": y})


def test_every_engine_gives_the_same_bits(rng, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    data = table(rng)
    arrow_csv.write_csv(data, tmp_path / "t.csv")
    pq.write_table(data, tmp_path / "t.parquet", row_group_size=77)
    frame = data.to_pandas()
    sources = [
        cf.from_arrow(data, target="y"),
        cf.scan_csv(tmp_path / "t.csv", target="y"),
        cf.scan_parquet(tmp_path / "t.parquet", target="y"),
        cf.from_dask(dask.from_pandas(frame, npartitions=7), target="y"),
    ]
    results = [cf.CrossValidated(cf.Ridge(), GRID, cv=cf.Folds(4, repeats=2)).fit(source) for source in sources]
    for other in results[1:]:
        assert other.route_ == "statistics"
        for name in ("mean_test_score", "standard_error", "mean_train_score"):
            assert (other.cv_results_[name] == results[0].cv_results_[name]).all()
        assert (other.best_estimator_.coef_ == results[0].best_estimator_.coef_).all()


def test_no_mean_leaks_from_validation_rows(rng):
    data = table(rng)
    encoder = cf.TableEncoder()
    folds = cf.Folds(4)
    ours = cf.CrossValidated(cf.LinearRegression(encoder=encoder), {}, cv=folds).fit(
        data.drop_columns(["y"]), data["y"].to_numpy()
    )
    y = data["y"].to_numpy()
    fitted = cf.TableEncoder(sparse_output=False).fit(data.drop_columns(["y"]))
    x = data["x"].to_numpy(zero_copy_only=False)
    gap = np.isnan(x)
    for k, (train, test) in enumerate(folds.split(y)):
        columns = fitted.refilled([x[train][~gap[train]].mean()]).transform(data.drop_columns(["y"]))
        model = cf.LinearRegression().fit(columns[train], y[train])
        wanted = model.score(columns[test], y[test])
        assert ours.cv_results_[f"split{k}_test_score"][0] == pytest.approx(wanted, rel=1e-9)


def test_a_scan_can_be_refitted_too(rng):
    data = table(rng)
    source = cf.from_arrow(data, target="y")
    ours = cf.CrossValidated(cf.Ridge(), GRID, cv=3, scoring="neg_mean_absolute_error").fit(source)
    assert ours.route_ == "refits"
    numbers = cf.CrossValidated(
        cf.Ridge(), GRID, cv=3, scoring=make_scorer(mean_absolute_error, greater_is_better=False)
    )
    assert np.allclose(numbers.fit(source).cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"])


def test_held_out_intervals_cover_new_rows(rng):
    X, y = rows(rng, 400)
    new, truth = rows(np.random.default_rng(rng.integers(1 << 30)), 10)[0], None
    assert truth is None
    model = cf.CrossValidated(cf.Ridge(), {"alpha": [0.1]}, cv=10, intervals=True).fit(X[:300], y[:300])
    inside = model.predict_interval(X[300:], 0.8)
    share = ((y[300:] >= inside[:, 0]) & (y[300:] <= inside[:, 1])).mean()
    assert 0.65 < share < 0.95  # 100 rows: standard deviation 0.04
    narrow, wide = (model.predict_interval(new, level) for level in (0.5, 0.95))
    assert (wide[:, 0] < narrow[:, 0]).all() and (wide[:, 1] > narrow[:, 1]).all()


def test_intervals_are_their_definition(rng):
    X, y = rows(rng, 60, 3)
    folds, level, new = cf.Folds(5), 0.8, rng.normal(size=(7, 3))
    model = cf.CrossValidated(cf.Ridge(), {"alpha": [0.2]}, cv=folds, intervals=True).fit(X, y)
    low, high = [], []
    for train, test in folds.split(X):
        fitted = cf.Ridge(0.2).fit(X[train], y[train])
        size, centre = abs(y[test] - fitted.predict(X[test])), fitted.predict(new)[:, None]
        low.append(centre - size)
        high.append(centre + size)
    k = int(np.ceil(level * 61))
    wanted = [np.sort(np.hstack(low), axis=1)[:, 60 - k], np.sort(np.hstack(high), axis=1)[:, k - 1]]
    assert np.allclose(model.predict_interval(new, level), np.column_stack(wanted), rtol=1e-8)
    peer = cf.CrossValidated(Ridge(alpha=0.2 * 48), {}, cv=folds, intervals=True).fit(X, y)
    assert np.allclose(peer.predict_interval(new, level), np.column_stack(wanted), rtol=1e-6)


def test_the_winner_is_in_reach(rng):
    X, y = rows(rng)
    model = cf.CrossValidated(cf.Ridge(), GRID).fit(X, y)
    assert model.certificate_.holds and model.history_ and "minimised" in model.objective
    assert model.score(X, y) == pytest.approx(model.best_estimator_.score(X, y))
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.predict(X) == model.predict(X)).all()
    assert "p" in str(cf.CrossValidated(cf.LinearRegression()).fit(X, y).summary())


def test_other_estimators_are_refitted_in_any_number_of_processes(rng):
    X, y = rows(rng, 60)
    grid = {"ridge__alpha": [0.1, 10.0]}
    pipeline = make_pipeline(StandardScaler(), Ridge())
    one, two = (cf.CrossValidated(pipeline, grid, cv=3, n_jobs=n).fit(X, y) for n in (None, 2))
    assert (one.cv_results_["mean_test_score"] == two.cv_results_["mean_test_score"]).all()
    assert one.route_ == "refits"


@pytest.mark.parametrize(
    "options, words",
    [
        ({"rule": "best"}, "rule must be one of 'min', '1se'"),
        ({"param_grid": {"alhpa": [1]}}, "no parameter 'alhpa'"),
        ({"cv": 1}, "n_splits"),
        ({"cv": "ten"}, "cv must be"),
        ({"param_grid": {"alpha": [-1.0]}}, "alpha must be"),
        ({"cv": cf.Bootstrap(3), "intervals": True}, "every row validates once"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(rng, options, words):
    X, y = rows(rng, 30)
    with pytest.raises((ValueError, TypeError), match=words):
        cf.CrossValidated(cf.Ridge(), **({"param_grid": GRID} | options)).fit(X, y)


def test_a_bad_value_is_named_with_its_row_and_column(rng):
    X, y = rows(rng, 30)
    X[17, 2] = np.nan
    with pytest.raises(ValueError, match="row 17, column 'x2'"):
        cf.CrossValidated(cf.Ridge(), GRID).fit(X, y)


def test_intervals_that_were_not_kept_are_refused(rng):
    X, y = rows(rng, 30)
    with pytest.raises(ValueError, match="intervals=True"):
        cf.CrossValidated(cf.Ridge(), GRID).fit(X, y).predict_interval(X)


def test_one_split_tells_no_error_and_one_standard_error_is_the_best(rng):
    X, y = rows(rng, 60)
    pair = [(np.arange(40), np.arange(40, 60))]
    best, simple = (cf.CrossValidated(cf.Ridge(), GRID, cv=pair, rule=rule).fit(X, y) for rule in ("min", "1se"))
    assert simple.best_params_ == best.best_params_


def test_a_default_strength_has_no_place_in_an_order():
    with pytest.raises(ValueError, match="needs numbers"):
        simplicity([{"alpha": None}, {"alpha": 1.0}])
