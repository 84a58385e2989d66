"""What cross-validation and feature selection found, as plain tables of errors in the units of the target."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from certifit.report import text
from certifit.selection.curve_scores import CAUTION, standard_errors
from certifit.selection.decomposition import Decomposition
from certifit.selection.leaders import RMSE, Entry, Leaderboard
from certifit.selection.steps import Step

Table = dict[str, Any]

SAME_FOLDS = (
    "The same folds chose the columns, so this error is a little too small. Rows kept apart would tell the real one."
)


def validation_facts(
    board: Leaderboard | None,
    notes: Sequence[str] = (),
    group: str | None = None,
    decomposition: tuple[Sequence[float], Decomposition] | None = None,
) -> Table:
    """The leaderboard with sentences and curves. board None: `notes` say why there is none.

    group: the column whose equal values stayed in one fold. decomposition: values of alpha, and what was found.
    """
    facts: Table = {"n_splits": 0, "group": group, "rule": None, "best": None, "chosen": None, "rows": []}
    facts |= {"notes": list(notes), "caution": None, "curve": None, "decomposition": None}
    if board is None:
        return facts | {"sentences": list(notes)}
    _refuse_other_scores(board.scoring)
    facts |= {
        "n_splits": board.n_splits,
        "rule": board.rule,
        "best": board.best.name,
        "chosen": board.chosen.name,
        "rows": [_row(board, entry) for entry in board.entries],
        "notes": [*notes, *board.notes],
        "caution": CAUTION,
        "curve": _curve(board),
    }
    if decomposition is not None:
        values, found = decomposition
        facts["decomposition"] = {
            "values": [float(value) for value in values],
            "error": found.error,
            "variance": found.variance,
            "bias_and_noise": found.bias_and_noise,
            "n_draws": found.n_draws,
        }
    return facts | {"sentences": [*_sentences(board), *facts["notes"]]}


def selection_facts(selector: Any, direction: str, wanted: Any, fixed: Sequence[str] = ()) -> Table:
    """The path of a fitted ForwardSelection or BackwardSelection, step by step as it went."""
    _refuse_other_scores(selector.scoring)
    steps: list[Step] = list(selector.steps_)
    chosen = set(selector.selected_features_)
    return {
        "direction": direction,
        "wanted": str(wanted),
        "fixed": list(fixed),
        "features": list(selector.selected_features_),
        "chosen": next(k for k, step in enumerate(steps) if set(step.features) == chosen),
        "steps": [_step(step, steps) for step in steps],
        "redundant": list(selector.redundant_),
    }


def chosen_entry(selector: Any, name: str) -> Entry:
    """The chosen step of a selection as an entry of a leaderboard on the same splits."""
    chosen = set(selector.selected_features_)
    step = next(step for step in selector.steps_ if set(step.features) == chosen)
    train = np.full(len(step.fold_scores), step.train_score)
    return Entry(name, selector.estimator_, {}, step.fold_scores, train, "statistics")


def _refuse_other_scores(scoring: Any) -> None:
    if scoring != RMSE:
        raise ValueError(f"The report shows errors in the units of the target: use scoring={RMSE!r}. Got {scoring!r}.")


def _row(board: Leaderboard, entry: Entry) -> Table:
    difference, error = board.difference(entry)
    return {
        "name": entry.name,
        "is_baseline": entry.model is None,
        "is_best": entry is board.best,
        "is_chosen": entry is board.chosen,
        "error": -entry.score,
        "standard_error": entry.standard_error,
        "train_error": -entry.train_score,
        "r2": board.r2(entry),
        "difference": -difference,
        "difference_error": error,
        "params": entry.params,
        "route": entry.route,
        "folds": -entry.fold_scores,
    }


def _curve(board: Leaderboard) -> Table | None:
    """Errors along alpha of the chosen model, or of another that was tuned."""
    order = [board.chosen, *board.entries]
    entry = next((one for one in order if len(set(one.candidates.get("param_alpha", []))) > 2), None)
    if entry is None:
        return None
    table = entry.candidates
    splits = [name for name in table if name.endswith("_train_score") and name.startswith("split")]
    train = np.column_stack([table[name] for name in splits])
    return {
        "model": entry.name,
        "parameter": "alpha",
        "values": [float(value) for value in table["param_alpha"]],
        "validation": -table["mean_test_score"],
        "validation_error": table["standard_error"],
        "train": -table["mean_train_score"],
        "train_error": standard_errors(train),
        "best": int(np.argmax(table["mean_test_score"])),
        "chosen": next(k for k, params in enumerate(table["params"]) if params == entry.params),
    }


def _step(step: Step, steps: Sequence[Step]) -> Table:
    smaller = [set(one.features) for one in steps if one.n_features < step.n_features]
    before = max(smaller, key=len, default=set())
    return {
        "n_features": step.n_features,
        "change": step.change,
        "added": [name for name in step.features if name not in before],
        "features": list(step.features),
        "error": -step.mean_score,
        "standard_error": step.standard_error,
        "train_error": -step.train_score,
        "folds": -step.fold_scores,
    }


def _sentences(board: Leaderboard) -> list[str]:
    error, plus_minus = text.measured(-board.chosen.score, board.chosen.standard_error)
    return [
        f"On rows it did not see, predictions are off by {error} on average (root mean squared error; ±{plus_minus}).",
        *_why_chosen(board),
        *_against_baseline(board),
    ]


def _why_chosen(board: Leaderboard) -> list[str]:
    others = [one for one in board.entries if one.model is not None and one is not board.chosen]
    if not others or board.named is not None:
        return []
    name = _capital(board.chosen.name)
    if board.chosen is not board.best:
        return [
            f"{name} was taken: its error is within one standard error of the smallest, that of {board.best.name}, "
            f"and {board.because}."
        ]
    if board.prefer in (None, board.chosen.name):
        return [f"{name} was taken: it has the smallest error."]
    return [f"{name} was taken: {board.prefer} has an error that is more than one standard error larger."]


def _against_baseline(board: Leaderboard) -> list[str]:
    error, _ = text.measured(-board.baseline.score, board.baseline.standard_error)
    if board.chosen.score > board.baseline.score:
        return [f"Always predicting the {board.baseline.name} is off by {error}."]
    return [f"That is no better than always predicting the {board.baseline.name}, which is off by {error}."]


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
