"""A model on the command line: its name there, what goes with it, and the options that it brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from certifit.data.tasks import QUANTITY


@dataclass(frozen=True)
class Option:
    """An option that some models have. parameter: what it sets; the table of models has its legal values.

    parameter None: the option names columns, which the command line makes into parameters.
    """

    name: str
    metavar: str
    help: str
    parameter: str | None = None
    reads: Callable[[str], Any] = float


@dataclass(frozen=True)
class Command:
    """name: after --model. label: in the leaderboard. help: what the model is, in a few words.

    goal: what it predicts. compared_for: the goals that `auto` compares it for; "texts" is classes of free text.
    fixed: parameters that the command line sets. roles: columns beside the target that it reads. tunes: the option
    whose value the folds choose where it is not given. needs_folds: that value has no default. has_p_values: why it is
    taken where it does nearly as well as the best. reads_counts: its columns are flags or counts, such as words;
    counts_words: how often a word is there, not whether. selects: `certifit select` has it.
    """

    name: str
    label: str
    help: str
    goal: str = QUANTITY
    compared_for: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    tunes: str | None = None
    needs_folds: bool = False
    has_p_values: bool = False
    reads_counts: bool = False
    counts_words: bool = False
    selects: bool = False
