"""Modules that libraries import and that hardly any command uses: loaded once something of them is asked for.

scikit-learn imports scipy.stats (half a second) and, through joblib, asyncio, each for a function that it seldom calls.
Only in a process that is `certifit`: what another program imports is not ours to change.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from certifit.cli.signals import is_the_program

POSTPONED = ("asyncio", "scipy.stats")


class Postponing:
    """Finds the modules named above, with a loader that waits."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The place of a module that is postponed; None for all others."""
        spec = PathFinder.find_spec(name, path, target) if name in POSTPONED else None
        if spec is not None and spec.loader is not None:
            from importlib.util import LazyLoader

            spec.loader = LazyLoader(spec.loader)
        return spec


if is_the_program():
    sys.meta_path.insert(0, Postponing)
