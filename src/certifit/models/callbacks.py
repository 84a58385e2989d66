"""Who watches a fit: its time limit, scikit-learn's callbacks, and a line of progress.

`fit_watch` is entered once, by `Estimator.fit`; solvers report to it through `minimise.steps.Steps`.

A line of progress for fits that take long: in notebooks and interactive terminals, not in scripts.

    LogisticRegression  step 37  objective 0.3106  gap 2.1e-05  █▄▂▁▁▁  0:12

The bars are the objective, step by step; a network that holds rows out has their loss too. Nothing is drawn in the
first two seconds. `certifit.progress(True)` asks for it anywhere, `progress(False)` for none.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from math import isfinite, isnan
from types import TracebackType
from typing import TYPE_CHECKING, Any

from certifit.data.user_input import UserRows, UserTarget, UserWeights
from certifit.minimise.steps import Listener, Watch, watched

if TYPE_CHECKING:

    class CallbackSupport:
        """Of scikit-learn: a model with set_callbacks."""

else:
    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupport
    except ImportError:

        class CallbackSupport:
            """scikit-learn before 1.9 has no callbacks: models then have no set_callbacks."""


PATIENCE = 2.0  # seconds before anything is drawn
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 24  # bars of a curve
_asked: ContextVar[bool | None] = ContextVar("progress", default=None)


@contextmanager
def progress(is_shown: bool) -> Iterator[None]:
    """Show a line of progress for fits inside the `with` block that take over two seconds, or show none.

    Without it notebooks and interactive terminals have one, and scripts have none.

    >>> with progress(False):
    ...     shows_progress()
    False
    """
    if not isinstance(is_shown, bool):
        raise TypeError(f"progress must be True or False. Got {is_shown!r}.")
    token = _asked.set(is_shown)
    try:
        yield
    finally:
        _asked.reset(token)


def shows_progress() -> bool:
    """Whether a fit that takes long says how far it is."""
    asked = _asked.get()
    return _is_interactive() if asked is None else asked


def _is_interactive() -> bool:
    """A notebook, or a prompt on a terminal: somebody waits for the answer of a line."""
    if "ipykernel" in sys.modules:
        return True
    return hasattr(sys, "ps1") and sys.stderr is not None and sys.stderr.isatty()


class ProgressLine:
    """The line of one fit. Entered, it gives the listener that it is told steps by."""

    def __init__(self, name: str) -> None:
        self.text = name
        self._name = name
        self._lock = threading.Lock()
        self._line: Any = None
        self._curve: list[float] = []
        self._is_over = False
        self._timer = threading.Timer(PATIENCE, self._draw)
        self._timer.daemon = True

    def __enter__(self) -> Listener:
        self._timer.start()
        return self.tell

    def tell(self, row: Mapping[str, float]) -> bool:
        """The step that was made last; never asks to stop."""
        shown = ((name, row.get(name, float("nan"))) for name in ("objective", "gap", "held_out"))
        numbers = "".join(f"  {name.replace('_', ' ')} {value:.4g}" for name, value in shown if not isnan(value))
        if isfinite(row.get("objective", float("nan"))):
            self._curve.append(row["objective"])
        self.text = f"{self._name}  step {int(row['iteration'])}{numbers}  {curve_of(self._curve)}".rstrip()
        if self._line is not None:
            self._line.update(self._line.task_ids[0], description=self.text)
        return False

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._is_over:
                return
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            line = Progress(*columns, console=Console(stderr=True), transient=True)
            line.add_task(self.text, total=None)
            line.start()
            self._line = line

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._line is not None:
                self._line.stop()


def curve_of(values: Sequence[float]) -> str:
    """Numbers as bars of a line of text, the least the lowest; of many some at equal steps, the last among them.

    >>> curve_of([8.0, 4.0, 2.0, 1.0, 1.0])
    '█▄▂▁▁'
    """
    n = min(len(values), WIDTH)
    if n < 3:
        return ""
    shown = [values[(len(values) - 1) * k // (n - 1)] for k in range(n)]
    low, high = min(shown), max(shown)
    return "".join(BARS[int((len(BARS) - 1) * (value - low) / (high - low)) if high > low else 0] for value in shown)


Roles = Mapping[str, UserWeights]
NOBODY = Watch()


def fit_watch(model: Any, X: UserRows, y: UserTarget, roles: Roles) -> AbstractContextManager[None]:
    """The fit of a model under its time limit, its callbacks, and a line of progress where one is wanted."""
    max_time = getattr(model, "max_time", None)
    if max_time is None and "_skl_callbacks" not in model.__dict__ and not shows_progress():
        return watched(NOBODY)
    return _watched_fit(model, max_time, X, y, roles)


@contextmanager
def _watched_fit(model: Any, max_time: float | None, X: UserRows, y: UserTarget, roles: Roles) -> Iterator[None]:
    deadline = None if max_time is None else time.perf_counter() + float(max_time)
    listeners: list[Listener] = []
    with ExitStack() as stack:
        if getattr(model, "_skl_callbacks", None):
            listeners.append(stack.enter_context(_callbacks(model, X, y, roles)))
        if shows_progress():
            listeners.append(stack.enter_context(ProgressLine(type(model).__name__)))
        listener = (lambda row: any([tell(row) for tell in listeners])) if listeners else None
        stack.enter_context(watched(Watch(deadline, None if max_time is None else float(max_time), listener)))
        yield


@contextmanager
def _callbacks(model: Any, X: UserRows, y: UserTarget, roles: Roles) -> Iterator[Listener]:
    """scikit-learn's callbacks: the fit is a task, every step a task inside it; metadata["step"] is its row."""
    from sklearn.callback import with_callbacks

    rows = {"X": X, "y": y}
    metadata = {name: value for name, value in roles.items() if value is not None}
    try:
        root = model._init_callback_context(max_subtasks=None)
        root.call_on_fit_task_begin(estimator=model, metadata=metadata, **rows)

        def tell(row: Mapping[str, float]) -> bool:
            told = {"estimator": model, "metadata": {**metadata, "step": dict(row)}, **rows}
            step = root.subcontext(task_name="step").call_on_fit_task_begin(**told)
            return bool(step.call_on_fit_task_end(**told))

        yield tell
        attributes = {name: value for name, value in vars(model).items() if name.endswith("_")}
        root.call_on_fit_task_end(estimator=model, metadata=metadata, reconstruction_attributes=attributes, **rows)
    finally:
        with_callbacks(_nothing)(model)  # tears down what was set up, after a fit that failed too


def _nothing(model: object) -> None:
    """The end of a fit: all that is left to do is what `with_callbacks` does after it."""
