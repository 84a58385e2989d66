"""Which column of a table plays which part.

Goals: what a target may ask for; `data/target.py` finds out which. Plain names, importable without NumPy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import combinations
from typing import Any

from certifit.data.privacy import are_names


@dataclass(frozen=True)
class Roles:
    """Columns that are no features: the name of each, None where there is none."""

    target: str | None = None
    weight: str | None = None
    group: str | None = None
    offset: str | None = None
    exposure: str | None = None

    def named(self) -> dict[str, Any]:
        """Those that there are."""
        return {role: name for role, name in asdict(self).items() if name is not None}

    def columns(self) -> list[str]:
        """Their names."""
        return list(self.named().values())


def features(names: Sequence[str], roles: Roles, columns: Sequence[str] | None, where: str) -> list[str]:
    """The feature columns, in order: the given ones, or all without another role. Every name is checked."""
    if repeated := repeated_names(names):
        raise ValueError(f"{where} has more than one column named {', '.join(map(repr, repeated))}. Rename them.")
    taken, known = roles.columns(), set(names)
    chosen = [name for name in names if name not in taken] if columns is None else list(columns)
    for name in [*taken, *chosen]:
        if name not in known:
            refuse_unknown(name, names, where)
    for role, name in roles.named().items():
        if name in chosen:
            raise ValueError(f"{name!r} cannot be a feature and the {role} at once.")
    for (a, name), (b, other) in combinations(roles.named().items(), 2):
        if name == other:
            raise ValueError(f"{name!r} cannot be the {a} and the {b} at once.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"columns names a column twice: {chosen}.")
    if not chosen:
        raise ValueError(f"{where} has no column beside {', '.join(map(repr, taken))} to predict from.")
    return chosen


def repeated_names(names: Sequence[str]) -> list[str]:
    """Names that occur more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def refuse_unknown(name: str, names: Sequence[str], where: str) -> None:
    """Raise unless `name` is one of `names`."""
    if name in names:
        return
    same = [other for other in names if other.lower() == str(name).lower()]
    near = same or get_close_matches(str(name), list(names) if are_names(names) else [], n=3)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    if len(names) == 1 and str(name) in str(names[0]).split():
        said = "Its cells seem to be separated by spaces: separate them by commas, tabs or semicolons."
    elif f"'{name}'" in names:
        said = "Its cells stand in single quotes: write double quotes, or none."
    else:
        said = f"{hint}{listed(names)}"
    raise ValueError(f"{where} has no column {name!r}. {said}")


def listed(names: Sequence[str]) -> str:
    """Which columns there are, in a message; not where they may be cells of a row, and cells are not shown."""
    if not any(name.strip() for name in names):
        return "It has no other column."
    if not are_names(names):
        n_columns = f"{len(names)} column{'' if len(names) == 1 else 's'}"
        return f"It has {n_columns}, and its first line may be a row instead of names: --show-values prints it."
    return f"Its columns are {', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}."


QUANTITY, COUNTS, POSITIVE, CLASSES = "quantity", "counts", "positive", "classes"
GOALS = {QUANTITY: "a quantity", COUNTS: "counts", POSITIVE: "a positive quantity", CLASSES: "classes"}  # in words
