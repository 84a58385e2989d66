"""Rows with their scores, round by round: in memory, or in parts. Both give the same bits.

Sums over rows that are rounded are those of blocks or parts of the rows, which do not depend on where the rows are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.parts import Part
from certifit.data.source import Block, tree_sum
from certifit.mathematics.losses.scores import Logistic, ScoreLoss
from certifit.models.boosting.bundles import bundled_codes, bundles_of
from certifit.models.boosting.draws import columns_of_round, rows_of_round, trained_rows
from certifit.models.boosting.levels import UNLIMITED, BinnedColumns, grown_tree
from certifit.models.boosting.losses import (
    FAMILIES,
    HuberOfResidual,
    Pinball,
    RowsToScore,
    newton_constant,
    scored,
    weighted_quantile,
)
from certifit.models.boosting.of_part import (
    TrainedFlags,
    added,
    advanced,
    begun,
    class_masses,
    derived,
    drawn_rows,
    masses_of,
    residuals_of,
    scores_of,
    sizes_of,
    slopes_at,
    sums_of_means,
    target,
    trained_weight,
    walked,
    weight_of,
    without_offset,
)
from certifit.models.boosting.state import BoostingState, RoundTrees
from certifit.models.boosting.task import BoostingTask
from certifit.models.trees import passes
from certifit.models.trees.rows import Ranked, ranked_thresholds
from certifit.runtime import core, n_threads

MOST_SORTED = 256  # rows whose numbers are bytes
ROWS_PER_BIN = 2  # up to which walks through the rows of a column cost less than histograms
MAD = 1.482602218505602  # standard deviations of a normal law in a median absolute deviation
ROW = ("y", "weight", "offset", "trained")


class Rounds(ABC):
    """Rows that rounds are added to. edges, n_levels: of bins, where trees are to be grown.

    asked: trees that ask the rows, by ranks among their thresholds, or by values.
    """

    edges: list[Array]
    n_levels: Array | None
    n_rows: int
    asked: BoostingState

    def __init__(self, task: BoostingTask) -> None:
        self.task, self.settings, self.width = task, task.settings, task.width

    @abstractmethod
    def sums(self, f: Callable[[Part], Array]) -> Array:
        """Sums of what f gives of the rows of a part: y, weight, offset and whether they are trained on."""

    @abstractmethod
    def gathered(self, f: Callable[[Part], Array]) -> Array:
        """f of all parts, end to end."""

    @abstractmethod
    def begin(self, start: Array, before: BoostingState | None = None) -> tuple[float, float]:
        """Scores of all rows before the first round, or after earlier ones.

        Mean losses of the rows trained on, and of those held out.
        """

    @abstractmethod
    def draw(self, number: int) -> None:
        """The rows and columns of a round."""

    @abstractmethod
    def grow(self, k: int) -> dict[str, Array]:
        """The tree of score k: nodes, with the bins that they split at."""

    @abstractmethod
    def walk(self, k: int, tree: int) -> Array:
        """Rows led to the leaves of a tree of `asked`; sums over them of slopes, curvatures, |slopes| and weights."""

    @abstractmethod
    def derive(self, trees: RoundTrees) -> Array:
        """Sums over the leaves of some rounds, and losses, in one array; the scores are those after them."""

    @abstractmethod
    def residuals(self, k: int) -> tuple[Array, Array, Array]:
        """y less its score, the weight and the leaf of every row of this round."""

    @abstractmethod
    def advance(self, values: Sequence[Array]) -> tuple[float, float]:
        """Add to every score the value of its row's leaf. Mean losses after it."""

    @cached_property
    def thresholds(self) -> Array:
        """Of every column and bin, the edge above it; infinite above the last one."""
        table = np.full((len(self.edges), 256), np.inf)
        for row, edges in zip(table, self.edges, strict=True):
            row[: len(edges)] = edges
        return table

    @cached_property
    def loss(self) -> ScoreLoss:
        """The loss of a score, of all families but the softmax of more than two classes."""
        task = self.task
        if task.n_classes:
            return Logistic()
        loss = FAMILIES[task.family].loss(*task.parameters)
        if not isinstance(loss, HuberOfResidual):
            return loss
        y, weight = self.gathered(target), self.gathered(weight_of)
        apart = np.abs(y - weighted_quantile(y, weight, 0.5))
        scale = MAD * weighted_quantile(apart, weight, 0.5)
        return HuberOfResidual(loss.delta * (scale or float(apart.max(initial=0.0)) or 1.0))

    @property
    def row_loss(self) -> ScoreLoss | None:
        """The same; None of the softmax."""
        return self.loss if self.width == 1 else None

    @cached_property
    def masses(self) -> tuple[float, float]:
        """The weight of the rows trained on, and of those held out."""
        trained, held = self.sums(masses_of)
        return float(trained), float(held) or 1.0

    def means(self, sums: Iterable[Array]) -> tuple[float, float]:
        """Mean losses of the rows trained on, and of those held out, from sums of blocks of rows."""
        blocks = np.concatenate(list(sums))
        return math.fsum(blocks[:, 0]) / self.masses[0], math.fsum(blocks[:, 1]) / self.masses[1]

    def start(self) -> Array:
        """The best constant score of the rows that are trained on: log shares of more than two classes."""
        if self.width > 1:
            shares = self.sums(partial(class_masses, n_classes=self.width)) / self.masses[0]
            logs = np.log(np.maximum(shares, np.finfo(float).tiny))
            return np.asarray(logs - logs.mean())
        if self.task.n_classes:
            first, second = self.sums(partial(class_masses, n_classes=2))
            return np.array([np.log(second) - np.log(first)])
        loss = self.loss
        if isinstance(loss, Pinball | HuberOfResidual):
            weight = self.gathered(trained_weight)
            share = loss.quantile if isinstance(loss, Pinball) else 0.5
            z = weighted_quantile(self.gathered(without_offset), weight, share)
            if isinstance(loss, Pinball):
                return np.array([z])
        else:
            y, offset = self.sums(sums_of_means) / self.masses[0]
            z = loss.score(float(y)) - float(offset)

        def sums(at: float) -> tuple[float, float]:
            slope, curvature = self.sums(partial(slopes_at, loss=loss, z=at))
            return float(slope), float(curvature)

        return np.array([newton_constant(loss, z, sums)])

    def leaf_values(self, k: int, n_nodes: int, sums: tuple[Array, Array]) -> Array:
        """Newton steps of leaves, from sums of slopes and curvatures; of the pinball loss, quantiles of residuals."""
        slope, curvature = sums
        if not isinstance(self.loss, Pinball):
            mass = curvature + self.settings.l2
            return np.where(mass > 0, -slope / np.where(mass > 0, mass, 1.0), 0.0)
        residual, weight, leaves = self.residuals(k)
        values = np.zeros(n_nodes)
        for leaf in np.unique(leaves):
            in_leaf = leaves == leaf
            values[leaf] = weighted_quantile(residual[in_leaf], weight[in_leaf], self.loss.quantile)
        return values


class MemoryRounds(Rounds):
    """Rows in memory."""

    def __init__(self, task: BoostingTask, state: BoostingState | None = None) -> None:
        super().__init__(task)
        self.rows = task.rows
        self.n_rows = self.rows.n_rows
        self.edges, self.n_levels = self.rows.edges, self.rows.n_levels
        if state is not None:
            self._ask(state)

    def _ask(self, state: BoostingState) -> None:
        """What trees ask of the rows: ranks of values among their thresholds; values where these are too many."""
        ranked = _ranked(state, self.task.source.n_features)
        self.asked, self.asked_rows = state, {"X": self.rows.X}
        if ranked is not None:
            self.asked = replace(state, threshold=ranked.threshold)
            X = Block(self.rows.X, None, None).rows
            self.asked_rows = {"codes": core.bin_rows(X, ranked.edges, state.n_levels, n_threads())}

    @cached_property
    def trained(self) -> Array | None:
        """Whether each distinct row is trained on; None: all are."""
        settings = self.settings
        if not settings.early_stopping:
            return None
        return trained_rows(settings.random_state, self.rows.weight, settings.validation_fraction)

    @cached_property
    def _all(self) -> Array:
        rows = np.arange(self.rows.n_rows, dtype=np.uint32)
        return rows if self.trained is None else rows[self.trained]

    @cached_property
    def _scratch(self) -> Array:
        """Room for the work on a tree, kept from round to round."""
        return np.empty(3 * self.n_rows, dtype=np.uint64)

    @cached_property
    def _bundles(self) -> tuple[Array, Array] | tuple[None, None]:
        """Codes of columns that share bytes, and the bundle of every column; none where no columns can share one."""
        bundle_of = bundles_of(self.rows.n_bins)
        n_bundles = int(bundle_of.max()) + 1
        if n_bundles == len(bundle_of):
            return None, None
        return bundled_codes(self.rows.codes, self.rows.n_bins, bundle_of), bundle_of

    @cached_property
    def _sorted(self) -> tuple[Array, Array] | tuple[None, None]:
        """Of every column the rows in the order of their codes, and these codes: walks through few rows per bin.

        None where histograms are to be summed.
        """
        rows = self.rows
        n_cells = int((rows.n_bins.astype(np.int64) + 1).sum())
        is_few = rows.n_rows <= MOST_SORTED and rows.n_rows * len(rows.n_bins) <= ROWS_PER_BIN * n_cells
        if not is_few or self.settings.directions is not None:
            return None, None
        order = np.argsort(rows.by_column, axis=1, kind="stable")
        codes = np.take_along_axis(rows.by_column, order, axis=1)
        of_numbers = slice(None) if rows.n_levels is None else rows.n_levels == 0
        if not _has_row_in_every_bin(codes[of_numbers], rows.n_bins[of_numbers]):
            return None, None
        return order.astype(np.uint8), codes

    def _parts(self) -> list[Part]:
        rows = self.rows
        arrays = {"y": rows.y, "weight": rows.weight, "offset": rows.offset}
        if self.trained is not None:
            arrays["trained"] = self.trained
        cuts = range(0, rows.n_rows, passes.PART_ROWS)
        return [Part(k, {name: array[k : k + passes.PART_ROWS] for name, array in arrays.items()}) for k in cuts]

    def sums(self, f: Callable[[Part], Array]) -> Array:
        """Sums of what f gives of the rows of a part."""
        return added(map(f, self._parts()))

    def gathered(self, f: Callable[[Part], Array]) -> Array:
        """f of all parts, end to end."""
        return np.concatenate(list(map(f, self._parts())))

    def begin(self, start: Array, before: BoostingState | None = None) -> tuple[float, float]:
        """Scores of all rows before the first round, or after earlier ones."""
        rows = self.rows
        self.leaves: list[Array] = []
        self.scores = start + rows.offset[:, None] + np.zeros((rows.n_rows, self.width))
        if before is not None:
            self.scores = before.scores(Block(rows.X, None, None))[0] / self.task.unit + rows.offset[:, None]
        return self._score()

    def _score(self, values: Sequence[Array] = ()) -> tuple[float, float]:
        rows = RowsToScore(self.rows.y, self.rows.weight, self.trained)
        made = scored(self.row_loss, rows, self.scores, self.leaves if values else (), values)
        self.scores, self.slopes, self.curvatures = made.scores, made.slopes, made.curvatures
        self.leaves = [np.zeros(0)] * self.width
        return self.means([made.sums])

    def draw(self, number: int) -> None:
        """The rows and columns of a round."""
        settings, n_columns = self.settings, self.task.source.n_features
        self.drawn, n_before = self._all, 0
        if settings.subsample < 1:
            n_before = len(self._all)
            chosen = self._all[rows_of_round(settings.random_state, number, settings.subsample, n_before)]
            self.drawn = chosen if len(chosen) else self._all
        self.tried = columns_of_round(settings.random_state, number, settings.max_features, n_columns, n_before)

    def grow(self, k: int) -> dict[str, Array]:
        """The tree of score k."""
        rows, settings = self.rows, self.settings
        are_bundled = self._sorted[0] is None and len(self.tried) == len(rows.n_bins)
        bundles = self._bundles if are_bundled else (None, None)
        grown: dict[str, Array] = core.grow_newton(
            rows.codes, rows.by_column, rows.n_bins, rows.n_levels, self.slopes[k], self.curvatures[k],
            rows.weight, None if len(self.drawn) == self.n_rows else self.drawn, self.tried,
            UNLIMITED if settings.max_depth is None else settings.max_depth,
            UNLIMITED if settings.max_leaf_nodes is None else settings.max_leaf_nodes,
            settings.min_samples_leaf, settings.l2, settings.growth == "leaf",
            None if settings.directions is None else np.array(settings.directions, dtype=np.int8),
            self._scratch, *bundles, *self._sorted, n_threads(),
        )  # fmt: skip
        self.leaves[k] = grown["leaves"]
        return grown

    def walk(self, k: int, tree: int) -> Array:
        """Rows led to the leaves of a tree."""
        rows = {"weight": self.rows.weight, f"slope {k}": self.slopes[k], f"curvature {k}": self.curvatures[k]}
        if len(self.drawn) < self.rows.n_rows:
            rows["drawn"] = np.zeros(self.rows.n_rows, dtype=np.uint8)
            rows["drawn"][self.drawn] = 1
        leaves, sums = walked(Part(0, rows | self.asked_rows), k, self.asked.paths(tree))
        self.leaves[k] = leaves[f"leaf {k}"]
        return sums

    def derive(self, trees: RoundTrees) -> Array:
        """Sums over the leaves of some rounds, and losses."""
        rows = {"y": self.rows.y, "weight": self.rows.weight, "scores": self.scores} | self.asked_rows
        if self.trained is not None:
            rows["trained"] = self.trained
        arrays, sums = derived(Part(0, rows), trees, self.loss)
        self.scores = arrays["scores"]
        return sums

    def residuals(self, k: int) -> tuple[Array, Array, Array]:
        """Of the rows drawn."""
        rows, drawn = self.rows, self.drawn
        return (rows.y - self.scores[:, 0])[drawn], rows.weight[drawn], self.leaves[k][drawn]

    def advance(self, values: Sequence[Array]) -> tuple[float, float]:
        """Add to every score the value of its row's leaf."""
        return self._score(values)


class PartRounds(Rounds):
    """Rows in parts. state: trees that ask the rows, by ranks among their thresholds; None: trees are grown on bins."""

    def __init__(self, task: BoostingTask, state: BoostingState | None = None, before: BoostingState | None = None):
        super().__init__(task)
        assert task.passed is not None
        units = (task.unit, task.weight_unit)
        self.n_levels = task.columns.n_levels if state is None else state.n_levels
        if state is None:
            edges = task.passed.edges(task.settings.max_bins, self.n_levels)
            self.edges = task.refuse() if edges is None else edges
            self.n_bins = np.array([len(of_column) + 1 for of_column in self.edges], dtype=np.uint8)
            if self.n_levels is not None:
                self.n_bins = np.where(self.n_levels > 0, self.n_levels, self.n_bins)
            more = None if before is None else partial(scores_of, state=before)
            self.parts = task.passed.parts(self.edges, self.n_levels, self.n_bins, units, more)
        else:
            ranked = _ranked(state, task.source.n_features)
            if ranked is None:
                raise TooManyThresholds
            self.asked = replace(state, threshold=ranked.threshold)
            self.parts = task.passed.parts(ranked.edges, self.n_levels, None, units)
        self.n_rows = self.parts.n_rows
        if self.settings.early_stopping:
            self._hold_out()

    def _hold_out(self) -> None:
        """Which rows are trained on; drawn from the weights of all distinct rows, which are held here meanwhile."""
        settings, weight = self.settings, self.gathered(weight_of)
        trained = trained_rows(settings.random_state, weight, settings.validation_fraction)
        before = np.concatenate([[0], np.cumsum(trained)])[:: passes.PART_ROWS]
        for _ in self.parts.update(TrainedFlags(np.packbits(trained), before), ("y",)):
            pass

    def sums(self, f: Callable[[Part], Array]) -> Array:
        """Sums of what f gives of the rows of a part."""
        return added(self.parts.map(f, ROW))

    def gathered(self, f: Callable[[Part], Array]) -> Array:
        """f of all parts, end to end."""
        return self.parts.gathered(f, ROW)

    def begin(self, start: Array, before: BoostingState | None = None) -> tuple[float, float]:
        """Scores of all rows before the first round, or after earlier ones, which the parts were made with."""
        f = partial(
            begun, start=start if before is None else None, unit=self.task.unit, loss=self.row_loss, width=self.width
        )
        return self.means(self.parts.update(f, (*ROW, "more")))

    def draw(self, number: int) -> None:
        """The rows and columns of a round."""
        settings, n_before = self.settings, 0
        if settings.subsample < 1:
            f = partial(drawn_rows, seed=settings.random_state, number=number, share=settings.subsample)
            n_before = n_drawn = 0
            for n_trained, n_chosen in self.parts.update(f, ("y", "trained", "trained before")):
                n_before, n_drawn = n_before + n_trained, n_drawn + n_chosen
            if not n_drawn:
                for _ in self.parts.update(partial(f, share=2.0), ("y", "trained", "trained before")):
                    pass
        elif settings.early_stopping and number == 0:
            f = partial(drawn_rows, seed=settings.random_state, number=0, share=2.0)
            for _ in self.parts.update(f, ("y", "trained", "trained before")):
                pass
        n_columns = self.task.source.n_features
        self.tried = columns_of_round(settings.random_state, number, settings.max_features, n_columns, n_before)

    def grow(self, k: int) -> dict[str, Array]:
        """The tree of score k."""
        reads = ("drawn", f"slope {k}", f"curvature {k}")
        sizes = self.parts.fold(partial(sizes_of, k=k), (0.0, 0.0, 0), reads)
        columns = BinnedColumns(self.n_bins, self.n_levels, self.tried)
        return grown_tree(self.parts, k, self.settings, columns, sizes)

    def walk(self, k: int, tree: int) -> Array:
        """Rows led to the leaves of a tree."""
        paths = self.asked.paths(tree)
        reads = ("codes", "weight", "drawn", f"slope {k}", f"curvature {k}")
        sums: Array = tree_sum(self.parts.update(partial(walked, k=k, paths=paths), reads))
        return sums

    def derive(self, trees: RoundTrees) -> Array:
        """Sums over the leaves of some rounds, and losses."""
        reads = ("codes", "y", "weight", "trained", "scores")
        sums: Array = tree_sum(self.parts.update(partial(derived, trees=trees, loss=self.loss), reads))
        return sums

    def residuals(self, k: int) -> tuple[Array, Array, Array]:
        """Of the rows drawn: held here as a whole."""
        reads = ("y", "weight", "scores", "drawn", f"leaf {k}")
        of_parts = list(self.parts.map(partial(residuals_of, k=k), reads))
        residual, weight, leaves = (np.concatenate(column) for column in zip(*of_parts, strict=True))
        return residual, weight, leaves

    def advance(self, values: Sequence[Array]) -> tuple[float, float]:
        """Add to every score the value of its row's leaf."""
        f = partial(advanced, values=list(values), loss=self.row_loss)
        return self.means(self.parts.update(f, (*ROW, "scores", *(f"leaf {k}" for k in range(self.width)))))


def _has_row_in_every_bin(codes: Array, n_bins: Array) -> bool:
    """Of ascending codes of columns, that of missing values behind the bins; the one bin of no value needs none."""
    is_value = codes < n_bins[:, None]
    is_next = np.diff(codes.astype(np.int64), axis=1, prepend=-1) <= 1
    last = np.where(is_value, codes, 0).max(axis=1)
    return bool((is_next | ~is_value).all() and (last + 1 == n_bins).all())


def _ranked(state: BoostingState, n_columns: int) -> Ranked | None:
    """Thresholds as ranks; None where a column has more than bytes can tell."""
    inner = state.left > 0
    is_number = inner if state.n_levels is None else inner & (state.n_levels[np.maximum(state.feature, 0)] == 0)
    return ranked_thresholds(state.feature, state.threshold, is_number, n_columns)


class TooManyThresholds(ValueError):
    """A column has more thresholds than there are bins."""


def rounds_of(task: BoostingTask, before: BoostingState | None = None) -> Rounds:
    """Rows to grow trees on; before: earlier rounds that they go on from."""
    return MemoryRounds(task) if task.passed is None else PartRounds(task, before=before)


def rounds_asked(task: BoostingTask, state: BoostingState) -> Rounds:
    """Rows that trees are to be derived again from."""
    return MemoryRounds(task, state) if task.passed is None else PartRounds(task, state)
