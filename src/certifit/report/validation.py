"""What cross-validation and feature selection found, as plain tables of errors: those of `MEASURES`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.evaluation.metrics.intervals import Estimate
from certifit.models.adapter import learner_of
from certifit.models.learner import STRENGTHS
from certifit.models.metric import Metric
from certifit.report import text
from certifit.report.text import Table
from certifit.selection.compare.curves import CAUTION, standard_errors
from certifit.selection.compare.leaderboard_table import RMSE, Entry, Leaderboard
from certifit.selection.compare.nested import HeldOutScore, choice_sentences
from certifit.selection.features.features import Step

SAME_FOLDS = (
    "The same folds chose the columns, so this error is a little too small. Rows kept apart would tell the real one."
)


@dataclass(frozen=True)
class Measure:
    """An error made from a score, and how it is told: of the chosen model, and of the baseline.

    rate, sign: sign times this rate of classes is the score.
    """

    words: str
    of_score: Callable[[Any], Any]
    own: str
    baseline: str
    no_better: str
    rate: str = ""
    sign: int = 1
    share: str = "R²"  # what the share of the baseline's error that is explained is called


def _mean(words: str) -> Measure:
    """Of a mean error that is smaller than that of a constant."""
    return Measure(
        words,
        np.negative,
        f"the {words} is {{error}} (±{{plus_minus}})",
        "With the {name} alone, the baseline, it is {error}.",
        "That is no better than the {name} alone, with {error}.",
        share="Explained",
    )


# scoring -> the error of the report
MEASURES = {
    "neg_mean_poisson_deviance": _mean("mean Poisson deviance"),
    "neg_mean_gamma_deviance": _mean("mean Gamma deviance"),
    RMSE: Measure(
        "root mean squared error",
        np.negative,
        "predictions are off by {error} on average (root mean squared error; ±{plus_minus})",
        "Always predicting the {name}, the baseline, is off by {error}.",
        "That is no better than always predicting the {name}, which is off by {error}.",
    ),
    "neg_log_loss": Measure(
        "log loss",
        np.negative,
        "the log loss is {error} (±{plus_minus})",
        "With the {name} alone, the baseline, it is {error}.",
        "That is no better than the {name} alone, with {error}.",
        "log_loss",
        -1,
    ),
    "accuracy": Measure(
        "error rate",
        lambda score: 1 - score,
        "the error rate, the share of wrong rows, is {error} (±{plus_minus})",
        "Always predicting the most frequent class, the baseline, has {error}.",
        "That is no better than always predicting the most frequent class, with {error}.",
        "accuracy",
    ),
}


def validation_facts(board: Leaderboard | None, notes: Sequence[str] = (), group: str | None = None) -> Table:
    """The leaderboard with sentences and curves. board None: `notes` say why there is none.

    Rows of models of classes hold their predicted rows as `classes`, others as `predicted`, until the report is built.
    group: the column whose equal values stayed in one fold.
    """
    facts: Table = {"n_splits": 0, "group": group, "rule": None, "best": None, "chosen": None, "rows": []}
    facts |= {"notes": list(notes), "caution": None, "curve": None, "decomposition": None, "measure": None}
    facts |= {"share": None, "separated": None, "choice": None, "holdout": None, "costs": None}
    if board is None:
        return facts | {"sentences": list(notes)}
    measure = _measure(board.scoring)
    facts |= {
        "measure": measure.words,
        "share": measure.share,
        "n_splits": board.n_splits,
        "rule": board.rule,
        "best": board.best.name,
        "chosen": board.chosen.name,
        "rows": [_row(board, entry, measure) for entry in board.entries],
        "notes": [*notes, *board.notes],
        "caution": CAUTION,
        "curve": _curve(board, measure),
        "choice": _choice(board),
    }
    parts = board.decomposition if _is_sum(board.chosen) else None  # of penalties: it says nothing about a tree
    if parts is not None and all("alpha" in candidate for candidate in parts.candidates):
        facts["decomposition"] = {
            "values": [float(candidate["alpha"]) for candidate in parts.candidates],
            "error": parts.error,
            "variance": parts.variance,
            "bias_and_noise": parts.bias_and_noise,
            "n_draws": parts.n_draws,
        }
    return facts | {"sentences": [*_sentences(board, measure), *facts["notes"]]}


def holdout_facts(facts: Table, held_out: HeldOutScore, share: float) -> Table:
    """The facts with the score on rows that were set aside, told first."""
    value = held_out.value
    holdout = {
        "share": share,
        "n_rows": held_out.n_rows,
        "measure": held_out.name,
        "value": float(value),
        "low": value.low,
        "high": value.high,
        "method": value.method,
        "baseline": held_out.baseline,
        "others": held_out.others,
    }
    between = "" if value.low is None else f" (95 % interval {value.low:.4g} to {value.high:.4g}, {value.method})"
    sentence = (
        f"On {held_out.n_rows:,} rows set aside before anything was looked at, the final model has a {held_out.name} "
        f"of {float(value):.4g}{between}; {held_out.constant}: {held_out.baseline:.4g}. The file of the model proves "
        "the fit to the other rows."
    )
    return facts | {"holdout": holdout, "sentences": [sentence, *facts["sentences"]]}


def _choice(board: Leaderboard) -> Table | None:
    """The winner's score, the corrected and the nested one, as scores: higher is better."""
    correction, nested = board.correction, board.nested
    if correction is None:
        return None
    return {
        "n_candidates": correction.n_candidates,
        "method": correction.method,
        "scoring": str(board.scoring),
        "winner": correction.winner,
        "corrected": _ends(correction.score),
        "nested": None if nested is None else {"score": float(nested.score), "standard_error": nested.standard_error},
        "winner_accuracy": correction.winner_accuracy,
        "corrected_accuracy": None if correction.accuracy is None else _ends(correction.accuracy),
        "nested_accuracy": None if nested is None or nested.accuracy is None else float(nested.accuracy),
        "n_nested_refits": 0 if nested is None else nested.n_refits,
    }


def _ends(estimate: Estimate) -> Table:
    return {"value": float(estimate), "low": estimate.low, "high": estimate.high}


def selection_facts(selector: Any, direction: str, wanted: Any, fixed: Sequence[str] = ()) -> Table:
    """The path of a fitted ForwardSelection or BackwardSelection, step by step as it went."""
    measure = _measure(selector.scoring)
    steps: list[Step] = list(selector.steps_)
    chosen = set(selector.selected_features_)
    return {
        "direction": direction,
        "wanted": str(wanted),
        "fixed": list(fixed),
        "features": list(selector.selected_features_),
        "chosen": next(k for k, step in enumerate(steps) if set(step.features) == chosen),
        "steps": [_step(step, steps, measure) for step in steps],
        "redundant": list(selector.redundant_),
    }


def chosen_entry(selector: Any, name: str) -> Entry:
    """The chosen step of a selection as an entry of a leaderboard on the same splits."""
    chosen = set(selector.selected_features_)
    step = next(step for step in selector.steps_ if set(step.features) == chosen)
    train = np.full(len(step.fold_scores), step.train_score)
    return Entry(name, selector.estimator_, {}, step.fold_scores, train, "statistics")


def _measure(scoring: Any) -> Measure:
    if isinstance(scoring, Metric):
        return _mean(scoring.name)
    if not isinstance(scoring, str) or scoring not in MEASURES:
        legal = ", ".join(map(repr, MEASURES))
        raise ValueError(f"The report shows errors of scoring {legal}. Got {scoring!r}.")
    return MEASURES[scoring]


def _row(board: Leaderboard, entry: Entry, measure: Measure) -> Table:
    difference, error = board.difference(entry)
    return {
        "name": entry.name,
        "is_baseline": entry.model is None,
        "is_best": entry is board.best,
        "is_chosen": entry is board.chosen,
        "error": measure.of_score(entry.score),
        "standard_error": entry.standard_error,
        "train_error": None if entry.train_score is None else measure.of_score(entry.train_score),
        "r2": board.r2(entry),
        "difference": -difference,
        "difference_error": error,
        "params": entry.params,
        "route": entry.route,
        "folds": measure.of_score(entry.fold_scores),
        "classes": entry.classes,
        "predicted": entry.predicted if entry is board.chosen else None,
    }


def _curve(board: Leaderboard, measure: Measure) -> Table | None:
    """Errors along a parameter of the chosen model; of a sum over columns those of another that was tuned too."""
    others = board.entries if _is_sum(board.chosen) else []
    order = [(entry, name) for entry in [board.chosen, *others] for name in STRENGTHS]
    tuned = (one for one in order if len(set(one[0].candidates.get(f"param_{one[1]}", []))) > 2)
    entry, name = next(tuned, (None, ""))
    if entry is None:
        return None
    table = entry.candidates
    splits = [key for key in table if key.endswith("_train_score") and key.startswith("split")]
    train = np.column_stack([table[key] for key in splits]) if splits else None
    return {
        "model": entry.name,
        "parameter": name,
        "label": learner_of(entry.model).words.strengths.get(name, name),
        "values": [float(value) for value in table[f"param_{name}"]],
        "validation": measure.of_score(table["mean_test_score"]),
        "validation_error": table["standard_error"],
        "train": None if train is None else measure.of_score(table["mean_train_score"]),
        "train_error": None if train is None else standard_errors(train),
        "best": int(np.nanargmax(table["mean_test_score"])),  # a candidate without a fit has none
        "chosen": next(k for k, params in enumerate(table["params"]) if params == entry.params),
    }


def _is_sum(entry: Entry) -> bool:
    """Whether a model has coefficients, so that penalties of others like it say something about it."""
    learner = learner_of(entry.model)
    return not learner.is_ours or "coefficients" in learner.sections(entry.model.get_params(deep=False))


def _step(step: Step, steps: Sequence[Step], measure: Measure) -> Table:
    smaller = [set(one.features) for one in steps if one.n_features < step.n_features]
    before = max(smaller, key=len, default=set())
    return {
        "n_features": step.n_features,
        "change": step.change,
        "added": [name for name in step.features if name not in before],
        "features": list(step.features),
        "error": measure.of_score(step.mean_score),
        "standard_error": step.standard_error,
        "train_error": measure.of_score(step.train_score),
        "folds": measure.of_score(step.fold_scores),
    }


def _error(entry: Entry, measure: Measure) -> float:
    """The mean over the splits; of classes that of all rows together, as the table has it."""
    if entry.classes is None:
        return float(measure.of_score(entry.score))
    return float(measure.of_score(measure.sign * entry.metrics[measure.rate]))


def _sentences(board: Leaderboard, measure: Measure) -> list[str]:
    value = _error(board.chosen, measure)
    error, plus_minus = text.measured(value, board.chosen.standard_error)
    sentence = measure.own.format(error=error, plus_minus=plus_minus)
    if measure.rate == "log_loss" and value < text.LEAST_LOSS:
        sure = "every row had its class with a probability of 1, but for rounding"
        sentence = f"the log loss is {text.small_loss(value)}: {sure}"
    choice = choice_sentences(board.correction, board.nested, board.scoring)
    said = [f"On rows it did not see, {sentence}.", *_why_chosen(board), _against_baseline(board, measure)]
    return [*said, *_majority(board), *choice]


def _majority(board: Leaderboard) -> list[str]:
    """The accuracy beside that of always predicting the most frequent class."""
    if not board.is_of_classes or board.chosen.classes is None:
        return []
    right, null = board.chosen.metrics["accuracy"], board.baseline.metrics["accuracy"]
    return [
        f"Its accuracy is {text.percent(float(right))}; always predicting the most frequent class has "
        f"{text.percent(float(null))}."
    ]


def _why_chosen(board: Leaderboard) -> list[str]:
    others = [one for one in board.entries if one.model is not None and one is not board.chosen]
    if not others or board.named is not None:
        return []
    name = _capital(board.chosen.name)
    if board.chosen is not board.best:
        return [
            f"{name} was taken: its error is within one standard error of the smallest, that of {board.best.name}, "
            f"and {board.preference.reason(board.chosen.name)}."
        ]
    ranks = board.preference.ranks([one.name for one in others])
    simpler = [
        one.name for one, rank in zip(others, ranks, strict=True) if rank < board.preference.rank(board.chosen.name)
    ]
    if not simpler:
        return [f"{name} was taken: it has the smallest error."]
    return [
        f"{name} was taken: it has the smallest error; that of {simpler[0]}, which is simpler, is more than one "
        "standard error larger."
    ]


def _against_baseline(board: Leaderboard, measure: Measure) -> str:
    base = board.baseline
    digits = base.standard_error if base.classes is None else board.chosen.standard_error
    chosen_error, null = _error(board.chosen, measure), _error(base, measure)
    error, _ = text.measured(null, digits)
    words = measure.baseline if chosen_error < null else measure.no_better
    return words.format(name=base.name, error=error)


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
