"""What models optimise, in one line each. A fit, a model file and a report print the same text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Told:
    """What an objective says of a model: its parameters, and what the fit settled where it is known.

    alpha: the strength that was used. scale: of the residuals. law: names of the family and the link.
    """

    params: Mapping[str, Any]
    alpha: float | None = None
    scale: float | None = None
    n_classes: int = 2
    has_factors: bool = False
    has_bounds: bool = False
    law: tuple[str, str] | None = None
    loss: str = ""  # the name of a loss of the user's own

    def factor(self, spread: str) -> str:
        """What multiplies the weights in a penalty."""
        names = {"factors": self.has_factors, spread: bool(self.params.get("standardize", False))}
        return "".join(f"{name} * " for name, is_there in names.items() if is_there)

    @property
    def end(self) -> str:
        """Under which restrictions."""
        within = " within bounds" if self.has_bounds else ""
        return within + ("" if self.params.get("fit_intercept", True) else " with b = 0")


Objective = Callable[[Told], str]
_MEAN = "sum_i weight_i"
_RESIDUAL = "(y_i - b - x_i'w)"
_SQUARES = f"minimised: {_MEAN} {_RESIDUAL}^2 / (2 {_MEAN})"
_LIKELIHOOD = f"maximised: {_MEAN} log"


def least_squares(told: Told) -> str:
    """Squares alone."""
    return f"{_SQUARES}{told.end}"


def ridge(told: Told) -> str:
    """Squares and an L2 penalty."""
    alpha = told.params["alpha"] if told.alpha is None else told.alpha
    strength = "alpha" if alpha is None else f"{alpha:g}"
    return f"{_SQUARES} + {strength}/2 {told.factor('sd^2')}|w|^2{told.end}"


def lasso(told: Told) -> str:
    """Squares and an L1 penalty."""
    return f"{_SQUARES} + {told.params['alpha']:g} {told.factor('sd')}|w|_1{told.end}"


def elastic_net(told: Told) -> str:
    """Squares and both penalties."""
    ratio = float(told.params["l1_ratio"])
    mixed = f"({ratio:g} {told.factor('sd')}|w|_1 + {1 - ratio:g}/2 {told.factor('sd^2/sd_y')}|w|^2)"
    return f"{_SQUARES} + {told.params['alpha']:g} {mixed}{told.end}"


def huber(told: Told) -> str:
    """Huber's loss, at a scale or with it."""
    alpha, delta, rule = told.params["alpha"], float(told.params["delta"]), told.params["scale"]
    penalty = f" + {alpha:g}/2 {told.factor('sd^2')}|w|^2" if alpha else ""
    loss = f"h(z) = z^2/2 if |z| <= {delta:g} else {delta:g} |z| - {delta * delta / 2:g}"
    if rule == "joint":
        joint = f"{_MEAN} s h({_RESIDUAL} / s) / {_MEAN} + s/2{penalty} over w, b and s > 0"
        return f"minimised: {joint}{told.end}, {loss}"
    scale = str(rule) if told.scale is None else f"{told.scale:g}"
    return f"minimised: {_MEAN} s^2 h({_RESIDUAL} / s) / {_MEAN}{penalty} at s = {scale}{told.end}, {loss}"


def scores(term: str) -> Objective:
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
        return f"minimised: {_MEAN} {_term(told, term)} / {_MEAN}{penalty}{told.end}"

    return objective


def _term(told: Told, term: str) -> str:
    if told.n_classes > 2:
        return "[ log sum_k e^z_ik - z_ik of its own class ]"
    if told.loss:
        return f"[ {told.loss} ](y_i, z_i)"
    if told.law is not None:
        return f"d(y_i, h(z_i)) / 2, d the {told.law[0]} deviance, h of the {told.law[1]} link,"
    return term


COVARIANCES = {"shared": "one covariance S", "class": "covariances S_k", "diagonal": "diagonal S_k"}


def discriminant(told: Told) -> str:
    """Gaussian classes."""
    unit = " in standard deviations" if told.params["standardize"] else ""
    shrinkage = told.params["shrinkage"]
    shrunk = f", S shrunk by {shrinkage:g}{unit}" if shrinkage else ""
    words = COVARIANCES.get(told.params["covariance"], "covariances S_k")
    return f"{_LIKELIHOOD}(prior_k N(x_i; m_k, S)), k = y_i, {words}{shrunk}"


def gaussian_nb(told: Told) -> str:
    """Gaussian columns."""
    return f"{_LIKELIHOOD}(prior_k prod_j N(x_ij; theta_kj, var_kj)), k = y_i"


def bernoulli_nb(told: Told) -> str:
    """Columns that are there or not."""
    more = f"{told.params['alpha']:g} rows more of each class with and without each column"
    return f"{_LIKELIHOOD}(prior_k prod_j p_jk^x_ij (1 - p_jk)^(1 - x_ij)), k = y_i, and {more}"


def multinomial_nb(told: Told) -> str:
    """Counted words."""
    more = f"each word {told.params['alpha']:g} times more in each class"
    return f"{_LIKELIHOOD}(prior_k prod_j p_jk^x_ij), k = y_i, and {more}"


def perceptron(told: Told) -> str:
    """A hyperplane with all rows on their side."""
    return f"looked for: w, b with y_i (b + x_i'w) > {told.params['delta']:g} for all rows{told.end}"


def pca(told: Told) -> str:
    """Directions of largest variance."""
    z = "(x - mean)" if told.params["center"] else "x"
    scale = " / scale" if told.params["standardize"] else ""
    return f"maximised: trace V'AV over V'V = I, A = mean of z z', z = {z}{scale}"
