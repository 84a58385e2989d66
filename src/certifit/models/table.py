"""The models of certifit, a row each. Its keys are the names that model files have."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from certifit.models import objectives
from certifit.models.learner import Learner, choice, count, either, flag, number

_MAPS = ("basis", "encoder")
_INTERCEPT, _STANDARDIZE, _TOL = flag(True), flag(False), number(1e-8)
_SPARSE = {
    "alpha": number(1.0),
    "fit_intercept": _INTERCEPT,
    "standardize": _STANDARDIZE,
    "tol": _TOL,
    "max_iter": count(10_000),
}
_SCORES = {
    "alpha": number(1.0),
    "l1_ratio": number(0.0, most=1.0),
    "fit_intercept": _INTERCEPT,
    "standardize": _STANDARDIZE,
    "tol": number(None, or_none=True),
    "step_tol": number(0.0),
    "max_iter": count(1000),
}
_PENALTY = ("penalty_factors", "bounds")
_COUNTS = {"alpha": number(1.0), "fit_prior": flag(True), "tol": _TOL}
LEARNERS = {
    "linear_regression": Learner(
        "models.linear:LinearRegression", objectives.least_squares, {"fit_intercept": _INTERCEPT, "tol": _TOL}, _MAPS
    ),
    "ridge": Learner(
        "models.linear:Ridge",
        objectives.ridge,
        {
            "alpha": number(None, or_none=True),
            "fit_intercept": _INTERCEPT,
            "standardize": _STANDARDIZE,
            "tol": _TOL,
        },
        _MAPS,
    ),
    "lasso": Learner("models.sparse:Lasso", objectives.lasso, _SPARSE, (*_PENALTY, *_MAPS)),
    "elastic_net": Learner(
        "models.sparse:ElasticNet",
        objectives.elastic_net,
        {**_SPARSE, "l1_ratio": number(0.5, most=1.0, is_above=True, advice="For 0 use Ridge.")},
        (*_PENALTY, *_MAPS),
    ),
    "huber_regressor": Learner(
        "models.robust:HuberRegressor",
        objectives.huber,
        {
            "delta": number(1.35, least=1e-6, advice="Below it use a smaller scale."),
            "alpha": number(0.0),
            "scale": either(
                "'joint', 'mad' or a number from 1e-300 to 1e300",
                "joint",
                choice("joint", "joint", "mad"),
                number(None, 1e-300, 1e300),
            ),
            "fit_intercept": _INTERCEPT,
            "standardize": _STANDARDIZE,
            "tol": _TOL,
            "max_iter": count(100, most=1_000_000),
        },
        _MAPS,
    ),
    "gaussian_discriminant": Learner(
        "models.generative:GaussianDiscriminant",
        objectives.discriminant,
        {
            "covariance": choice("shared", "shared", "class", "diagonal"),
            "shrinkage": number(0.0, most=1.0),
            "standardize": _STANDARDIZE,
            "singular": choice("warn", "raise", "warn"),
            "tol": _TOL,
        },
        ("priors", *_MAPS),
    ),
    "gaussian_nb": Learner(
        "models.naive_bayes:GaussianNB",
        objectives.gaussian_nb,
        {"var_smoothing": number(1e-9), "tol": _TOL},
        ("priors", *_MAPS),
    ),
    "bernoulli_nb": Learner(
        "models.count_naive_bayes:BernoulliNB",
        objectives.bernoulli_nb,
        {**_COUNTS, "binarize": number(0.0, least=-math.inf, or_none=True)},
        ("class_prior", "encoder"),
    ),
    "multinomial_nb": Learner(
        "models.count_naive_bayes:MultinomialNB", objectives.multinomial_nb, _COUNTS, ("class_prior", "encoder")
    ),
    "logistic_regression": Learner(
        "models.logistic:LogisticRegression",
        objectives.scores("[ log(1 + e^z_i) - y_i z_i ]"),
        {**_SCORES, "alpha": number(None, or_none=True)},
        (*_PENALTY, "class_weight", "solver", *_MAPS),
    ),
    "poisson_regressor": Learner(
        "models.glm:PoissonRegressor", objectives.scores("[ e^z_i - y_i z_i ]"), _SCORES, (*_PENALTY, "solver", *_MAPS)
    ),
    "gamma_regressor": Learner(
        "models.glm:GammaRegressor", objectives.scores("[ y_i e^-z_i + z_i ]"), _SCORES, (*_PENALTY, "solver", *_MAPS)
    ),
    "glm": Learner(
        "models.glm:GLM",
        objectives.scores(""),
        {**_SCORES, "alpha": number(0.0)},
        ("family", "link", *_PENALTY, "solver", *_MAPS),
    ),
    "perceptron": Learner(
        "models.perceptron:Perceptron",
        objectives.perceptron,
        {
            "delta": number(0.0),
            "max_iter": count(1000),
            "random_state": count(0, least=0),
            "fit_intercept": _INTERCEPT,
        },
        ("start", "order", *_MAPS),
    ),
    "pca": Learner(
        "models.components:PCA",
        objectives.pca,
        {
            "n_components": either(
                "a whole number >= 1, a share above 0 and at most 1, 'mle'",
                None,
                count(1),
                number(None, most=1.0, is_above=True),
                choice("mle", "mle"),
                or_none=True,
            ),
            "center": flag(True),
            "standardize": _STANDARDIZE,
            "whiten": flag(False),
            "solver": choice("auto", "auto", "exact", "randomized"),
            "ddof": number(1, most=1.0),
            "tol": _TOL,
            "max_iter": count(100),
            "random_state": count(0, least=0),
        },
        _MAPS,
    ),
}


@cache
def learner_of(cls: type[Any]) -> Learner | None:
    """The row of a class, or of the one it was derived from; None of a class that is not ours."""
    rows = {learner.place: learner for learner in LEARNERS.values()}
    places = (f"{base.__module__.removeprefix('certifit.')}:{base.__qualname__}" for base in cls.__mro__)
    return next((rows[place] for place in places if place in rows), None)
