"""Gaussian classes."""

from __future__ import annotations

from certifit.data.roles import CLASSES
from certifit.models.learner import (
    LARGEST,
    LIKELIHOOD,
    Answer,
    Command,
    Learner,
    Option,
    Params,
    Told,
    Words,
    always,
    choice,
    number,
)
from certifit.models.parameters import CLASS_SUMS, MAPS, STANDARDIZE, TOL

_COVARIANCES = {"shared": "one covariance S", "class": "covariances S_k", "diagonal": "diagonal S_k"}


def _discriminant(told: Told) -> str:
    """Gaussian classes."""
    unit = " in standard deviations" if told.params["standardize"] else ""
    shrinkage = told.params["shrinkage"]
    shrunk = f", S shrunk by {shrinkage:g}{unit}" if shrinkage else ""
    words = _COVARIANCES.get(told.params["covariance"], "covariances S_k")
    return f"{LIKELIHOOD}(prior_k N(x_i; m_k, S)), k = y_i, {words}{shrunk}"


def _sections(params: Params) -> tuple[str, ...]:
    """Of one covariance the boundaries are linear."""
    return ("odds",) if params["covariance"] == "shared" else ("spreads",)


_SHRINKAGE = Option(
    "shrinkage",
    "S",
    "discriminant, quadratic: 0 to 1, how far covariances go towards equal variances. Default: the folds choose.",
    "shrinkage",
)


def _command(name: str, label: str, help: str, covariance: str) -> Command:
    return Command(
        name,
        label,
        help,
        goal=CLASSES,
        compared_for=(CLASSES,),
        options=(_SHRINKAGE,),
        fixed={"covariance": covariance, "standardize": True, "singular": "raise"},
        tunes="shrinkage",
        selects=True,
    )


ROWS = (
    Learner(
        "gaussian_discriminant",
        "models.discriminant.model:GaussianDiscriminant",
        _discriminant,
        Words(
            "Gaussian discriminant analysis ({covariance}, shrinkage {shrinkage})",
            "likelihood",
            goal=LARGEST,
            spelt={"shared": "one covariance", "class": "a covariance for each class", "diagonal": "variances alone"},
            remedy="Leave out the columns that are named, or shrink the covariance (--shrinkage 0.1).",
            stores=CLASS_SUMS,
        ),
        {
            "covariance": choice("shared", "shared", "class", "diagonal"),
            "shrinkage": number(0.0, most=1.0),
            "standardize": STANDARDIZE,
            "singular": choice("warn", "raise", "warn"),
            "tol": TOL,
        },
        ("priors", *MAPS),
        always(Answer.CLASSES),
        sections=_sections,
        exact="gaussian",
        commands=(
            _command(
                "discriminant",
                "linear discriminant",
                "Gaussian classes of one covariance, straight boundaries",
                "shared",
            ),
            _command("quadratic", "quadratic discriminant", "each class has its own covariance", "class"),
        ),
        record="models.discriminant.modelfile:RECORD",
    ),
)
