"""Who watches a fit: its time limit, scikit-learn's callbacks, and a line of progress.

`fit_watch` is entered once, by `Estimator.fit`; solvers report to it through `minimise.steps.Steps`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from certifit.data.user_types import UserRows, UserTarget, UserWeights
from certifit.minimise.steps import Listener, Watch, watched
from certifit.models.progress import ProgressLine, shows_progress

if TYPE_CHECKING:

    class CallbackSupport:
        """Of scikit-learn: a model with set_callbacks."""

else:
    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupport
    except ImportError:  # scikit-learn before 1.9 has no callbacks: models then have no set_callbacks
        CallbackSupport = object

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
