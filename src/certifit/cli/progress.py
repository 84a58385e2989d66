"""Progress on stderr: only on a terminal, and only when the work lasts longer than a moment."""

import contextlib
import functools
import io
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from certifit.cli.errors import say

DELAY_SECONDS = 0.8

# What a pass does, by the module of the function that reads its runs.
PASSES = {"labels": "looking at the labels", "survey": "looking at the columns", "residual": "proving"}

OWN_ROW = re.compile(r"\b(at row|Row) (\d+)\b(?! of)")  # rows that the library counts from 0


class Display:
    """The current step, rows read of how many, rows a second and the time left of this pass.

    Used as a context; `quiet` or a stderr that is no terminal shows nothing. An error that leaves the context says
    where in the files its row stands.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.is_quiet = quiet
        self.is_on = not quiet and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._bar: Any = None
        self._label = ""
        self._rows = 0
        self._total: int | None = None
        self._timer: threading.Timer | None = None
        self.place: Callable[[int], str] | None = None  # of a row of the run that was read last
        self.files: Any = None  # that rows are read from

    def __enter__(self) -> "Display":
        if self.is_on:
            self._timer = threading.Timer(DELAY_SECONDS, self._start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stop()
        if isinstance(error, ValueError) and self.place is not None and OWN_ROW.search(str(error)):
            raise ValueError(OWN_ROW.sub(functools.partial(_in_file, self.place), str(error))) from error

    def _stop(self) -> None:
        with self._lock:
            self.is_on = False
            if self._timer is not None:
                self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    @contextlib.contextmanager
    def yielding(self, are_refits: bool) -> Iterator[None]:
        """Leave the terminal to the bar that counts refits, where there are some; quiet silences that bar too."""
        if self.is_quiet:
            with contextlib.redirect_stderr(io.StringIO()):
                yield
            return
        if not self.is_on or not are_refits:
            yield
            return
        self._stop()
        yield
        self.is_on = True
        self._start()

    def step(self, label: str, total: int | None = None) -> None:
        """Name what is being done, and how many rows a pass has."""
        with self._lock:
            self._label, self._rows, self._total = label, 0, total
            if self._bar is not None:
                self._bar.reset(self._bar.task_ids[0], description=label, total=total, start=True)

    def read(self, n_rows: int) -> None:
        """Count rows."""
        with self._lock:
            self._rows += n_rows
            if self._bar is not None:
                self._bar.advance(self._bar.task_ids[0], n_rows)

    def say_passes(self, n_passes: int) -> None:
        """Say how many passes to expect, where every one of them parses text."""
        note = None if self.is_quiet or self.files is None else self.files.note(n_passes)
        if note is not None:
            say(f"Note: {note}")

    def watch(self, source: Any) -> Any:
        """The same source; every row read from it is counted."""
        return _watched(source, self)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn

        with self._lock:
            if not self.is_on:
                return
            columns = (SpinnerColumn(), TextColumn("{task.description}"), *_columns())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task(self._label, total=self._total, completed=self._rows)
            self._bar.start()


def _columns() -> tuple[Any, ...]:
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Rows(ProgressColumn):
        """'1,200,000 of 3,000,000 rows  800,000 rows/s'."""

        def render(self, task: Any) -> Text:
            return Text(rows_line(task.completed, task.total, task.speed))

    class Left(ProgressColumn):
        """'0:12 left', or the time since the start of the step."""

        def render(self, task: Any) -> Text:
            return Text(time_line(task.total, task.time_remaining, task.elapsed))

    return Rows(), Left()


def rows_line(n_rows: float, total: float | None, speed: float | None) -> str:
    """Rows read, of how many, and how fast."""
    if not n_rows:
        return ""
    of = f" of {total:,.0f}" if total else ""
    return f"{n_rows:,.0f}{of} rows" + (f"  {speed:,.0f} rows/s" if speed else "")


def time_line(total: float | None, left: float | None, elapsed: float | None) -> str:
    """The time left of a pass; the time since its start where that is not known."""
    if total and left is not None:
        return f"{_clock(left)} left"
    return _clock(elapsed or 0)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _watched(source: Any, display: Display) -> Any:
    from certifit.data.source import Block
    from certifit.data.source_wrappers import Wrapped

    class Watched(Wrapped):
        """A source that reports what is read from it."""

        def remembered(self, key: Any, make: Callable[[], Any]) -> Any:
            """A fact about all rows, known to the inner source."""
            return self.inner.remembered(key, make)

        def stretches(self) -> Iterator[Block]:
            """The runs of the inner source."""
            display.step(display._label, getattr(self.inner, "n_rows", None))
            display.place = functools.partial(_place, self.inner)
            for stretch in self._cut().stretches():
                yield stretch
                display.read(stretch.n_rows)

        def map(self, f: Callable[[Block], Any]) -> Iterator[Any]:
            """f of every stretch."""
            before, display._label = display._label, _pass_of(f) or display._label
            yield from map(f, self.stretches())
            display._label = before

    return Watched(source)


def _pass_of(f: Any) -> str | None:
    """What the pass does that calls f on every run."""
    while (inner := getattr(f, "func", None) or getattr(f, "f", None)) is not None:
        f = inner
    return PASSES.get(str(getattr(f, "__module__", "")).rpartition(".")[2])


def _in_file(place: Callable[[int], str], row_words: re.Match[str]) -> str:
    """Where a row that an error names stands in the file."""
    words = place(int(row_words[2]))
    return f"at {words}" if row_words[1] != "Row" else f"{words[0].upper()}{words[1:]}"


def _place(source: Any, row: int) -> str:
    """Where a row stands."""
    place = getattr(source, "place", "row {}".format)
    return str(place(row))
