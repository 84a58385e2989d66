"""What a fit claims about itself, in one number and a few sentences.

value: how far the objective can be from its minimum, relative to the objective. rounding: what the arithmetic of
the certificate itself may have added. Both are in the unit of `tol`; the certificate holds iff value <= tolerance.

Only where the objective is below 1e-14 of the null model's, an exact fit to rounding, both are relative to the null
model's objective, and claim is EXACT_FIT_CLAIM.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from certifit.data.privacy import visible

EXACT_FIT_CLAIM = "excess of the objective relative to the null model's: exact fit to rounding"
MOST_RELATIONS_IN_FIRST = 3
OF_ITS_SIZE = " of its size"
OUT_OF_TIME = "time was up before the proof (max_time). `certify` with the same rows makes it."


@dataclass(frozen=True)
class Certificate:
    """The proof that goes with a fit. See `sentences()` for it in words.

    literal: None where the value is about all weights. A number where columns that repeat others but for the rounding
    of their entries were treated as exact combinations: the value is then about the fits without these columns, and
    literal is how far the objective can be above its minimum over all weights, for the entries as given.
    rank, n_columns, condition: of the columns; None where a model has none of them, as a perceptron.
    prediction_change: how far the predictions of the rows can be from those of the best fit, root mean square, in the
    unit of the target; None where no theorem gives it, and in a model read from a file.
    """

    claim: str
    theorem: str
    value: float
    tolerance: float
    rounding: float
    rank: int | None = None
    n_columns: int | None = None
    condition: float | None = None
    dependent: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    digits: tuple[float, ...] = ()
    literal: float | None = None
    prediction_change: float | None = field(default=None, compare=False)
    advice: str = field(default="", compare=False)  # what prevents a proof, where that is known

    def __post_init__(self) -> None:
        # A number that overflowed on both sides of a fraction is not known: nothing is proven, and a file can store it.
        for name in ("value", "rounding", "condition", "literal"):
            number = getattr(self, name)
            if number is not None and math.isnan(number):
                object.__setattr__(self, name, math.inf)

    @property
    def holds(self) -> bool:
        """True when the value is proven to be within the tolerance."""
        return bool(self.value <= self.tolerance)

    @property
    def is_exact_fit(self) -> bool:
        """True where the value is relative to the null model's objective, not to the model's own."""
        return self.claim == EXACT_FIT_CLAIM

    @property
    def fault(self) -> str:
        """Why there can be no proof, where it is not that the value is too large."""
        return self.theorem if self.theorem == OUT_OF_TIME else ""

    @classmethod
    def out_of_time(cls, tolerance: float, **stated: Any) -> Self:
        """Of a fit whose time was up before the proof. stated: what else a certificate of this kind says."""
        if "fault" in cls.__dataclass_fields__:
            stated["fault"] = OUT_OF_TIME
        return cls("nothing", OUT_OF_TIME, math.inf, tolerance, 0.0, **stated)

    def sentences(self) -> list[str]:
        """The certificate in words."""
        return [self._first_sentence(), *self._rank_sentences(), *self._digit_sentences()]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Certificate:
        """Inverse of `to_dict`."""
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**plain)

    @property
    def _doubt(self) -> tuple[bool, float]:
        return not self.holds, self.value / self.tolerance if self.tolerance else self.value

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def __repr__(self) -> str:
        sign = "<=" if self.holds else ">"
        return f"Certificate({self.claim}: {self.value:.1e} {sign} tol {self.tolerance:.0e})"

    def _first_sentence(self) -> str:
        condition = "" if self.literal is None else f"treating {self._relations_in_short()} as exact, "
        is_known = self.literal is not None and self.literal < 1  # no objective is below 0
        literally = "" if not is_known else f" Taken literally, the data allow up to {self.literal:.1e} less."
        if not self.holds:
            if self.fault:
                return f"NOT certified: {self.fault}"
            if self.advice and math.isinf(self.value):
                return f"NOT certified: {self.advice}"
            unit = "of the null model's objective" if self.is_exact_fit else "(relative)"
            advice = "".join(f" {words}" for words in (self.advice, *self._near_sentences()) if words)
            return (
                f"NOT certified: {condition}the objective can be up to {self.value:.1e} {unit} above its minimum; "
                f"asked was {self.tolerance:.0e}.{literally}{self._prediction_sentence()}{advice}"
            )
        if self.is_exact_fit:
            return (
                f"Exact fit to rounding: {condition}the objective is proven to be within {self.value:.1e} of the best "
                f"possible, relative to that of the null model.{literally}"
            )
        return (
            f"Converged: {condition}the objective is proven to be within {self.value:.1e} (relative) of the best "
            f"possible.{literally}"
        )

    @property
    def near(self) -> tuple[str, ...]:
        """Columns that are near a combination of others but none: "x1 = x0 within 1.0e-14 of its size"."""
        return tuple(relation for relation in self.dependent if relation.endswith(OF_ITS_SIZE))

    def _relations_in_short(self) -> str:
        return _listed(self.dependent, MOST_RELATIONS_IN_FIRST, ", ", " and {} more relations")

    def _prediction_sentence(self) -> str:
        if self.prediction_change is None or not math.isfinite(self.prediction_change):
            return ""
        return f" Predictions can still move by up to {self.prediction_change:.2g} (root mean square over the rows)."

    def _near_sentences(self) -> list[str]:
        if not self.near:
            return []
        shown = _listed(self.near, 10, "; ", "; ...")
        return [
            f"Nearly redundant, but not to rounding: {shown}. Weights in float64 hardly hold what such a difference is "
            "worth: leave a column of each relation out, or put the difference itself in its place."
        ]

    def _rank_sentences(self) -> list[str]:
        if not self.dependent:
            return []
        out = self._near_sentences() if self.holds else []  # else the first sentence has them
        redundant = tuple(relation for relation in self.dependent if relation not in self.near)
        if redundant and self.rank is not None and self.n_columns is not None:
            count = max(self.n_columns - self.rank - len(self.near), len(redundant))
            noun = "column is" if count == 1 else "columns are"
            shown = _listed(redundant, 10, "; ", "; ...")
            out.append(
                f"{count} {noun} redundant (rank {self.rank} of {self.n_columns}): {shown}. Coefficients of these "
                "columns are not determined by the data; predictions are. Drop a column of each relation to read them."
            )
        return out

    def _restriction(self) -> str:
        return "" if self.literal is None else ", of the fit with these relations as exact"

    def _digit_sentences(self) -> list[str]:
        if not self.digits:
            return []
        pairs = list(zip(self.digits, self.names, strict=True))  # a feature may be named like the intercept
        proven = [pair for pair in pairs if pair[0] > 0]
        out = []
        if proven:
            fewest, worst = min(proven)
            which = "every" if len(proven) == len(self.digits) else f"{len(proven)} of {len(self.digits)}"
            noun = "coefficient" if which == "every" else "coefficients"
            condition = "" if self.condition is None else f" Condition number {self.condition:.1e}."
            out.append(
                f"Correct digits proven{self._restriction()}: at least {math.floor(fewest)} in {which} {noun} (fewest: "
                f"{worst!r}).{condition}"
            )
        if len(proven) < len(self.digits):
            unknown = [repr(name) for digits, name in pairs if not digits > 0]
            shown = ", ".join(unknown[:10]) + (", ..." if len(unknown) > 10 else "")
            out.append(
                f"No digit is proven for {shown}: not determined, or not distinguishable from 0 within rounding."
            )
        return out


def unfinished(n_made: int, n_asked: int, what: str = "rounds") -> str:
    """The fault of an ensemble that was stopped on its way: what was made is right, and not what was asked for."""
    return f"{n_made:,} of the {n_asked:,} {what} asked for were made. These were derived again and are right."


def near_relation(relation: str, size: float) -> str:
    """A relation that holds only within a share of the column's size, in words that `Certificate.near` knows."""
    return f"{relation} within {size:.1e}{OF_ITS_SIZE}"


def least_certain(certificates: Sequence[Certificate]) -> Certificate:
    """The certificate that says least: one that does not hold, else the one nearest to its tolerance."""
    return max(certificates, key=lambda certificate: certificate._doubt)


def _listed(words: tuple[str, ...], most: int, between: str, more: str) -> str:
    left_out = len(words) - most
    return between.join(map(visible, words[:most])) + (more.format(left_out) if left_out > 0 else "")


def prediction_change(excess: float, y_scale: float) -> float:
    """Root mean square change of predictions from an excess of the mean of squares: it is their mean square at least.

    Both are of a target times y_scale; the change is in the target's own unit.
    """
    return math.sqrt(excess) / float(y_scale)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
