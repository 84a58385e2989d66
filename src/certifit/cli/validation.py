"""What `fit` and `select` ask of cross-validation, and what they say where it cannot be had."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from certifit.cli.errors import as_options
from certifit.cli.goal import Setting
from certifit.cli.models import AUTO, Candidate, Choice, preferred
from certifit.cli.progress import Display
from certifit.cli.request import FOLDS, Done, Request
from certifit.data.goals import CLASSES

# Candidates of a model that is refitted for each of them.
N_REFITTED = 10
# Refits that nobody asked for: so many cells of the table in all, a column costing some more.
FREE_CELLS, CELLS_A_COLUMN = 40_000_000, 2000
# A picture of bias and variance takes hundreds of solves.
MOST_COLUMNS, N_ALPHAS = 120, 13


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
    first = preferred(candidates)
    prefer = {} if first is None else {"prefer": first, "because": "only it can have p-values"}
    searched = {label: candidate.searched for label, candidate in candidates.items()}
    are_refits = display.is_on and not all(_has_sums(one.estimator, setting) for one in candidates.values())
    try:
        with warnings.catch_warnings(), display.yielding(are_refits):
            warnings.simplefilter("ignore")  # of refits; the fit to all rows says its own
            board = leaderboard(searched, source, cv=folds, rule=rule, most_refits=most, nested=nested, **prefer)
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
    return replace(board, notes=said), notes


def _has_sums(model: Any, setting: Setting) -> bool:
    """Whether sums over rows tell its errors, so that nothing is refitted."""
    from certifit.data.view import Target
    from certifit.selection.folds.engine import has_sums

    rows = setting.rows if setting.classes is None else setting.rows.reading(Target.CODES, setting.classes)
    return has_sums(model, rows, setting.classes)


def separation_of(name: str, model: Any) -> dict[str, str] | None:
    """Where the likelihood of a fitted model has no maximum: the model's name, and the direction that proves it."""
    separation = getattr(model.certificate_, "separation", None)
    return {"model": name, "sentence": separation.claim()} if separation is not None and separation.exists else None


_ASK = f" To have it all the same, add --cv {FOLDS}."


def held_out(
    request: Request, choice: Choice, share: float, work: Callable[[Any, Display], Done], source: Any, display: Display
) -> Done:
    """`work` without a share of the rows, and the score of its model on them: nothing else has seen these."""
    from certifit.data.target import goal_of
    from certifit.report.validation import holdout_facts, validation_facts
    from certifit.selection.compare.nested import held_out_score, set_aside

    display.step("setting rows aside")
    goal = choice.recognised(goal_of(source).name) if choice.goal == AUTO else choice.goal
    kept, others = set_aside(source, share, is_classes=goal == CLASSES)
    done = work(kept, display)
    display.step("scoring the rows set aside")
    used = list(done.source.names)
    rows = others if used == list(others.names) else others.select(used)
    facts = validation_facts(None) if done.validation is None else done.validation
    facts = holdout_facts(facts, held_out_score(done.model, rows), share)
    return replace(done, validation=facts)


def decomposed(board: Any, n_columns: int, source: Any, display: Display) -> Any:
    """Values of alpha, and bias and variance along them; None where they are not known or cost too much."""
    from certifit.selection.compare.decomposition import decompose
    from certifit.selection.folds.rows import Rows

    tuned = next((entry for entry in board.entries if len(entry.candidates.get("params", [])) > N_ALPHAS), None)
    if tuned is None or tuned.route != "statistics" or n_columns > MOST_COLUMNS:
        return None
    display.step("measuring bias and variance")
    params = tuned.candidates["params"]
    some = [params[round(k * (len(params) - 1) / (N_ALPHAS - 1))] for k in range(N_ALPHAS)]
    try:
        decomposition = decompose(tuned.model, Rows.of(tuned.model, source), some)
    except ValueError:
        return None  # a draw without rows of positive weight: there are too few for this picture
    return None if decomposition is None else ([one["alpha"] for one in some], decomposition)
