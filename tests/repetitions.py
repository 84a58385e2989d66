"""How many random cases of one claim are tried: some by `make test`, all of them, with ten seeds, by `make soak`."""

from __future__ import annotations

import os

IS_SOAK = os.environ.get("CERTIFIT_TEST_SEED") == "all"


def some_of(n: int) -> int:
    """A third of n, or all."""
    return n if IS_SOAK else -(-n // 3)
