"""A bar on the terminal for work that takes long: nothing is drawn in the first second, nor into a file."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

_PATIENCE = 1.0  # seconds


class Bar:
    """Counts steps of work. `with Bar("cross-validation", 50) as bar: bar.advance()`."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total, self.done = label, total, 0
        self._started = time.monotonic()
        self._bar: Any = None
        self._is_on = total > 1 and sys.stderr is not None and sys.stderr.isatty()

    def advance(self) -> None:
        """One more is done."""
        self.done += 1
        if not self._is_on:
            return
        if self._bar is None and time.monotonic() - self._started > _PATIENCE:
            self._draw()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.done)

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.add_task(self.label, total=self.total)
        self._bar.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
