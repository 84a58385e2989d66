"""Models of scores: the scikit-learn contract, equivariance, extreme scales, one answer on every source, the course."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import certifit as cf
from tests.models.class_places import places


def test_fits_without_an_intercept_are_certified(rng):
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(X @ [0.5, -0.3, 0.1])).astype(float)
    for alpha in (0.0, 0.1):
        model = cf.PoissonRegressor(alpha, fit_intercept=False).fit(X, y)
        assert model.certificate_.holds and model.certificate_.dependent == ()
        gradient = X.T @ (np.exp(X @ model.coef_) - y) / len(y) + alpha * model.coef_
        assert np.abs(gradient).max() < 1e-12


@pytest.mark.parametrize("model", [cf.PoissonRegressor(), cf.GLM("poisson"), cf.GLM("negative-binomial")], ids=str)
def test_counts_of_nothing_but_zero_are_refused_in_words(model, rng):
    with pytest.raises(ValueError, match="y is 0 in every row: the intercept"):
        model.fit(rng.normal(size=(20, 2)), np.zeros(20))


def test_targets_whose_squares_overflow_are_refused_in_words(rng):
    X = rng.normal(size=(40, 2))
    with pytest.raises(ValueError, match="exceeds the largest float64"):
        cf.GLM().fit(X, 1e300 * rng.normal(size=40))
    with pytest.raises(ValueError, match="sum of y times the weights exceeds the largest float64"):
        cf.GLM().fit(X, 1e150 * rng.normal(size=40), np.full(40, 1e200))


# ---- what a change of the rows must do to the fit -------------------------------------------------------------------

N = 300
DRAWN: dict[str, tuple[Any, Any]] = {
    "logistic": (lambda: cf.LogisticRegression(alpha=0.0), lambda rng, z: (rng.random(N) < 1 / (1 + np.exp(-z))) * 1),
    "ridge logistic": (cf.LogisticRegression, lambda rng, z: (rng.random(N) < 1 / (1 + np.exp(-z))) * 1),
    "poisson": (lambda: cf.PoissonRegressor(0.0), lambda rng, z: rng.poisson(np.exp(z)).astype(float)),
    "gamma": (lambda: cf.GammaRegressor(0.0), lambda rng, z: rng.gamma(2, np.exp(z) / 2)),
    "probit": (lambda: cf.GLM("bernoulli", "probit"), lambda rng, z: (rng.random(N) < 1 / (1 + np.exp(-z))) * 1.0),
    "negative binomial": (lambda: cf.GLM("negative-binomial"), lambda rng, z: rng.poisson(np.exp(z)).astype(float)),
    "inverse gaussian": (lambda: cf.GLM("inverse-gaussian"), lambda rng, z: rng.wald(np.exp(z), 3.0)),
    "tweedie": (lambda: cf.GLM("tweedie"), lambda rng, z: rng.poisson(np.exp(z)) * rng.gamma(2, 1.0, N)),
}


def drawn(name: str, rng: Any) -> tuple[Any, Any, Any]:
    model, target = DRAWN[name]
    X = rng.normal(size=(N, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]]) + [0.0, 2.0, -1.0]
    return model, X, target(rng, 0.3 * X @ [1.0, -0.5, 0.5])


def line(model: Any) -> Any:
    return np.append(np.ravel(model.coef_), np.ravel(model.intercept_))


@pytest.mark.parametrize("name", DRAWN)
def test_a_weight_counts_the_row_and_a_weight_of_zero_is_no_row(name, rng):
    make, X, y = drawn(name, rng)
    weight = rng.integers(0, 4, N)
    weighted = make().fit(X, y, sample_weight=weight.astype(float))
    again = make().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.allclose(line(weighted), line(again), rtol=1e-9, atol=1e-10)
    assert weighted.certificate_.holds and again.certificate_.holds


@pytest.mark.parametrize("name", DRAWN)
def test_the_order_of_rows_and_columns_does_not_matter(name, rng):
    make, X, y = drawn(name, rng)
    known = line(make().fit(X, y))
    rows, columns = rng.permutation(N), rng.permutation(3)
    assert np.allclose(line(make().fit(X[rows], y[rows])), known, rtol=1e-9, atol=1e-11)
    moved = line(make().fit(X[:, columns], y))
    assert np.allclose(np.append(moved[:-1], moved[-1]), np.append(known[columns], known[-1]), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("power", [-300, -100, 100, 300])
@pytest.mark.parametrize("name", [name for name in DRAWN if name != "ridge logistic"])
def test_units_of_a_column_are_units_of_its_weight(name, power, rng):
    make, X, y = drawn(name, rng)
    known = make().fit(X, y)
    unit = np.array([1.0, 10.0**power, 1.0])
    moved = make().fit(X * unit, y)
    assert moved.certificate_.holds
    assert np.allclose(np.ravel(moved.coef_) * unit, np.ravel(known.coef_), rtol=1e-8, atol=0)
    assert np.allclose(moved.intercept_, known.intercept_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", DRAWN)
def test_an_offset_is_added_to_the_score(name, rng):
    make, X, y = drawn(name, rng)
    offset = rng.normal(size=N) * 0.2
    known = make().fit(X, y, offset=offset)
    with_column = make().fit(X, y, offset=offset + 0.7)  # a constant goes to the intercept
    assert np.allclose(np.ravel(with_column.coef_), np.ravel(known.coef_), rtol=1e-8, atol=1e-10)
    assert np.allclose(np.ravel(with_column.intercept_) + 0.7, np.ravel(known.intercept_), rtol=1e-8, atol=1e-10)


def test_with_an_exposure_the_target_stays_a_count(rng):
    X = rng.normal(size=(N, 2))
    exposure = rng.uniform(0.1, 3.0, N)
    y = rng.poisson(exposure * np.exp(0.3 * X[:, 0])).astype(float)
    model = cf.GLM("poisson").fit(X, y, exposure=exposure)
    assert model.data_["target_mean"] == pytest.approx(y.mean(), rel=1e-14)
    gradient = np.column_stack([X, np.ones(N)]).T @ (model.predict(X, exposure=exposure) - y)
    assert np.abs(gradient).max() < 1e-9 * N
    assert np.allclose(model.predict(X) * exposure, model.predict(X, exposure=exposure), rtol=1e-13)
    rates = cf.GLM("poisson").fit(X, y / exposure, sample_weight=exposure)  # the same likelihood
    assert np.allclose(line(rates), line(model), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["logistic", "poisson", "probit", "negative binomial"])
def test_constant_and_repeated_columns_are_named(name, rng):
    make, X, y = drawn(name, rng)
    known = make().fit(X, y)
    wide = np.column_stack([X, X[:, 1], np.full(N, 5.0)])
    model = make().fit(wide, y)
    assert model.certificate_.dependent == ("x3 = x1", "x4 = 5")
    if hasattr(model, "predict_proba"):
        assert np.allclose(model.predict_proba(wide), known.predict_proba(X), rtol=1e-8)
    else:
        assert np.allclose(model.predict(wide), known.predict(X), rtol=1e-8)
    coef = np.ravel(model.coef_)
    assert coef[1] == pytest.approx(coef[3], rel=1e-9) and abs(coef[4]) < 1e-12  # the weights of smallest norm


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.slow
def test_every_place_of_the_rows_gives_the_same_bits(name, rng, tmp_path):
    make, X, y = drawn(name, rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    known = make().fit(frame[["a", "b", "c"]], frame["y"])
    for place, source in places(frame, "y", tmp_path):
        model = make().fit(source)
        assert np.array_equal(line(model), line(known)), place
        assert model.certificate_ == known.certificate_, place
        if known.inference_ is not None:
            for one in ("inverse", "deviance", "null_deviance", "pearson", "saturated"):
                pair = (getattr(model.inference_, one), getattr(known.inference_, one))
                assert np.array_equal(*pair, equal_nan=True), (place, one)


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "ridge logistic"])
@pytest.mark.slow
def test_a_state_beside_the_best_one_is_never_certified_below_its_excess(name, rng):
    make, X, y = drawn(name, rng)
    model = make().fit(X, y)
    best, target = line(model), np.asarray(y, dtype=float)

    def objective(state: Any) -> float:
        return float(np.mean(model._loss().value(target, X @ state[:-1] + state[-1])))

    least = objective(best)
    for size in np.geomspace(1e-6, 0.3, 40):
        state = best + size * rng.normal(size=4)
        model.coef_, model.intercept_ = state[:-1].reshape(model.coef_.shape), state[-1] + 0 * model.intercept_
        found = model.certify(X, y)
        true = (objective(state) - least) / objective(state)
        assert not found.holds or true <= found.tolerance
        if not found.is_local and not found.fault:
            assert found.value >= true * (1 - 1e-6) - 1e-14


# ---- the course -----------------------------------------------------------------------------------------------------


def test_the_boundary_of_the_course_is_where_the_score_is_zero(rng):
    X = rng.uniform(-3, 6, size=(4000, 2))
    y = rng.random(4000) < 1 / (1 + np.exp(-(X.sum(axis=1) - 3)))
    model = cf.LogisticRegression(alpha=0).fit(X, y)
    model.coef_, model.intercept_ = np.array([[1.0, 1.0]]), np.array([-3.0])
    line_points = np.column_stack([np.linspace(-2, 5, 9), 3 - np.linspace(-2, 5, 9)])
    assert np.allclose(model.decision_function(line_points), 0, atol=1e-12)
    assert np.allclose(model.predict_proba(line_points), 0.5)
    assert (model.predict(X) == (X.sum(axis=1) > 3)).all()
    fitted = cf.LogisticRegression(alpha=0).fit(X, y)
    assert np.allclose([*fitted.coef_[0], *fitted.intercept_], [1.0, 1.0, -3.0], rtol=0, atol=0.3)


def test_squares_of_the_features_make_the_unit_circle(rng):
    X = rng.uniform(-2, 2, size=(4000, 2))
    score = np.square(X).sum(axis=1) - 1
    y = rng.random(4000) < 1 / (1 + np.exp(-3 * score))
    basis = cf.Functions([lambda X: X[:, 0], lambda X: X[:, 1], lambda X: X[:, 0] ** 2, lambda X: X[:, 1] ** 2])
    model = cf.LogisticRegression(alpha=0, basis=basis).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    assert np.allclose(w / -b, [0, 0, 1, 1], rtol=0, atol=0.1)  # theta in proportion to (-1, 0, 0, 1, 1)
    polynomial = cf.LogisticRegression(alpha=0, basis=cf.Polynomial(2)).fit(X, y)
    angle = np.linspace(0, 2 * np.pi, 30)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    assert np.abs(polynomial.decision_function(circle)).max() < 0.6
    assert (polynomial.predict(1.5 * circle) == 1).all() and (polynomial.predict(0.5 * circle) == 0).all()


def test_a_far_outlier_moves_the_boundary_of_least_squares_and_not_of_logistic_regression(rng):
    x = np.concatenate([rng.normal(-1, 1.0, 200), rng.normal(1, 1.0, 200)])
    y = np.repeat([0.0, 1.0], 200)

    def boundaries(x: Any, y: Any) -> tuple[float, float]:
        squares = cf.LinearRegression().fit(x[:, None], y)
        logistic = cf.LogisticRegression(alpha=0).fit(x[:, None], y)
        return (0.5 - squares.intercept_) / squares.coef_[0], -logistic.intercept_[0] / logistic.coef_[0, 0]

    before, after = boundaries(x, y), boundaries(np.append(x, 1000.0), np.append(y, 1.0))
    assert abs(after[0] - before[0]) > 10 * abs(after[1] - before[1])
    assert abs(after[1] - before[1]) < 0.01
    assert abs(after[0] - before[0]) > 0.5


# ---- a loss of the user's own ---------------------------------------------------------------------------------------


def test_a_loss_of_the_users_own_fits_as_the_built_in_one(rng):
    _, X, y = drawn("poisson", rng)
    own = cf.Loss(lambda y, z: np.exp(z) - y * z, lambda y, z: np.exp(z) - y, lambda y, z: np.exp(z), np.exp, "counts")
    for curvature in (own, cf.Loss(lambda y, z: np.exp(z) - y * z, lambda y, z: np.exp(z) - y, mean=np.exp)):
        model = cf.GLM(curvature).fit(X, y)
        known = cf.GLM("poisson").fit(X, y)
        assert np.allclose(line(model), line(known), rtol=1e-6, atol=1e-8)
        assert np.allclose(model.predict(X), known.predict(X), rtol=1e-6)
        with pytest.raises(ValueError, match="has no likelihood"):
            model.summary()
    penalised = cf.GLM(own, alpha=0.1).fit(X, y)
    assert np.allclose(line(penalised), line(cf.PoissonRegressor(0.1).fit(X, y)), rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="takes no link"):
        cf.GLM(own, "log").fit(X, y)
    with pytest.raises(ValueError, match="not the derivative of value"):
        cf.GLM(cf.Loss(lambda y, z: (z - y) ** 2, lambda y, z: z - y)).fit(X, y)


@pytest.mark.parametrize(
    "model", [cf.PoissonRegressor(0.1), cf.GammaRegressor(0.1)], ids=lambda model: type(model).__name__
)
def test_the_objective_that_is_printed_is_the_one_that_the_bound_is_relative_to(model):
    """Half the mean deviance with all its terms: at least 0, and the number of history_."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = rng.poisson(np.exp(X[:, 0])).astype(float) if "Poisson" in str(model) else rng.gamma(2.0, np.exp(X[:, 0]))
    fitted = clone(model).fit(X, y)
    z, w = X @ fitted.coef_ + fitted.intercept_, fitted.coef_
    logs = np.log(np.where(y > 0, y, 1.0))
    printed, terms = {
        "PoissonRegressor": ("[ e^z_i - y_i z_i + y_i log y_i - y_i ]", np.exp(z) - y * z + y * logs - y),
        "GammaRegressor": ("[ y_i e^-z_i + z_i - log y_i - 1 ]", y * np.exp(-z) + z - logs - 1),
    }[type(model).__name__]
    assert printed in fitted.objective
    assert fitted.history_[-1]["objective"] == pytest.approx(terms.mean() + 0.1 * (w @ w) / 2, rel=1e-9)
