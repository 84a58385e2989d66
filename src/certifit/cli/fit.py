"""certifit fit DATA... --target NAME --out DIR."""

from dataclasses import replace
from functools import partial
from typing import Any

import click

from certifit.cli.errors import say
from certifit.cli.models import (
    AS_CATEGORIES,
    AUTO,
    KINDS,
    OWN,
    ROWS_PER_LEVEL,
    SUMS,
    Candidate,
    Choice,
    model_options,
    penalised,
    untuned,
)
from certifit.cli.progress import Display
from certifit.cli.request import FOLDS, Done, GroupedHelp, Request, carry_out, request_options
from certifit.cli.what_to_fit import (
    Setting,
    affordable,
    expected_passes,
    held_out,
    is_of_target,
    refuse_constant,
    separation_of,
    settle,
    validated,
)
from certifit.data.roles import CLASSES
from certifit.models.learner import Keeps, Simplicity


@click.command(cls=GroupedHelp)
@request_options(
    *model_options,
    click.option("--degree", type=click.IntRange(min=1), metavar="K", help="Fit a polynomial of this degree."),
    click.option(
        "--cv", type=click.IntRange(min=0), metavar="K",
        help=f"Folds of cross-validation; 0 for none, then auto is the first model it would compare. Default: {FOLDS}.",
    ),
    click.option(
        "--class-weight", metavar="W",
        help="Of classes: `balanced`, or LABEL=W,... : rows of a class weigh so much in the fit. For logistic, "
        "linear-svm, network and svm; auto then compares those of them it has.",
    ),
    click.option(
        "--costs", metavar="LABEL=C,...",
        help="Of classes: what a wrong prediction costs for a row of each class, 1 where not named. The report tells "
        "the threshold of least expected cost, and what it saves on new rows.",
    ),
    click.option(
        "--rule", type=click.Choice(["min", "1se"]), default="min", show_default=True,
        help="Penalty with the smallest error, or the strongest within one standard error of it.",
    ),
    click.option(
        "--nested", is_flag=True,
        help="Repeat the choice of model and penalty within every fold, for an error without the optimism of choosing; "
        "slower.",
    ),
    click.option(
        "--holdout", type=click.FloatRange(0, 1, min_open=True, max_open=True), metavar="SHARE",
        help="Set this share of the rows aside, e.g. 0.2, until the final model is scored on them, once.",
    ),
)  # fmt: skip
def fit(*, kind: str, degree: int | None, rule: str, nested: bool, holdout: float | None, **options: Any) -> int:
    """Fit DATA and write a report and the model to DIR, by default a folder named for the target.

    DATA are one or more CSV, Parquet, Feather, JSON lines or Excel files, or folders of them; - is standard input.

    The target may be a quantity, counts, or classes: labels of any type. Columns may be numbers, true/false,
    categories, dates and, for classes, free text, with missing values; the report says what became of each, and how
    well the model predicts rows that it did not see.

    report.html opens in a browser, model.certifit is for predict and verify, coefficients.csv has standard
    errors and p-values (for classes: deciding.csv, what speaks for each class), report.json all numbers of the report,
    MODEL_CARD.md its main facts as Markdown, and pictures/ every picture as a file. All of them are written, or none.

    Exit code 0 when the certificate of the fit holds, 1 when it does not.

    \b
    certifit fit houses.csv --target price
    certifit fit houses.csv -t price -o houses --columns area,rooms --degree 2
    certifit fit flights/*.parquet -t delay -o flights --reference carrier=UA
    certifit fit messages.csv -t label -o messages --positive spam
    certifit fit policies.csv -t claims -o claims --exposure years
    """
    of_the_model = {name: options.pop(name) for name in (*OWN, "goal", "positive", "class_weight", "costs")}
    choice = Choice.of(kind, **of_the_model)
    if options["no_intercept"] and degree is not None:
        raise click.UsageError("--no-intercept does not go with --degree: its columns are not zero at zero.")
    if options["max_iter"] is not None and kind != AUTO and not KINDS[kind].has("max_iter"):
        raise click.UsageError(f"--max-iter is of models that take steps, and --model {kind} takes none. Leave it out.")
    if of_the_model["costs"] is not None and options["cv"] == 0:
        raise click.UsageError("--costs are measured on new rows, and --cv is 0. Leave --cv out.")
    if nested and options["cv"] in (0, 2):
        raise click.UsageError(f"--nested needs 3 folds or more, and --cv is {options['cv']}.")
    return run(Request.of(**options), choice, degree, rule, nested, holdout)


def run(
    request: Request,
    choice: Choice | None = None,
    degree: int | None = None,
    rule: str = "min",
    nested: bool = False,
    holdout: float | None = None,
) -> int:
    """Scan, tune, fit, write, print; the exit code."""
    choice = choice or Choice()
    work = partial(_fit, request, choice, degree, rule, nested)
    if holdout is not None:
        work = partial(held_out, request, choice, holdout, work)
    return carry_out(request, work, labels=choice.goal in (AUTO, CLASSES))


def _fit(
    request: Request, choice: Choice, degree: int | None, rule: str, nested: bool, source: Any, display: Display
) -> Done:
    shared = {"degree": degree is not None, "no_intercept": not request.model.get("fit_intercept", True)}
    setting = affordable(choice, settle(request, choice, source, **shared))
    display.say_passes(expected_passes(setting, request.cv))
    if rule != "min":
        choice.refuse_rule(setting.kinds, request.cv)
    rows = setting.rows
    common = request.model | {"encoder": setting.encoder, "basis": _basis(degree)}
    common |= {} if setting.class_weight is None else {"class_weight": setting.class_weight}
    candidates = choice.candidates(setting.kinds, common, rule, source.names)
    if degree is None and choice.kind == AUTO and request.cv != 0:
        others, on_codes = _with_codes(request, choice, setting, common, rule)
        candidates |= others
        setting = replace(setting, notes=[*setting.notes, *on_codes])
    _say_if_long(choice, setting)
    board, notes = validated(request, candidates, setting, display, rule, nested)
    display.step("fitting")
    first = next(iter(candidates.values()))
    model = (untuned(first, choice.kind, notes) if board is None else board.chosen.model).fit(rows)
    if setting.classes is None:
        refuse_constant(model)
    if board is not None and board.chosen is not board.best and _lacks_p_values(board, model):
        board = replace(board, preference=board.preference.without(board.chosen.name))
        model = board.chosen.model.fit(rows)
    separated = None if board is None or choice.kind != AUTO else separation_of(board.chosen.name, model)
    if board is not None and separated is not None and (instead := penalised(board)) is not None:
        board = replace(board, named=instead.name)
        notes.append(f"{instead.name} was taken: {separated['model']} has no best fit, see the warning.")
        model = instead.model.fit(rows)
    from certifit.report.validation import validation_facts

    if request.cv == 0:
        of_target = [note for note in notes if is_of_target(note)]  # printed before the fit
        for note in [] if request.quiet else notes:
            if note not in of_target:
                say(f"Note: {note}")
        facts = validation_facts(None, ["Not cross-validated: --cv is 0.", *of_target]) if of_target else None
        return Done(model, rows, facts, positive=setting.positive)
    facts = validation_facts(board, notes, request.roles["group"]) | {"separated": separated, "costs": setting.costs}
    return Done(model, rows, facts, positive=setting.positive)


LONG = 6e10  # nanoseconds of one core


def _say_if_long(choice: Choice, setting: Setting) -> None:
    """How long a model that was asked for and holds all rows will take, before it begins."""
    kind, n_rows = KINDS[setting.kinds[0]], setting.rows.n_rows or 0
    command = kind.command
    if choice.kind == AUTO or command.work is None or kind.learner.keeps is not Keeps.ALL_ROWS:
        return
    work = command.work(n_rows, setting.rows.n_features)
    if work >= LONG:
        say(
            f"Note: {command.label} on {n_rows:,} rows is expected to take some {work / 6e10:,.0f} minutes of one "
            "processor core or more: every prediction reads all rows. Fewer rows or columns (--columns) take less."
        )


def _with_codes(
    request: Request, choice: Choice, setting: Setting, common: dict[str, Any], rule: str
) -> tuple[dict[str, Candidate], list[str]]:
    """Sums over columns that read whole numbers of few values as categories, to compare both; and a note."""
    from sklearn.base import clone

    codes = setting.encoder.codes(setting.coded_rows)
    if not codes:
        return {}, []
    named = ", ".join(f"{name!r} ({n} values)" for name, n in list(codes.items())[:6])
    named += f" and {len(codes) - 6} more" if len(codes) > 6 else ""
    names = list(codes)
    kinds = [kind for kind in setting.kinds if KINDS[kind].command.simplicity in SUMS]
    if not kinds or ROWS_PER_LEVEL * sum(codes.values()) > (setting.rows.n_rows or 0):
        return {}, [
            f"Whole numbers of few values are read as quantities: {named}. If they are codes: --categories NAMES."
        ]
    encoder = clone(setting.encoder).set_params(categories=(*setting.encoder.categories, *names))
    others = choice.candidates(kinds, common | {"encoder": encoder}, rule, setting.rows.names)
    said = (
        f"Whole numbers of few values, compared both as quantities and as codes (one coefficient per value): {named}."
    )
    return {label + AS_CATEGORIES: candidate for label, candidate in others.items()}, [said]


def _lacks_p_values(board: Any, model: Any) -> bool:
    """Whether a model was taken for its p-values, and redundant columns leave none determined."""
    if board.preference.reason(board.chosen.name) != Simplicity.P_VALUES.value or model.inference_ is not None:
        return False
    certificate, n_used = model.certificate_, model.rank_ + model.fit_intercept
    return not (certificate.dependent and not certificate.near and model.data_["n_rows"] > n_used)


def _basis(degree: int | None) -> Any:
    if degree is None:
        return None
    from certifit.maps import Polynomial

    return Polynomial(degree)
