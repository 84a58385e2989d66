"""How a report speaks of a model: plain words, a row of the table of models each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


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
    is_derived: bool = False  # its numbers are derived again from the rows; nothing is said of other fits


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
DERIVED = Goal(
    "splits",
    "smaller",
    "lower",
    "of what rounding allows",
    "Derived again",
    "Is it what its rows give?",
    "Its numbers were derived again from the rows, and agree within rounding; the search is greedy, so another of its "
    "size may fit better.",
    "Its numbers do not agree with its rows",
    is_derived=True,
)
# parameter that folds may choose -> what a curve of errors over it is called
STRENGTHS = {"alpha": "penalty alpha", "shrinkage": "shrinkage"}


@dataclass(frozen=True)
class Words:
    """name: with parameters of the model in braces; minimised: the size that the proof speaks of."""

    name: str
    minimised: str = "objective"
    why_no_inference: str | None = None
    is_squared: bool = False  # its errors are squared: a small excess then means close predictions
    is_sparse: bool = False  # it sets coefficients to zero; its rank counts the others
    without_penalty: Words | None = None  # what it is at alpha = 0
    with_penalty: Words | None = None  # what it is at alpha > 0
    goal: Goal = SMALLEST
    spelt: Mapping[str, str] = field(default_factory=dict)  # values of parameters that are words
    strengths: Mapping[str, str] = field(default_factory=lambda: STRENGTHS)
    link: str | None = None  # of the score and the prediction, where the model has one for all fits
    robust: str = "HC3"  # standard errors that hold whatever the variance
    remedy: str = "Leave out the columns that are named."  # where there is no best fit
    weaker: str | None = None  # how to fit without the penalty
    stores: tuple[str, ...] = ()  # values of the data that its file has beside coefficients

    def of_fit(self, alpha: float | None, l1_ratio: float) -> Words:
        """The words of a fit with this penalty, or without one."""
        is_penalised = alpha is not None and alpha > 0
        words = (self.with_penalty if is_penalised else self.without_penalty) or self
        return replace(words, is_sparse=True) if is_penalised and l1_ratio > 0 else words
