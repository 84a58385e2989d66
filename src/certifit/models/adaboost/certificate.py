"""The certificate of AdaBoost: every round derived again, the training error under its bound, and the margin game.

Rounds are played again from the first weights with the stored stumps. For two classes, y = -1 or 1 and
F = sum_j (alpha_j / 2) f_j, errors weighted by the first weights and a vote of 0 counted as an error:

    training error <= mean exp(-y F) = prod_j Z_j,    Z_j = (1 - error_j) e^(-alpha_j/2) + error_j e^(alpha_j/2),

which is prod_j 2 sqrt(error_j (1 - error_j)) where alpha_j = log((1 - error_j) / error_j). The margin of a row is
y F / sum_j alpha_j/2. For any weights w of the rows, no vote over stumps has a smallest margin above the largest edge
|sum_i w_i y_i f(x_i)| of any stump f. It is searched over all stumps for three w: those of the round of the least edge,
their mean over all rounds, and over the rounds since the last power of two. Weights and a vote from elsewhere, those of
a linear program (polish.py), are measured in the same way and narrow the best margin from both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from certifit.data.columns import Array, Columns
from certifit.models.adaboost.state import BoostTask, PolishedVote, Stump, StumpVote
from certifit.models.certificate import Certificate, unfinished
from certifit.models.trees.task import FAR_WEIGHTS, LEAST_WEIGHT
from certifit.runtime import core, n_threads
from certifit.statistics.residual import TINY, UNIT

SIDE_BY_SIDE = 4  # weights of the rows whose largest edges the core finds at once
CLAIM = "training error as a share of its bound"
CLAIM_OF_ROUNDS = "largest deviation of a round from the one derived again, as a share of what rounding allows"
THEOREM = (
    "the training error of AdaBoost is at most the mean exponential loss, the product of the factors of its rounds"
)
NO_THEOREM = "errors and weights of stumps are sums over rows; SAMME, of more than two classes, has no such bound"


@dataclass(frozen=True)
class BoostingCertificate(Certificate):
    """The proof that goes with boosted stumps. error: of the vote on its rows; bound: on it, by the theorem.

    margin: the smallest of a row; best_margin: none is above it, whatever the vote. Both only of two classes.
    polished_margin: the smallest of a row in the vote `polished`, rounded down; None where none was asked for.
    """

    n_rounds: int = 0
    error: float = 1.0
    bound: float | None = None
    margin: float | None = None
    best_margin: float | None = None
    fault: str = ""
    polished_margin: float | None = field(default=None, compare=False)
    polished: PolishedVote | None = field(default=None, compare=False, repr=False)

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.fault:
            return [f"NOT certified: {self.fault}"]
        rounds = "round was" if self.n_rounds == 1 else "rounds were"
        derived = f"The {self.n_rounds:,} {rounds} derived again from the rows."
        if self.bound is None or self.margin is None or self.best_margin is None:
            return [derived, f"Training error {self.error:.4g}; for more than two classes no bound on it is known."]
        return [
            f"{derived} Training error {self.error:.4g} (a draw is an error) of at most {self.bound:.4g}, the product "
            "over the rounds.",
            f"Smallest margin of a row {self.margin:.4f}; no vote over stumps has one above "
            f"{_rounded(self.best_margin, 4, ROUND_CEILING)}.",
            *self._polish_sentences(),
        ]

    def to_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return {name: value for name, value in super().to_dict().items() if not name.startswith("polished")}

    def _polish_sentences(self) -> list[str]:
        if self.polished is None or self.polished_margin is None or self.best_margin is None:
            return []
        low = _rounded(self.polished_margin, 9, ROUND_FLOOR)
        high = _rounded(self.best_margin, 9, ROUND_CEILING)
        n = int((self.polished.share > 0).sum())
        stumps = "stump" if n == 1 else "stumps"
        return [f"By linear programming: a vote of {n:,} {stumps} has one of {low}, and none has one above {high}."]


@dataclass(frozen=True)
class _Replay:
    """The rounds played again by the core, which shares nothing with the search. Weights are known but for a factor.

    Per round: weights of the rows called wrong, and of all; first weights of the rows that have lost, and of those
    whose lead may be 0; the largest value on the left, the smallest on the right. Per row: weights of the hardest
    round, their sums over all rounds and since the last power of two, those after the last; leads.
    """

    wrong: Array
    total: Array
    lost: Array
    drawn: Array
    below: Array
    above: Array
    chosen: Array
    sum: Array
    since: Array
    last: Array
    leads: Array


def certify(task: BoostTask, state: StumpVote, polished: PolishedVote | None = None) -> BoostingCertificate:
    """The proof of a vote on the rows of a task.

    polished: a vote and weights of rows from anywhere, of two classes; margins and edges are measured here.
    """
    codes, mass = task.scaled()
    if mass is not None and mass.min() < LEAST_WEIGHT:
        return _certificate(task, state, math.inf, 1.0, fault=FAR_WEIGHTS)
    replay = _replayed(task, state, codes, mass)
    value, fault = _deviation(task, state, replay, len(codes))
    if fault:
        return _certificate(task, state, math.inf, 1.0, fault=fault)
    if _is_unfinished(task, state, codes, replay.last):
        return _certificate(task, state, math.inf, 1.0, fault=unfinished(state.n_rounds, task.n_estimators))
    first = np.ones(len(codes)) if mass is None else mass
    # A lead that rounding may have made of a draw counts as one.
    error = float(first[replay.leads <= _rounding_of_leads(state)[-1]].sum() / first.sum())
    if task.n_classes > 2:
        return _certificate(task, state, value, error)
    log_bound = float(state.log_factors().sum())
    total = float(state.alpha.sum())
    # The error is a mean of n weights, the product one of as many factors as there are rounds, each a sum of
    # exponentials of alphas.
    terms = len(codes) + state.n_rounds + total
    slack = 16 * terms * UNIT * (1 + abs(log_bound) if math.isfinite(log_bound) else 1)
    value = 0.0 if error == 0 else error * math.exp(-min(max(log_bound, -700.0), 700.0))
    margin = float(replay.leads.min()) / total if total > 0 else 0.0
    best = _best_margin(task, codes, [replay.chosen, replay.sum, replay.since], polished)
    value, bound = value / (1 + slack) + TINY, float(state.bounds()[-1])
    fault = "" if value <= 1 else f"its training error, {error:.8g}, is above the product of its rounds, {bound:.8g}."
    certificate = _certificate(task, state, value, error, bound, margin, best, fault)
    if polished is None:
        return certificate
    return replace(certificate, polished=polished, polished_margin=_margin(DenseColumns(task), codes, polished))


def _best_margin(task: BoostTask, codes: Array, weights: list[Array], polished: PolishedVote | None) -> float:
    """What no vote over stumps has a smallest margin above: the least of the largest edges under some weights."""
    tried = weights + ([] if polished is None else [polished.weights])
    tried = [of_rows / of_rows.sum() for of_rows in tried if _is_distribution(of_rows, len(codes))]
    signed = np.zeros((len(codes), SIDE_BY_SIDE))
    for k, of_rows in enumerate(tried):
        signed[:, k] = of_rows * (2 * codes - 1)
    edges = core.largest_edges(task.block.rows, signed, n_threads())
    return min(float(edges[: len(tried)].min(initial=1.0)) + 8 * len(codes) * UNIT, 1.0)


def _certificate(
    task: BoostTask,
    state: StumpVote,
    value: float,
    error: float,
    bound: float | None = None,
    margin: float | None = None,
    best_margin: float | None = None,
    fault: str = "",
) -> BoostingCertificate:
    is_bounded = task.n_classes == 2
    return BoostingCertificate(
        claim=CLAIM if is_bounded else CLAIM_OF_ROUNDS, theorem=THEOREM if is_bounded else NO_THEOREM,
        value=float(value), tolerance=1.0, rounding=1.0, n_rounds=state.n_rounds, error=error, bound=bound,
        margin=margin, best_margin=best_margin, fault=fault,
    )  # fmt: skip


def _is_distribution(weights: Array, n_rows: int) -> bool:
    """Whether these are weights of the rows, not all 0."""
    return weights.shape == (n_rows,) and bool((weights >= 0).all()) and 0 < float(weights.sum()) < math.inf


def _margin(columns: DenseColumns, codes: Array, vote: PolishedVote) -> float:
    """The smallest margin of a vote, at the lower end of its rounding; -1, which every vote has, where it is none."""
    total = float(vote.share.sum())
    if len(vote.stumps) != len(vote.share) or not ((vote.share >= 0).all() and 0 < total < math.inf):
        return -1.0
    lead = np.zeros(len(codes))
    for stump, share in zip(vote.stumps, (vote.share / total).tolist(), strict=True):
        lead += np.where(columns.called(stump) == codes, share, -share)
    return max(float(lead.min()) - 8 * (len(vote.stumps) + 4) * UNIT, -1.0)


def _rounded(number: float, digits: int, direction: str) -> str:
    """A bound in so many digits, which are a bound as well."""
    return f"{Decimal(number).quantize(Decimal(10) ** -digits, direction):f}"


def _replayed(task: BoostTask, state: StumpVote, codes: Array, mass: Array | None) -> _Replay:
    first = None if mass is None else mass / mass.sum()
    stumps = (state.feature, state.threshold, state.left, state.right, state.alpha, state.error)
    hardest = int(state.error.argmax())
    return _Replay(
        **core.replay_stumps(
            task.block.rows, codes, first, *stumps, _rounding_of_leads(state), hardest, task.n_classes, n_threads()
        )
    )


def _rounding_of_leads(state: StumpVote) -> Array:
    """How far the leads after each round, differences of sums of alphas, may be off, here and in the search."""
    return np.asarray(8 * np.arange(1, state.n_rounds + 1) * UNIT * (1 + np.cumsum(np.abs(state.alpha))))


def _deviation(task: BoostTask, state: StumpVote, replay: _Replay, n_rows: int) -> tuple[float, str]:
    """The largest deviation of a round as a share of what rounding allows, and what is wrong with one beyond that."""
    worst, of_rows = 0.0, float(n_rows if task.weight is None else 1.0)
    for j in range(state.n_rounds):
        if not _is_halfway(float(state.threshold[j]), float(replay.below[j]), float(replay.above[j])):
            return math.inf, _changed(j, "threshold is not halfway between values of rows")
        error = float(replay.wrong[j] / replay.total[j])
        allowed = 16 * (n_rows + 16) * (j + 1) * UNIT
        off = max(abs(state.error[j] - error) / (error or 1.0), abs(state.alpha[j] - _alpha(task, error, j)) / 4)
        if not off <= allowed:
            return math.inf, _changed(j, "error or weight is not that of the rows")
        worst = max(worst, off / allowed)
        least = float(replay.lost[j]) / of_rows
        most = least + float(replay.drawn[j]) / of_rows
        if not least - allowed <= state.training_error[j] <= most + allowed:
            return math.inf, _changed(j, "training error is not that of the rows")
    return worst + TINY, ""


def _is_halfway(threshold: float, below: float, above: float) -> bool:
    """Whether a threshold is where the search puts it: halfway between two values, or infinite behind all."""
    if math.isinf(below) or math.isinf(above):
        return threshold == math.inf
    return threshold == _middle(below, above)


def _is_unfinished(task: BoostTask, state: StumpVote, codes: Array, weight: Array) -> bool:
    """Whether rounds are missing: some stump is better than chance by the weights after the last, and errs."""
    chance = 1 - 1 / task.n_classes
    if state.n_rounds >= task.n_estimators or not 0 < state.error[-1] < chance * (1 - 1e-12):
        return False
    least = DenseColumns(task).least_error(weight / weight.sum(), codes, task.n_classes)
    near = 16 * (len(codes) + 16) * (state.n_rounds + 1) * UNIT + 1e-12
    return bool(near < least < chance - near)


def _changed(round_number: int, what: str) -> str:
    return f"round {round_number + 1}: its {what}. The model was changed, or these are not its rows."


def _alpha(task: BoostTask, error: float, round_number: int) -> float:
    """rate (log((1 - error) / error) + log(K - 1)); of a first stump without error the rate, of one like chance 0."""
    chance = 1 - 1 / task.n_classes
    if round_number == 0 and (error == 0 or error >= chance * (1 - 1e-12)):
        return task.learning_rate if error == 0 else 0.0
    if not 0 < error < 1:
        return math.inf
    return task.learning_rate * (math.log1p(-error) - math.log(error) + math.log(task.n_classes - 1))


def _middle(low: float, high: float) -> float:
    """Where the search puts a threshold between two values."""
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low


class DenseColumns:
    """Columns of the rows as float64, and their order, each made once."""

    def __init__(self, task: BoostTask) -> None:
        X = task.block.X
        self.X = X if isinstance(X, np.ndarray) else X.toarray() if isinstance(X, Columns) else np.asarray(X.toarray())
        self.made: dict[int, Array] = {}
        self.orders: dict[int, Array] = {}

    def of(self, j: int) -> Array:
        """Column j."""
        if j not in self.made:
            self.made[j] = np.ascontiguousarray(self.X[:, j], dtype=np.float64)
        return self.made[j]

    def called(self, stump: Stump) -> Array:
        """The codes of the classes that a stump gives to the rows."""
        feature, threshold, left, right = stump
        return np.where(self.of(feature) <= threshold, left, right)

    def best_stumps(self, weights: Array, signs: Array) -> list[tuple[float, Stump]]:
        """The stump of the largest edge of every column, constants among them; the largest edge first."""
        signed = weights * signs
        total = float(signed.sum())
        best: list[tuple[float, Stump]] = [(abs(total), (0, math.inf, int(total > 0), int(total > 0)))]
        for j in range(self.X.shape[1]):
            order = self._order(j)
            x = self.of(j)[order]
            places = np.flatnonzero(x[:-1] < x[1:])
            if len(places) == 0:
                continue
            edges = total - 2 * np.cumsum(signed[order])[places]  # of calling rows behind the threshold 1
            k = int(np.abs(edges).argmax())
            threshold, right = _middle(float(x[places[k]]), float(x[places[k] + 1])), int(edges[k] > 0)
            best.append((float(abs(edges[k])), (j, threshold, 1 - right, right)))
        return sorted(best, key=lambda pair: -pair[0])

    def least_error(self, weights: Array, codes: Array, n_classes: int) -> float:
        """The least weighted error of all stumps: on each side of a threshold all but the heaviest class are wrong."""
        of_class = np.zeros((len(codes), n_classes))
        of_class[np.arange(len(codes)), codes.astype(np.int64)] = weights
        total = of_class.sum(axis=0)
        most = float(total.max())
        for j in range(self.X.shape[1]):
            order = self._order(j)
            x = self.of(j)[order]
            left = np.cumsum(of_class[order], axis=0)[:-1][x[:-1] < x[1:]]
            most = max(most, float((left.max(axis=1) + (total - left).max(axis=1)).max(initial=0.0)))
        return float(weights.sum()) - most

    def _order(self, j: int) -> Array:
        """The rows in ascending order of column j; those of equal values in any."""
        if j not in self.orders:
            self.orders[j] = np.argsort(self.of(j))
        return self.orders[j]
