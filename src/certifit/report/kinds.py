"""What the report says of each kind of model, one row a kind. A kind without a row speaks for itself by its objective.

Everything else that a report shows is found by what a fitted model has (p-values, a path, a scale, classes), not by its
kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from certifit.report.text import number

_NONE = "There are no p-values or intervals: "
_SHRUNK = (
    f"{_NONE}the penalty pulls coefficients towards zero on purpose, so the usual standard errors would be wrong. "
    "Fit with --model linear to have them."
)
_CHOSEN = (
    f"{_NONE}the penalty chose the columns and pulls their coefficients towards zero on purpose, so the usual standard "
    "errors would be wrong. Fit with --model linear to have them."
)
_SHRUNK_RATE = (
    f"{_NONE}the penalty pulls coefficients towards zero on purpose, so the usual standard errors would be wrong. "
    "Fit with --model {0} to have them."
)
_SHRUNK_GLM = (
    f"{_NONE}the penalty pulls coefficients towards zero on purpose, so the usual standard errors would be wrong. "
    "Fit with alpha=0 to have them."
)
_SHRUNK_ODDS = (
    f"{_NONE}the penalty pulls coefficients towards zero on purpose, so the usual standard errors would be wrong. "
    "Fit with --model logistic --alpha 0 to have them."
)
_HUBER = (
    f"{_NONE}the usual standard errors hold for least squares, not for Huber's loss. Refit on resampled rows "
    "(certifit.Bootstrap) to see how much a coefficient varies."
)


@dataclass(frozen=True)
class Goal:
    """How the proof speaks: what is chosen, which way is better, the unit of the bound, and a few words of its own."""

    chosen: str
    better: str
    lower: str  # the verb of doing better
    unit: str
    done: str  # said of a fit that is proven
    question: str
    proven: str
    failed: str


SMALLEST = Goal(
    "coefficients",
    "smaller",
    "lower",
    "of its value",
    "Converged",
    "Did it converge?",
    "It converged, and this is proven: no other",
    "It did not converge",
)
LARGEST = Goal(
    "parameters",
    "larger",
    "raise",
    "nats per row",
    "Best of its kind",
    "Is it the best of its kind?",
    "It is the best of its kind, and this is proven: no other",
    "It is not proven to be the best of its kind",
)


# parameter that folds may choose -> what a curve of errors over it is called
STRENGTHS = {"alpha": "penalty alpha", "shrinkage": "shrinkage"}


@dataclass(frozen=True)
class Kind:
    """words: with parameters of the model in braces; minimised: the size that the proof speaks of."""

    words: str
    minimised: str
    why_no_inference: str | None = None
    is_squared: bool = True  # its errors are squared: a small excess then means close predictions
    is_sparse: bool = False  # it sets coefficients to zero; its rank counts the others
    without_penalty: str | None = None  # what it is at alpha = 0
    with_penalty: str | None = None  # what it is at alpha > 0
    goal: Goal = SMALLEST
    spelt: Mapping[str, str] = field(default_factory=dict)  # values of parameters that are words
    strengths: Mapping[str, str] = field(default_factory=lambda: STRENGTHS)
    link: str | None = None  # of the score and the prediction, where the model has one for all fits
    robust: str = "HC3"  # standard errors that hold whatever the variance
    remedy: str = "Leave out the columns that are named."  # where there is no best fit
    weaker: str | None = None  # how to fit without the penalty

    def named(self, parameters: dict[str, Any]) -> str:
        """The words, with the parameters filled in."""
        shown = {name: number(value, 6) for name, value in parameters.items() if isinstance(value, int | float)}
        shown |= {name: self.spelt.get(value, value) for name, value in parameters.items() if isinstance(value, str)}
        names = {name: str(value.name) for name, value in parameters.items() if hasattr(value, "name")}
        shown |= {name: self.spelt.get(value, value) for name, value in names.items()}
        return self.words.format_map({name: "usual" for name, value in parameters.items() if value is None} | shown)


_SMOOTHING = {"alpha": "smoothing alpha"}
_PENALTY = "Fit with a penalty"
_RATE = f"{_PENALTY} (--model poisson-ridge or gamma-ridge), or leave out the columns that are named."
_LINEAR = "fit with --model linear"
_FAMILIES = {
    "gaussian": "Gaussian",
    "bernoulli": "Bernoulli",
    "poisson": "Poisson",
    "gamma": "Gamma",
    "inverse-gaussian": "inverse Gaussian",
    "tweedie": "Tweedie",
    "negative-binomial": "negative binomial",
}
KINDS = {
    "LinearRegression": Kind("least squares", "squared error"),
    "Ridge": Kind(
        "ridge regression (alpha = {alpha})",
        "penalised squared error",
        _SHRUNK,
        without_penalty="LinearRegression",
        weaker=_LINEAR,
    ),
    "Lasso": Kind("the lasso (alpha = {alpha})", "penalised squared error", _CHOSEN, is_sparse=True, weaker=_LINEAR),
    "ElasticNet": Kind(
        "the elastic net (alpha = {alpha}, l1_ratio = {l1_ratio})",
        "penalised squared error",
        _CHOSEN,
        is_sparse=True,
        weaker=_LINEAR,
    ),
    "HuberRegressor": Kind("Huber regression (delta = {delta})", "Huber loss", _HUBER, is_squared=False),
    "PoissonRegressor": Kind(
        "Poisson regression with a penalty (alpha = {alpha})",
        "penalised Poisson deviance",
        _SHRUNK_RATE.format("poisson"),
        without_penalty="poisson",
        is_squared=False,
        link="log",
        robust="HC1",
        weaker="fit with --model poisson",
    ),
    "GammaRegressor": Kind(
        "Gamma regression with a penalty (alpha = {alpha})",
        "penalised Gamma deviance",
        _SHRUNK_RATE.format("gamma"),
        without_penalty="gamma",
        is_squared=False,
        link="log",
        robust="HC1",
        weaker="fit with --model gamma",
    ),
    "GLM": Kind(
        "{family} regression ({link} link)",
        "deviance",
        is_squared=False,
        spelt=_FAMILIES,
        with_penalty="penalised GLM",
        robust="HC1",
        remedy=_RATE,
    ),
    "penalised GLM": Kind(
        "{family} regression with a penalty (alpha = {alpha})",
        "penalised deviance",
        _SHRUNK_GLM,
        is_squared=False,
        spelt=_FAMILIES,
        robust="HC1",
    ),
    "LogisticRegression": Kind(
        "logistic regression with a penalty (alpha = {alpha})",
        "penalised log loss",
        _SHRUNK_ODDS,
        is_squared=False,
        without_penalty="logistic",
        link="logit",
        robust="HC1",
        weaker="give --alpha 0, which has p-values",
    ),
    "poisson": Kind("Poisson regression", "Poisson deviance", is_squared=False, link="log", robust="HC1", remedy=_RATE),
    "gamma": Kind("Gamma regression", "Gamma deviance", is_squared=False, link="log", robust="HC1", remedy=_RATE),
    "logistic": Kind(
        "logistic regression",
        "log loss",
        is_squared=False,
        link="logit",
        robust="HC1",
        remedy=f"{_PENALTY} (--alpha 0.01, or no --alpha: folds choose it), or leave out the columns that are named.",
    ),
    "Perceptron": Kind("the perceptron", "sum of the errors", is_squared=False),
    "GaussianDiscriminant": Kind(
        "Gaussian discriminant analysis ({covariance}, shrinkage {shrinkage})",
        "likelihood",
        goal=LARGEST,
        spelt={"shared": "one covariance", "class": "a covariance for each class", "diagonal": "variances alone"},
        remedy="Leave out the columns that are named, or shrink the covariance (--shrinkage 0.1).",
    ),
    "GaussianNB": Kind("Gaussian naive Bayes", "likelihood", goal=LARGEST),
    "BernoulliNB": Kind(
        "Bernoulli naive Bayes (smoothing {alpha})", "smoothed likelihood", goal=LARGEST, strengths=_SMOOTHING
    ),
    "MultinomialNB": Kind(
        "multinomial naive Bayes (smoothing {alpha})", "smoothed likelihood", goal=LARGEST, strengths=_SMOOTHING
    ),
}


def kind_of(model: Any) -> Kind:
    """The row of a fitted model; without a penalty, or with one, that of what it then is."""
    found = kind_of_class(model)
    other = found.with_penalty if getattr(model, "alpha_", 0) > 0 else found.without_penalty
    found = found if other is None else KINDS[other]
    drops = getattr(model, "l1_ratio", 0) > 0 and getattr(model, "alpha_", 0) > 0
    return replace(found, is_sparse=True) if drops else found


def kind_of_class(model: Any) -> Kind:
    """The row of the model's class or of the nearest class it is made from."""
    found = next((KINDS[one.__name__] for one in type(model).__mro__ if one.__name__ in KINDS), None)
    if found is not None:
        return found
    goal = LARGEST if str(getattr(model, "objective", "")).startswith("maximised") else SMALLEST
    return Kind(type(model).__name__, "objective", is_squared=False, goal=goal)
