"""Offset and exposure columns of new data: those that are named, else those of the fit."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from certifit.cli.errors import say
from certifit.cli.models import OFFSETS

Command = TypeVar("Command", bound=Callable[..., Any])

NONE = "none"
_WITHOUT = {"offset": "offset 0", "exposure": "exposure 1: a rate"}


def offset_options(command: Command) -> Command:
    """The options of a command that reads a model and its data."""
    for role in OFFSETS:
        words = f"Column of the {role}; `{NONE}` for none. Default: as in the model file."
        command = click.option(f"--{role}", metavar="NAME", help=words)(command)
    return command


def offset_roles(fitted: Any, **given: str | None) -> dict[str, str | None]:
    """The columns that the model reads as offset and exposure: the given ones, else those of its fit."""
    from certifit.data.gate import takes

    roles = {}
    for role, name in given.items():
        if name not in (None, NONE) and not takes(fitted, role):
            raise ValueError(f"--{role}: a {type(fitted).__name__} has none. Leave it out.")
        own = {"offset": fitted.offset_name_, "exposure": fitted.exposure_name_}[role]
        roles[role] = own if name is None else None if name == NONE else name
    return roles


def offsets_there(fitted: Any, names: Sequence[str], is_quiet: bool, **given: str | None) -> dict[str, str | None]:
    """The same for a prediction, which needs neither: a column of the fit that new data lacks is left out, and said."""
    roles = offset_roles(fitted, **given)
    for role, name in roles.items():
        if name is None or given[role] is not None:
            continue
        is_there = name in names
        roles[role] = name if is_there else None
        read = f"column {name!r}, as in the fit" if is_there else f"left out: there is no column {name!r}"
        effect = f"For {_WITHOUT[role]}, add --{role} {NONE}." if is_there else f"Predictions are for {_WITHOUT[role]}."
        if not is_quiet:
            say(f"The {role} is {read}. {effect}")
    return roles
