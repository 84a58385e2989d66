"""Progress on stderr: only on a terminal, and only when the work lasts longer than a moment."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

DELAY_SECONDS = 0.8


class Display:
    """A spinner with the current step, rows read, rows a second and the time since the start.

    Used as a context; `quiet` or a stderr that is no terminal shows nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.is_on = not quiet and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._bar: Any = None
        self._label = ""
        self._rows = 0
        self._timer: threading.Timer | None = None

    def __enter__(self) -> "Display":
        if self.is_on:
            self._timer = threading.Timer(DELAY_SECONDS, self._start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self.is_on = False
            if self._timer is not None:
                self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()

    def step(self, label: str) -> None:
        """Name what is being done."""
        with self._lock:
            self._label, self._rows = label, 0
            if self._bar is not None:
                self._bar.reset(self._bar.task_ids[0], description=label, start=True)

    def read(self, n_rows: int) -> None:
        """Count rows."""
        with self._lock:
            self._rows += n_rows
            if self._bar is not None:
                self._bar.advance(self._bar.task_ids[0], n_rows)

    def watch(self, source: Any) -> Any:
        """The same source; every row read from it is counted."""
        return _watched(source, self) if self.is_on else source

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.text import Text

        class Rows(ProgressColumn):
            """'1,200,000 rows  800,000/s'."""

            def render(self, task: Any) -> Text:
                speed = task.speed or 0
                return Text(f"{task.completed:,.0f} rows" + (f"  {speed:,.0f}/s" if speed else ""))

        with self._lock:
            if not self.is_on:
                return
            columns = (SpinnerColumn(), TextColumn("{task.description}"), Rows(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task(self._label, total=None, completed=self._rows)
            self._bar.start()


def _watched(source: Any, display: Display) -> Any:
    from certifit.data.source import Block, Source

    class Watched(Source):
        """A source that reports what is read from it."""

        def __init__(self) -> None:
            self.names, self.named, self.target = source.names, source.named, source.target
            self.n_features, self.block_rows = source.n_features, source.block_rows

        def runs(self) -> Iterator[Block]:
            """The runs of the inner source."""
            with contextlib.closing(source.runs()) as runs:
                for run in runs:
                    yield run
                    display.read(run.n_rows)

    return Watched()
