"""Calibration: probabilities from out-of-fold scores of any classifier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import (
    UserRows,
    UserTarget,
    UserWeights,
    class_source,
    predict_rows,
    predict_source,
    taken,
)
from certifit.maps import Basis, TableEncoder, UserEncoder
from certifit.models.adapter import learner_of
from certifit.models.calibrated.encoded import (
    EncodedRows,
    encoded_rows,
    fitted_copy,
    past_encoder,
    reads_sources,
    rows_of,
)
from certifit.models.calibrated.folds import calibrated_folds
from certifit.models.calibrated.isotonic import IsotonicMap
from certifit.models.calibrated.sigmoid import joint_chances, platt_targets
from certifit.models.certificate import Certificate
from certifit.models.ensembles.rows import CheckedRows, InMemory, class_codes, drawn, fitted
from certifit.models.estimator import name_of_target
from certifit.models.folds import EachRow, Grid, Rounds, RowFolds, Subsets
from certifit.models.glm.model import GLM
from certifit.models.learner import Answer, brief
from certifit.statistics.cell_sums import Store

Split = tuple[Array, Array]  # weights of the distinct rows to fit to, and of those to score
Pairs = Iterable[Sequence[ArrayLike]]  # of (train, test) row numbers


class Splitter(Protocol):
    """A splitter of scikit-learn."""

    def split(self, X: Array, y: Array) -> Pairs:
        """The splits of the rows."""


UserSplits = int | Pairs | Splitter


def plain_targets(is_class: Array, weight: Array) -> Array:
    """1 for rows of the class and 0 for others."""
    return is_class.astype(np.float64)


# method -> the map of a score, and what it is fitted to
MAPS = {
    "sigmoid": (lambda: GLM("binomial", bounds=(0.0, np.inf)), platt_targets),
    "isotonic": (IsotonicMap, plain_targets),
}


class Calibrated(ClassifierMixin, InMemory):
    """Probabilities of any classifier: a map of its scores, fitted to scores of rows that it had not seen.

    p(k | x) = m_k(s_k(x)) / sum_j m_j(s_j(x)),   of two classes p = m(s(x)) for the second and 1 - p for the first
    s: decision_function of the estimator, or else its predict_proba

    method "sigmoid":   m(s) = 1 / (1 + exp(-(a s + b))), a >= 0, the logistic regression on Platt's targets,
                        (N+ + 1) / (N+ + 2) for rows of the class and 1 / (N- + 2) for the others
    method "isotonic":  m never falls, and is nearest to 1 for rows of the class and 0 for the others, in squares

    certificate:  that of the copy, or of the map, that says least; verify scores the rows anew and proves every map
    again. No claim that probabilities are right for other rows

    The rows are split into cv folds, every class evenly. A copy of the estimator is fitted to all rows but those of a
    fold, and scores these; maps are fitted to all such scores together. Predictions are of one more copy, of all rows.
    Rows that are equal are one row with their weights added, and folds follow from a hash of the values: the order of
    rows changes nothing, weight 2 is the row twice, and no copy has seen a row that it scores for the maps. A table, in
    memory or scanned, is encoded once for all copies of a classifier of ours: its columns are those of all rows.

    Parameters
    ----------
    estimator : a classifier, ours or of any library with scikit-learn's contract
    method : "sigmoid" or "isotonic", default "sigmoid"
        "isotonic" follows any shape and needs more rows, a thousand or so.
    cv : int from 2 to 1000, a list of (train, test), or a splitter of scikit-learn, default 5
        train and test are numbers of rows: a copy is fitted to the rows of train, and scores those of test for the
        maps. Then equal rows in both are the user's affair, and the model is not saved: a file has no row numbers.

    Attributes
    ----------
    classes_ : the labels, sorted
    estimators_ : a copy for each split, the copy of all rows, and the maps, one of two classes, else one for
        each class; the copies' classes are the places of labels in classes_
    final_, maps_ : the copy of all rows, and the maps
    certificates_ : a certificate each, None of an estimator that has none; certificate_ is the one that says least

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + rng.logistic(size=300) > 0
    >>> model = cf.Calibrated(cf.SVC()).fit(X, y)
    >>> model.predict_proba([[0.0, 0.0], [3.0, 0.0]]).shape, len(model.maps_), bool(cf.verify(model, X, y))
    ((2, 2), 1, True)
    """

    classes_: Array
    data_: dict[str, float]
    encoder_: TableEncoder | None = None

    def __init__(self, estimator: BaseEstimator, method: str = "sigmoid", *, cv: UserSplits = 5) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def fit(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Self:
        """Fit the copies and the maps to rows X with labels y, or to a scan that carries them; weights count rows."""
        return self._fit(X, y, sample_weight=sample_weight)

    def predict(self, X: UserRows) -> Array:
        """The class of the largest probability, the first of equal ones."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: UserRows) -> Array:
        """p(k | x): rows x classes, in the order of classes_; all classes alike where every map says 0."""
        check_is_fitted(self)
        rows = X if self._reads(X, self.encoder_) else self._checked(X, reset=False)
        return self._chances(scores_of(self.final_, rows, len(self.classes_)))

    def _chances(self, scores: Array) -> Array:
        return joint_chances(np.column_stack([each.predict(scores[:, [k]]) for k, each in enumerate(self.maps_)]))

    @property
    def final_(self) -> BaseEstimator:
        """The copy that is fitted to all rows."""
        check_is_fitted(self)
        return self.estimators_[-1 - self._n_maps]

    @property
    def maps_(self) -> list[BaseEstimator]:
        """The map of scores of the second of two classes, or of every class."""
        check_is_fitted(self)
        return self.estimators_[-self._n_maps :]

    @property
    def encoder(self) -> UserEncoder:
        """How the estimator reads a table."""
        encoder: UserEncoder = getattr(self.estimator, "encoder", None)
        return encoder

    @property
    def basis_(self) -> Basis | None:
        """The fitted basis of the copy of all rows."""
        basis: Basis | None = getattr(self.final_, "basis_", None)
        return basis

    def fit_codes(self, source: Source, classes: Array) -> Self:
        """Fit to checked rows whose y are places among the classes."""
        self._check_parameters()
        self.classes_, self.n_features_in_ = classes, source.n_features
        if source.named:
            self.feature_names_in_ = np.asarray(source.names, dtype=object)
        self._learn(encoded_rows(self.estimator, source))
        return self

    def labelled(
        self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None, *beside: UserWeights
    ) -> Source:
        """Rows of the fitted classes, with codes as in the fit. beside: offset and exposure, which it has not."""
        predict_source(self, X) if isinstance(X, Source) else predict_rows(self.final_, X)
        reader = clone(self)
        if self.encoder is None:
            reader.estimator.encoder = self.encoder_  # a frame is then read as the table of the fit
        return class_source(reader, X, y, sample_weight, self.classes_, *beside)[0]

    def columns_of(self, block: Block) -> object:
        """The columns that the encoder and the basis of the copy of all rows make of the rows of a block."""
        return self.final_.columns_of(block)

    def mapped_scores(self, columns: Block) -> Array:
        """log p(k | x) of rows that are mapped already."""
        final = past_encoder(self.final_, columns.X.shape[1])
        final.basis_ = None
        with np.errstate(divide="ignore"):
            return np.log(self._chances(scores_of(final, Memory(columns.X, None), len(self.classes_))))

    def candidates(self, source: Source) -> list[dict[str, object]]:
        """Those of the estimator."""
        return [
            {f"estimator__{name}": value for name, value in one.items()} for one in self.estimator.candidates(source)
        ]

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> RowFolds | None:
        """Chances by scores of all copies where the estimator's folds give margins; None where splits are refitted.

        The width "scale" of a Gaussian kernel is that of all rows, as in folds of the estimator.
        """
        is_of_folds = isinstance(self.cv, int | Integral) and self.method == "sigmoid"
        if isinstance(grid, Subsets) or isinstance(rounds, EachRow) or grid.classes is None or not is_of_folds:
            return None
        if not reads_sources(self.estimator):
            return None
        if learner_of(self.estimator).answers(self.estimator.get_params(deep=False)) is not Answer.MARGINS:
            return None
        model = clone(self)
        model._check_parameters()
        model.classes_ = grid.classes
        return calibrated_folds(model, source, rounds, grid, shared)

    def _reads(self, X: UserRows, encoder: UserEncoder) -> bool:
        """Whether rows are a scan, or a table that an encoder of the estimator is for."""
        return (isinstance(X, Source) or encoder is not None) and reads_sources(self.estimator)

    def _gate(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> CheckedRows:
        if not self._reads(X, self.encoder):
            return super()._gate(X, y, **roles)
        source, self.classes_ = class_source(self, X, y, roles.get("sample_weight"))
        self.target_name_ = name_of_target(X, y)
        return encoded_rows(self.estimator, source)

    @property
    def _n_maps(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _targets(self, y: UserTarget, weight: Array | None, is_fitted: bool) -> Array:
        return class_codes(self, y, weight, is_fitted)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not any(hasattr(self.estimator, name) for name in ("decision_function", "predict_proba")):
            raise TypeError(
                f"Scores are decision_function or predict_proba, and {type(self.estimator).__name__} has neither."
            )

    def _learn(self, rows: CheckedRows) -> None:
        copies = [self._copy(rows, sample) for sample in self._samples(rows)]
        make, _ = MAPS[self.method]
        maps = [fitted(make(), *sample) for sample in self._scored(rows, copies)]
        self.estimators_ = [*copies, *maps]
        weight = float(rows.distinct.weight.sum())
        self.data_ = {"n_rows": int((rows.distinct.kind >= 0).sum()), "sum_weight": weight}
        self._take_names()

    def _copy(self, rows: CheckedRows, sample: tuple[UserRows, Array, Array | None]) -> BaseEstimator:
        """A copy of the estimator after its fit to some of the rows."""
        model = clone(self.estimator)
        return fitted_copy(model, rows, sample, self) if isinstance(rows, EncodedRows) else fitted(model, *sample)

    def _samples(self, rows: CheckedRows) -> list[tuple[UserRows, Array, Array | None]]:
        """The rows of every copy: without a fold each, and all."""
        takes_weight = has_fit_parameter(self.estimator, "sample_weight")
        if not takes_weight and not rows.distinct.is_whole:
            raise ValueError(
                f"{type(self.estimator).__name__} takes no sample_weight: weights must be whole numbers, which count "
                "rows. Leave sample_weight out, or use another estimator."
            )
        kept = [*(train for train, _ in self._splits(rows)), rows.distinct.weight]
        return [drawn(rows, counts, takes_weight) for counts in kept]

    def _splits(self, rows: CheckedRows) -> list[Split]:
        """Weights of the distinct rows that each copy is fitted to, and of those that it scores."""
        if not isinstance(self.cv, int | Integral):
            return splits_by_number(rows, self.cv, len(self.classes_))
        folds, weight = self._folds(rows, int(self.cv)), rows.distinct.weight
        return [(np.where(folds == k, 0.0, weight), np.where(folds == k, weight, 0.0)) for k in range(int(self.cv))]

    def _folds(self, rows: CheckedRows, n_folds: int) -> Array:
        """The fold of every distinct row: those of a class in turn, in the order of their hash."""
        numbers = rows.distinct.numbers
        codes = rows.y[numbers]
        n_different = np.bincount(codes, minlength=len(self.classes_))
        if n_different.min() < 2:
            row = int(numbers[codes == n_different.argmin()][0]) if n_different.min() else "none"
            raise ValueError(
                f"Each class needs 2 rows that differ, one to fit and one to score. Row {row} is the only one of its "
                "class. Add rows, or leave the class out."
            )
        if len(numbers) < n_folds:
            raise ValueError(f"cv={n_folds} folds need as many rows that differ. Got {len(numbers)}. Lower cv.")
        folds = np.empty(len(codes), dtype=np.int64)
        folds[np.argsort(codes, kind="stable")] = np.arange(len(codes)) % n_folds
        return folds

    def _scored(self, rows: CheckedRows, copies: list[BaseEstimator]) -> list[tuple[Array, Array, Array]]:
        """What every map is fitted to: scores of rows by the copy that has not seen them, targets, weights."""
        numbers, n_classes = rows.distinct.numbers, len(self.classes_)
        scores, places, weights = [], [], []
        for model, (_, test) in zip(copies, self._splits(rows), strict=False):
            places.append(np.flatnonzero(test))
            weights.append(test[places[-1]])
            reader = past_encoder(model, rows.X.shape[1]) if isinstance(rows, EncodedRows) else model
            scores.append(scores_of(reader, taken(rows.X, numbers[places[-1]]), n_classes))
        _, targets = MAPS[self.method]
        score, weight = np.concatenate(scores), np.concatenate(weights)
        codes = rows.y[numbers[np.concatenate(places)]]
        classes = [1] if n_classes == 2 else range(n_classes)
        return [(score[:, [k]], targets(codes == code, weight), weight) for k, code in enumerate(classes)]

    def _gate_again(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> list[object]:
        """The checked rows of every copy, and the scores of every map, by the copies as they are."""
        self._joint(self.certificates_)
        rows = stored = self._rows_again(X, y, **roles)
        if isinstance(rows, EncodedRows) and rows.encoder is not None:  # the copies encode them again
            stored = replace(rows, X=self.labelled(X, y, **roles).gather().X)
        samples = [*self._samples(stored), *self._scored(rows, self.estimators_)]
        return [
            model._gate_again(held_out, target, **({} if weight is None else {"sample_weight": weight}))
            for model, (held_out, target, weight) in zip(self.estimators_, samples, strict=True)
        ]

    def _rows_again(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> CheckedRows:
        encoder = self.encoder_
        if not self._reads(X, encoder):
            return self._rows(X, y, roles.get("sample_weight"), reset=False)
        source = self.labelled(X, y, **roles)
        return rows_of(source if encoder is None else source.through(encoder), encoder)

    def _joint(self, certificates: list[Certificate | None]) -> Certificate:
        """The certificate that says least; none where an estimator has none, whatever is known of the maps."""
        if None in certificates:
            raise AttributeError(f"{type(self.estimator).__name__} has no certificates.")
        return super()._joint(certificates)


def splits_by_number(rows: CheckedRows, cv: Pairs | Splitter, n_classes: int) -> list[Split]:
    """Splits of the user as weights of the distinct rows; equal rows of one side are one row."""
    n_rows, kind = len(rows.y), rows.distinct.kind
    weight = np.ones(n_rows) if rows.weight is None else rows.weight
    pairs = cv.split(np.zeros((n_rows, 1)), rows.y) if hasattr(cv, "split") else cv
    splits = []
    for place, pair in enumerate(pairs):
        sides = [_row_numbers(numbers, n_rows, place) for numbers in _two(pair, place)]
        twice = np.intersect1d(sides[0], sides[1])
        if len(twice):
            raise ValueError(f"Split {place} of cv scores row {twice[0]}, which it is fitted to. Take it out of one.")
        sides = [numbers[kind[numbers] >= 0] for numbers in sides]
        missing = np.flatnonzero(np.bincount(rows.y[sides[0]], minlength=n_classes) == 0)
        if len(missing) or not len(sides[1]):
            what = "no row to score" if not len(missing) else f"no row of class number {missing[0]} to fit to"
            raise ValueError(f"Split {place} of cv has {what}, of positive weight. Use fewer or other splits.")
        train, test = (np.bincount(kind[side], weight[side], len(rows.distinct.numbers)) for side in sides)
        splits.append((train, test))
    return splits


def _two(pair: Sequence[ArrayLike], place: int) -> Sequence[ArrayLike]:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise ValueError(f"Split {place} of cv must be two lists of row numbers, (train, test). Got {brief(pair)}.")
    return pair


def _row_numbers(user_numbers: ArrayLike, n_rows: int, place: int) -> Array:
    """Different row numbers, from 0."""
    numbers = np.asarray(user_numbers)
    if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
        raise ValueError(f"Split {place} of cv must be two lists of row numbers. Got {brief(numbers)}.")
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < n_rows):
        raise ValueError(f"Split {place} of cv names row {numbers.max()}, and rows go from 0 to {n_rows - 1}.")
    return np.unique(numbers.astype(np.int64))


def scores_of(model: BaseEstimator, X: UserRows, n_classes: int) -> Array:
    """decision_function, or else predict_proba: a column for the second of two classes, else one for each."""
    name = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
    scores = np.asarray(getattr(model, name)(X), dtype=np.float64)
    scores = scores.reshape(len(scores), -1)
    if n_classes == 2:
        scores = scores[:, -1:]
    elif scores.shape[1] != n_classes:
        raise ValueError(
            f"{name} of {type(model).__name__} gives {scores.shape[1]} columns for {n_classes} classes. Use a "
            "classifier with a score for each class: one-vs-rest, or OneVsRestClassifier around it."
        )
    wrong = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(wrong):
        raise ValueError(f"{name} of {type(model).__name__} is not finite for row {wrong[0]} of those it scored.")
    return scores
