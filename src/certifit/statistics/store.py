"""Where statistics that several models need are asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeVar

Made = TypeVar("Made")


class Store(Protocol):
    """Statistics that are made when first asked for. It belongs to who compares models, never to a model."""

    def once(self, made_of: Sequence[object], key: Hashable, make: Callable[[], Made], n_bytes: int = 0) -> Made:
        """What `make` returns, or has returned before for the same objects and an equal key.

        n_bytes: memory that it takes, of statistics that may be forgotten and made again.
        """
