"""What tasks share whose optimum is a formula of sums by class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from certifit.data.cells import Cells
from certifit.data.source import Source

State = TypeVar("State")


class ClosedForm(ABC, Generic[State]):
    """A likelihood of rows and classes. rows, cells: what was summed, where a certificate may read it again."""

    rows: Source | None = None
    cells: Cells | None = None

    @property
    def mended(self) -> str:
        """What was done where the likelihood has no maximum, and what to do; nothing where it has one."""
        return ""

    @abstractmethod
    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""

    @abstractmethod
    def solve(self) -> State:
        """The state of largest likelihood."""
