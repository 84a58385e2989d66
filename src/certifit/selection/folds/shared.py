"""Statistics that models compared on the same rows share, each made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

MOST_BYTES = 1 << 28  # of statistics that are kept for another model; more are made again

Made = TypeVar("Made")


class Shared:
    """The store of one comparison (`Store`): mapped columns, and Gram matrices by cell of the same columns.

    The oldest statistics are forgotten where all of them take more than MOST_BYTES; what is made again has equal bits.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Sequence[object], Any, int]] = {}

    def once(self, made_of: Sequence[object], key: Hashable, make: Callable[[], Made], n_bytes: int = 0) -> Made:
        """What `make` returns, or has returned before for the same objects (by identity) and an equal key."""
        place = (*map(id, made_of), key)  # the objects are kept, so no other can have their ids
        if place not in self._known:
            self._known[place] = made_of, make(), n_bytes
            self._forget(place)
        made: Made = self._known[place][1]
        return made

    def _forget(self, newest: Hashable) -> None:
        total = sum(n_bytes for _, _, n_bytes in self._known.values())
        for place in [place for place, (_, _, n_bytes) in self._known.items() if n_bytes and place != newest]:
            if total <= MOST_BYTES:
                break
            total -= self._known.pop(place)[2]
