"""What a solver hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

State = TypeVar("State")


@dataclass(frozen=True)
class Run(Generic[State]):
    """The state that was found and its trace, one row per step; none of a closed form.

    reason: why it did not converge.
    """

    state: State
    history: list[dict[str, float]] = field(default_factory=list)
    reason: str = ""
