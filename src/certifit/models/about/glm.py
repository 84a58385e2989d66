"""Logistic regression and generalised linear models."""

from __future__ import annotations

from certifit.models.about.shared import INTERCEPT, MAPS, PENALTY, STANDARDIZE
from certifit.models.learner import Answer, Learner, always, count, number
from certifit.models.objectives import MEAN, Objective, Told


def _scores(term: str) -> Objective:
    """The mean of a term of a row's score, and a penalty."""

    def objective(told: Told) -> str:
        alpha, ratio = told.params["alpha"], float(told.params["l1_ratio"])
        parts = {
            f"{ratio:g} {told.factor('sd')}|w|_1": ratio,
            f"{1 - ratio:g}/2 {told.factor('sd^2')}|w|^2": 1 - ratio,
        }
        mixed = " + ".join(part for part, share in parts.items() if share)
        strength = "1/sum_i weight_i" if alpha is None else f"{alpha:g}"
        penalty = "" if alpha == 0 else f" + {strength} ({mixed})"
        return f"minimised: {MEAN} {_term(told, term)} / {MEAN}{penalty}{told.end}"

    return objective


def _term(told: Told, term: str) -> str:
    if told.n_classes > 2:
        return "[ log sum_k e^z_ik - z_ik of its own class ]"
    if told.loss:
        return f"[ {told.loss} ](y_i, z_i)"
    if told.law is not None:
        return f"d(y_i, h(z_i)) / 2, d the {told.law[0]} deviance, h of the {told.law[1]} link,"
    return term


_PARAMS = {
    "alpha": number(1.0),
    "l1_ratio": number(0.0, most=1.0),
    "fit_intercept": INTERCEPT,
    "standardize": STANDARDIZE,
    "tol": number(None, or_none=True),
    "step_tol": number(0.0),
    "max_iter": count(1000),
}
ROWS = (
    Learner(
        "logistic_regression",
        "models.logistic:LogisticRegression",
        _scores("[ log(1 + e^z_i) - y_i z_i ]"),
        {**_PARAMS, "alpha": number(None, or_none=True)},
        (*PENALTY, "class_weight", "solver", *MAPS),
        always(Answer.CLASSES),
    ),
    Learner(
        "poisson_regressor",
        "models.glm:PoissonRegressor",
        _scores("[ e^z_i - y_i z_i ]"),
        _PARAMS,
        (*PENALTY, "solver", *MAPS),
        always(Answer.MEAN),
    ),
    Learner(
        "gamma_regressor",
        "models.glm:GammaRegressor",
        _scores("[ y_i e^-z_i + z_i ]"),
        _PARAMS,
        (*PENALTY, "solver", *MAPS),
        always(Answer.MEAN),
    ),
    Learner(
        "glm",
        "models.glm:GLM",
        _scores(""),
        {**_PARAMS, "alpha": number(0.0)},
        ("family", "link", *PENALTY, "solver", *MAPS),
        always(Answer.MEAN),
    ),
)
