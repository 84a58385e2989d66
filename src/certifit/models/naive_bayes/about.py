"""Classes whose columns are independent: Gaussian, there or not, counted."""

from __future__ import annotations

import math

from certifit.data.roles import CLASSES
from certifit.models.learner import (
    LARGEST,
    LIKELIHOOD,
    Answer,
    Command,
    Learner,
    Option,
    Told,
    Words,
    always,
    flag,
    number,
)
from certifit.models.parameters import CLASS_SUMS, MAPS, TOL


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


def _words(law: str) -> Words:
    return Words(
        f"{law} naive Bayes (smoothing {{alpha}})",
        "smoothed likelihood",
        goal=LARGEST,
        strengths={"alpha": "smoothing alpha"},
        stores=CLASS_SUMS,
    )


def _command(law: str, help: str, counts_words: bool) -> Command:
    return Command(
        f"{law.lower()}-nb",
        f"{law} naive Bayes",
        help,
        goal=CLASSES,
        compared_for=("texts",),
        options=(_SMOOTHING,),
        tunes="smoothing",
        reads_counts=True,
        counts_words=counts_words,
        selects=True,
    )


_SMOOTHING = Option(
    "smoothing",
    "A",
    "bernoulli-nb, multinomial-nb: what is added to every count. Default: the folds choose.",
    "alpha",
)
_DECIDING = always(("words",))
_COUNTS = {"alpha": number(1.0), "fit_prior": flag(True), "tol": TOL}
ROWS = (
    Learner(
        "gaussian_nb",
        "models.naive_bayes.model:GaussianNB",
        _gaussian_nb,
        Words("Gaussian naive Bayes", "likelihood", goal=LARGEST, stores=CLASS_SUMS),
        {"var_smoothing": number(1e-9), "tol": TOL},
        ("priors", *MAPS),
        always(Answer.CLASSES),
        sections=always(("spreads",)),
        exact="gaussian",
        commands=(
            Command(
                "gaussian-nb",
                "Gaussian naive Bayes",
                "naive Bayes of numbers",
                goal=CLASSES,
                compared_for=(CLASSES,),
                selects=True,
            ),
        ),
        record="models.naive_bayes.modelfile:GAUSSIAN",
    ),
    Learner(
        "bernoulli_nb",
        "models.naive_bayes.model:BernoulliNB",
        _bernoulli_nb,
        _words("Bernoulli"),
        {**_COUNTS, "binarize": number(0.0, least=-math.inf, or_none=True)},
        ("class_prior", "encoder"),
        always(Answer.CLASSES),
        sections=_DECIDING,
        exact="counts",
        commands=(_command("Bernoulli", "naive Bayes of words and flags, present or absent", counts_words=False),),
        record="models.naive_bayes.modelfile:BERNOULLI",
    ),
    Learner(
        "multinomial_nb",
        "models.naive_bayes.model:MultinomialNB",
        _multinomial_nb,
        _words("multinomial"),
        _COUNTS,
        ("class_prior", "encoder"),
        always(Answer.CLASSES),
        sections=_DECIDING,
        exact="counts",
        commands=(_command("multinomial", "naive Bayes of counts", counts_words=True),),
        record="models.naive_bayes.modelfile:MULTINOMIAL",
    ),
)
