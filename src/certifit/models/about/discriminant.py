"""Gaussian classes."""

from __future__ import annotations

from certifit.models.about.shared import MAPS, STANDARDIZE, TOL
from certifit.models.learner import Answer, Learner, always, choice, number
from certifit.models.objectives import LIKELIHOOD, Told

_COVARIANCES = {"shared": "one covariance S", "class": "covariances S_k", "diagonal": "diagonal S_k"}


def _discriminant(told: Told) -> str:
    """Gaussian classes."""
    unit = " in standard deviations" if told.params["standardize"] else ""
    shrinkage = told.params["shrinkage"]
    shrunk = f", S shrunk by {shrinkage:g}{unit}" if shrinkage else ""
    words = _COVARIANCES.get(told.params["covariance"], "covariances S_k")
    return f"{LIKELIHOOD}(prior_k N(x_i; m_k, S)), k = y_i, {words}{shrunk}"


ROWS = (
    Learner(
        "gaussian_discriminant",
        "models.generative:GaussianDiscriminant",
        _discriminant,
        {
            "covariance": choice("shared", "shared", "class", "diagonal"),
            "shrinkage": number(0.0, most=1.0),
            "standardize": STANDARDIZE,
            "singular": choice("warn", "raise", "warn"),
            "tol": TOL,
        },
        ("priors", *MAPS),
        always(Answer.CLASSES),
    ),
)
