"""Which column of a table plays which part."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import combinations


def features(
    names: Sequence[str],
    target: str | None,
    weight: str | None,
    columns: Sequence[str] | None,
    where: str,
    group: str | None = None,
) -> list[str]:
    """The feature columns, in order: the given ones, or all but target, weight and group. Every name is checked."""
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise ValueError(f"{where} has more than one column named {repeated}. Rename them.")
    taken = [name for name in (target, weight, group) if name is not None]
    chosen = [name for name in names if name not in taken] if columns is None else list(columns)
    for name in [*taken, *chosen]:
        refuse_unknown(name, names, where)
    if overlap := set(taken) & set(chosen):
        raise ValueError(f"{sorted(overlap)} cannot be a feature and the target, weight or group at once.")
    for a, b in combinations((("target", target), ("weight", weight), ("group", group)), 2):
        if a[1] is not None and a[1] == b[1]:
            raise ValueError(f"{a[1]!r} cannot be the {a[0]} and the {b[0]} at once.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"columns names a column twice: {chosen}.")
    if not chosen:
        raise ValueError(f"{where} has no feature columns beside {taken}.")
    return chosen


def refuse_unknown(name: str, names: Sequence[str], where: str) -> None:
    """Raise unless `name` is one of `names`."""
    if name in names:
        return
    same = [one for one in names if one.lower() == str(name).lower()]
    near = same or get_close_matches(str(name), list(names), n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    raise ValueError(f"{where} has no column {name!r}.{hint} Its columns are {shown}.")
