"""Any functions of the row as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit.data.gate import unchanged_on_error
from certifit.data.source import RowError
from certifit.maps.rows import Array, finite_rows, first_non_finite, input_names, validated

ROW_TOLERANCE = 1e-6


class Functions(TransformerMixin, BaseEstimator):
    """Columns that are functions of the row, written by the user.

        phi_k(x) = functions[k](X)[i]   for row i

    Parameters
    ----------
    functions : list of callables
        Each takes X (n, d), float64 and read-only, and returns (n,) or (n, m). The value of a row must
        depend on that row alone, because data come in blocks.
    names : list of str, one per function or one per column, default None
        None takes `__name__`; a lambda is "f" and its position.

    Attributes
    ----------
    widths_ : (len(functions),) columns that each function gives
    n_features_in_ : int

    >>> import numpy as np
    >>> def radius(X):
    ...     return np.hypot(X[:, 0], X[:, 1])
    >>> basis = Functions([radius, lambda X: X**2])
    >>> basis.fit_transform([[3.0, 4.0], [0.0, 1.0]])
    array([[ 5.,  9., 16.],
           [ 1.,  0.,  1.]])
    >>> list(basis.get_feature_names_out())
    ['radius', 'f1[0]', 'f1[1]']
    """

    def __init__(self, functions: Sequence[Callable[[Array], ArrayLike]], names: Sequence[str] | None = None) -> None:
        self.functions = functions
        self.names = names

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how many columns each function gives. A few rows are enough."""
        labels = _function_names(self.functions)
        with unchanged_on_error(self):
            rows = finite_rows(self, validated(self, X, reset=True))
            parts = [_evaluate(f, label, rows) for f, label in zip(self.functions, labels, strict=True)]
            for function, label, part in zip(self.functions, labels, parts, strict=True):
                _refuse_row_mixing(function, label, rows, part)
            self.widths_ = np.array([part.shape[1] for part in parts], dtype=np.int64)
            self._names_out = _names_out(self.names, labels, self.widths_.tolist())
        return self

    def transform(self, X: Any) -> Array:
        """The columns of all functions, side by side."""
        check_is_fitted(self)
        return self.apply(validated(self, X, reset=False))

    def apply(self, block: Any) -> Array:
        """`transform` for a block of rows whose column names are checked elsewhere."""
        rows = finite_rows(self, block)
        parts = []
        labels = _function_names(self.functions)
        for function, label, width in zip(self.functions, labels, self.widths_, strict=True):
            part = _evaluate(function, label, rows)
            if part.shape[1] != width:
                raise ValueError(f"Function {label!r} gave {width} columns in fit and {part.shape[1]} here.")
            parts.append(part)
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Names of the columns; a function of m > 1 columns has "name[0]" .. "name[m-1]"."""
        check_is_fitted(self)
        input_names(self, input_features)
        return np.array(self._names_out, dtype=object)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Refused: a model file holds no code."""
        raise ValueError(
            "basis=Functions([...]) holds Python functions, which a model file never stores. "
            "Refit with Polynomial, or keep the code and refit."
        )


def _function_names(functions: Any) -> list[str]:
    if isinstance(functions, str) or not isinstance(functions, Sequence) or not functions:
        raise TypeError(f"functions must be a list of one or more functions. Got {functions!r}.")
    for i, function in enumerate(functions):
        if not callable(function):
            raise TypeError(f"functions[{i}] must be callable. Got {function!r}.")
    names = [getattr(function, "__name__", "<lambda>") for function in functions]
    names = [f"f{i}" if name == "<lambda>" else name for i, name in enumerate(names)]
    return [name if names.count(name) == 1 else f"{name}{i}" for i, name in enumerate(names)]


def _names_out(names: Sequence[str] | None, labels: list[str], widths: list[int]) -> list[str]:
    chosen = labels if names is None else [str(name) for name in names]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"names must differ from each other. Got {chosen}.")
    if len(chosen) == sum(widths) != len(labels):
        widths = [1] * len(chosen)
    if len(chosen) != len(widths):
        raise ValueError(
            f"names must have {len(labels)} entries (one per function) or {sum(widths)} (one per column). "
            f"Got {len(chosen)}."
        )
    parts = zip(chosen, widths, strict=True)
    return [name if m == 1 else f"{name}[{i}]" for name, m in parts for i in range(m)]


def _evaluate(function: Callable[[Array], ArrayLike], label: str, rows: Array) -> Array:
    result = np.asarray(function(rows))
    if result.ndim not in (1, 2) or len(result) != len(rows) or not result.size:
        n_rows = len(rows)
        raise ValueError(f"Function {label!r} must give shape ({n_rows},) or ({n_rows}, m). Got {result.shape}.")
    if result.dtype.kind not in "biuf":
        raise TypeError(f"Function {label!r} must give real numbers. Got dtype {result.dtype}.")
    part: Array = result.reshape(len(rows), -1).astype(np.float64)
    if bad := first_non_finite(part):
        raise RowError(f"Function {label!r} gives {bad[2]}", bad[0], ", where X is finite.")
    return part


def _refuse_row_mixing(function: Callable[[Array], ArrayLike], label: str, rows: Array, part: Array) -> None:
    alone = _evaluate(function, label, rows[:1])
    allowed = ROW_TOLERANCE * np.abs(part).max(axis=0)
    if alone.shape[1] != part.shape[1] or (np.abs(alone[0] - part[0]) > allowed).any():
        raise ValueError(
            f"Function {label!r} gives row 0 other values when it stands alone. "
            "A basis function may look at one row only."
        )
