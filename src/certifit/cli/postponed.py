"""Modules that libraries import and that hardly any command uses: loaded once something of them is asked for, or never.

scikit-learn imports scipy.stats (half a second) and, through joblib, asyncio, and SciPy copies NumPy's names, f2py's
too, each for a function that it seldom calls. pyarrow and scikit-learn look for pandas and rich, which they and
certifit work without; pandas takes a fifth of a second and 30 MB, and no command makes a frame.
Only in a process that is `certifit`: what another program imports is not ours to change.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from certifit.cli.signals import is_the_program

POSTPONED = ("asyncio", "charset_normalizer", "numpy.f2py", "scipy.stats")
LEFT_OUT = ("pandas", "rich")


class Postponing:
    """Finds the modules named above, with a loader that waits."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The place of a module that is postponed; None for all others. Those left out look missing."""
        if name in LEFT_OUT:
            raise ModuleNotFoundError(f"No module named {name!r}: certifit's commands leave it out.", name=name)
        spec = PathFinder.find_spec(name, path, target) if name in POSTPONED else None
        if spec is not None and spec.loader is not None:
            from importlib.util import LazyLoader

            spec.loader = LazyLoader(spec.loader)
        return spec


if is_the_program():
    sys.meta_path.insert(0, Postponing)
