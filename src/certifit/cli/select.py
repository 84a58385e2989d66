"""certifit select DATA... --target NAME --out DIR."""

from dataclasses import replace
from functools import partial
from typing import Any

import click

from certifit.cli.errors import say
from certifit.cli.models import AUTO, COMPARED, KINDS, Candidate, Choice
from certifit.cli.paths import listed_names
from certifit.cli.progress import Display
from certifit.cli.request import FOLDS, Done, GroupedHelp, Request, carry_out, request_options
from certifit.cli.what_to_fit import Setting, expected_passes, settle, validated
from certifit.data.roles import CLASSES, GOALS, refuse_unknown

MODELS = tuple(name for name, kind in KINDS.items() if kind.command.selects)
SELECTED = {goal: tuple(name for name in compared if name in MODELS) for goal, compared in COMPARED.items()}


@click.command(cls=GroupedHelp)
@request_options(
    click.option(
        "--direction", type=click.Choice(["forward", "backward"]), default="forward", show_default=True,
        help="forward: add the best column again and again. backward: drop the worst.",
    ),
    click.option(
        "--features", "wanted", default="best", show_default=True, metavar="N",
        help="How many: a number, a range LO:HI, `best`, or `parsimonious`: the fewest within one standard error.",
    ),
    click.option("--fixed", metavar="A,B,C", help="Columns that are always in."),
    click.option(
        "--task", "goal", type=click.Choice([AUTO, *GOALS]), default=AUTO, show_default=True,
        help="What the target is; auto: as for `certifit fit`.",
    ),
    click.option(
        "--model", "kind", type=click.Choice([AUTO, *MODELS]), default=AUTO, show_default=True,
        help="Of a quantity: linear: least squares, with p-values. ridge: with a penalty, without p-values. "
        "Of counts: poisson. Of positive quantities: gamma. Of classes: as for `certifit fit`. auto: linear, poisson, "
        "gamma, discriminant or, with free text, bernoulli-nb.",
    ),
    click.option("--alpha", type=float, metavar="A", help="Strength of the ridge penalty. Default: 1 / rows."),
    click.option(
        "--shrinkage", type=click.FloatRange(0, 1), metavar="S", help="discriminant, quadratic: 0 to 1. Default: 0.",
    ),
    click.option(
        "--smoothing", type=click.FloatRange(min=0), metavar="A", help="bernoulli-nb, multinomial-nb. Default: 1.",
    ),
    click.option("--cv", type=click.IntRange(min=0), metavar="K", help=f"Folds, 2 or more. Default: {FOLDS}."),
)  # fmt: skip
def select(*, direction: str, wanted: str, fixed: str | None, kind: str, goal: str, **options: Any) -> int:
    """Choose columns of DATA by cross-validation, fit to them and write a report and the model to DIR.

    A column of the data is in or out as a whole: the levels of a category go together, and so do the words of a text.
    The error of every step is measured on rows that the fits did not see: the root mean squared error, of counts and
    positive quantities the mean deviance, of classes the log loss.

    The files are those of `certifit fit`, and selection.csv with one row per step.

    \b
    certifit select houses.csv --target price --out houses
    certifit select houses.csv -t price -o houses --features parsimonious
    certifit select houses.csv -t price -o houses --direction backward --features 3:10 --fixed area
    """
    model_options = {name: options.pop(name) for name in ("alpha", "shrinkage", "smoothing")}
    if model_options["alpha"] is not None and kind != "ridge":
        raise click.UsageError(f"--alpha is the ridge penalty and --model is {kind}. Add --model ridge.")
    choice = Choice.of(kind, goal, compared=SELECTED, **model_options)
    if options["cv"] == 0:
        raise click.UsageError("--cv 0: a selection compares errors on folds. Give 2 or more.")
    request = Request.of(**options)
    work = partial(_select, request, choice, direction, _wanted(wanted), listed_names(fixed) or [])
    return carry_out(request, work, labels=choice.goal in (AUTO, CLASSES))


_FASTER = "Fewer columns (--columns) or a small number of --features is faster."


def _wanted(text: str) -> Any:
    """A number, a pair or a word, as the wrappers take it."""
    if text in ("best", "parsimonious"):
        return text
    parts = text.split(":")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise click.UsageError(f"--features is a number, a range LO:HI, best or parsimonious. Got {text!r}.")
    numbers = [int(part) for part in parts]
    if numbers[0] > numbers[-1]:
        raise click.UsageError(f"--features LO:HI needs LO <= HI. Got {text!r}.")
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def _select(
    request: Request,
    choice: Choice,
    direction: str,
    wanted: Any,
    fixed: list[str],
    source: Any,
    display: Display,
) -> Done:
    from certifit.report.validation import SAME_FOLDS, chosen_entry, selection_facts, validation_facts
    from certifit.selection.compare.leaderboard_table import CLASS_SCORE, RMSE
    from certifit.selection.features.wrappers import BackwardSelection, ForwardSelection
    from certifit.selection.folds.metrics import own_scoring

    setting = settle(request, choice, source, no_intercept=not request.model["fit_intercept"])
    display.say_passes(expected_passes(setting, request.cv))
    rows, is_quantity = setting.rows, setting.classes is None
    for name in fixed:
        refuse_unknown(name, rows.names, "--fixed: the data")
    estimator = _estimator(request, choice, setting)
    folds, note = setting.folds(request.cv or FOLDS)
    if folds is None:
        raise ValueError(f"A selection compares errors on folds. {note}")
    are_refits = _are_refits(estimator, rows) if is_quantity else True
    display.step("selecting columns")
    make = {"forward": ForwardSelection, "backward": BackwardSelection}[direction]
    scoring = (own_scoring(estimator, None) or RMSE) if is_quantity else CLASS_SCORE
    with display.yielding(are_refits):
        selector = make(estimator, wanted, cv=folds, scoring=scoring, fixed=fixed).fit(rows)
    chosen = rows.select(selector.selected_features_)
    board, _ = validated(request, {"all columns": Candidate(estimator)}, setting, display)
    notes = [SAME_FOLDS, *setting.notes, *([] if note is None else [note])]
    if board is not None:
        name = f"{selector.n_features_} chosen column{'' if selector.n_features_ == 1 else 's'}"
        entry = chosen_entry(selector, name)
        entry = entry if is_quantity else replace(entry, classes=_new_rows(selector.estimator_, chosen, folds))
        board = board.joined(entry, is_chosen=True)
    validation = validation_facts(board, notes, request.roles["group"])
    return Done(selector.estimator_, chosen, validation, selection_facts(selector, direction, wanted, fixed))


def _estimator(request: Request, choice: Choice, setting: Setting) -> Any:
    """The first of the models, with its usual parameters where none are given."""
    common = request.model | {"encoder": setting.encoder, "basis": None}
    candidates = choice.candidates(setting.kinds[:1], common, "min", setting.rows.names)
    return next(iter(candidates.values())).estimator


def _are_refits(estimator: Any, rows: Any) -> bool:
    """Whether sums over rows do not tell the errors of subsets; then it says so."""
    from certifit.models.adapter import learner_of
    from certifit.models.folds import Subsets
    from certifit.models.learner import Answer
    from certifit.selection.folds.rows import Shared

    if estimator.folds(rows, [], Subsets(), Shared()) is not None:
        return False
    if learner_of(estimator).answers(estimator.get_params(deep=False)) is Answer.NUMBER:
        say(f"Warning: fewer rows than columns, so every subset is refitted, which takes long. {_FASTER}")
    return True


def _new_rows(model: Any, rows: Any, folds: Any) -> Any:
    """What models of the chosen columns make of rows that they did not see."""
    from sklearn.base import clone

    from certifit.selection.folds.class_validation import class_validation

    return class_validation(clone(model), rows, cv=folds)
