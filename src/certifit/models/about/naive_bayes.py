"""Classes whose columns are independent: Gaussian, there or not, counted."""

from __future__ import annotations

import math

from certifit.models.about.shared import MAPS, TOL
from certifit.models.learner import Answer, Learner, always, flag, number
from certifit.models.objectives import LIKELIHOOD, Told


def _gaussian_nb(told: Told) -> str:
    """Gaussian columns."""
    return f"{LIKELIHOOD}(prior_k prod_j N(x_ij; theta_kj, var_kj)), k = y_i"


def _bernoulli_nb(told: Told) -> str:
    """Columns that are there or not."""
    more = f"{told.params['alpha']:g} rows more of each class with and without each column"
    return f"{LIKELIHOOD}(prior_k prod_j p_jk^x_ij (1 - p_jk)^(1 - x_ij)), k = y_i, and {more}"


def _multinomial_nb(told: Told) -> str:
    """Counted words."""
    more = f"each word {told.params['alpha']:g} times more in each class"
    return f"{LIKELIHOOD}(prior_k prod_j p_jk^x_ij), k = y_i, and {more}"


_COUNTS = {"alpha": number(1.0), "fit_prior": flag(True), "tol": TOL}
ROWS = (
    Learner(
        "gaussian_nb",
        "models.naive_bayes:GaussianNB",
        _gaussian_nb,
        {"var_smoothing": number(1e-9), "tol": TOL},
        ("priors", *MAPS),
        always(Answer.CLASSES),
    ),
    Learner(
        "bernoulli_nb",
        "models.count_naive_bayes:BernoulliNB",
        _bernoulli_nb,
        {**_COUNTS, "binarize": number(0.0, least=-math.inf, or_none=True)},
        ("class_prior", "encoder"),
        always(Answer.CLASSES),
    ),
    Learner(
        "multinomial_nb",
        "models.count_naive_bayes:MultinomialNB",
        _multinomial_nb,
        _COUNTS,
        ("class_prior", "encoder"),
        always(Answer.CLASSES),
    ),
)
