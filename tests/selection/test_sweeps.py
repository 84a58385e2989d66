"""Sweeps against refits on the rows: every candidate of every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

from certifit.selection.features.sweeps import REFACTOR, BackwardSweep, ForwardSweep, dependent_columns, parts_of

Array = np.ndarray[Any, Any]


@dataclass
class SlowSystems:
    """Gram matrices of the folds, and refits by lstsq on the rows."""

    X: Array
    y: Array
    weight: Array
    splits: list[tuple[Array, Array]]
    alpha: float = 0.0
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        self.names = [f"x{j}" for j in range(self.X.shape[1])]
        self.features = [(name, [j]) for j, name in enumerate(self.names)]
        self.y_unit = 1.0
        sums = [self._sums(*split) for split in self.splits]
        (
            self.train, self.train_y, self.train_yy, self.validation, self.validation_y, self.validation_yy,
            self.train_weight, self.validation_weight, self.train_total, self.validation_total,
        ) = (np.array(part) for part in zip(*sums, strict=True))  # fmt: skip

    def _rows(self, at: Array, centre: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Centred rows times the root of their weight, the means of the centring rows, the weights."""
        c = self.weight[centre] / self.weight[centre].sum() * self.fit_intercept
        mean, mean_y, root = c @ self.X[centre], c @ self.y[centre], np.sqrt(self.weight[at])
        return (self.X[at] - mean) * root[:, None], (self.y[at] - mean_y) * root, mean, mean_y, self.weight[at]

    def _sums(self, train: Array, validation: Array) -> list[Any]:
        out, totals = [], []
        for at in (train, validation):
            X, y, _, _, weight = self._rows(at, train)
            penalty = self.alpha * weight.sum() * np.eye(X.shape[1]) if at is train else 0.0
            out += [X.T @ X + penalty, X.T @ y, y @ y]
            mean = weight @ self.y[at] / weight.sum()
            totals.append((weight.sum(), weight @ (self.y[at] - mean) ** 2))
        return [*out, totals[0][0], totals[1][0], totals[0][1], totals[1][1]]

    def exact(self, columns: Any) -> tuple[Array, Array]:
        columns = list(columns)
        out = []
        for train, validation in self.splits:
            X, y, *_ = self._rows(train, train)
            Z, z, *_ = self._rows(validation, train)
            ridge = np.sqrt(self.alpha * self.weight[train].sum()) * np.eye(len(columns))
            size = np.sqrt((X**2).sum(axis=0)[columns])
            size[size <= 1e-12 * np.sqrt((self.X**2).sum(axis=0)[columns])] = np.inf
            stacked = np.vstack([X[:, columns], ridge]) / size
            b = np.linalg.lstsq(stacked, np.concatenate([y, np.zeros(len(columns))]), rcond=1e-11)[0] / size
            out.append([((y - X[:, columns] @ b) ** 2).sum(), ((z - Z[:, columns] @ b) ** 2).sum()])
        return tuple(np.array(out).T)


def systems_of(X: Array, y: Array, cv: Any = 5, weight: Array | None = None, **options: Any) -> SlowSystems:
    splits = list(KFold(cv).split(X)) if isinstance(cv, int) else list(cv)
    return SlowSystems(X, y, np.ones(len(y)) if weight is None else weight, splits, **options)


def rows(rng: np.random.Generator, n: int = 90, d: int = 9, chain: float = 0.8) -> tuple[Array, Array]:
    """Correlated columns of unequal sizes, a third of them in use."""
    X = rng.normal(size=(n, d))
    X[:, 1:] += chain * X[:, :-1]
    X = X * 2.0 ** rng.integers(-3, 4, d) + rng.uniform(-3, 3, d)
    b = np.where(rng.random(d) < 0.4, rng.normal(size=d), 0.0)
    return X, X @ b + rng.normal(size=n)


BLOCKS = {"columns": [[j] for j in range(9)], "blocks": [[0, 5], [1], [2, 3, 8], [4], [6, 7]]}
KINDS: dict[str, dict[str, Any]] = {
    "least squares": {}, "no intercept": {"fit_intercept": False}, "ridge": {"alpha": 0.3}, "weights": {"weight": True},
}  # fmt: skip


def built(rng: np.random.Generator, kind: str, **shape: Any) -> SlowSystems:
    X, y = rows(rng, **shape)
    options = dict(KINDS[kind])
    if options.pop("weight", False):
        options["weight"] = rng.integers(0, 4, len(y)).astype(float)
    return systems_of(X, y, **options)


@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_forward_candidate_equals_a_refit(rng, kind, blocks):
    systems = built(rng, kind)
    sweep, left = ForwardSweep(systems), list(blocks)
    while left:
        found = sweep.candidates(left)
        expected = np.array([systems.exact([*sweep.chosen, *block])[1] for block in left])
        np.testing.assert_allclose(found.validation, expected, rtol=1e-9)
        sweep.add(left.pop(int(rng.integers(len(left)))))
        np.testing.assert_allclose(sweep.losses.validation, systems.exact(sweep.chosen)[1], rtol=1e-9)


@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_backward_candidate_equals_a_refit(rng, kind, blocks):
    systems = built(rng, kind)
    sweep, left = BackwardSweep(systems), list(blocks)
    while len(left) > 1:
        np.testing.assert_allclose(sweep.losses.validation, systems.exact(sweep.kept)[1], rtol=1e-9)
        found = sweep.candidates(left)
        expected = np.array([systems.exact([c for c in sweep.kept if c not in block])[1] for block in left])
        np.testing.assert_allclose(found.validation, expected, rtol=1e-9)
        sweep.drop(left.pop(int(rng.integers(len(left)))))


@pytest.mark.parametrize("kind", ["least squares", "no intercept", "weights"])
def test_training_losses_equal_those_of_refits(rng, kind):
    systems = built(rng, kind)
    forward, backward = ForwardSweep(systems, [2, 7]), BackwardSweep(systems)
    blocks = [[0], [1, 3], [4, 5, 6]]
    refits = [systems.exact([2, 7, *block])[0] for block in blocks]
    np.testing.assert_allclose(forward.candidates(blocks).train, refits, rtol=1e-9)
    refits = [systems.exact([c for c in range(9) if c not in block])[0] for block in blocks]
    np.testing.assert_allclose(backward.candidates(blocks).train, refits, rtol=1e-9)


def test_adding_never_raises_and_dropping_never_lowers_the_training_loss(rng):
    systems = built(rng, "ridge")
    forward, backward = ForwardSweep(systems), BackwardSweep(systems)
    for j in rng.permutation(9):
        before, after = forward.losses.train, forward.candidates([[j]]).train[0]
        assert (after <= before * (1 + 1e-12)).all()
        forward.add([j])
        np.testing.assert_allclose(forward.losses.train, after, rtol=1e-9)
        assert (backward.candidates([[j]]).train[0] >= backward.losses.train * (1 - 1e-12)).all()
        backward.drop([j])


def test_a_start_is_the_same_as_steps(rng):
    systems = built(rng, "least squares")
    stepped = ForwardSweep(systems)
    stepped.add([4])
    stepped.add([1, 6])
    started = ForwardSweep(systems, [4, 1, 6])
    np.testing.assert_allclose(started.candidates([[0], [3]]), stepped.candidates([[0], [3]]), rtol=1e-10)
    stepped = BackwardSweep(systems)
    stepped.drop([3])
    started = BackwardSweep(systems, [c for c in range(9) if c != 3])
    np.testing.assert_allclose(started.candidates([[0], [4]]), stepped.candidates([[0], [4]]), rtol=1e-9)


def test_a_long_path_in_a_nearly_singular_chain_keeps_its_digits(rng):
    d = REFACTOR + 15
    X = rng.normal(size=(6 * d, d))
    X = X[:, :1] + 1e-4 * X  # condition 1e4 and more
    y = X[:, 0] + 1e4 * (X[:, d - 1] - X[:, 2]) + rng.normal(size=len(X))
    systems = systems_of(X, y, cv=3)
    forward, backward = ForwardSweep(systems), BackwardSweep(systems)
    for j in range(d - 2):
        forward.add([j])
        backward.drop([j])
    np.testing.assert_allclose(forward.losses.validation, systems.exact(range(d - 2))[1], rtol=1e-5)
    np.testing.assert_allclose(backward.losses.validation, systems.exact([d - 2, d - 1])[1], rtol=1e-5)


def test_a_column_that_is_constant_in_one_fold_breaks_nothing(rng):
    X, y = rows(rng)
    X[:, 4] = 0.1
    X[3, 4] = 7.0  # all its news is in the first fold's validation rows
    systems = systems_of(X, y)
    forward, backward = ForwardSweep(systems), BackwardSweep(systems)
    np.testing.assert_allclose(forward.candidates([[4]]).validation[0], systems.exact([4])[1], rtol=1e-9)
    assert forward.candidates([[4]]).validation[0, 0] == forward.losses.validation[0]
    assert 4 not in forward.adding_nothing()
    for j in (4, 0):
        rest = [c for c in range(9) if c != j]
        np.testing.assert_allclose(backward.candidates([[j]]).validation[0], systems.exact(rest)[1], rtol=1e-9)
    several = forward.candidates([[3, 4]]).validation[0]
    np.testing.assert_allclose(several, systems.exact([3, 4])[1], rtol=1e-9)


def test_a_combination_of_chosen_columns_adds_nothing(rng):
    X, y = rows(rng)
    X[:, 6] = X[:, 1] - 2 * X[:, 3] + 5
    systems = systems_of(X, y)
    sweep = ForwardSweep(systems, [1])
    assert sweep.adding_nothing().tolist() == []
    sweep.add([3])
    assert sweep.adding_nothing().tolist() == [6]
    np.testing.assert_array_equal(sweep.candidates([[6]]).validation[0], sweep.losses.validation)
    np.testing.assert_allclose(sweep.candidates([[6, 0]]).validation, [systems.exact([1, 3, 0])[1]], rtol=1e-8)
    sweep.add([6, 0])
    np.testing.assert_allclose(sweep.losses.validation, systems.exact([1, 3, 0])[1], rtol=1e-8)
    assert parts_of(systems, 6, [0, 1, 3, 4]) == [1, 3]


def test_dependent_columns_are_the_later_ones_in_the_given_order(rng):
    X, y = rows(rng)
    X[:, 6], X[:, 8] = X[:, 1] - 2 * X[:, 3], 4.0
    systems = systems_of(X, y)
    assert dependent_columns(systems, range(9)).tolist() == [6, 8]
    assert dependent_columns(systems, [6, 8, 1, 3, 0, 2, 4, 5, 7]).tolist() == [3, 8]
    assert parts_of(systems, 8, [0, 1]) == []


def test_backward_candidates_are_right_where_columns_of_two_features_repeat(rng):
    X, y = rows(rng)
    X[:, 6] = X[:, 1]  # neither of the blocks [0, 1] and [5, 6] is redundant as a whole
    systems = systems_of(X, y)
    blocks = [[0, 1], [5, 6], [2], [3, 4]]
    found = BackwardSweep(systems).candidates(blocks).validation
    expected = [systems.exact([c for c in range(9) if c not in block])[1] for block in blocks]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_more_columns_than_rows_give_numbers_and_rank_candidates(rng):
    X, y = rows(rng, n=20, d=30, chain=0.0)
    systems = systems_of(X, y, cv=4)
    sweep = BackwardSweep(systems)
    left = list(range(30))
    for _ in range(22):
        found = sweep.candidates([[j] for j in left]).validation
        assert np.isfinite(found).all()
        sweep.drop([left.pop(int(found.sum(axis=1).argmin()))])
    np.testing.assert_allclose(sweep.losses.validation, systems.exact(left)[1], rtol=1e-7)
    forward = ForwardSweep(systems, range(25))
    assert forward.adding_nothing().tolist() == [25, 26, 27, 28, 29]


def test_a_column_cannot_take_part_twice(rng):
    systems = built(rng, "least squares")
    sweep = ForwardSweep(systems, [2])
    with pytest.raises(ValueError, match=r"Columns \[2\] took part"):
        sweep.candidates([[2]])
    backward = BackwardSweep(systems)
    backward.drop([5, 1])
    with pytest.raises(ValueError, match=r"Columns \[5\] took part"):
        backward.drop([5])
