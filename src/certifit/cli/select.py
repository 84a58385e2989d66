"""certifit select DATA... --target NAME --out DIR."""

from functools import partial
from typing import Any

import click

from certifit.cli.errors import say
from certifit.cli.models import QUANTITY, Choice
from certifit.cli.paths import listed_names
from certifit.cli.progress import Display
from certifit.cli.request import FOLDS, Done, Request, carry_out, request_options
from certifit.cli.task import settle
from certifit.cli.validation import validated


@click.command(short_help="Choose the columns that predict best; write the model and a report.")
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
        "--model", "kind", type=click.Choice(["linear", "ridge"]), default="linear", show_default=True,
        help="linear: least squares, with p-values. ridge: with a penalty, without p-values.",
    ),
    click.option("--alpha", type=float, metavar="A", help="Strength of the ridge penalty. Default: 1 / rows."),
    click.option("--cv", type=click.IntRange(min=0), metavar="K", help=f"Folds, 2 or more. Default: {FOLDS}."),
)  # fmt: skip
def select(*, direction: str, wanted: str, fixed: str | None, kind: str, alpha: float | None, **given: Any) -> int:
    """Choose columns of DATA by cross-validation, fit to them and write a report and the model to DIR.

    A column of the data is in or out as a whole: the levels of a category go together. The error of every step is
    measured on rows that the fits did not see.

    The files are those of `certifit fit`, and selection.csv with one row a step.

    \b
    certifit select houses.csv --target price --out houses
    certifit select houses.csv -t price -o houses --features parsimonious
    certifit select houses.csv -t price -o houses --direction backward --features 3:10 --fixed area
    """
    if alpha is not None and kind != "ridge":
        raise click.UsageError("--alpha is the ridge penalty and --model is linear. Add --model ridge.")
    if given["cv"] == 0:
        raise click.UsageError("--cv 0: a selection compares errors on folds. Give 2 or more.")
    request = Request.of(**given)
    work = partial(_select, request, direction, _wanted(wanted), listed_names(fixed) or [], kind, alpha)
    return carry_out(request, work)


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
    direction: str,
    wanted: Any,
    fixed: list[str],
    kind: str,
    alpha: float | None,
    source: Any,
    display: Display,
) -> Done:
    from sklearn.base import clone

    from certifit.models.linear import LinearRegression, Ridge
    from certifit.report.validation import SAME_FOLDS, chosen_entry, selection_facts, validation_facts
    from certifit.selection.leaderboard import folds_for
    from certifit.selection.leaders import RMSE
    from certifit.selection.wrappers import BackwardSelection, ForwardSelection

    setting = settle(request, Choice(task=QUANTITY), source)
    rows = setting.rows
    options = request.model | {"encoder": setting.encoder}
    estimator = Ridge(alpha, **options) if kind == "ridge" else LinearRegression(**options)
    folds, note = folds_for(rows, request.cv or FOLDS)
    if folds is None:
        raise ValueError(f"A selection compares errors on folds. {note}")
    are_refits = clone(estimator).fold_equations(rows, []) is None
    if are_refits:
        say(f"Warning: fewer rows than columns, so every subset is refitted, which takes long. {_FASTER}")
    display.step("selecting columns")
    make = {"forward": ForwardSelection, "backward": BackwardSelection}[direction]
    with display.yielding(are_refits):
        selector = make(estimator, wanted, cv=folds, scoring=RMSE, fixed=fixed).fit(rows)
    board, _ = validated(request, {"all columns": estimator}, setting, display)
    notes = [SAME_FOLDS, *setting.notes, *([] if note is None else [note])]
    if board is not None:
        name = f"{selector.n_features_} chosen column{'' if selector.n_features_ == 1 else 's'}"
        board = board.joined(chosen_entry(selector, name), is_chosen=True)
    validation = validation_facts(board, notes, request.roles["group"])
    chosen = rows.select(selector.selected_features_)
    return Done(selector.estimator_, chosen, validation, selection_facts(selector, direction, wanted, fixed))
