"""What `fit` and `select` share: their options, their --help in groups, and the way from files to a report.

Columns of free text too: which ones are used through their words, and how.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from certifit.cli.errors import NOT_PROVEN, say, show, values_option
from certifit.cli.models import NAME_BELOW, listed_models
from certifit.cli.paths import KEEP, Data, find_data, listed_names, reading, reading_options, refuse_inside
from certifit.cli.progress import Display
from certifit.data.roles import listed, refuse_unknown
from certifit.report.text import joined

# Title -> parameters in order. What is named in no group is of one model or another.
GROUPS: dict[str, tuple[str, ...]] = {
    "What is fitted": (
        "target", "out", "goal", "positive", "kind", "class_weight", "costs", "columns", "drop", "weight", "exposure",
        "offset", "degree",
    ),
    "How good it is on new rows": (
        "cv", "rule", "nested", "holdout", "group", "copies", "direction", "wanted", "fixed",
    ),
    "How columns are read": (
        "categories", "reference", "unseen", "max_levels", "min_count", "texts", "ngrams", "min_word_count",
        "stop_words", "term_weights",
    ),
    "How files are read": ("types", "na", "no_header", "delimiter", "encoding", "bad_rows", "sheet", "no_spill"),
    "What is printed": ("show_values", "quiet", "help"),
}  # fmt: skip
OF_MODELS = "Parameters of models"


class GroupedHelp(click.Command):
    """A command whose options are listed in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """All options, each once."""
        records = {
            "help" if param.is_eager else param.name or "": record
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None
        }
        grouped = {title: [records.pop(name) for name in names if name in records] for title, names in GROUPS.items()}
        printed = grouped.pop("What is printed")
        models = listed_models() if any(param.metavar == NAME_BELOW for param in self.get_params(ctx)) else {}
        of_models = {**models, OF_MODELS: list(records.values())}
        for title, rows in {**grouped, **of_models, "What is printed": printed}.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def text_options(command: Command) -> Command:
    """The options of every command that fits."""
    for option in reversed(
        (
            click.option(
                "--texts", metavar="A,B",
                help="Columns of free text to use through their words; `none` for none. Default: all that are found, "
                "for bernoulli-nb and multinomial-nb; else none.",
            ),
            click.option(
                "--ngrams", type=click.IntRange(min=1), metavar="N",
                help="Use terms of up to N words in a row. Default: 1.",
            ),
            click.option(
                "--min-word-count", type=click.IntRange(min=1), metavar="N",
                help="Leave out words that fewer texts hold. Default: 1.",
            ),
            click.option(
                "--stop-words", metavar="WORDS",
                help="Words to leave out: `english` (articles, pronouns, prepositions and the like), or A,B,C.",
            ),
            click.option(
                "--term-weights", type=click.Choice(["tfidf"]),
                help="tfidf: words in few texts weigh more, and long texts as much as short ones. For models other "
                "than naive Bayes, which counts words.",
            ),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@dataclass(frozen=True)
class Texts:
    """The columns of free text to use (None: those that suit the model), and how they are read."""

    names: tuple[str, ...] | None = None
    ngrams: int | None = None
    min_word_count: int | None = None
    stop_words: str | None = None
    term_weights: str | None = None

    @staticmethod
    def of(names: str | None, **how: Any) -> Texts:
        """From the options of the command line. how: the other fields."""
        listed = None if names is None else tuple(listed_names(names) or ()) if names != "none" else ()
        return Texts(listed, **how)

    @property
    def is_asked(self) -> bool:
        """Whether words are wanted whatever the model is."""
        return bool(self.names)

    def refuse_unused(self) -> None:
        """Raise where something is said about words and no column of free text is used."""
        for option in ("ngrams", "min_word_count", "stop_words", "term_weights"):
            if getattr(self, option) is not None:
                raise click.UsageError(
                    f"--{option.replace('_', '-')} is about words, and no free text is used. Name it: --texts A,B."
                )

    def binarizer(self) -> Any:
        """The map from texts to columns of words."""
        from certifit.maps.text import TextBinarizer

        return TextBinarizer(
            binary=self.term_weights is None,
            ngram_range=(1, self.ngrams or 1),
            min_df=self.min_word_count or 1,
            stop_words=self.stop_words if self.stop_words in (None, "english") else listed_names(self.stop_words),
            term_weights=self.term_weights,
        )

    def chosen(self, kinds: Mapping[str, str], columns: Sequence[str]) -> list[str]:
        """The columns of free text to use. kinds: what each column is; columns: all of the data."""
        from certifit.data.roles import refuse_unknown

        texts = [name for name, kind in kinds.items() if kind == "text"]
        for name in self.names or ():
            refuse_unknown(name, columns, "--texts: the data")
            if name not in texts:
                there = f"Free text here: {joined(texts)}." if texts else "No column here is."
                raise click.UsageError(f"--texts names {name!r}, which is no free text but {_a(kinds[name])}. {there}")
        return texts if self.names is None else [name for name in texts if name in self.names]


def _a(kind: str) -> str:
    return {"number": "numbers", "flag": "true or false", "level": "a category", "date": "dates"}.get(kind, kind)


Command = TypeVar("Command", bound=Callable[..., Any])

FOLDS = 10
ENCODING = ("categories", "reference", "unseen", "max_levels", "min_count")

_BEFORE: tuple[Callable[[Any], Any], ...] = (
    click.argument("data", metavar="DATA...", nargs=-1, required=True),
    click.option("--target", "-t", metavar="NAME", help="Column to predict; needed."),
    click.option(
        "--out",
        "-o",
        metavar="DIR",
        help="Folder for the model and the report; made if missing. Default: the name of the target.",
    ),
)
_AFTER: tuple[Callable[[Any], Any], ...] = (
    click.option("--weight", metavar="NAME", help="Column of row weights; weight 2 is the row twice."),
    click.option(
        "--exposure", metavar="NAME",
        help="Column > 0 that the target is proportional to (time at risk, people asked); the target stays a count.",
    ),
    click.option("--offset", metavar="NAME", help="Column that is added to the score of a row, with weight 1."),
    click.option("--group", metavar="NAME", help="Column whose equal values stay in one fold (customer, patient)."),
    click.option(
        "--copies", type=click.Choice(["anywhere", "together"]), default="anywhere", show_default=True,
        help="Where rows that are equal in every column and the target go. together: all into one fold, so that no "
        "row is predicted by a model that saw its copy.",
    ),
    click.option("--columns", metavar="A,B,C", help="Columns to fit from. Default: all that have no other role."),
    click.option("--drop", metavar="A,B,C", help="Columns to leave out, such as an id, or what is known too late."),
    click.option("--categories", metavar="A,B,C", help="Columns of whole numbers that are codes of categories."),
    click.option(
        "--reference", multiple=True, metavar="COLUMN=LEVEL",
        help="Level that the others of a category are compared with. Repeatable; or `most-frequent` for all. "
        "Default: the first in order.",
    ),
    click.option(
        "--unseen", type=click.Choice(["error", "reference"]), default="error", show_default=True,
        help="What a level is that the fit did not see: an error, or read as the reference level.",
    ),
    click.option(
        "--max-levels", type=click.IntRange(min=2), default=1000, show_default=True, metavar="N",
        help="Leave out categories with more levels.",
    ),
    click.option(
        "--min-count", type=click.FloatRange(min=1), default=1, show_default=True, metavar="N",
        help="Group levels with fewer rows as `other`.",
    ),
    text_options,
    click.option("--no-intercept", is_flag=True, help="Force the fit through zero."),
    click.option(
        "--tol", type=float, metavar="T",
        help="Excess over the best fit, relative, that counts as converged; of classes, in nats per row. Default: "
        "1e-8, of support vector machines 1e-4.",
    ),
    click.option(
        "--max-iter", type=click.IntRange(min=1), metavar="N",
        help="Most iterations, sweeps or epochs of a model that has them.",
    ),
    reading_options,
    click.option(
        "--no-spill", is_flag=True,
        help="Write no temporary file of rows that do not fit in memory: CSV is then parsed anew for every pass.",
    ),
    values_option,
    click.option("--quiet", "-q", is_flag=True, help="Print nothing but warnings and errors."),
)  # fmt: skip


def request_options(*of_command: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """The options of a command that fits, with its own after --out."""

    def decorate(command: Command) -> Command:
        for option in reversed((*_BEFORE, *of_command, *_AFTER)):
            command = option(command)
        return command

    return decorate


@dataclass(frozen=True)
class Request:
    """Files, the parts their columns play, how the model reads them, folds (None: as many as usual)."""

    data: Data
    out: str
    roles: dict[str, Any]
    encoding: dict[str, Any]
    model: dict[str, Any]
    cv: int | None = None
    quiet: bool = False
    copies: str = "anywhere"
    texts: Texts = field(default_factory=Texts)
    may_spill: bool = True  # whether parsed rows may be written to a temporary file
    are_named: bool = False  # whether --columns names the columns to fit from

    @staticmethod
    def of(
        data: Sequence[str],
        out: str | None,
        target: str | None,
        weight: str | None,
        group: str | None,
        offset: str | None,
        exposure: str | None,
        columns: str | None,
        drop: str | None,
        no_intercept: bool,
        tol: float | None,
        cv: int | None,
        quiet: bool,
        texts: str | None,
        ngrams: int | None,
        min_word_count: int | None,
        stop_words: str | None = None,
        term_weights: str | None = None,
        max_iter: int | None = None,
        copies: str = "anywhere",
        no_spill: bool = False,
        **others: Any,
    ) -> Request:
        """From the options of the command line."""
        if copies != "anywhere" and group is not None:
            raise click.UsageError("--copies together does not go with --group: a group stays together, copies or not.")
        if cv == 1:
            raise click.UsageError("--cv is the number of folds: 2 or more, or 0 for none. Got 1.")
        encoding = {name: others.pop(name) for name in ENCODING}
        encoding["absent"] = "keep" if KEEP in others["na"] else "recognise"
        how = {"ngrams": ngrams, "min_word_count": min_word_count, "stop_words": stop_words}
        words = Texts.of(texts, **how, term_weights=term_weights)
        files = find_data(data, **reading(**others))
        if target is None:
            raise click.UsageError(f"--target NAME says which column to predict. {listed(files.names())}")
        out = _named_for(target) if out is None else out
        refuse_inside(out, data)
        roles: dict[str, Any] = {"target": target, "weight": weight, "group": group}
        roles |= {"offset": offset, "exposure": exposure}
        roles["columns"] = listed_names(columns) if drop is None else _all_but(drop, columns, files.names(), roles)
        asked = {"tol": tol, "max_iter": max_iter}
        model = {"fit_intercept": not no_intercept} | {key: one for key, one in asked.items() if one is not None}
        are_named = columns is not None
        return Request(files, out, roles, encoding, model, cv, quiet, copies, words, not no_spill, are_named)

    def encoder(self, names: Sequence[str], with_words: bool = False) -> Any:
        """How the model reads the columns of a scan, which have these names; with_words: free text by its words."""
        return _encoder(names, texts=self.texts.binarizer() if with_words else None, **self.encoding)


def _opened(request: Request, labels: bool) -> Any:
    """The scan; codes of categories that could be dates too (20260131) are codes."""
    source = request.data.open(labels=labels, **request.roles)
    dates = [
        name for name in listed_names(request.encoding.get("categories")) or () if source.readings.get(name) == "date"
    ]
    if not dates:
        return source
    return request.data.open(dict.fromkeys(dates, "number"), labels=labels, **request.roles)


def _all_but(drop: str, columns: str | None, names: Sequence[str], roles: Mapping[str, Any]) -> list[str]:
    """The columns to fit from where --drop names those to leave out; roles: columns of target, weight and others."""
    if columns is not None:
        raise click.UsageError("--columns names the columns to fit from, --drop those to leave out. Use one of them.")
    dropped = listed_names(drop) or []
    role_of = {name: role for role, name in roles.items() if name is not None}
    for name in dropped:
        refuse_unknown(name, names, "--drop: the data")
        if name in role_of:
            raise click.UsageError(f"--drop: {name!r} is the {role_of[name]}, which is no column to fit from.")
    rest = [name for name in names if name not in dropped and name not in role_of]
    if not rest:
        raise click.UsageError("--drop leaves no column to fit from.")
    return rest


@dataclass(frozen=True)
class Done:
    """A fitted model, the rows it was fitted to, and what the report says beside."""

    model: Any
    source: Any
    validation: dict[str, Any] | None = None
    selection: dict[str, Any] | None = None
    positive: Any = None  # of two classes, the one to find; None: the second


def carry_out(request: Request, work: Callable[[Any, Display], Done], labels: bool = False) -> int:
    """Scan, fit by `work`, write, print; the exit code. labels: the target may be text."""
    from certifit.data.formats.csv import holding_rows
    from certifit.data.privacy import rule
    from certifit.modelfile.container import refuse_names
    from certifit.report import folder

    replaced = folder.check(request.out)
    names = request.roles["columns"] or request.data.names()
    refuse_names(names)
    _check_width(len(names), request.quiet)
    with (
        ExitStack() as stack,
        warnings.catch_warnings(record=True) as caught,
        Display(request.quiet) as display,
    ):
        warnings.simplefilter("always")
        display.step("reading types")
        with holding_rows():
            source = _opened(request, labels).kept(request.may_spill)
        stack.callback(source.files.close)
        for note in [] if request.quiet else source.notes:
            say(f"Note: {note}")
        display.step("reading rows")
        source.files.fill()
        display.files = source.files
        done = work(display.watch(source), display)
        _refuse_few_weights(done.model, request.roles["weight"])
        display.step("writing the report")
        facts: dict[str, Any] = {"validation": done.validation, "selection": done.selection}
        facts |= {"show_values": rule().shows} | ({} if done.positive is None else {"positive": done.positive})
        data = request.data
        context = folder.write(
            request.out, done.model, done.source, data.shown, request.roles["weight"], data.scan, **facts
        )
    for warning in _unsaid(caught, context):
        say(f"Warning: {warning}")
    from certifit.cli.words import lines

    for line in [] if request.quiet else lines(context, request.out, replaced):
        show(line)
    if request.quiet:
        for notice in context["warnings"]:
            if notice["level"] != "note":
                say(f"Warning: {notice['title']}. {notice['text']}")
    return 0 if context["certificate"]["holds"] else NOT_PROVEN


COLUMN_BYTES = 45e3  # what comparisons and a report hold of a column, beside its cells
COLUMN_SECONDS = 2e-3  # what comparisons and a report take for it


def _check_width(n_columns: int, is_quiet: bool) -> None:
    """Refuse more columns than memory allows, and say how long many of them take, before the first row is read."""
    from certifit.runtime import check_memory

    check_memory(COLUMN_BYTES * n_columns, f"A report on {n_columns:,} columns", "Name fewer of them with --columns.")
    minutes = COLUMN_SECONDS * n_columns / 60
    if minutes >= 1 and not is_quiet:
        say(
            f"Note: {n_columns:,} columns are expected to take some {minutes:,.0f} minutes of one processor core or "
            "more, even for few rows. A model by name (--model ridge) or fewer columns (--columns) take less."
        )


def _named_for(target: str) -> str:
    """The folder where none is named: that of the target, in letters that a path can have."""
    name = re.sub(r"[^\w.-]+", "_", target).strip("._-")
    return name or "report"


def _refuse_few_weights(model: Any, column: str | None) -> None:
    """Refuse a report whose every figure is one of fewer than FEWEST rows, which have nearly all the weight."""
    from certifit.data.privacy import FEWEST, MOST_WEIGHT, rule

    share = model.encoder_.survey_.heaviest_share
    if share > MOST_WEIGHT and not rule().shows:
        raise ValueError(
            f"Fewer than {FEWEST} rows have {100 * share:.4g} % of the weight in column {column!r}: means and "
            "coefficients would tell their values, which a report does not show. Use other weights, or add "
            "--show-values for your own eyes."
        )


def _encoder(
    names: Sequence[str],
    categories: str | None = None,
    reference: Sequence[str] = (),
    **options: Any,
) -> Any:
    from certifit.maps import TableEncoder

    if tuple(reference) in (("most-frequent",), ("most frequent",)):
        chosen: Any = "most frequent"
    else:
        chosen = dict(_reference(pair, names) for pair in reference) or "first"
    return TableEncoder(reference=chosen, categories=listed_names(categories) or (), **options)


def _reference(pair: str, names: Sequence[str]) -> tuple[str, str]:
    """(column, level) of 'column=level'; either may hold a = of its own."""
    from certifit.data.roles import refuse_unknown

    cuts = [(pair[:k], pair[k + 1 :]) for k, letter in enumerate(pair) if letter == "="]
    if not cuts:
        raise click.UsageError(f"--reference is written COLUMN=LEVEL, or most-frequent. Got {pair!r}.")
    cut_here = next((cut for cut in cuts if cut[0] in names), None)
    if cut_here is None:
        refuse_unknown(cuts[0][0], names, "The data")
    return cut_here or cuts[0]


def _unsaid(caught: list[warnings.WarningMessage], context: dict[str, Any]) -> list[str]:
    """Warnings of the fit, once each, unless the result says the same with more detail."""
    said = any(notice["level"] != "note" for notice in context["warnings"])
    relevant = [w for w in caught if not issubclass(w.category, (DeprecationWarning, FutureWarning, ImportWarning))]
    return [] if said else list(dict.fromkeys(str(w.message) for w in relevant))
