"""The mutual-information filter: features ranked by what each one alone tells about the target.

The picture of the mutual-information filter, in scikit-learn's three parts: data, `from_...`, `plot`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from certifit.data.arrow import frame_table, is_frame
from certifit.data.columns import Array, refuse_kinds
from certifit.data.source import Memory, Source
from certifit.data.user_input import Predictions, canonical, refuse_nonfinite, refuse_offset, unchanged_on_error
from certifit.maps.rows import input_names, set_names
from certifit.runtime import n_threads
from certifit.selection.information.estimates import Estimates, Kind, Scores, are_levels, declared, target_of
from certifit.selection.information.tables import frame_source, table_scores
from certifit.statistics.cell_sums import counted_pairs, pairs_information

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_CHUNK = 1 << 23  # numbers of the columns that are worked on at a time
_TARGETS = ("auto", "discrete", "continuous")


class MutualInformationFilter(SelectorMixin, BaseEstimator):
    """Keeps the features with the largest mutual information with the target, in nats: log is the natural logarithm.

        discrete, discrete        sum over x, y of p(x, y) log(p(x, y) / (p(x) p(y))), from counts
        one or two continuous     psi(n) + mean_i [psi(j_i) - psi(a_i) - psi(b_i)], from nearest neighbours

    Row i has its k-th nearest neighbour at distance d_i. Of the rows strictly nearer, itself included, j_i are near in
    both variables, a_i in the one and b_i in the other; psi is digamma. The distance of two continuous variables is
    max(|dx| / sd x, |dy| / sd y) (Kraskov, Stoegbauer and Grassberger 2004); rows of another class are infinitely far
    (Ross 2014), so b_i is the size of the class. Without ties j_i = k, and the scores are those of scikit-learn's
    `mutual_info_classif` and `mutual_info_regression` without their random noise. With ties j_i is what the ball
    holds, and rows that coincide k times or more count as in a table; no noise is added, the order of rows is no
    matter, and a column with many ties is scored like a discrete one. Distances that agree to nine digits tie.

    A score is about one feature alone: two copies of a feature score the same. Counts of many levels in few rows
    score too high, by about (levels - 1)(classes - 1) / (2 n).

    Parameters
    ----------
    n_features_to_select : int >= 1, a share in (0, 1), or "all", default 10
        How many to keep. More than there are keeps all; a share is rounded down, but not to 0. Equal scores: the
        column that comes first.
    n_neighbors : int >= 1, default 3
        k. In a class with fewer neighbours all are taken; a class with one row is left out and `notes_` says so.
    discrete_features : "auto", bool, a mask, or a list of places or names, default "auto"
        Which columns of numbers or dates hold levels. "auto": whole numbers with at most 20 different values, each
        twice on average. Text, categories and flags are always levels.
    target : {"auto", "discrete", "continuous"}, default "auto"
        "auto": text and flags are classes, numbers as for the features.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Mutual information in nats, >= 0. A constant column scores 0.
    ranking_ : array of int of shape (n_features,)
        1 for the largest score.
    kinds_ : list of "discrete" or "continuous", one per feature
    target_kind_ : "discrete" or "continuous"
    table_ : list of dict
        feature, score, rank, kind and selected of every feature, the best first.
    notes_ : list of sentences: what was left out and what to distrust
    n_features_in_ : int
    feature_names_in_ : names of the columns, where they have any

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = np.column_stack([rng.normal(size=500), rng.normal(size=500) + 2 * y, rng.integers(0, 4, 500) * y])
    >>> chosen = MutualInformationFilter(2).fit(X, y)
    >>> chosen.scores_.round(2)
    array([0.  , 0.35, 0.36])
    >>> chosen.kinds_
    ['continuous', 'continuous', 'discrete']
    >>> list(chosen.get_feature_names_out())
    ['x1', 'x2']
    """

    def __init__(
        self,
        n_features_to_select: Any = 10,
        *,
        n_neighbors: int = 3,
        discrete_features: Any = "auto",
        target: str = "auto",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_neighbors = n_neighbors
        self.discrete_features = discrete_features
        self.target = target

    def fit(self, X: Any, y: Any = None) -> Self:
        """Score the columns of an array, a sparse matrix of levels, or a frame X, or of a scan that carries its target.

        Missing values are a level of discrete columns of frames and scans; elsewhere they are refused.
        """
        self._check_parameters()
        _refuse_missing(y)
        with unchanged_on_error(self):
            if isinstance(X, Source):
                scores = self._of_source(X, y)
            elif is_frame(X):
                scores = self._of_frame(X, y)
            else:
                refuse_kinds(X)
                X, y = validate_data(
                    self,
                    canonical(X),
                    y,
                    accept_sparse="csc",
                    dtype="numeric",
                    ensure_all_finite=False,
                    ensure_min_samples=2,
                )
                scores = self._of_array(X, y)
            self._store(scores)
        return self

    def transform(self, X: Any) -> Predictions:
        """The selected columns of an array or frame."""
        check_is_fitted(self)
        if isinstance(X, Source):
            raise TypeError(
                "transform takes arrays and frames. Scan again with columns=list(filter.get_feature_names_out())."
            )
        return super().transform(X if is_frame(X) else canonical(X))

    def _of_source(self, source: Source, y: Any) -> Scores:
        if y is not None:
            raise ValueError("A scan carries its target. Pass it as scan_csv(..., target=), not to fit.")
        refuse_offset(self, source)
        set_names(self, source.names if source.named else None, source.n_features)
        if source.is_table:
            return table_scores(source, self.target, self.discrete_features, int(self.n_neighbors))
        block = source.gather()
        if block.y is None:
            raise ValueError("The source has no target. Give one: from_dask(X, target=y).")
        if block.weight is not None:
            raise ValueError("Rows of an array have no weights here. Leave them out, or use a table of levels.")
        return self._of_array(block.X, block.y)

    def _of_frame(self, X: Any, y: Any) -> Scores:
        table = frame_table(X)
        _, y = validate_data(self, X if hasattr(X, "iloc") else table, y, skip_check_array=True)
        if table.num_rows < 2 or not table.num_columns:
            raise ValueError(
                f"Found array with {table.num_rows} sample(s) and {table.num_columns} feature(s) (shape="
                f"{table.shape}) while a minimum of 2 and 1 is required by MutualInformationFilter."
            )
        y = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=None, input_name="y")
        if len(y) != table.num_rows:
            raise ValueError(f"y has {len(y)} rows but X has {table.num_rows}.")
        target = target_of(_plain_target(y), self.target)
        source = frame_source(table, target)
        return table_scores(source, target.kind, self.discrete_features, int(self.n_neighbors))

    def _of_array(self, X: Any, y: Array) -> Scores:
        """Scores of the columns of a checked array or CSC matrix."""
        names = input_names(self, None)
        target = target_of(_plain_target(y), self.target)
        estimates = Estimates(target, int(self.n_neighbors))
        marks = declared(self.discrete_features, names)
        if sp.issparse(X):
            scores, n_levels = _of_sparse(sp.csc_array(X), estimates, marks, names)
        else:
            scores, n_levels = _of_dense(X, estimates, marks, names)
        kinds: list[Kind] = ["discrete" if n else "continuous" for n in n_levels]
        return Scores(scores, kinds, n_levels, target.kind, target.class_sizes, X.shape[0])

    def _store(self, scores: Scores) -> None:
        names = input_names(self, None)
        order = np.argsort(-scores.scores, kind="stable")
        self.scores_ = scores.scores
        self.ranking_ = np.empty(len(order), dtype=np.int64)
        self.ranking_[order] = np.arange(1, len(order) + 1)
        self.kinds_ = scores.kinds
        self.target_kind_ = scores.target_kind
        self.notes_ = scores.notes(names)
        self.has_gaps_ = scores.has_gaps
        chosen = self._get_support_mask()
        self.table_ = [
            {
                "feature": names[j],
                "score": float(self.scores_[j]),
                "rank": int(self.ranking_[j]),
                "kind": self.kinds_[j],
                "selected": bool(chosen[j]),
            }
            for j in order
        ]

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        n_features = len(self.ranking_)
        wanted = self.n_features_to_select
        if isinstance(wanted, str):
            n_kept = n_features
        elif isinstance(wanted, Integral):
            n_kept = int(wanted)
        else:
            n_kept = max(1, int(n_features * float(wanted)))
        kept: Array = self.ranking_ <= n_kept
        return kept

    def _check_parameters(self) -> None:
        wanted = self.n_features_to_select
        is_number = isinstance(wanted, Integral) and not isinstance(wanted, bool) and int(wanted) >= 1
        is_share = isinstance(wanted, Real) and not isinstance(wanted, Integral) and 0 < float(wanted) < 1
        if not (is_number or is_share or (isinstance(wanted, str) and wanted == "all")):
            raise ValueError(
                f"n_features_to_select must be an integer >= 1, a share in (0, 1), or 'all'. Got {wanted!r}."
            )
        k = self.n_neighbors
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise ValueError(f"n_neighbors must be an integer >= 1. Got {k!r}.")
        if self.target not in _TARGETS:
            raise ValueError(f"target must be one of {', '.join(map(repr, _TARGETS))}. Got {self.target!r}.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.discrete_features is True
        # Gaps are a level of discrete columns; a filter that met some takes them in transform too.
        tags.input_tags.allow_nan = bool(getattr(self, "has_gaps_", False))
        return tags


def _of_dense(X: Array, estimates: Estimates, marks: list[bool | None], names: list[str]) -> tuple[Array, list[int]]:
    """Scores, and the number of levels of every column (0: continuous); some columns at a time."""
    n_rows, n_features = X.shape
    scores = np.zeros(n_features)
    n_levels = [0] * n_features
    at_a_time = max(n_threads(), _CHUNK // n_rows)
    for begin in range(0, n_features, at_a_time):
        places = np.arange(begin, min(begin + at_a_time, n_features))
        columns = np.ascontiguousarray(X[:, places[0] : places[-1] + 1].T, dtype=np.float64)
        if not np.isfinite(columns).all():
            refuse_nonfinite(Memory(X, None, names=names))
        discrete = np.array(
            [are_levels(x) if mark is None else mark for x, mark in zip(columns, _part(marks, places), strict=True)]
        )
        if not discrete.all():
            numbers = columns if not discrete.any() else columns[~discrete]
            scores[places[~discrete]] = estimates.of_numbers(numbers)
        if discrete.any():
            codes, counts = zip(*map(_codes, columns[discrete]), strict=True)
            scores[places[discrete]] = estimates.of_codes(np.array(codes), counts)
            for j, count in zip(places[discrete], counts, strict=True):
                n_levels[j] = count
    return scores, n_levels


def _of_sparse(X: Any, estimates: Estimates, marks: list[bool | None], names: list[str]) -> tuple[Array, list[int]]:
    """The same for a sparse matrix, whose columns must hold levels."""
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    if not np.isfinite(X.data).all():
        refuse_nonfinite(Memory(sp.csr_array(X), None, names=names))
    scores = np.zeros(X.shape[1])
    n_levels = [0] * X.shape[1]
    for j, (rows, values) in enumerate(_sparse_columns(X)):
        if marks[j] is False or (marks[j] is None and not are_levels(_with_zeros(values, X.shape[0]))):
            raise ValueError(
                f"Column {names[j]!r} of the sparse X is continuous, which needs dense X. Use X.toarray(), or "
                "discrete_features=True if its different values are levels."
            )
        codes, n_levels[j] = _codes(values)
        n_levels[j] += len(rows) < X.shape[0]
        scores[j] = _sparse_score(rows, codes + 1, n_levels[j], X.shape[0], estimates)
    return scores, n_levels


def _sparse_score(rows: Array, codes: Array, n_levels: int, n_rows: int, estimates: Estimates) -> float:
    """Of one column: codes 1, 2, ... in these rows, 0 in the others."""
    target = estimates.target
    if target.kind == "continuous":
        column = np.zeros((1, n_rows), dtype=np.int32)
        column[0, rows] = codes
        if len(rows) == n_rows:
            column -= 1
        return float(estimates.of_codes(column, [n_levels])[0])
    levels, classes, sizes = counted_pairs(codes, target.values[rows])
    others = target.class_sizes - np.bincount(classes, weights=sizes, minlength=len(target.class_sizes))
    return pairs_information(
        np.concatenate([levels, np.zeros(len(others), dtype=np.int64)]),
        np.concatenate([classes, np.arange(len(others))]),
        np.concatenate([sizes, others]),
    )


def _sparse_columns(X: Any) -> Iterator[tuple[Array, Array]]:
    for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[begin:end], X.data[begin:end]


def _with_zeros(values: Array, n_rows: int) -> Array:
    """The values of a sparse column, zeros included."""
    return np.concatenate([values, np.zeros(n_rows - len(values), dtype=values.dtype)])


def _codes(values: Array) -> tuple[Array, int]:
    """Codes of the different values in ascending order, and how many there are."""
    different, codes = np.unique(values, return_inverse=True)
    return codes.reshape(-1).astype(np.int32), len(different)


def _part(marks: list[bool | None], places: Array) -> list[bool | None]:
    return marks[places[0] : places[-1] + 1]


def _refuse_missing(y: Any) -> None:
    """Name the first row without a target; what is no column of values is left to scikit-learn's checks."""
    try:
        column = pa.array(y, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"Input y contains NaN: row {row} is missing. Remove such rows first.")


def _plain_target(y: Array) -> Array:
    """Numbers, flags or texts; Python objects become one of these."""
    if y.dtype.kind in "mM":
        raise TypeError(f"y has dtype {y.dtype}: dates and durations are no target. Convert them to numbers.")
    if y.dtype.kind != "O":
        return y
    try:
        values: Array = pa.array(y).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"y must be numbers, flags or texts of one type: {error}") from None
    return values


_COLOURS = {True: "#1f6f8b", False: "#c9ced3"}
_LABELS = {True: "selected", False: "not selected"}


class MutualInformationDisplay:
    """A bar a feature, the best on top.

    Parameters
    ----------
    scores : array of shape (n_features,)
        Mutual information in nats.
    feature_names : list of str
    selected : array of bool of shape (n_features,)

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure, after `plot`
    bars_ : the bars, the best first
    """

    def __init__(self, *, scores: Any, feature_names: Sequence[str], selected: Any) -> None:
        self.scores: Array = np.asarray(scores, dtype=np.float64)
        self.feature_names = [str(name) for name in feature_names]
        self.selected: Array = np.asarray(selected, dtype=bool)
        sizes = {self.scores.shape, (len(self.feature_names),), self.selected.shape}
        if len(sizes) > 1:
            raise ValueError(f"scores, feature_names and selected need one entry per feature. Got {sorted(sizes)}.")

    @classmethod
    def from_estimator(
        cls, estimator: MutualInformationFilter, *, ax: Axes | None = None, max_features: int = 30
    ) -> Self:
        """The picture of a fitted filter."""
        check_is_fitted(estimator)
        display = cls(
            scores=estimator.scores_, feature_names=input_names(estimator, None), selected=estimator.get_support()
        )
        return display.plot(ax, max_features=max_features)

    @classmethod
    def from_data(
        cls, X: Any, y: Any = None, *, ax: Axes | None = None, max_features: int = 30, **parameters: Any
    ) -> Self:
        """Fit a filter with these parameters to X and y (or to a scan) and show it."""
        return cls.from_estimator(MutualInformationFilter(**parameters).fit(X, y), ax=ax, max_features=max_features)

    def plot(self, ax: Axes | None = None, *, max_features: int = 30) -> Self:
        """Draw the best `max_features` features; the title says how many there are beside."""
        if not isinstance(max_features, int) or isinstance(max_features, bool) or max_features < 1:
            raise ValueError(f"max_features must be an integer >= 1. Got {max_features!r}.")
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("MutualInformationDisplay needs matplotlib: pip install 'certifit[plot]'.") from error
        order = np.argsort(-self.scores, kind="stable")[:max_features]
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 1.2 + 0.27 * len(order)), layout="constrained")
        places = np.arange(len(order))
        self.bars_ = ax.barh(places, self.scores[order], color=[_COLOURS[bool(s)] for s in self.selected[order]])
        ax.set_yticks(places, [self.feature_names[j] for j in order])
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.bar_label(self.bars_, fmt="%.3f", padding=3, fontsize="small")
        ax.margins(x=0.12)
        ax.set_xlim(left=0)
        ax.set_xlabel("mutual information with the target (nats)")
        n_features = len(self.scores)
        beside = f", best {len(order)} of {n_features:,} features" if len(order) < n_features else ""
        ax.set_title(f"What each feature alone tells about the target{beside}", fontsize="medium", loc="left")
        self._legend(ax, order)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _legend(self, ax: Axes, order: Array) -> None:
        from matplotlib.patches import Patch

        shown = [kind for kind in (True, False) if (self.selected[order] == kind).any()]
        if len(shown) == 2:
            ax.legend(
                handles=[Patch(color=_COLOURS[kind], label=_LABELS[kind]) for kind in shown],
                loc="lower right",
                frameon=False,
            )
