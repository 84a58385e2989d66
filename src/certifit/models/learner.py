"""What is known of a model without its code: one row per model, with the legal values of its parameters.

Plain data, importable without NumPy: fits check parameters by it, model files their metadata, the command line its
options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from certifit.models.command import Command
from certifit.models.objectives import Objective
from certifit.models.words import Words

if TYPE_CHECKING:
    from certifit.models.state import Record


@dataclass(frozen=True)
class Param:
    """The legal values of a parameter, and its default. legal completes the sentence "alpha must be ...".

    is_kind: whether a value is of the right type at all. accepts: whether one of that type is legal. advice: what to do
    about one that is not.
    """

    legal: str
    default: Any
    is_kind: Callable[[Any], bool]
    accepts: Callable[[Any], bool]
    or_none: bool = False
    advice: str = ""

    def is_legal(self, value: Any) -> bool:
        """Whether a value that is not None is legal."""
        return self.is_kind(value) and self.accepts(value)

    def check(self, name: str, value: Any) -> None:
        """Refuse a value that is not legal."""
        if value is None and self.or_none:
            return
        legal = f"{self.legal} or None" if self.or_none else self.legal
        sentence = f"The parameter {name} must be {legal}. Got {brief(value)}. {self.advice}".rstrip()
        if not self.is_kind(value):
            raise TypeError(sentence)
        if not self.accepts(value):
            raise ValueError(sentence)


def brief(value: Any) -> str:
    """A value in words, or how long it is."""
    if isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) >= 10**20:
        return f"a whole number of {int(value).bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_number(value: Any) -> bool:
    """A real number that is no flag."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """A whole number that is no flag."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_flag(value: Any) -> bool:
    """True or False, NumPy's too."""
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def as_float(value: Any) -> float:
    """NaN for numbers beyond float64: comparisons with it are false."""
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _shown(value: float) -> str:
    """1e-6, not 1e-06."""
    return f"{value:g}".replace("e-0", "e-").replace("e+0", "e")


def number(
    default: float | None,
    least: float = 0.0,
    most: float = math.inf,
    *,
    is_above: bool = False,
    or_none: bool = False,
    advice: str = "",
) -> Param:
    """A finite number from least to most. is_above: above the least."""
    if least == -math.inf:
        legal = "a finite number"
    elif is_above:
        legal = f"a number above {_shown(least)} and at most {_shown(most)}"
    elif math.isfinite(most):
        legal = f"a number from {_shown(least)} to {_shown(most)}"
    else:
        legal = f"a finite number >= {_shown(least)}"

    def accepts(value: Any) -> bool:
        x = as_float(value)
        return math.isfinite(x) and least <= x <= most and (x > least or not is_above)

    return Param(legal, default, is_number, accepts, or_none, advice)


def count(default: int, least: int = 1, most: int | None = None) -> Param:
    """A whole number."""
    legal = f"a whole number >= {least}" if most is None else f"a whole number from {least} to {most}"
    return Param(legal, default, is_whole, lambda value: least <= value and (most is None or value <= most))


def flag(default: bool) -> Param:
    """True or False."""
    return Param("True or False", default, is_flag, lambda value: True)


def choice(default: str, *words: str) -> Param:
    """One of some words."""
    legal = f"one of {', '.join(map(repr, words))}"
    return Param(legal, default, lambda value: True, lambda value: isinstance(value, str) and value in words)


def either(legal: str, default: Any, *kinds: Param, or_none: bool = False) -> Param:
    """A value that one of several kinds takes."""
    return Param(
        legal,
        default,
        lambda value: any(kind.is_kind(value) for kind in kinds),
        lambda value: any(kind.is_legal(value) for kind in kinds),
        or_none,
    )


class Answer(Enum):
    """What a fitted model says of a row: which gate, metrics, pages of a report and methods to predict it has."""

    NUMBER = "number"  # predict
    MEAN = "mean"  # predict and means: of a distribution, with an offset
    CLASSES = "classes"  # predict and predict_proba
    MARGINS = "margins"  # predict and decision_function
    NONE = "none"  # transform

    @property
    def is_class(self) -> bool:
        """Whether a prediction is one of the labels of the fit."""
        return self in (Answer.CLASSES, Answer.MARGINS)


class Verb(Enum):
    """How a fit reads its rows."""

    REDUCE = "reduce"  # sums over blocks
    VISIT = "visit"  # one block after the other, in order
    GATHER = "gather"  # all rows in memory


class Keeps(Enum):
    """What of the rows a fitted model holds."""

    NOTHING = "nothing"
    SUPPORT_VECTORS = "support vectors"
    ALL_ROWS = "all rows"


Params = Mapping[str, Any]
Fact = TypeVar("Fact")


def always(fact: Fact) -> Callable[[Params], Fact]:
    """A fact that does not depend on the parameters."""
    return lambda params: fact


NUMBERS, REDUCES = always(Answer.NUMBER), always(Verb.REDUCE)
NO_SECTIONS: Callable[[Params], tuple[str, ...]] = always(())


@dataclass(frozen=True)
class Learner:
    """A model. key: its name in files. place: "models.sparse:Lasso". objective: what it optimises, in one line.

    params: the parameters that are one value each. others: those that are objects or arrays, which the model checks
    and a model file holds in parts of its own. answers, verb, sections: by the parameters of a model. sections: of a
    report, that not every model of such answers has: coefficients, influence, path, outliers; what decides between
    classes: words, odds or spreads. commands: its names on the command line. exact: the proof in ball arithmetic that
    it has, of `exact.table`. record: where what a file stores of it is declared.
    """

    key: str
    place: str
    objective: Objective
    words: Words
    params: Mapping[str, Param] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    answers: Callable[[Params], Answer] = NUMBERS
    verb: Callable[[Params], Verb] = REDUCES
    keeps: Keeps = Keeps.NOTHING
    sections: Callable[[Params], tuple[str, ...]] = NO_SECTIONS
    commands: tuple[Command, ...] = ()
    exact: str | None = None
    record: str = "models.states.linear:RECORD"
    is_ours: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The public name of the class."""
        return self.place.partition(":")[2]

    @property
    def module(self) -> str:
        """Where the class stands within the package."""
        return self.place.partition(":")[0]

    def load(self) -> type[Any]:
        """The class; it is imported when one is needed."""
        found: type[Any] = getattr(import_module(f"certifit.{self.module}"), self.name)
        return found

    def load_record(self) -> Record:
        """What a model file stores of it."""
        module, _, name = self.record.partition(":")
        found: Record = getattr(import_module(f"certifit.{module}"), name)
        return found
