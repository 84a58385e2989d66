"""Numbers per class on the command line: LABEL=NUMBER,... for class weights and costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click

BALANCED = "balanced"


def spelt(label: Any) -> str:
    """A label as it stands in a file."""
    if isinstance(label, bool):
        return str(label).lower()
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def numbers_of(
    option: str, written: str, labels: Sequence[Any], shown: Sequence[str] | None = None
) -> dict[Any, float]:
    """{label: number > 0} of 'LABEL=NUMBER,LABEL=NUMBER'; a label may hold = of its own.

    shown: the labels as they may be printed.
    """
    by_spelling = {spelt(label): label for label in labels}
    numbers: dict[Any, float] = {}
    for part in written.split(","):
        name, _, number = part.rpartition("=")
        if "=" not in part or part in by_spelling:
            raise click.UsageError(_form(option, part))
        if name not in by_spelling:
            legal = ", ".join(shown if shown is not None else by_spelling)
            raise click.UsageError(f"--{option} names {name or part!r}, and the classes are {legal}.")
        numbers[by_spelling[name]] = _positive(option, number, part)
    return numbers


def _positive(option: str, number: str, part: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise click.UsageError(_form(option, part))
    return value


def _form(option: str, part: str) -> str:
    return f"--{option} is LABEL=NUMBER,... with numbers above 0. Got {part!r}."


def class_weight_of(written: str | None, labels: Sequence[Any], shown: Sequence[str]) -> Any:
    """The parameter class_weight that the option spells."""
    if written is None or written == BALANCED:
        return written
    return numbers_of("class-weight", written, labels, shown)


def costs_of(written: str | None, labels: Sequence[Any], shown: Sequence[str] | None = None) -> dict[Any, float] | None:
    """The cost of a wrong prediction for a row of each class; 1 for one that is not named."""
    if written is None:
        return None
    return dict.fromkeys(labels, 1.0) | numbers_of("costs", written, labels, shown)
