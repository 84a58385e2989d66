"""Which candidate wins: the best mean score, or the simplest within one standard error of it; and which model.

What choosing among candidates does to the score of the winner, and figures that account for it.

The score of the best of many candidates, read off the rows that chose it, is too good. Bootstrap bias-corrected
cross-validation (Tsamardinos, Greasidou and Borboudakis 2018) draws rows with repetition from the held-out
predictions, lets the rows drawn choose by the same rule, and scores the choice on the rows left out: nothing is
refitted. It removes most of the optimism, not all. Nested cross-validation repeats the choice on the training rows
of every split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.evaluation.metrics.intervals import Estimate, generator
from certifit.models.folds import Candidate
from certifit.runtime import one_blas_thread
from certifit.selection.folds.fold_scores import FoldScores
from certifit.selection.folds.metrics import Scoring, of_mean
from certifit.selection.folds.splits import group_keys
from certifit.statistics.loss_sums import HeldOut

RULES = ("min", "1se")

# parameter -> +1 where a larger value is the simpler model, -1 where a smaller one is
SIMPLER = {
    "alpha": 1,
    "C": -1,
    "degree": -1,
    "max_depth": -1,
    "max_leaf_nodes": -1,
    "min_samples_leaf": 1,
    "min_samples_split": 1,
    "n_neighbors": 1,
    "n_components": -1,
    "shrinkage": 1,
    "basis": -1,
}


@dataclass(frozen=True)
class Preference:
    """Groups of models, the simplest first: the best model of the first group that is within one standard error of the
    best of all is taken. A model in no group comes last. because: of every group, why its models are preferred.
    """

    groups: tuple[tuple[str, ...], ...] = ()
    because: tuple[str, ...] = ()

    @staticmethod
    def of(prefer: str | Sequence[Sequence[str]] | None, because: str | Sequence[str]) -> Preference:
        """From one name, or groups of names."""
        groups = () if prefer is None else ((prefer,),) if isinstance(prefer, str) else tuple(map(tuple, prefer))
        reasons = (because,) * len(groups) if isinstance(because, str) else tuple(because)
        if len(reasons) != len(groups):
            raise ValueError(f"because must have one reason per group of prefer, {len(groups)}. Got {len(reasons)}.")
        return Preference(groups, reasons)

    @property
    def names(self) -> list[str]:
        """Of all groups."""
        return [name for group in self.groups for name in group]

    def ranks(self, names: Sequence[str]) -> Array:
        """The place of every model's group; models in no group have the place behind the last."""
        place = {name: k for k, group in enumerate(self.groups) for name in group}
        return np.array([place.get(name, len(self.groups)) for name in names])

    def rank(self, name: str) -> int:
        """The place of a model's group."""
        return int(self.ranks([name])[0])

    def reason(self, name: str) -> str:
        """Why a model is preferred."""
        return self.because[self.rank(name)]

    def without(self, name: str) -> Preference:
        """The same with a model in no group."""
        groups = tuple(tuple(other for other in group if other != name) for group in self.groups)
        return Preference(groups, self.because)


NO_PREFERENCE = Preference()


def choose_models(scores: Array, error: Array, ranks: Array) -> Array:
    """Places of the models taken, choices x models: of those within one standard error of the best the first in rank.

    error: of the best of every choice. Models of equal rank: the better one.
    """
    best = scores.argmax(axis=1)
    top = scores[np.arange(len(scores)), best]
    is_near = scores >= (top - error)[:, None]  # nothing is near where one split tells no error
    rank = np.where(is_near, ranks, np.inf)
    is_first = is_near & (rank == rank.min(axis=1, keepdims=True))
    taken = np.where(is_first, scores, -np.inf).argmax(axis=1)
    return np.asarray(np.where(is_near.any(axis=1), taken, best))


def choose(mean: Array, error: Array, candidates: Sequence[Candidate], rule: str) -> int:
    """Place of the winner. Ties go to the simpler one where that is known, else to the first."""
    if not np.isfinite(mean).any():
        far = "For a row that validates, and lies far from those of a fit, it predicts a mean of 0 or beyond float64: "
        far += "transform the column in which the row does, or raise alpha."
        few = "A fold of a single row has no R2: use fewer folds, or scoring='neg_mean_squared_error'."
        raise ValueError(f"No candidate has a finite score. {far if np.isneginf(mean).any() else few}")
    order = simplicity(candidates) if rule == "1se" else None
    return int(choose_each(mean[None, :], error[None, :], order, rule)[0])


def choose_each(mean: Array, error: Array, order: Array | None, rule: str) -> Array:
    """Places of the winners of several choices, choices x candidates; 0 where no candidate has a score.

    order: `simplicity` of the candidates, for the rule "1se".
    """
    means = np.where(np.isnan(mean), -np.inf, mean)
    best = means.argmax(axis=1)
    if rule == "min" or order is None:
        return np.asarray(best)
    each = np.arange(len(best))
    least = means[each, best] - np.nan_to_num(error[each, best])  # one split tells no error
    is_within = (means >= least[:, None]) & (order >= order[best][:, None])  # never less penalised than the best
    simplest = np.where(is_within, order, -np.inf)
    is_simplest = is_within & (simplest == simplest.max(axis=1, keepdims=True))
    return np.asarray(np.where(is_simplest, means, -np.inf).argmax(axis=1))


def simplicity(candidates: Sequence[Candidate]) -> Array:
    """A number per candidate, larger for the simpler model; refused where candidates differ in more than one way."""
    names = sorted({name for candidate in candidates for name in candidate})
    varying = [name for name in names if len({repr(candidate.get(name)) for candidate in candidates}) > 1]
    if not varying:
        return np.zeros(len(candidates))
    name = varying[0].rpartition("__")[2]
    if len(varying) > 1 or name not in SIMPLER:
        raise ValueError(
            f"rule='1se' needs candidates that differ in one parameter that orders them by simplicity "
            f"({', '.join(SIMPLER)}). These differ in {varying}. Use rule='min'."
        )
    sign = SIMPLER[name]
    return np.array([sign * _size(candidate.get(varying[0]), sign) for candidate in candidates])


def _size(value: object, sign: int) -> float:
    """A number, or the degree of a basis; None is a limit that limits nothing."""
    if value is None and sign < 0:
        return np.inf
    value = getattr(value, "degree", value)
    if not isinstance(value, Real):
        raise ValueError(f"rule='1se' needs numbers to order candidates. Got {value!r}.")
    return float(value)


N_DRAWS = 500
DRAWS_AT_ONCE = 50
MOST_NUMBERS = 1 << 23  # row scores that are kept, all candidates: 64 MB, and as much again of their accuracies
TOO_MANY = "the scores of all candidates on all rows are too many to keep"
BBC, TIBSHIRANI = "BBC-CV", "Tibshirani and Tibshirani"


@dataclass(frozen=True)
class Choosing:
    """The rule by which one of all candidates is chosen, models one after the other.

    names : of the models
    sizes : number of candidates of every model
    rules : "min" or "1se" of every model
    orders : simplicity of the candidates of every model that is chosen by "1se", else None
    preference : which model is taken of those within one standard error of the best
    """

    names: Sequence[str]
    sizes: Sequence[int]
    rules: Sequence[str]
    orders: Sequence[Array | None]
    preference: Preference = NO_PREFERENCE

    @staticmethod
    def of(names: Sequence[str], candidates: Sequence[Sequence[Candidate]], rules: Sequence[str]) -> Choosing:
        """For the candidates and the rule of every model."""
        pairs = list(zip(candidates, rules, strict=True))
        orders = [simplicity(of_model) if rule == "1se" else None for of_model, rule in pairs]
        return Choosing(list(names), [len(of_model) for of_model in candidates], list(rules), orders)

    def preferring(self, preference: Preference) -> Choosing:
        """The same with preferred models."""
        return replace(self, preference=preference)

    def first(self, name: str) -> int:
        """Place of the first candidate of a model."""
        return self._begins()[self.names.index(name)]

    def chosen(self, scores: Array) -> Array:
        """Places of the chosen candidates. scores: choices x candidates x splits; NaN: a split without a score."""
        with np.errstate(invalid="ignore", divide="ignore"):
            n_splits = np.isfinite(scores).sum(axis=2)
            means = np.where(n_splits > 0, np.nansum(scores, axis=2) / n_splits, np.nan)
            squares = np.nansum((scores - means[:, :, None]) ** 2, axis=2)
            errors = np.sqrt(squares / (n_splits - 1) / n_splits)
        each = np.arange(len(scores))
        places = []
        for begin, size, rule, order in zip(self._begins(), self.sizes, self.rules, self.orders, strict=True):
            place = slice(begin, begin + size)
            places.append(begin + choose_each(means[:, place], errors[:, place], order, rule))
        of_models = np.column_stack(places)
        winners = np.where(np.isnan(means), -np.inf, means)[each[:, None], of_models]
        best = winners.argmax(axis=1)
        top, error = winners[each, best], errors[each, of_models[each, best]]
        taken = choose_models(winners, error, self.preference.ranks(self.names))
        return np.where(np.isfinite(top), of_models[each, taken], -1)

    def _begins(self) -> list[int]:
        return [sum(self.sizes[:k]) for k in range(len(self.sizes))]

    def place(self, candidate: int) -> tuple[int, int]:
        """(model, candidate of that model) of a place among all candidates."""
        begins = self._begins()
        model = max(k for k, begin in enumerate(begins) if begin <= candidate)
        return model, candidate - begins[model]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What all candidates scored on all splits, and where it is small enough on every validation row.

    fold_scores : candidates x splits
    weight : of the validation rows of every split
    held_out : of every split its rows with "score", of classes "accuracy" too; None: too many, or no mean over rows
    units : of every held-out row, split by split, the number of what is drawn whole: its row, or its group
    why_not : where held_out is None, the reason
    """

    choosing: Choosing
    scoring: Scoring
    fold_scores: Array
    weight: Array
    held_out: Sequence[HeldOut] | None = None
    units: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    why_not: str = ""

    def preferring(self, preference: Preference) -> Evidence:
        """The same for a choice that prefers some models."""
        return replace(self, choosing=self.choosing.preferring(preference))

    @property
    def n_candidates(self) -> int:
        """Of all models."""
        return len(self.fold_scores)


@dataclass(frozen=True)
class Correction:
    """The score of the chosen candidate, before and after the choice is accounted for.

    winner : its score on the rows that chose it, all rows together
    score : the corrected one
    accuracy, winner_accuracy : the same for the share of right classes; None for numbers
    n_candidates : among which it was chosen
    """

    winner: float
    score: Estimate
    n_candidates: int
    winner_accuracy: float | None = None
    accuracy: Estimate | None = None

    @property
    def method(self) -> str:
        """BBC-CV, or Tibshirani and Tibshirani."""
        return BBC if self.score.low is not None else TIBSHIRANI


def row_scores_are_few(rounds: Sequence[Splits], n_rows: int, n_candidates: int) -> bool:
    """Whether the scores of all validation rows by all candidates may be kept: at most `MOST_NUMBERS`."""
    shares = sum(float((splits.validation > 0).sum()) / splits.validation.shape[1] for splits in rounds)
    return bool(n_rows * shares * n_candidates <= MOST_NUMBERS)


def evidence_of(
    choosing: Choosing,
    scoring: Scoring,
    tables: Sequence[FoldScores],
    source: Source,
    why_not: str = "",
) -> Evidence:
    """From the FoldScores of every model. source: of the rows, which are drawn by their groups where they have any."""
    fold_scores = np.concatenate([table.validation for table in tables])
    weight = tables[0].weight
    kept = [table.row_scores() for table in tables]
    if not all(kept):
        why_not = why_not or "this score is no mean over rows"
        return Evidence(choosing, scoring, fold_scores, weight, why_not=why_not)
    held_out = [_stacked(parts) for parts in zip(*kept, strict=True)]
    numbers = np.concatenate([split.numbers for split in held_out])
    return Evidence(choosing, scoring, fold_scores, weight, held_out, units_of(numbers, source))


def corrected(evidence: Evidence, chosen: int, *, n_draws: int = N_DRAWS, random_state: int = 0) -> Correction | None:
    """The correction of the candidate at place `chosen`; None where neither rows nor several splits are there."""
    if evidence.held_out is not None:
        return _bootstrapped(evidence, chosen, n_draws, random_state)
    return _from_folds(evidence, chosen)


@one_blas_thread
def _bootstrapped(evidence: Evidence, chosen: int, n_draws: int, random_state: int) -> Correction:
    held_out = evidence.held_out or ()
    weight = np.concatenate([split.weight for split in held_out])
    names = list(held_out[0].values)
    values = {name: np.concatenate([split.values[name] for split in held_out], axis=1) for name in names}
    left = {name: _LeftOut(values[name], weight) for name in names}
    for times in _drawn(evidence.units, n_draws, random_state):
        picks = evidence.choosing.chosen(_scores(evidence, weight * times))
        for pick, is_out in zip(picks, times == 0, strict=True):
            for name in names if pick >= 0 else ():
                left[name].add(int(pick), is_out)
    kinds = {"score": evidence.scoring, "accuracy": "accuracy"}
    drawn_scores = {name: left[name].estimate(kinds[name], evidence.n_candidates) for name in names}
    whole = {name: float(of_mean(kinds[name], values[name][chosen] @ weight / weight.sum())) for name in names}
    return Correction(
        whole["score"],
        drawn_scores["score"],
        evidence.n_candidates,
        whole.get("accuracy"),
        drawn_scores.get("accuracy"),
    )


def _drawn(units: Array, n_draws: int, random_state: int) -> Iterator[Array]:
    """How often every held-out row is drawn, some draws at a time: as many units as there are, with repetition."""
    n_units = int(units.max(initial=-1)) + 1
    for first in range(0, n_draws, DRAWS_AT_ONCE):
        draws = range(first, min(first + DRAWS_AT_ONCE, n_draws))
        numbers = (generator(random_state, draw).integers(0, n_units, n_units) for draw in draws)
        counts = np.array([np.bincount(drawn, minlength=n_units) for drawn in numbers], dtype=np.float64)
        yield counts[:, units]


def _scores(evidence: Evidence, weight: Array) -> Array:
    """Scores of every candidate on every split, draws x candidates x splits, of rows with these weights."""
    scores, at = [], 0
    for split in evidence.held_out or ():
        split_weight = weight[:, at : at + len(split.weight)]
        at += len(split.weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores.append(
                of_mean(
                    evidence.scoring, split_weight @ split.values["score"].T / split_weight.sum(axis=1, keepdims=True)
                )
            )
    return np.stack(scores, axis=2)


class _LeftOut:
    """Scores of rows by the choices of the draws that left them out.

    The estimate is the mean over rows of each row's mean over draws, so that of one candidate it is the score itself;
    the interval are quantiles of the means of single draws.
    """

    def __init__(self, values: Array, weight: Array) -> None:
        self.values, self.weight = values, weight
        self.sums, self.counts = np.zeros(len(weight)), np.zeros(len(weight))
        self.means: list[float] = []

    def add(self, pick: int, is_out: Array) -> None:
        """One draw: the candidate that it chose, and the rows that it left out."""
        total = float(self.weight @ is_out)
        if total > 0:
            held_out = self.values[pick] * is_out
            self.sums += held_out
            self.counts += is_out
            self.means.append(float(self.weight @ held_out) / total)

    def estimate(self, scoring: Scoring, n_candidates: int, level: float = 0.95) -> Estimate:
        """The score of the mean, and its interval."""
        seen = self.counts > 0
        if not seen.any():
            return Estimate(np.nan, sentence="No draw leaves a row out: there are too few rows to correct the choice.")
        mean = np.average(self.sums[seen] / self.counts[seen], weights=self.weight[seen])
        tail = (1 - level) / 2
        low, high = (float(of_mean(scoring, np.quantile(self.means, share))) for share in (tail, 1 - tail))
        sentence = (
            f"Chosen among {n_candidates:,} candidates by rows drawn with repetition, scored on the rows left out; "
            f"mean of {len(self.means)} draws, percentile interval. Most of the optimism is removed, not all."
        )
        return Estimate(float(of_mean(scoring, mean)), low, high, level=level, method=BBC, sentence=sentence)


def _from_folds(evidence: Evidence, chosen: int) -> Correction | None:
    """score - mean over splits of (best score of the split - score of the chosen one there): no rows are needed."""
    scores = evidence.fold_scores[:, np.isfinite(evidence.fold_scores[chosen])]
    if scores.shape[1] < 2:
        return None
    mean_score = float(scores[chosen].mean())
    optimism = float((np.nanmax(scores, axis=0) - scores[chosen]).mean())
    sentence = (
        f"Corrected from the scores of {scores.shape[1]} splits (Tibshirani and Tibshirani 2009), without an interval: "
        f"{evidence.why_not}. This correction is coarser than that from single rows."
    )
    return Correction(
        mean_score, Estimate(mean_score - optimism, method=TIBSHIRANI, sentence=sentence), evidence.n_candidates
    )


def _stacked(parts: Sequence[HeldOut]) -> HeldOut:
    """The rows of a split with the candidates of all models."""
    first = parts[0]
    if any(not np.array_equal(part.numbers, first.numbers) for part in parts):
        raise ValueError("The models were validated on different rows, so their choice cannot be corrected.")
    shared = [name for name in first.values if all(name in part.values for part in parts)]
    values = {name: np.concatenate([part.values[name] for part in parts]) for name in shared}
    return HeldOut(first.numbers, first.weight, first.y, values)


def units_of(numbers: Array, source: Source) -> Array:
    """What is drawn whole, rows or groups of them, numbered in the order in which the rows have it first."""
    groups = group_keys(source) if source.narrow().first_block().group is not None else None
    keys = numbers if groups is None else groups[numbers]
    rows_first = np.argsort(numbers, kind="stable")
    _, first, places = np.unique(keys[rows_first], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    units = np.empty(len(numbers), dtype=np.int64)
    units[rows_first] = rank[places]
    return units


def plain(value: float) -> str:
    """Four digits; large numbers whole, with commas."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
