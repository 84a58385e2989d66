"""What a fit works on, in types: a task (rows and the mathematics of a model) and the state that solves it."""

from __future__ import annotations

from typing import Protocol, TypeVar


class Task(Protocol):
    """What is optimised on mapped rows. Its solver and its certificate know it by its own type."""

    def facts(self) -> dict[str, float]:
        """What a fit remembers of its rows: n_rows and sum_weight; of a number as target its mean and spread too."""
        ...


TaskT = TypeVar("TaskT", bound=Task)
StateT = TypeVar("StateT")  # frozen arrays: all that a fit finds, without rows
