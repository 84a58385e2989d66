"""What the lines of objectives are made of. A fit, a model file and a report print the same text."""

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
MEAN = "sum_i weight_i"
RESIDUAL = "(y_i - b - x_i'w)"
SQUARES = f"minimised: {MEAN} {RESIDUAL}^2 / (2 {MEAN})"
LIKELIHOOD = f"maximised: {MEAN} log"
