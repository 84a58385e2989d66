"""What the report says of each kind of model, one row a kind. A kind without a row speaks for itself by its objective.

Everything else that a report shows is found by what a fitted model has (p-values, a path, a scale), not by its kind.
"""

from dataclasses import dataclass
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
_HUBER = (
    f"{_NONE}the usual standard errors hold for least squares, not for Huber's loss. Refit on resampled rows "
    "(certifit.Bootstrap) to see how much a coefficient varies."
)


@dataclass(frozen=True)
class Kind:
    """words: with parameters of the model in braces; minimised: the size that the proof speaks of."""

    words: str
    minimised: str
    why_no_inference: str | None = None
    is_squared: bool = True  # its errors are squared: a small excess then means close predictions
    is_sparse: bool = False  # it sets coefficients to zero; its rank counts the others
    without_penalty: str | None = None  # what it is at alpha = 0

    def named(self, parameters: dict[str, Any]) -> str:
        """The words, with the parameters filled in."""
        shown = {name: number(value, 6) for name, value in parameters.items() if isinstance(value, int | float)}
        return self.words.format_map(shown)


KINDS = {
    "LinearRegression": Kind("least squares", "squared error"),
    "Ridge": Kind(
        "ridge regression (alpha = {alpha})", "penalised squared error", _SHRUNK, without_penalty="LinearRegression"
    ),
    "Lasso": Kind("the lasso (alpha = {alpha})", "penalised squared error", _CHOSEN, is_sparse=True),
    "ElasticNet": Kind(
        "the elastic net (alpha = {alpha}, l1_ratio = {l1_ratio})", "penalised squared error", _CHOSEN, is_sparse=True
    ),
    "HuberRegressor": Kind("Huber regression (delta = {delta})", "Huber loss", _HUBER, is_squared=False),
}


def kind_of(model: Any) -> Kind:
    """The row of the model's class or of the nearest class it is made from."""
    found = next((KINDS[one.__name__] for one in type(model).__mro__ if one.__name__ in KINDS), None)
    if found is None:
        return Kind(type(model).__name__, "objective", is_squared=False)
    return KINDS[found.without_penalty] if found.without_penalty and model.alpha_ == 0 else found
