"""Linear support vector machines."""

from __future__ import annotations

from certifit.data.roles import CLASSES
from certifit.models.learner import (
    MEAN,
    Answer,
    Command,
    Learner,
    Simplicity,
    Told,
    Verb,
    Words,
    always,
    choice,
    count,
    number,
)
from certifit.models.parameters import ALPHA, CALIBRATED, INTERCEPT, MAX_TIME, NO_INFERENCE, STANDARDIZE

SOLVERS = choice("auto", "auto", "newton", "interior-point", "coordinate", "sgd")


def _linear_svc(told: Told) -> str:
    """Slacks and the weights."""
    alpha = told.params["alpha"] if told.alpha is None else told.alpha
    strength = "alpha" if alpha is None else f"{alpha:g}"
    square = "^2" if told.params["loss"] == "squared_hinge" else ""
    several = "" if told.n_classes == 2 else "; classes one vs rest"
    return (
        f"minimised: {MEAN} max(0, 1 - y_i (b + x_i'w)){square} / {MEAN} + {strength}/2 |{told.factor('s_j')}w|^2"
        f"{told.end}{several}"
    )


def _work(n_rows: int, n_columns: int) -> float:
    """Of calibrated fits with all alphas. A column of free text is many, of few entries each."""
    return 1e8 + (1.6e4 + 500.0 * n_columns) * n_rows


ROWS = (
    Learner(
        "linear_svc",
        "models.linear_svm.model:LinearSVC",
        _linear_svc,
        Words(
            "a linear support vector machine (alpha = {alpha}, {loss})",
            "penalised hinge loss",
            f"{NO_INFERENCE}margins have no likelihood. Use LogisticRegression(alpha=0).",
            spelt={"squared_hinge": "squared hinge"},
        ),
        {
            "alpha": number(None, 1e-100, 1e100, or_none=True),
            "loss": choice("squared_hinge", "hinge", "squared_hinge"),
            "fit_intercept": INTERCEPT,
            "standardize": STANDARDIZE,
            "solver": SOLVERS,
            "tol": number(1e-4),
            "max_iter": count(1000),
            "max_time": MAX_TIME,
            "random_state": count(0, least=0, most=2**32 - 1),
        },
        ("class_weight", "basis", "encoder"),
        always(Answer.MARGINS),
        always(Verb.GATHER),
        commands=(
            Command(
                "linear-svm",
                "linear support vector machine",
                "a straight boundary with a wide margin; no probabilities, it is scored by the share of right rows",
                goal=CLASSES,
                compared_for=(CLASSES, "texts"),
                options=(ALPHA,),
                fixed={"standardize": True},
                tunes="alpha",
                simplicity=Simplicity.MANY_PARTS,
                work=_work,
                compared_in=CALIBRATED,
            ),
        ),
        record="models.linear_svm.modelfile:LINEAR_SVC",
    ),
)
