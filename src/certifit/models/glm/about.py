"""Logistic regression and generalised linear models."""

from __future__ import annotations

from dataclasses import replace

from certifit.data.roles import CLASSES, COUNTS, POSITIVE
from certifit.models.learner import (
    MEAN,
    Answer,
    Command,
    Learner,
    Objective,
    Simplicity,
    Told,
    Words,
    always,
    count,
    number,
)
from certifit.models.parameters import ALPHA, INTERCEPT, MAPS, MAX_TIME, OFFSETS, PENALTY, SHRUNK, STANDARDIZE


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
        if told.penalty:
            penalty = f" + {strength} C(w), C {told.penalty}"
        return f"minimised: {MEAN} {_term(told, term)} / {MEAN}{penalty}{told.end}{_law(told)}"

    return objective


def _term(told: Told, term: str) -> str:
    if told.n_classes > 2:
        return "[ log sum_k e^z_ik - z_ik of its own class ]"
    if told.loss:
        return f"[ {told.loss} ](y_i, z_i)"
    if told.law is not None:
        return "d(y_i, h(z_i)) / 2"
    return term


def _law(told: Told) -> str:
    """What d and h of the term are."""
    if told.n_classes > 2 or told.loss or told.law is None:
        return ""
    return f", d the {told.law[0]} deviance, h of the {told.law[1]} link"


_PARAMS = {
    "alpha": number(1.0),
    "l1_ratio": number(0.0, most=1.0),
    "fit_intercept": INTERCEPT,
    "standardize": STANDARDIZE,
    "tol": number(None, or_none=True),
    "step_tol": number(0.0),
    "max_iter": count(1000),
    "max_time": MAX_TIME,
}
_FAMILIES = {
    "gaussian": "Gaussian",
    "bernoulli": "Bernoulli",
    "poisson": "Poisson",
    "gamma": "Gamma",
    "inverse-gaussian": "inverse Gaussian",
    "tweedie": "Tweedie",
    "negative-binomial": "negative binomial",
}
_PENALISE = "Fit with a penalty"
_LEAVE_OUT = "or leave out the columns that are named."
_RATE = f"{_PENALISE} (--model poisson-ridge or gamma-ridge), {_LEAVE_OUT}"
_GLM = Words(
    "{family} regression ({link} link)",
    "deviance",
    spelt=_FAMILIES,
    robust="HC1",
    remedy=_RATE,
)
_PENALISED_GLM = Words(
    "{family} regression with a penalty (alpha = {alpha})",
    "penalised deviance",
    f"{SHRUNK}alpha=0 to have them.",
    spelt=_FAMILIES,
    robust="HC1",
)
_LOGISTIC = Words(
    "logistic regression",
    "log loss",
    link="logit",
    robust="HC1",
    remedy=f"{_PENALISE} (--alpha 0.01, or no --alpha: folds choose it), {_LEAVE_OUT}",
)
_SECTIONS = always(("coefficients", "path"))


def _rate(law: str) -> Words:
    """Of counts or positive quantities, whose means are e to the power of scores."""
    model = law.lower()
    return Words(
        f"{law} regression with a penalty (alpha = {{alpha}})",
        f"penalised {law} deviance",
        f"{SHRUNK}--model {model} to have them.",
        without_penalty=Words(
            f"{law} regression",
            f"{law} deviance",
            link="log",
            robust="HC1",
            remedy=f"{_PENALISE} (--model {law.lower()}-ridge), {_LEAVE_OUT}",
        ),
        link="log",
        robust="HC1",
        weaker=f"fit with --model {model}",
    )


def _ridge(law: str, goal: str) -> Command:
    return Command(
        f"{law.lower()}-ridge",
        f"{law} ridge",
        "with a penalty, without p-values",
        goal=goal,
        compared_for=(goal,),
        options=(ALPHA,),
        fixed={"standardize": True},
        roles=OFFSETS,
        tunes="alpha",
        needs_folds=True,
        passes=25,
    )


def _without_penalty(law: str, goal: str) -> Command:
    return Command(
        law.lower(),
        f"{law} regression",
        f"{law} regression, with p-values",
        goal=goal,
        compared_for=(goal,),
        fixed={"family": law.lower(), "link": "log"},
        roles=OFFSETS,
        simplicity=Simplicity.P_VALUES,
        selects=True,
        passes=8,
    )


def _text_work(n_rows: int, n_classes: int) -> float:
    """Of fits with all alphas to the words of free text. Those of two classes share their passes over all folds."""
    return 3.4e4 * n_rows if n_classes <= 2 else 2.7e5 * n_rows * n_classes


ROWS = (
    Learner(
        "logistic_regression",
        "models.glm.logistic:LogisticRegression",
        _scores("[ log(1 + e^z_i) - y_i z_i ]"),
        Words(
            "logistic regression with a penalty (alpha = {alpha})",
            "penalised log loss",
            f"{SHRUNK}--model logistic --alpha 0 to have them.",
            without_penalty=_LOGISTIC,
            link="logit",
            robust="HC1",
            weaker="give --alpha 0, which has p-values",
        ),
        {**_PARAMS, "alpha": number(None, or_none=True)},
        (*PENALTY, "class_weight", "solver", "start", *MAPS),
        always(Answer.CLASSES),
        sections=always(("coefficients", "path", "odds")),
        exact="logistic",
        commands=(
            Command(
                "logistic",
                "logistic regression",
                "log-odds as a sum over columns, with a penalty (p-values with --alpha 0)",
                goal=CLASSES,
                compared_for=(CLASSES, "texts"),
                options=(ALPHA,),
                fixed={"standardize": True},
                roles=("offset",),
                tunes="alpha",
                selects=True,
                text_work=_text_work,
                passes=16,
            ),
        ),
        record="models.glm.modelfile:LOGISTIC",
    ),
    Learner(
        "poisson_regressor",
        "models.glm.model:PoissonRegressor",
        _scores("[ e^z_i - y_i z_i + y_i log y_i - y_i ]"),
        _rate("Poisson"),
        _PARAMS,
        (*PENALTY, "solver", "start", *MAPS),
        always(Answer.MEAN),
        sections=_SECTIONS,
        exact="scores",
        commands=(_ridge("Poisson", COUNTS),),
        record="models.glm.modelfile:MEAN",
    ),
    Learner(
        "gamma_regressor",
        "models.glm.model:GammaRegressor",
        _scores("[ y_i e^-z_i + z_i - log y_i - 1 ]"),
        _rate("Gamma"),
        _PARAMS,
        (*PENALTY, "solver", "start", *MAPS),
        always(Answer.MEAN),
        sections=_SECTIONS,
        exact="scores",
        commands=(_ridge("Gamma", POSITIVE),),
        record="models.glm.modelfile:MEAN",
    ),
    Learner(
        "glm",
        "models.glm.model:GLM",
        _scores(""),
        replace(_GLM, with_penalty=_PENALISED_GLM),
        {**_PARAMS, "alpha": number(0.0)},
        ("family", "link", "penalty", *PENALTY, "solver", "start", *MAPS),
        always(Answer.MEAN),
        sections=_SECTIONS,
        exact="scores",
        commands=(_without_penalty("Poisson", COUNTS), _without_penalty("Gamma", POSITIVE)),
        record="models.glm.modelfile:GLM",
    ),
)
