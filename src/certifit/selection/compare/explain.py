"""Three questions after a fit: is the class rich enough, is the optimum reached, does it generalise?

One split answers the first and the last: the model is fitted again to the training rows, beside a poorer class, a
richer one where the model has a basis, and a boosted reference, and all are tested on the rows held out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import fill

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.user_input import UserRows, UserTarget, n_samples, taken
from certifit.evaluation.metrics.intervals import Estimate, bootstrap_interval, share
from certifit.maps import Polynomial
from certifit.models.adapter import learner_of
from certifit.models.boosting.model import GradientBoostingClassifier, GradientBoostingRegressor
from certifit.selection.folds.splits import HoldOut

FEWEST_ROWS = 20
ROUNDS = 100
LEVEL = 0.95
_WIDTH = 110


@dataclass(frozen=True)
class Explanation:
    """Three answers in sentences, and their numbers.

    errors : held-out error of every class by name: "model", "constant", "reference", and "richer" where there is one
    differences : each other class's error minus the model's, with an interval over the same rows
    training_error : of the model fitted to the training rows, on them
    n_training, n_held_out : rows of each part
    """

    approximation: str
    optimisation: str
    generalisation: str
    errors: dict[str, Estimate]
    differences: dict[str, Estimate]
    training_error: float
    n_training: int
    n_held_out: int

    def __str__(self) -> str:
        parts = (self.approximation, self.optimisation, self.generalisation)
        return "\n\n".join(fill(part, _WIDTH, break_on_hyphens=False) for part in parts)


def explain(
    model: BaseEstimator, X: UserRows, y: UserTarget, *, test_size: float = 0.25, random_state: int = 0
) -> Explanation:
    """Three short paragraphs with numbers about a fitted classifier or regressor.

    The model is fitted again, to the rows that are left when `test_size` of them are held out; beside it the best
    constant, the same model with a polynomial of one degree more where it takes a basis, and gradient boosting of 100
    trees as the reference of what the columns tell. Errors are shares of wrong classes, or mean squares.

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 1))
    >>> y = X[:, 0] ** 2 + 0.1 * rng.normal(size=200)
    >>> answers = cf.explain(cf.LinearRegression().fit(X, y), X, y)
    >>> print(answers.approximation.split(".")[0])
    Rich enough? No: on 50 rows held out, a polynomial of degree 2 has a mean squared error of 0
    """
    check_is_fitted(model)
    n = n_samples(X)
    if n < FEWEST_ROWS:
        raise ValueError(f"explain holds rows out and needs {FEWEST_ROWS} rows or more. Got {n}.")
    kind = _CLASSES if is_classifier(model) else _NUMBERS
    y = np.asarray(y)
    splitter = HoldOut(test_size, stratify=kind is _CLASSES, random_state=random_state)
    training, held_out = next(iter(splitter.split(X, y)))
    rows, target = taken(X, training), y[training]
    tried = {"model": clone(model), "constant": kind.constant(), **_richer(model), "reference": kind.reference()}
    losses = {}
    for name, estimator in tried.items():
        estimator.fit(rows, target)
        losses[name] = kind.loss(y[held_out], estimator.predict(taken(X, held_out)))
    training_error = float(np.mean(kind.loss(target, tried["model"].predict(rows))))
    errors = {name: kind.estimate(loss) for name, loss in losses.items()}
    differences = {name: _mean(loss - losses["model"]) for name, loss in losses.items() if name != "model"}
    words = {"constant": "the best constant", "reference": "gradient boosting"} | _richer_words(tried)
    return Explanation(
        _approximation(kind, errors, differences, words, len(held_out)),
        _optimisation(model),
        _generalisation(kind, errors["model"], training_error, len(training), len(held_out)),
        errors,
        differences,
        training_error,
        len(training),
        len(held_out),
    )


@dataclass(frozen=True)
class _Kind:
    """Classes or numbers: the loss of a row, its mean with an interval, the two other models, and the word for it."""

    loss: Callable[[Array, Array], Array]
    estimate: Callable[[Array], Estimate]
    constant: Callable[[], BaseEstimator]
    reference: Callable[[], BaseEstimator]
    word: str


def _mean(losses: Array) -> Estimate:
    if np.ptp(losses) == 0:
        return Estimate(float(losses[0]), float(losses[0]), float(losses[0]), level=LEVEL)
    return bootstrap_interval(lambda part: float(np.mean(part)), losses, level=LEVEL)


_CLASSES = _Kind(
    lambda y, predicted: (np.asarray(y) != np.asarray(predicted)).astype(np.float64),
    lambda losses: share(float(losses.sum()), len(losses), LEVEL),
    lambda: DummyClassifier(strategy="prior"),
    lambda: GradientBoostingClassifier(ROUNDS),
    "share of wrong classes",
)
_NUMBERS = _Kind(
    lambda y, predicted: (np.asarray(y, dtype=np.float64) - predicted) ** 2,
    _mean,
    DummyRegressor,
    lambda: GradientBoostingRegressor(ROUNDS),
    "mean squared error",
)


def _richer(model: BaseEstimator) -> dict[str, BaseEstimator]:
    """The same model with a polynomial of one degree more; nothing where it takes no basis, or another one."""
    params = model.get_params(deep=False)
    if "basis" not in params or not isinstance(params["basis"], Polynomial | None):
        return {}
    degree = 1 if params["basis"] is None else params["basis"].degree
    return {"richer": clone(model).set_params(basis=Polynomial(degree + 1))}


def _richer_words(tried: dict[str, BaseEstimator]) -> dict[str, str]:
    if "richer" not in tried:
        return {}
    return {"richer": f"a polynomial of degree {tried['richer'].get_params(deep=False)['basis'].degree}"}


def _approximation(
    kind: _Kind, errors: dict[str, Estimate], differences: dict[str, Estimate], words: dict[str, str], n: int
) -> str:
    better = [name for name in ("richer", "reference") if name in differences and (differences[name].high or 0.0) < 0]
    if better:
        name = min(better, key=lambda one: errors[one])
        lead = (
            f"No: on {n} rows held out, {words[name]} has a {kind.word} of {errors[name]:.3g}, the model "
            f"{errors['model']:.3g} ({_interval(differences[name])} for the difference)."
        )
    else:
        others = " and ".join(
            f"{words[name]} has {errors[name]:.3g}" for name in ("richer", "reference") if name in errors
        )
        lead = f"Yes, as far as {n} rows held out can tell: the {kind.word} is {errors['model']:.3g}; {others}."
    constant = differences["constant"]
    is_useful = (constant.low or 0.0) > 0
    tail = f" The best constant has {errors['constant']:.3g}: the model "
    tail += "gains from its columns." if is_useful else "is not shown to gain anything from its columns."
    return "Rich enough? " + lead + tail


def _optimisation(model: BaseEstimator) -> str:
    if not learner_of(model).is_ours:
        return "Optimum reached? Not known: the model has no certificate. cf.audit tells of models of scikit-learn."
    return "Optimum reached? " + " ".join(model.certificate_.sentences()[:2])


def _generalisation(kind: _Kind, held_out: Estimate, training_error: float, n_training: int, n_held_out: int) -> str:
    is_beyond = training_error < (held_out.low if held_out.low is not None else held_out)
    verdict = (
        "The training error is below that interval: part of the fit is to the noise of its rows."
        if is_beyond
        else "The training error is within or above that interval: no over-fitting is seen."
    )
    return (
        f"Does it generalise? Fitted to {n_training} rows, the {kind.word} is {training_error:.3g} on them and "
        f"{held_out:.3g} on the {n_held_out} rows held out ({_interval(held_out)}). {verdict}"
    )


def _interval(estimate: Estimate) -> str:
    if estimate.low is None:
        return "no interval"
    return f"{100 * estimate.level:g} % interval {estimate.low:.3g} to {estimate.high:.3g}"
