"""The models of `certifit fit`: which ones a name means, how each is made, which options go with which.

The options of `certifit fit` that say what is predicted, and by which model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from certifit.cli.paths import listed_names
from certifit.data.roles import CLASSES, GOALS, QUANTITY
from certifit.models.learner import Command, Learner, Option, Param, Simplicity
from certifit.models.table import COMPOSITES, LEARNERS

if TYPE_CHECKING:
    ValueType = click.ParamType[Any]
    NameType = click.Choice[str]
else:  # before click 8.4 these take no type
    ValueType, NameType = click.ParamType, click.Choice

AUTO = "auto"
NAME_BELOW = "MODEL"  # stands for a value in the help of an option, and says that the models are listed below
AS_CATEGORIES = " on codes"  # behind the label of a model that reads whole numbers of few values as categories
ROWS_PER_LEVEL = 20  # so many rows per level allow such a reading to be compared
# Options that auto takes too: the first where every model it compares has them, columns for those models that do.
SHARED = {"degree": "basis", "no_intercept": "fit_intercept"}  # what they set
SUMS = (Simplicity.P_VALUES, Simplicity.COEFFICIENTS)
OFFSETS = ("offset", "exposure")
# Nanoseconds of a fit that auto makes ten times unasked: some twenty seconds of a core for a model, three for one that
# is taken only where nothing simpler does as well.
MOST_WORK = dict.fromkeys(Simplicity, 2e9) | {Simplicity.HOLDS_ROWS: 3e8}


@dataclass(frozen=True)
class Kind:
    """A model and one of its names on the command line."""

    learner: Learner
    command: Command

    @property
    def takes(self) -> tuple[str, ...]:
        """The options that go with it."""
        names = tuple(option.name for option in self.command.options)
        shared = tuple(name for name, parameter in SHARED.items() if self.has(parameter))
        return (*names, *shared, *self.command.roles)

    def has(self, parameter: str) -> bool:
        """Whether it has a parameter of this name."""
        return parameter in self.learner.params or parameter in self.learner.others

    def make(
        self, common: Mapping[str, Any], options: Mapping[str, Any], rule: str, is_compared: bool = False
    ) -> Candidate:
        """The model. common: parameters, of which it takes those it has; options: of its own. is_compared: by auto."""
        parameters = dict(self.command.fixed) | {name: value for name, value in common.items() if self.has(name)}
        if self.command.counts_words:
            parameters["encoder"] = _counting(parameters["encoder"])
        for option in self.command.options:
            if option.parameter is not None and option.name in options:
                parameters[option.parameter] = options[option.name]
        model = self.learner.load()(**parameters, **_of_columns(options))
        if is_compared and self.command.compared_in is not None:
            around, settings = self.command.compared_in
            model = COMPOSITES[around].load()(model, **settings)
        is_open = self.command.tunes is not None and self.command.tunes not in options
        return Candidate(model, rule if is_open else None)


@dataclass(frozen=True)
class Candidate:
    """A model to compare. rule: by which folds choose its strength; None where it is fitted as it is."""

    estimator: Any
    rule: str | None = None

    @property
    def searched(self) -> Any:
        """The model that the folds tune."""
        from certifit.selection.compare.cross_validated import CrossValidated

        return self.estimator if self.rule is None else CrossValidated(self.estimator, rule=self.rule)


def _is_slow(command: Command, n_rows: int, n_columns: int, n_classes: int, has_texts: bool) -> bool:
    most = MOST_WORK[command.simplicity] if command.most_work is None else command.most_work
    return command.work_of(n_rows, n_columns, n_classes, has_texts) > most


def _place(simplicity: Simplicity) -> int:
    return list(Simplicity).index(simplicity)


def kinds_of(learners: Iterable[Learner]) -> dict[str, Kind]:
    """By name, those of a quantity first; of each goal the simplest first: one with p-values."""
    kinds = [Kind(learner, command) for learner in learners for command in learner.commands]
    goals = list(GOALS)
    kinds.sort(key=lambda kind: (goals.index(kind.command.goal), _place(kind.command.simplicity)))
    return {kind.command.name: kind for kind in kinds}


KINDS = kinds_of(LEARNERS.values())
# What auto compares for every goal, and for classes where a column is free text. A goal without models of its own is
# recognised as a quantity.
COMPARED: dict[str, tuple[str, ...]] = {
    goal: tuple(name for name, kind in KINDS.items() if goal in kind.command.compared_for) for goal in (*GOALS, "texts")
}
# option -> models that have it
GOES_WITH = {
    option: tuple(name for name, kind in KINDS.items() if option in kind.takes)
    for option in dict.fromkeys(option for kind in KINDS.values() for option in kind.takes)
}
OWN = tuple(option for option in GOES_WITH if option not in (*SHARED, *OFFSETS))


@dataclass(frozen=True)
class Choice:
    """What is to be predicted, the models asked for, and the options that only some models have."""

    kind: str = AUTO
    goal: str = AUTO
    own: Mapping[str, Any] = field(default_factory=dict)
    positive: str | None = None
    class_weight: str | None = None
    costs: str | None = None
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: COMPARED)
    is_meant: bool = True  # the goal was asked for, and does not follow from the name of the model

    @staticmethod
    def of(
        kind: str,
        goal: str = AUTO,
        positive: str | None = None,
        class_weight: str | None = None,
        costs: str | None = None,
        compared: Mapping[str, tuple[str, ...]] | None = None,
        **of_models: Any,
    ) -> Choice:
        """From the options of the command line; refuses one that does not go with the model, or that with the goal.

        compared: the models of every goal, COMPARED unless given.
        """
        options = {name: value for name, value in of_models.items() if value is not None}
        for name in options:
            if kind not in GOES_WITH[name]:
                legal = " or ".join(GOES_WITH[name])
                raise click.UsageError(f"--{dashed(name)} is for --model {legal}, and --model is {kind}.")
        is_meant = goal != AUTO
        kind = sibling(kind, goal)
        predicts = goal if kind == AUTO else KINDS[kind].command.goal
        if goal not in (AUTO, predicts):
            legal = ", ".join(name for name, row in KINDS.items() if row.command.goal == goal)
            models = f"Its models are {legal}." if legal else "No model is made for it."
            raise click.UsageError(f"--model {kind} predicts {GOALS[predicts]}, and --task is {goal}. {models}")
        if positive is not None and predicts not in (AUTO, CLASSES):
            raise click.UsageError(f"--positive names one of two classes, and the target is {GOALS[predicts]}.")
        choice = Choice(
            kind, predicts, options, positive, class_weight, costs, COMPARED if compared is None else compared, is_meant
        )
        if choice.of_classes and predicts not in (AUTO, CLASSES):
            raise click.UsageError(f"--{choice.of_classes[0]} is for classes, and the target is {GOALS[predicts]}.")
        if class_weight is not None and kind != AUTO and not KINDS[kind].has("class_weight"):
            legal = ", ".join(name for name in KINDS if KINDS[name].has("class_weight"))
            raise click.UsageError(f"--class-weight is for --model {legal}, and --model is {kind}.")
        return choice

    @property
    def of_classes(self) -> list[str]:
        """The options that only classes have, of those that are given."""
        options = {"class-weight": self.class_weight, "costs": self.costs}
        return [name for name, value in options.items() if value is not None]

    def recognised(self, goal: str) -> str:
        """A goal that was found, where models are compared for it; else a quantity."""
        return goal if self.compared[goal] else QUANTITY

    def kinds(self, goal: str, has_texts: bool = False, **shared: bool) -> tuple[str, ...]:
        """The models to compare. shared: which of the options that auto takes too are given."""
        compared = self._compared("texts" if has_texts and goal == CLASSES else goal, shared)
        for name in (name for name, is_given in shared.items() if is_given):
            lacking = [kind for kind in compared if name not in KINDS[kind].takes]
            if lacking:
                legal = ", ".join(kind for kind in GOES_WITH.get(name, ()) if _may_be(kind, goal, name))
                instead = f" It is for --model {legal}." if legal else " Leave it out."
                why = f", and the target is {GOALS[goal]}" if self.kind == AUTO else ""
                raise click.UsageError(f"--{dashed(name)} does not go with {', '.join(lacking)}{why}.{instead}")
        return compared

    def _compared(self, goal: str, shared: Mapping[str, bool]) -> tuple[str, ...]:
        """The models of a goal, of those that auto compares the ones that read the columns which are given."""
        if self.kind != AUTO:
            return (sibling(self.kind, goal),)
        if not self.compared[goal]:
            raise click.UsageError(f"No model is made for {GOALS[goal]}. Use --task {QUANTITY}.")
        compared = self.compared[goal]
        if any(shared.get(name) for name in SHARED):  # said of sums over columns: no tree, network or kernel is asked
            compared = tuple(kind for kind in compared if KINDS[kind].command.simplicity in SUMS)
        if self.class_weight is not None:
            compared = tuple(kind for kind in compared if _is_weighted(kind))
        offsets = {name for name in OFFSETS if shared.get(name)}
        return tuple(kind for kind in compared if offsets.issubset(KINDS[kind].takes)) or compared

    def unweighted_note(self, goal: str, has_texts: bool) -> list[str]:
        """Which models auto does not compare with --class-weight, and why."""
        compared = self.compared["texts" if has_texts else goal]
        if self.kind != AUTO or self.class_weight is None or all(map(_is_weighted, compared)):
            return []
        left = {kind: KINDS[kind] for kind in compared if not _is_weighted(kind)}
        without = [row.command.label for row in left.values() if not row.has("class_weight")]
        around = {kind: row.command.label for kind, row in left.items() if row.has("class_weight")}
        said = [f"{_and(without)} (no such weights)"] if without else []
        if around:
            asking = " or ".join(f"--model {kind}" for kind in around)
            why = f"chances are calibrated on rows as they are; {asking} takes the weights"
            said.append(f"{_and(list(around.values()))} ({why})")
        return [f"Not compared with --class-weight: {'; '.join(said)}."]

    def affordable(
        self, kinds: Sequence[str], n_rows: int, n_columns: int, n_classes: int = 0, has_texts: bool = False
    ) -> tuple[tuple[str, ...], list[str]]:
        """Of models that are compared those whose folds are quick enough unasked, and a note on the others."""
        if self.kind != AUTO:
            return tuple(kinds), []
        slow = [kind for kind in kinds if _is_slow(KINDS[kind].command, n_rows, n_columns, n_classes, has_texts)]
        if not slow:
            return tuple(kinds), []
        labels = _and([KINDS[kind].command.label for kind in slow])
        size = f"{n_rows:,} rows and {n_columns:,} columns"
        size = f"{n_rows:,} rows, {n_columns:,} columns and {n_classes:,} classes" if n_classes > 2 else size
        asking = f"To fit one, say --model {' or --model '.join(slow)}."
        note = f"Not compared, for its folds would be slow on {size}: {labels}. {asking}"
        note = note if len(slow) == 1 else note.replace("its", "their", 1)
        return tuple(kind for kind in kinds if kind not in slow), [note]

    def refuse_rule(self, kinds: Sequence[str], cv: int | None) -> None:
        """Raise where nothing is left for folds to choose, so that a rule of the choice says nothing."""
        if cv == 0:
            raise click.UsageError("--rule chooses by folds, and --cv is 0.")
        if not any(
            KINDS[kind].command.tunes is not None and KINDS[kind].command.tunes not in self.own for kind in kinds
        ):
            fixed = next((option for kind in kinds if (option := KINDS[kind].command.tunes) in self.own), None)
            why = f"--model {kinds[0]} has nothing to tune" if fixed is None else f"--{fixed} is given"
            raise click.UsageError(f"--rule says which strength the folds choose, and {why}. Leave it out.")

    def candidates(
        self, kinds: Sequence[str], common: Mapping[str, Any], rule: str, names: Sequence[str]
    ) -> dict[str, Candidate]:
        """The models by name. names: of the data."""
        from certifit.data.roles import refuse_unknown

        for option in ("increasing", "decreasing", "unpenalised"):
            for name in _names(self.own, option):
                refuse_unknown(name, names, f"--{option}: the data")
        is_compared = self.kind == AUTO
        return {KINDS[kind].command.label: KINDS[kind].make(common, self.own, rule, is_compared) for kind in kinds}


def _is_weighted(kind: str) -> bool:
    """Whether auto compares it with weights of classes. A model around another one does not know its labels."""
    return KINDS[kind].has("class_weight") and KINDS[kind].command.compared_in is None


def sibling(kind: str, goal: str) -> str:
    """The model of the same sort that predicts the goal: of `network` and counts `poisson-network`; else the model."""
    if kind == AUTO or KINDS[kind].command.goal == goal:
        return kind
    rows = (name for name, row in KINDS.items() if row.command.goal == goal and _sort(name) == _sort(kind))
    return next(rows, kind)


def _sort(kind: str) -> str:
    """Of `regression-tree` and `tree`: trees. Ridge of a quantity and of counts are two models."""
    bare = kind.removeprefix("regression-").removeprefix("poisson-").removeprefix("gamma-")
    return bare if bare in ("tree", "network", "boosting", "forest") else kind


def untuned(candidate: Candidate, kind: str, notes: Sequence[str]) -> Any:
    """The model to fit where nothing was cross-validated; notes: why."""
    if candidate.rule is None or kind == AUTO or not KINDS[kind].command.needs_folds:
        return candidate.estimator
    why = " ".join(notes) or "--cv is 0."
    raise click.UsageError(f"--model {kind} needs folds to choose the penalty, or --alpha A. {why}")


def preferred(kinds: Iterable[str], labels: Iterable[str]) -> dict[str, Any]:
    """What a leaderboard of models with these labels prefers: the simplest first, and why."""
    simplicities = {KINDS[kind].command.label: KINDS[kind].command.simplicity for kind in kinds}
    # Columns compared, as a selection does, have no label of a model: none is preferred.
    of_label = {label: simplicities.get(label.removesuffix(AS_CATEGORIES)) for label in labels}
    groups = {simplicity: [label for label in of_label if of_label[label] is simplicity] for simplicity in Simplicity}
    some = {simplicity: labels for simplicity, labels in groups.items() if labels}
    return {"prefer": list(some.values()), "because": [simplicity.value for simplicity in some]}


def penalised(board: Any) -> Any:
    """The best of the compared models that have a penalty, and so a best fit where classes or counts are separated."""
    models = (entry for entry in board.entries if entry.model is not None)
    return next((entry for entry in models if (entry.model.get_params(deep=False).get("alpha") or 0) > 0), None)


def _may_be(kind: str, goal: str, option: str) -> bool:
    """Whether a model that has an option suits the goal; an offset or exposure says itself what the target is."""
    return option in OFFSETS or KINDS[kind].command.goal == goal


def dashed(name: str) -> str:
    """The name of an option as it is typed."""
    return name.replace("_", "-")


def _counting(encoder: Any) -> Any:
    """A copy of an encoder that counts how often a word is there."""
    from sklearn.base import clone

    encoder = clone(encoder)
    if encoder.texts is not None:
        encoder.texts.set_params(binary=False)
    return encoder


def _of_columns(options: Mapping[str, Any]) -> dict[str, Any]:
    """Bounds and penalty factors from the columns that options name."""
    bounds = {name: way for way in ("increasing", "decreasing") for name in _names(options, way)}
    twice = sorted(set(_names(options, "increasing")) & set(_names(options, "decreasing")))
    if twice:
        raise click.UsageError(f"{', '.join(twice)} cannot be both --increasing and --decreasing.")
    factors = dict.fromkeys(_names(options, "unpenalised"), 0.0)
    by_column = {"bounds": bounds, "penalty_factors": factors}
    return {name: value for name, value in by_column.items() if value}


def _names(options: Mapping[str, Any], option: str) -> Sequence[str]:
    return listed_names(options.get(option)) or ()


class Legal(ValueType):
    """The value of an option, legal by the table of models."""

    def __init__(self, option: Option, param: Param) -> None:
        self.name, self.reads, self.param = option.metavar, option.reads, param

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, or a sentence on what is legal."""
        try:
            read = self.reads(value)
        except ValueError:
            read = value
        if not self.param.is_legal(read):
            self.fail(f"{param.name if param else self.name} must be {self.param.legal}. Got {value}.", param, ctx)
        return read


def _option(option: Option, learner: Learner) -> Callable[[Any], Any]:
    param = option.legal if option.parameter is None or option.legal else learner.params[option.parameter]
    kind = click.STRING if param is None else Legal(option, param)
    return click.option(f"--{dashed(option.name)}", type=kind, metavar=option.metavar, help=option.help)


def own_options(*names: str) -> tuple[Callable[[Any], Any], ...]:
    """The options that some models bring, all or those that are named."""
    options: dict[str, Callable[[Any], Any]] = {}
    for kind in KINDS.values():
        for option in kind.command.options:
            if not names or option.name in names:
                options.setdefault(option.name, _option(option, kind.learner))
    return tuple(options.values())


class ModelName(NameType):
    """The name of a model; one that is not there is answered by names near it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or a sentence on names like it."""
        names = list(self.choices)
        if value in names:
            return str(value)
        near = [name for name in names if name in value or value in name] or get_close_matches(value, names, n=3)
        guess = f" Did you mean {' or '.join(map(repr, near[:4]))}?" if near else ""
        self.fail(f"there is no model {value!r}.{guess} All are: {', '.join(names)}.", param, ctx)


def help_of(compared: Mapping[str, Sequence[str]], names: Iterable[str]) -> str:
    """What --model does. The models themselves are listed below the options, by `listed_models`."""
    margins = [name for name in names if KINDS[name].command.compared_in is not None]
    return (
        "One of the models listed below; tree, network, boosting and forest are those that suit the target. auto: the "
        "best on rows it did not see (a simpler one where it is within one standard error) of those with a star that "
        f"are quick enough. Of classes auto ranks probabilities: those of {_and(margins)} are calibrated, on rows held "
        f"out. With free text it compares {_and(compared['texts'])}."
    )


def listed_models() -> dict[str, list[tuple[str, str]]]:
    """Title -> (name, what it is) of the models for --model; those that auto compares have a star."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for name, kind in KINDS.items():
        star = " *" if name in COMPARED[kind.command.goal] else ""
        rows.setdefault(f"Models of {GOALS[kind.command.goal]}", []).append((f"{name}{star}", f"{kind.command.help}."))
    return rows


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


model_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--task", "goal", type=click.Choice([AUTO, *GOALS]), default=AUTO, show_default=True,
        help="What the target is. auto: text, true/false and two whole numbers are classes; whole numbers >= 0 with an "
        "exposure, or from 0 or 1 up and skewed to the right, are counts; skewed numbers > 0 are positive; others a "
        "quantity.",
    ),
    click.option(
        "--model", "kind", type=ModelName([AUTO, *KINDS]), default=AUTO, show_default=True, metavar=NAME_BELOW,
        help=help_of(COMPARED, KINDS),
    ),
    *own_options(),
    click.option(
        "--positive", metavar="LABEL", help="Of two classes, the one to find. Default: the second in order.",
    ),
)  # fmt: skip
