"""What is known of a model without its code: one row per model, with the legal values of its parameters.

Plain data, importable without NumPy: fits check parameters by it, model files their metadata, the command line its
options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from certifit.data.roles import QUANTITY

if TYPE_CHECKING:
    from certifit.models.metric import Metric
    from certifit.models.record import Record


@dataclass(frozen=True)
class Param:
    """The legal values of a parameter, and its default. legal completes the sentence "alpha must be ...".

    is_kind: whether a value is of the right type at all. accepts: whether one of that type is legal. advice: what to do
    about one that is not. is_left_out: a model file has no such key where the value is the default, so that files of
    versions without the parameter are read, and bytes stay.
    """

    legal: str
    default: Any
    is_kind: Callable[[Any], bool]
    accepts: Callable[[Any], bool]
    or_none: bool = False
    advice: str = ""
    is_left_out: bool = False

    def is_legal(self, value: Any) -> bool:
        """Whether a value that is not None is legal."""
        return self.is_kind(value) and self.accepts(value)

    def check(self, name: str, value: Any) -> None:
        """Refuse a value that is not legal."""
        if value is None and self.or_none:
            return
        if type(value) is type(self.default) and value == self.default and value is not None:
            return  # most values are; the questions below cost more than the comparison
        if not self.is_kind(value):
            raise TypeError(self._refusal(name, value))
        if not self.accepts(value):
            raise ValueError(self._refusal(name, value))

    def _refusal(self, name: str, value: Any) -> str:
        legal = f"{self.legal} or None" if self.or_none else self.legal
        return f"The parameter {name} must be {legal}. Got {brief(value)}. {self.advice}".rstrip()


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
    PARTS = "parts"  # all rows in memory; where they do not fit, in parts, one at a time


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
NO_METRIC: Callable[[Params], Metric | None] = always(None)
NO_SECTIONS: Callable[[Params], tuple[str, ...]] = always(())


@dataclass(frozen=True)
class Learner:
    """A model. key: its name in files. place: "models.lasso.model:Lasso". objective: what it optimises, in one line.

    params: the parameters that are one value each. others: those that are objects or arrays, which the model checks
    and a model file holds in parts of its own. answers, verb, sections: by the parameters of a model. sections: of a
    report, that not every model of such answers has: coefficients, influence, path, outliers; what decides between
    classes: words, odds or spreads. commands: its names on the command line. exact: the proof in ball arithmetic that
    it has, of `exact.table`. record: where what a file stores of it is declared. metric: what it is scored by where the
    user names nothing; None is its own score.
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
    record: str = "models.least_squares.modelfile:RECORD"
    metric: Callable[[Params], Metric | None] = NO_METRIC
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
        model: type[Any] = getattr(import_module(f"certifit.{self.module}"), self.name)
        return model

    def load_record(self) -> Record:
        """What a model file stores of it."""
        module, _, name = self.record.partition(":")
        record: Record = getattr(import_module(f"certifit.{module}"), name)
        return record


# How a report speaks of a model: plain words, a row of the table of models each.


@dataclass(frozen=True)
class Goal:
    """How the proof speaks: what is chosen, which way is better, the unit of the bound, and a few words of its own."""

    chosen: str
    better: str
    lower: str  # the verb of doing better
    unit: str
    done: str  # said of a fit that is proven
    question: str
    proven: str
    failed: str
    is_derived: bool = False  # its numbers are derived again from the rows; nothing is said of other fits
    agreed: str = ""  # where is_derived: what was derived, in a few words


def how_sure(is_derived: bool, is_local: bool) -> str:
    """One word for a certificate that holds: "proven" only over a bound on the optimum."""
    return "checked" if is_derived else "estimated" if is_local else "proven"


SMALLEST = Goal(
    "coefficients",
    "smaller",
    "lower",
    "of its value",
    "Converged",
    "Did it converge?",
    "It converged, and this is proven: no other",
    "It did not converge",
)
LARGEST = Goal(
    "parameters",
    "larger",
    "raise",
    "nats per row",
    "Best of its kind",
    "Is it the best of its kind?",
    "It is the best of its kind, and this is proven: no other",
    "It is not proven to be the best of its kind",
)
DERIVED = Goal(
    "splits",
    "smaller",
    "lower",
    "of what rounding allows",
    "Derived again",
    "Was it computed correctly?",
    "Its numbers were derived again from the rows, and agree; another of its size may fit better.",
    "Its numbers do not agree with its rows",
    is_derived=True,
    agreed="computed again from the rows, its numbers agree; that nothing of its size fits better is not proven",
)
# parameter that folds may choose -> what a curve of errors over it is called
STRENGTHS = {
    "alpha": "penalty alpha",
    "shrinkage": "shrinkage",
    "n_estimators": "number of rounds",
    "max_depth": "depth of the tree",
}


# What the files of some models store.
ROWS_KEPT = "the rows of the fit, which predictions are made of"
SUPPORT_KEPT = "the support vectors: rows of the fit, which predictions are made of"


@dataclass(frozen=True)
class Words:
    """name: with parameters of the model in braces; minimised: the size that the proof speaks of."""

    name: str
    minimised: str = "objective"
    why_no_inference: str | None = None
    is_squared: bool = False  # its errors are squared: a small excess then means close predictions
    is_robust: bool = False  # far errors count less than their squares
    is_sparse: bool = False  # it sets coefficients to zero; its rank counts the others
    without_penalty: Words | None = None  # what it is at alpha = 0
    with_penalty: Words | None = None  # what it is at alpha > 0
    goal: Goal = SMALLEST
    spelt: Mapping[str, str] = field(default_factory=dict)  # values of parameters that are words
    strengths: Mapping[str, str] = field(default_factory=lambda: STRENGTHS)
    link: str | None = None  # of the score and the prediction, where the model has one for all fits
    robust: str = "HC3"  # standard errors that hold whatever the variance
    remedy: str = "Leave out the columns that are named."  # where there is no best fit
    weaker: str | None = None  # how to fit without the penalty
    stores: tuple[str, ...] = ()  # values of the data that its file has beside coefficients

    def of_fit(self, alpha: float | None, l1_ratio: float) -> Words:
        """The words of a fit with this penalty, or without one."""
        is_penalised = alpha is not None and alpha > 0
        words = (self.with_penalty if is_penalised else self.without_penalty) or self
        return replace(words, is_sparse=True) if is_penalised and l1_ratio > 0 else words


# A model on the command line: its name there, what goes with it, and the options that it brings.


class Simplicity(Enum):
    """How a model can be read, the simplest way first. The value: why it is taken where it does nearly as well."""

    P_VALUES = "only it can have p-values"
    COEFFICIENTS = "it is simpler: one sentence per column says what it does"
    ONE_TREE = "it is simpler: a tree that can be read"
    MANY_PARTS = "it holds no rows of the data"
    HOLDS_ROWS = "it is preferred"


@dataclass(frozen=True)
class Option:
    """An option that some models have. parameter: what it sets; the table of models has its legal values, or `legal`.

    parameter None: the option names columns, which the command line makes into parameters.
    """

    name: str
    metavar: str
    help: str
    parameter: str | None = None
    reads: Callable[[str], Any] = float
    legal: Param | None = None


@dataclass(frozen=True)
class Command:
    """name: after --model. label: in the leaderboard. help: what the model is, in a few words.

    goal: what it predicts. compared_for: the goals that `auto` compares it for; "texts" is classes of free text. fixed:
    parameters that the command line sets, unless an option does. roles: columns beside the target that it reads. tunes:
    the option whose value the folds choose where it is not given. needs_folds: that value has no default. simplicity:
    why it is taken where it does nearly as well as the best. reads_counts: its columns are flags or counts, such as
    words; counts_words: how often a word is there, not whether. selects: `certifit select` has it. work: of a fit to so
    many rows and columns, in nanoseconds of one core, roughly; None: a few passes over the rows. most_work: up to which
    `auto` compares it; None: what suits its simplicity. class_work: of more than two classes, where these take longer.
    text_work: of free text in so many rows and classes, where its words take longer than columns of numbers.
    compared_in: the model of models that `auto` puts it into, by its key and with these parameters; None: it is
    compared as it is. passes: over the rows that a solver of it usually takes for a fit; 0: a few, for all folds too.
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
    simplicity: Simplicity = Simplicity.COEFFICIENTS
    reads_counts: bool = False
    counts_words: bool = False
    selects: bool = False
    work: Callable[[int, int], float] | None = None
    most_work: float | None = None
    compared_in: tuple[str, Mapping[str, object]] | None = None
    class_work: Callable[[int, int, int], float] | None = None
    text_work: Callable[[int, int], float] | None = None
    passes: int = 0

    def work_of(self, n_rows: int, n_columns: int, n_classes: int = 0, has_texts: bool = False) -> float:
        """Nanoseconds of a fit; 0 where it is a few passes over the rows."""
        if self.text_work is not None and has_texts:
            return self.text_work(n_rows, n_classes)
        if self.class_work is not None and n_classes > 2:
            return self.class_work(n_rows, n_columns, n_classes)
        return 0.0 if self.work is None else self.work(n_rows, n_columns)


# What the lines of objectives are made of. A fit, a model file and a report print the same text.


@dataclass(frozen=True)
class Told:
    """What an objective says of a model: its parameters, and what the fit settled where it is known.

    alpha: the strength that was used. scale: of the residuals. law: names of the family and the link.
    """

    params: Mapping[str, Any]
    alpha: float | None = None
    scale: float | None = None
    n_classes: int = 2
    has_factors: bool = False
    has_bounds: bool = False
    law: tuple[str, str] | None = None
    loss: str = ""  # the name of a loss of the user's own
    kernel: str = ""  # k(x, z) in one line
    penalty: str = ""  # the name of a penalty of the user's own

    def factor(self, spread: str) -> str:
        """What multiplies the weights in a penalty."""
        names = {"factors": self.has_factors, spread: bool(self.params.get("standardize", False))}
        return "".join(f"{name} * " for name, is_there in names.items() if is_there)

    @property
    def end(self) -> str:
        """Under which restrictions."""
        within = " within bounds" if self.has_bounds else ""
        return within + ("" if self.params.get("fit_intercept", True) else " with b = 0")


Objective = Callable[[Told], str]
MEAN = "sum_i weight_i"
RESIDUAL = "(y_i - b - x_i'w)"
SQUARES = f"minimised: {MEAN} {RESIDUAL}^2 / (2 {MEAN})"
LIKELIHOOD = f"maximised: {MEAN} log"
