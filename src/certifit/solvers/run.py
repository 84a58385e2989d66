"""What a solver hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

State_co = TypeVar("State_co", covariant=True)


@dataclass(frozen=True)
class Run(Generic[State_co]):
    """The state that was found and its trace, one row per step; none of a closed form.

    reason: why it did not converge.
    """

    state: State_co
    history: list[dict[str, float]] = field(default_factory=list)
    reason: str = ""
