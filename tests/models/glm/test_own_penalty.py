"""Penalties of the user's own: against closed forms and models of the library, bounds, refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import certifit as cf

GROUPS = ([0, 1], [2, 3, 4])


def _soft(v: Any, t: float) -> Any:
    return np.sign(v) * np.maximum(np.abs(v) - t, 0)


def _group_prox(v: Any, t: float) -> Any:
    out = np.zeros_like(v)
    for group in GROUPS:
        length = np.linalg.norm(v[group])
        out[group] = v[group] * max(1 - t / length, 0) if length > 0 else 0.0
    return out


SQUARE = {"value": lambda w: w @ w / 2, "conjugate": lambda q: q @ q / 2}
PENALTIES: dict[str, cf.Penalty] = {
    "square by prox": cf.Penalty(**SQUARE, prox=lambda v, t: v / (1 + t)),
    "square by gradient": cf.Penalty(**SQUARE, gradient=lambda w: w),
    "L1": cf.Penalty(
        lambda w: np.abs(w).sum(), _soft, conjugate=lambda q: 0.0 if np.abs(q).max() <= 1 else np.inf, name="L1"
    ),
    "groups": cf.Penalty(
        lambda w: sum(np.linalg.norm(w[group]) for group in GROUPS),
        _group_prox,
        conjugate=lambda q: 0.0 if max(np.linalg.norm(q[group]) for group in GROUPS) <= 1 else np.inf,
    ),
}
FAMILIES = {"gaussian": 0.1, "poisson": 0.05, "bernoulli": 0.02}


def _rows(family: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 5)) * [1.0, 2.0, 0.5, 1.0, 3.0] + [0.0, 5.0, 1.0, -2.0, 0.0]
    z = 0.4 * (X - X.mean(axis=0)) @ [1.0, 0.5, -0.3, 0.0, 0.05]
    targets = {
        "gaussian": z + rng.normal(size=200),
        "poisson": rng.poisson(np.exp(z)),
        "bernoulli": (z + rng.logistic(size=200) > 0),
    }
    return X, targets[family].astype(float)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["square by prox", "square by gradient", "L1"])
def test_the_penalties_of_the_library_written_by_hand_give_its_models(name: str, family: str) -> None:
    X, y = _rows(family)
    alpha = FAMILIES[family]
    own = cf.GLM(family, alpha=alpha, penalty=PENALTIES[name]).fit(X, y)
    known = cf.GLM(family, alpha=alpha, l1_ratio=float(name == "L1")).fit(X, y)
    np.testing.assert_allclose(own.coef_, known.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(own.intercept_, known.intercept_, rtol=1e-7)
    assert own.certificate_.holds and not own.certificate_.is_local and own.alpha_ == alpha
    assert own.history_[-1]["objective"] <= own.history_[0]["objective"]


def test_least_squares_with_a_square_has_its_closed_form() -> None:
    X, y = _rows("gaussian")
    centred = X - X.mean(axis=0)
    w = np.linalg.solve(centred.T @ centred / 200 + 0.1 * np.eye(5), centred.T @ (y - y.mean()) / 200)
    for name in ("square by prox", "square by gradient"):
        model = cf.GLM(alpha=0.1, penalty=PENALTIES[name]).fit(X, y)
        np.testing.assert_allclose(model.coef_, w, rtol=1e-9)


def test_a_norm_of_groups_meets_the_conditions_of_its_minimum() -> None:
    """With r the mean residual slopes: |X_g'r| <= alpha where a group is 0, X_g'r = alpha w_g / |w_g| elsewhere."""
    X, y = _rows("gaussian")
    for alpha in (0.02, 0.3):
        model = cf.GLM(alpha=alpha, penalty=PENALTIES["groups"]).fit(X, y)
        slopes = X.T @ (y - X @ model.coef_ - model.intercept_) / len(y)
        for group in GROUPS:
            w = model.coef_[group]
            if w.any():
                np.testing.assert_allclose(slopes[group], alpha * w / np.linalg.norm(w), atol=1e-9)
            else:
                assert np.linalg.norm(slopes[group]) <= alpha * (1 + 1e-12)
        assert model.certificate_.holds and "conjugate" in model.certificate_.theorem
    assert not model.coef_[2:].any() and model.coef_[:2].all()  # the stronger one leaves a group out as a whole


def test_orthogonal_columns_are_shrunk_by_the_prox_itself() -> None:
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 5)))
    X, y = Q * np.sqrt(50), np.random.default_rng(1).normal(size=50)
    for name in ("L1", "groups"):
        penalty = PENALTIES[name]
        model = cf.GLM(alpha=0.1, penalty=penalty, fit_intercept=False).fit(X, y)
        np.testing.assert_allclose(model.coef_, penalty.prox(X.T @ y / 50, 0.1), atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.slow
def test_the_gap_is_above_the_excess_of_every_state_and_refuses_nudges(name: str, family: str) -> None:
    X, y = _rows(family)
    model = cf.GLM(family, alpha=FAMILIES[family], penalty=PENALTIES[name]).fit(X, y)
    best, rng = _objective(model, X, y), np.random.default_rng(0)
    for size in (1e-6, 1e-4, 1e-2, 1.0):
        moved = clone(model)
        moved.__dict__.update(vars(model))
        moved.coef_ = model.coef_ + size * rng.normal(size=5)
        excess = (_objective(moved, X, y) - best) / _objective(moved, X, y)
        certificate = moved.certify(X, y)
        assert excess <= certificate.value * (1 + 1e-9) + 1e-13
        assert not cf.verify(moved, X, y) or excess < 1e-11


def _objective(model: cf.GLM, X: Any, y: Any) -> float:
    z = X @ model.coef_ + model.intercept_
    return float(model._loss().value(y, z).mean() + model.alpha_ * model.penalty.value(model.coef_))


@pytest.mark.parametrize("name", PENALTIES)
def test_without_a_conjugate_it_is_an_estimate_and_says_so(name: str) -> None:
    X, y = _rows("poisson")
    whole = PENALTIES[name]
    bare = cf.Penalty(whole._value, whole._prox, whole._gradient)
    model = cf.GLM("poisson", alpha=0.05, penalty=bare).fit(X, y)
    assert model.certificate_.holds and model.certificate_.is_local
    assert "an estimate, no proof" in str(model.certificate_)
    model.coef_ = model.coef_ + 1e-2
    assert not model.certify(X, y).holds and not cf.verify(model, X, y)


def test_every_solver_of_gradients_takes_a_smooth_penalty_from_a_start() -> None:
    X, y = _rows("poisson")
    best = cf.GLM("poisson", alpha=0.5, penalty=PENALTIES["square by gradient"]).fit(X, y)
    start = np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.5])
    for solver in ("lbfgs", "bfgs", "conjugate-gradient", "gradient-descent"):
        model = clone(best).set_params(solver=solver, start=start, max_iter=20_000).fit(X, y)
        np.testing.assert_allclose(model.coef_, best.coef_, atol=1e-5)
        began = clone(best)
        began.coef_, began.intercept_, began.alpha_ = start[:-1], start[-1], 0.5
        np.testing.assert_allclose(model.history_[0]["objective"], _objective(began, X, y))


def test_time_and_folds() -> None:
    X, y = _rows("poisson")
    model = cf.GLM("poisson", alpha=0.05, penalty=PENALTIES["groups"])
    with pytest.warns(ConvergenceWarning, match="max_time"):
        stopped = clone(model).set_params(max_time=1e-9).fit(X, y)
    assert len(stopped.history_) == 2 and not stopped.certificate_.holds
    chosen = cf.CrossValidated(model, {"alpha": [0.01, 1.0]}, cv=3).fit(X, y)
    assert set(chosen.best_params_) == {"alpha"}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "gradient": ({"value": lambda w: w @ w, "gradient": lambda w: w}, "gradient of the penalty is not the derivative"),
    "prox": ({"value": lambda w: w @ w / 2, "prox": lambda v, t: v / (1 + 2 * t)}, "prox of the penalty is no minimis"),
    "conjugate": (
        {"value": lambda w: w @ w / 2, "prox": lambda v, t: v / (1 + t), "conjugate": lambda q: q @ q / 4},
        "conjugate of the penalty is not sup",
    ),
    "number": ({"value": lambda w: w, "gradient": lambda w: w}, "must be a number"),
    "infinite": ({"value": lambda w: np.inf, "gradient": lambda w: w}, "must be finite for all weights"),
    "shape": ({"value": lambda w: w @ w / 2, "gradient": lambda w: w[:1]}, "5 finite numbers, one per weight"),
}


@pytest.mark.parametrize("name", WRONG)
def test_functions_that_are_not_what_they_say_are_refused(name: str) -> None:
    functions, sentence = WRONG[name]
    with pytest.raises(ValueError, match=sentence):
        cf.GLM(alpha=1.0, penalty=cf.Penalty(**functions)).fit(*_rows("gaussian"))


def test_a_dent_is_no_proof() -> None:
    """Smooth and not convex: sum of w^2 / (1 + w^2)."""
    dented = cf.Penalty(lambda w: (w**2 / (1 + w**2)).sum(), gradient=lambda w: 2 * w / (1 + w**2) ** 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = cf.GLM(alpha=0.1, penalty=dented).fit(*_rows("gaussian"))
    assert not model.certificate_.holds and "not convex" in str(model.certificate_)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"alpha": 0.0}, "needs its strength: alpha > 0"),
        ({"l1_ratio": 0.5}, "takes the place of l1_ratio"),
        ({"bounds": (0, None)}, "takes the place of bounds"),
        ({"standardize": True}, "takes the place of standardize"),
        ({"solver": "newton"}, "only solver='auto'"),
        ({"penalty": PENALTIES["square by gradient"], "solver": "newton"}, "needs a Hessian"),
        ({"penalty": PENALTIES["square by gradient"], "solver": cf.SGD()}, "rows"),
        ({"penalty": "l1"}, "cf.Penalty"),
    ],
)
def test_what_does_not_go_with_it_is_refused(params: dict[str, Any], sentence: str) -> None:
    model = cf.GLM(alpha=1.0, penalty=PENALTIES["L1"]).set_params(**params)
    with pytest.raises((TypeError, ValueError), match=sentence):
        model.fit(*_rows("gaussian"))


def test_no_file_no_exact_proof_no_table(tmp_path: Any) -> None:
    model = cf.GLM(alpha=0.1, penalty=PENALTIES["L1"]).fit(*_rows("gaussian"))
    with pytest.raises(ValueError, match="a penalty of your own: code, which a model file never stores"):
        cf.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="alpha"):
        model.summary()
    with pytest.raises(ValueError, match="no path"):
        model.path(*_rows("gaussian"), alphas=[1.0])
    assert "C(w), C the penalty 'L1'" in model.objective
    with pytest.raises(TypeError, match=r"penalty=cf.Penalty"):
        cf.Ridge(penalty=PENALTIES["L1"])  # type: ignore[call-arg]
    pytest.importorskip("flint")
    with pytest.raises(ValueError, match="no exact certificate with the penalty 'L1'"):
        cf.verify(model, *_rows("gaussian"), exact=True)
