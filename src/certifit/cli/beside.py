"""Modules that a fit needs after its rows, imported while these are read: a parser leaves a core idle."""

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

# None of them is imported by those who read rows: two threads never load one module.
_AFTER_ROWS = (
    "certifit.cli.words",
    "certifit.selection.compare.leaderboard",
    "certifit.report.context",
    "certifit.report.page",
    "certifit.report.validation",
)
_SWITCH = 2e-4  # seconds after which the reader gets its turn, in which it does little


@contextmanager
def importing() -> Iterator[None]:
    """Inside, another thread imports; it has ended behind. An error or Ctrl-C inside does not wait for it."""
    thread = Thread(target=_load, name="certifit-import")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        thread.start()
        yield
    finally:
        sys.setswitchinterval(interval)
    thread.join()


def _load() -> None:
    was_on = gc.isenabled()
    gc.disable()  # modules are many objects and no garbage
    try:
        for name in _AFTER_ROWS:
            importlib.import_module(name)
    except ImportError:
        return  # told by the import that needs the module
    finally:
        if was_on:
            gc.enable()
