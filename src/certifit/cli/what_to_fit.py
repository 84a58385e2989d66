"""What is predicted, a quantity, counts or classes; from which columns; by which models.

What `fit` and `select` ask of cross-validation, and what they say where it cannot be had.
"""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import click

from certifit.cli.by_label import class_weight_of, costs_of, spelt
from certifit.cli.errors import say
from certifit.cli.models import AUTO, KINDS, OFFSETS, Candidate, Choice, preferred, sibling
from certifit.cli.progress import Display
from certifit.cli.request import FOLDS, Done, Request
from certifit.data.privacy import printed_labels
from certifit.data.roles import CLASSES, GOALS, QUANTITY
from certifit.report.shell import as_options
from certifit.report.text import CLASSES_WEIGHTED, COPIES_SEEN, SPELT_ALIKE, joined, visible

MANY_COPIES = 0.02  # share of the rows from which copies make figures on held-out rows too good
MOST_HASHED = 50_000_000  # cells of a table that are hashed unasked
NO_SPREAD = 1e-15  # of the mean of a target: a standard deviation below it is rounding
MOST_NAMED = 20  # so many labels of mostly one row each are names


WEIGHTED = (
    f"{CLASSES_WEIGHTED}: they are those of data in which the classes have these weights. To decide "
    "by what mistakes cost and keep the probabilities, use --costs instead."
)


@dataclass(frozen=True)
class Setting:
    """What a fit starts from: the rows, the models to compare, how they read columns, and what there is to note.

    rows: of the columns that are used, the target as it is stored; goal: what the target is; classes: the labels, None
    for numbers.
    """

    rows: Any
    kinds: tuple[str, ...]
    encoder: Any
    goal: str = QUANTITY
    classes: Any = None
    positive: Any = None
    notes: list[str] = field(default_factory=list)
    class_weight: Any = None
    costs: Mapping[Any, float] | None = None  # of a wrong prediction for a row of each class
    copies: str = "anywhere"

    @property
    def coded_rows(self) -> Any:
        """The rows as a fit reads them: numbers as they are, labels as codes."""
        from certifit.data.view import Target

        return self.rows if self.classes is None else self.rows.reading(Target.CODES, self.classes)

    def folds(self, n_splits: int) -> tuple[Any, str | None]:
        """The folds that the rows allow, stratified for classes; None where there are none. A sentence says why."""
        from certifit.selection.compare.leaderboard import folds_for

        return folds_for(self.rows, n_splits, is_classes=self.classes is not None, copies=self.copies)


def is_of_target(note: str) -> bool:
    """Whether a note says that the target may be meant otherwise: all of a report hangs on it."""
    return "--task" in note or SPELT_ALIKE in note


def settle(request: Request, choice: Choice, source: Any, **shared: bool) -> Setting:
    """What `_settled` finds, with a note on rows that are copies of others."""
    setting = _settled(request, choice, source, **shared)
    for note in [] if request.quiet else setting.notes:
        if is_of_target(note):
            say(f"{'Warning' if SPELT_ALIKE in note else 'Note'}: {note}")
    return replace(setting, copies=request.copies, notes=[*setting.notes, *_copy_notes(request, setting)])


def affordable(choice: Choice, setting: Setting) -> Setting:
    """The same without the models that auto would compare, were their folds not slow."""
    n_classes = 0 if setting.classes is None else len(setting.classes)
    rows, has_texts = setting.rows, setting.encoder.texts is not None
    kinds, notes = choice.affordable(setting.kinds, rows.n_rows or 0, rows.n_features, n_classes, has_texts)
    return replace(setting, kinds=kinds, notes=[*setting.notes, *notes])


FIXED_PASSES = 22  # types, survey, target, copies, and the report; measured with `--cv 0`
FOLD_PASSES = 4  # of the folds of a model from sums over rows


def expected_passes(setting: Setting, cv: int | None) -> int:
    """Passes over the rows of a fit with its report: those of solvers are usual numbers, which data may exceed."""
    n_folds = FOLDS if cv is None else cv
    commands = [KINDS[kind].command for kind in setting.kinds]
    of_folds = sum(command.passes * (1 + n_folds) or (FOLD_PASSES if n_folds else 0) for command in commands)
    return FIXED_PASSES + of_folds


def _copy_notes(request: Request, setting: Setting) -> list[str]:
    """How many rows repeat others, and what that means for figures on held-out rows. One pass, unless it is long."""
    from certifit.data.copies import copies
    from certifit.selection.folds.splits import TOGETHER

    rows = setting.coded_rows
    if request.copies != TOGETHER and (rows.n_rows or 0) * rows.n_features > MOST_HASHED:
        return []
    repeated = copies(rows)
    if not repeated.n_copies:
        return []
    share = repeated.n_copies / repeated.n_rows
    words = f"{repeated.n_copies:,} of {repeated.n_rows:,} rows repeat an earlier row in every column and the target."
    if request.copies == TOGETHER:
        return [f"{words} Copies of a row are in the same fold."]
    if share < MANY_COPIES or request.roles["group"] is not None or request.cv == 0:
        return [words]
    return [
        f"{words} Warning: with {100 * share:.0f} % copies, {COPIES_SEEN}, so "
        "figures on new rows are too good unless new rows repeat old ones as often. To keep copies in one fold, add "
        "--copies together."
    ]


def _settled(request: Request, choice: Choice, source: Any, **shared: bool) -> Setting:
    """Look at the target and, where words may matter, at the columns. shared: options that auto takes, if given."""
    goal, notes = _goal(choice, source)
    shared |= {role: request.roles.get(role) is not None for role in OFFSETS}
    if goal != CLASSES:
        if str(source.schema.field(source.target).type) == "string":
            request.data.open(**request.roles)  # read as numbers, which names the first line that holds none
        if choice.positive is not None:
            raise click.UsageError(f"--positive names one of two classes, and {source.target!r} is {GOALS[goal]}.")
        if of_classes := choice.of_classes:
            raise click.UsageError(f"--{of_classes[0]} is for classes, and {source.target!r} is {GOALS[goal]}.")
        return _of_numbers(request, choice, source, goal, notes, shared)
    from certifit.data.labels import with_codes
    from certifit.data.target import label_counts

    _refuse_no_classes(source.target, label_counts(source))
    coded, classes = with_codes(source)
    printed = printed_labels(label_counts(source))
    notes += [*_twins(source.target, classes, printed), *_strays(classes, printed)]
    kinds_of = _column_kinds(request, coded)
    reads_words = request.texts.is_asked or choice.kind == AUTO or KINDS[choice.kind].command.reads_counts
    texts = request.texts.chosen(kinds_of, source.names) if reads_words else []
    if not texts:
        request.texts.refuse_unused()
    kinds = choice.kinds(CLASSES, bool(texts), **shared)
    notes.extend(choice.unweighted_note(CLASSES, bool(texts)))
    if texts and choice.kind == AUTO and (measured := _measured(kinds_of)):
        kinds, on_counts = _reading(choice, kinds, measured, source.n_rows or 0, len(classes))
        notes.extend(on_counts)
    if request.texts.term_weights is not None and any(KINDS[kind].command.reads_counts for kind in kinds):
        raise click.UsageError("--term-weights: naive Bayes counts words. Use --model logistic, linear-svm or network.")
    used, more = _used(request, choice, kinds, kinds_of, texts)
    if request.texts.names is None and not texts and (prose := [name for name in used if kinds_of[name] == "text"]):
        notes.append(f"Free text is not used: {joined(prose)}. To use its words, add --texts {','.join(prose)}.")
    rows = source if used == source.names else source.select(used)
    positive = None if choice.positive is None else _positive(choice.positive, classes, printed)
    encoder = request.encoder(rows.names, bool(texts))
    labels, shown = classes.tolist(), [_unquoted(label, spelt(label), printed) for label in classes.tolist()]
    weights = class_weight_of(choice.class_weight, labels, shown)
    if weights is not None:
        notes.append(WEIGHTED)
    costs = costs_of(choice.costs, labels, shown)
    return Setting(rows, kinds, encoder, CLASSES, classes, positive, [*notes, *more], weights, costs)


def _of_numbers(
    request: Request, choice: Choice, source: Any, goal: str, notes: list[str], shared: Mapping[str, bool]
) -> Setting:
    kinds = choice.kinds(goal, **shared)
    if not request.texts.is_asked:
        request.texts.refuse_unused()
        return Setting(source, kinds, request.encoder(source.names), goal, notes=notes)
    kinds_of = _column_kinds(request, source)
    texts = request.texts.chosen(kinds_of, source.names)
    used, more = _used(request, choice, kinds, kinds_of, texts)
    rows = source if used == source.names else source.select(used)
    return Setting(rows, kinds, request.encoder(used, with_words=True), goal, notes=[*notes, *more])


def _goal(choice: Choice, source: Any) -> tuple[str, list[str]]:
    """What the target is, and a sentence on it where it may be meant otherwise."""
    from certifit.data.target import goal_of

    if choice.goal != AUTO and (choice.is_meant or choice.goal != CLASSES):
        return choice.goal, []
    asked = goal_of(source)
    if choice.goal != AUTO:  # the classes of `--model network`; numbers on a scale are none
        goals = () if asked.may_be_classes else (asked.name, QUANTITY)
        return next((goal for goal in goals if sibling(choice.kind, goal) != choice.kind), choice.goal), []
    if asked.constant is not None:
        raise ValueError(constant_target(source.target, asked.constant, asked.n_rows))
    goal = choice.recognised(asked.name)
    is_doubtful = "--task" in asked.sentence and goal == asked.name
    return goal, [_printed_sentence(asked, source)] if is_doubtful else []


def _printed_sentence(asked: Any, source: Any) -> str:
    """What the target is, without the one of two numbers that few rows hold."""
    from certifit.data.privacy import rule
    from certifit.data.target import label_counts

    if asked.name != CLASSES or all(rule().may_print(n_rows) for n_rows in label_counts(source).values()):
        return str(asked.sentence)
    return f"{source.target!r} is one of two whole numbers: two classes. If it is a quantity, say so: --task quantity."


def refuse_constant(model: Any) -> None:
    """Refuse the fit of a numeric target that does not vary: all of it would be rounding."""
    mean, spread = model.data_["target_mean"], model.data_["target_sd"]
    if 0 < spread <= NO_SPREAD * abs(mean):
        raise ValueError(
            f"Column {model.target_name_!r} varies so little beside its size that all of a fit would be rounding. "
            "Subtract a typical value from it, and fit what is left."
        )
    if spread == 0:
        n_rows = model.encoder_.survey_.n_rows  # without rows of weight 0
        raise ValueError(constant_target(model.target_name_, mean, n_rows))


def constant_target(name: str, value: float, n_rows: int) -> str:
    """Why a target of one value is refused."""
    from certifit.data.privacy import rule

    printed = f"{value:g}" if rule().may_print(n_rows) else "one value"
    return (
        f"Column {name!r} is {printed} in every row, so there is nothing to predict. Choose another target, or rows "
        "where it varies."
    )


def _column_kinds(request: Request, rows: Any) -> dict[str, str]:
    kinds: dict[str, str] = request.encoder(rows.names, with_words=True).kinds(rows)
    return kinds


def _measured(kinds_of: Mapping[str, str]) -> list[str]:
    """Columns of numbers and dates, which no model of counts reads."""
    return [name for name, kind in kinds_of.items() if kind in ("number", "date")]


def _reading(
    choice: Choice, kinds: Sequence[str], measured: Sequence[str], n_rows: int, n_classes: int
) -> tuple[tuple[str, ...], list[str]]:
    """Of models of free text those that read the numbers and dates beside it, and a note on the others.

    Where their folds would be slow, the models that count words, and the numbers are left out.
    """
    counting = tuple(kind for kind in kinds if KINDS[kind].command.reads_counts)
    readers = [kind for kind in kinds if kind not in counting]
    quick, _ = choice.affordable(readers, n_rows, len(measured), n_classes, has_texts=True)
    if not counting or not quick:
        return counting or tuple(kinds), []
    labels = joined([KINDS[kind].command.label for kind in counting])
    return tuple(readers), [
        f"Not compared, for naive Bayes counts words and reads no numbers or dates: {labels}. To compare models on the "
        f"words alone, leave out {joined(list(measured))} (--drop)."
    ]


def _used(
    request: Request, choice: Choice, kinds: Sequence[str], kinds_of: Mapping[str, str], texts: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The columns that the models read, in order, and sentences on those left out."""
    names = list(kinds_of)
    prose = [name for name in names if kinds_of[name] == "text" and name not in texts] if texts else []
    notes = [f"Free text that --texts does not name was left out: {joined(prose)}."] if prose else []
    is_wanted = choice.kind != AUTO and request.are_named
    is_left_out = texts and not is_wanted and all(KINDS[kind].command.reads_counts for kind in kinds)
    measured = _measured(kinds_of) if is_left_out else []
    if measured:
        what = f"{joined(measured)} {'is' if len(measured) == 1 else 'are'} left out"
        notes.append(
            f"Numbers and dates: {what}. Naive Bayes of counts reads words, categories and flags. To predict from "
            "numbers instead of words, add --texts none."
        )
    return [name for name in names if name not in (*prose, *measured)], notes


def _refuse_no_classes(target: str, counts: Mapping[Any, int]) -> None:
    """Refuse a target of one label, and one whose labels are names of rows."""
    n_rows = sum(counts.values())
    if len(counts) == 1:
        raise ValueError(f"Column {target!r} holds one class, {next(iter(counts))!r}, in all {n_rows:,} rows.")
    if max(counts.values(), default=0) == 1 or (len(counts) > MOST_NAMED and 2 * len(counts) > n_rows):
        if all(isinstance(label, str) and _is_number(label.replace(",", "", 1)) for label in counts):
            raise ValueError(
                f"Column {target!r} has numbers with a comma, read as text. Write 1234.5, not 1234,5 or 1,234."
            )
        raise ValueError(
            f"Column {target!r} has {len(counts):,} different labels in {n_rows:,} rows. It names rows rather than "
            "classes: a class is learnt from several rows. Choose another target, or join labels."
        )


def _twins(target: str, classes: Any, printed: Mapping[Any, str]) -> list[str]:
    """Labels that differ only by case or by spaces."""
    alike: dict[str, list[str]] = {}
    for label in classes.tolist():
        if isinstance(label, str):
            alike.setdefault(" ".join(label.split()).casefold(), []).append(label)
    spellings = [" and ".join(printed[one] for one in labels[:4]) for labels in alike.values() if len(labels) > 1]
    if not spellings:
        return []
    more = f" ({len(spellings) - 3} more)" if len(spellings) > 3 else ""
    shown = "; ".join(visible(labels) for labels in spellings[:3])
    return [
        f"{SPELT_ALIKE}, so {target!r} has {len(classes)} classes instead of {len(alike)}: {shown}{more}. To read them "
        f"as one: --types {shlex.quote(f'{target}=lower-case')}."
    ]


def _strays(classes: Any, printed: Mapping[Any, str]) -> list[str]:
    """Texts among labels that are numbers."""
    labels = classes.tolist()
    words = [label for label in labels if isinstance(label, str) and not _is_number(label)]
    if not words or not isinstance(labels[0], str) or 2 * len(words) > len(labels):
        return []
    shown = joined([_unquoted(word, word, printed) for word in words], 3)
    what = f"{shown} {'is' if len(words) == 1 else 'are'} not"
    return [f"Most labels are numbers and {what}, so all are read as text. If that is no class, mend or remove it."]


def _unquoted(label: Any, words: str, printed: Mapping[Any, str]) -> str:
    """A label in words, where it is printed."""
    return words if printed[label] == repr(label) else printed[label]


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _positive(wanted: str, classes: Any, printed: Mapping[Any, str]) -> Any:
    """The label that `wanted` spells."""
    labels = classes.tolist()
    if len(labels) != 2:
        raise click.UsageError(f"--positive is for two classes, and the target has {len(labels)}.")
    by_spelling = {spelt(label): label for label in labels}
    if wanted not in by_spelling and wanted.lower() not in by_spelling:
        shown = [_unquoted(label, words, printed) for words, label in by_spelling.items()]
        raise click.UsageError(f"--positive is one of {' and '.join(shown)}. Got {wanted!r}.")
    return by_spelling.get(wanted, by_spelling.get(wanted.lower()))


# Candidates of a model that is refitted for each of them.
N_REFITTED = 10
# Refits that nobody asked for: so many cells of the table in all, a column costing some more.
FREE_CELLS, CELLS_A_COLUMN = 40_000_000, 200
FREE_WORK = 3e11  # nanoseconds of one core that such refits may take, where a model knows its work
N_ALPHAS = 13  # of the picture of bias and variance


def validated(
    request: Request,
    candidates: dict[str, Candidate],
    setting: Setting,
    display: Display,
    rule: str = "min",
    nested: bool = False,
) -> tuple[Any, list[str]]:
    """The leaderboard, and sentences on what could not be done and on the data; None where there is none."""
    notes = list(setting.notes)
    if request.cv == 0:
        return None, notes
    display.step("cross-validating")
    from certifit.selection.compare.leaderboard import TooManyRefits, leaderboard

    source = setting.rows
    folds, note = setting.folds(request.cv or FOLDS)
    if folds is None:
        return None, [*notes, f"Not cross-validated. {note}"]
    notes += [] if note is None else [note]
    most = N_REFITTED * folds.n_splits
    if request.cv is None:
        most = min(most, FREE_CELLS // (((source.n_rows or 0) + CELLS_A_COLUMN) * source.n_features))
        most = min(most, _affordable_refits(setting))
    prefer = preferred(setting.kinds, candidates)
    searched = {label: candidate.searched for label, candidate in candidates.items()}
    are_refits = display.is_on and not all(_has_sums(one.estimator, setting) for one in candidates.values())
    try:
        with warnings.catch_warnings(), display.yielding(are_refits):
            warnings.simplefilter("ignore")  # of refits; the fit to all rows says its own
            options = {"rule": rule, "most_refits": most, "nested": nested, "n_decomposed": N_ALPHAS, **prefer}
            options |= {"race": request.cv is None}
            board = leaderboard(searched, source, cv=folds, **options)
    except ValueError as error:
        if request.cv is not None:
            raise
        # What is wrong with the data as such, the fit says.
        notes.append(f"Not cross-validated: {as_options(str(error))}{_ASK if isinstance(error, TooManyRefits) else ''}")
        return None, notes
    said = [as_options(note) for note in board.notes]
    n_left = sum("needs a refit" in note and note.endswith("left out.") for note in said)
    if request.cv is None and n_left:
        said.append(_ASK.strip() if n_left == 1 else _ASK.strip().replace("it", "them", 1))
    if any(" stopped after " in note for note in said):
        said.append(f"To compare all models on all folds, add --cv {folds.n_splits}.")
    return replace(board, notes=said), notes


def _affordable_refits(setting: Setting) -> int:
    """How many refits of the slowest model stay within the work that nobody asked for."""
    n_rows, n_columns = max(setting.rows.n_rows or 0, 1), max(setting.rows.n_features, 1)
    n_classes = 0 if setting.classes is None else len(setting.classes)
    most = max(KINDS[kind].command.work_of(n_rows, n_columns, n_classes) for kind in setting.kinds)
    return int(FREE_WORK / most) if most else sys.maxsize


def _has_sums(model: Any, setting: Setting) -> bool:
    """Whether sums over rows tell its errors, so that nothing is refitted."""
    from certifit.selection.folds.engine import has_sums

    return has_sums(model, setting.coded_rows, setting.classes)


def separation_of(name: str, model: Any) -> dict[str, str] | None:
    """Where the likelihood of a fitted model has no maximum: the model's name, and the direction that proves it."""
    separation = getattr(model.certificate_, "separation", None)
    return {"model": name, "sentence": separation.claim()} if separation is not None and separation.exists else None


_ASK = f" To have it all the same, add --cv {FOLDS}."


def held_out(
    request: Request, choice: Choice, share: float, work: Callable[[Any, Display], Done], source: Any, display: Display
) -> Done:
    """`work` without a share of the rows, and the score of its model on them: nothing else has seen these."""
    from certifit.report.validation import holdout_facts, validation_facts
    from certifit.selection.compare.nested import held_out_score, set_aside

    display.step("setting rows aside")
    group, is_classes = request.roles["group"], _goal(choice, source)[0] == CLASSES
    kept, others = set_aside(source, share, is_classes=is_classes)
    done = work(kept, display)
    rule = {"share": share, "is_stratified": is_classes and group is None, "group": group, "random_state": 0}
    done.model.data_ = done.model.data_ | {"held_out": rule}
    display.step("scoring the rows set aside")
    used = list(done.source.names)
    rows = others if used == list(others.names) else others.select(used)
    facts = validation_facts(None) if done.validation is None else done.validation
    facts = holdout_facts(facts, held_out_score(done.model, rows), share)
    return replace(done, validation=facts)
