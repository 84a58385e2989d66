"""The one gate that rows pass before a fit or a prediction.

Refuses what cannot be meant as numbers (masks, dates, categories, complex, text, corrupt sparse arrays) before
scikit-learn's own checks, which would take some of it silently. It makes no pass to look for NaN: sums that come
out non-finite call `refuse_nonfinite`, which names the row and the column.

First the types of what users pass and get back. NumPy, SciPy, pandas, polars and Arrow share no base class: `ArrayLike`
is NumPy's name for numbers, nested lists of them and every object with `__array__`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from inspect import signature
from numbers import Number
from os import PathLike
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from certifit.data.arrow import ArrowSource, frame_table, is_frame
from certifit.data.by_column import RowsByColumn
from certifit.data.columns import Array, Columns, coarseness, plain_numbers, refuse_kinds
from certifit.data.labels import coded, read_labels, with_codes
from certifit.data.offsets import checked_offset
from certifit.data.privacy import cell
from certifit.data.source import Block, Memory, Source
from certifit.runtime import core, n_threads


class SparseRows(Protocol):
    """A sparse matrix or array of SciPy, in any format."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> SparseRows:
        """The same entries in compressed rows."""


UserRows: TypeAlias = Source | SparseRows | ArrayLike
"""X: a scan, or rows in memory (array, nested lists, frame, Arrow table, sparse matrix)."""

UserTarget: TypeAlias = ArrayLike | None
"""y: a number or a label per row; None where X is a scan, which has its target, and where a model needs none."""

UserWeights: TypeAlias = ArrayLike | None
"""sample_weight, offset, exposure: a number per row; None is 1, 0 and 1, or what a scan has."""

UserLabels: TypeAlias = ArrayLike | None
"""classes of partial_fit: all labels that there will be; None where an earlier call named them."""

OutPath: TypeAlias = str | PathLike[str] | None
"""out: the .parquet or .csv file that predictions are written to; None returns them."""

Predictions: TypeAlias = Array | Any
"""An array of one row per row of X; None where `out` was given. A caller that gave no `out` need not test for None."""

Parameters: TypeAlias = Mapping[str, Any]
"""Parameters of an estimator by name, as `set_params` takes them: of any type, checked by the table of models."""


def taken(X: Any, numbers: Array) -> Any:
    """Rows of an array, a sparse matrix, a frame or a list, by number."""
    if hasattr(X, "iloc"):
        return X.iloc[numbers]
    if hasattr(X, "take") and hasattr(X, "schema"):  # pyarrow
        return X.take(numbers)
    if sp.issparse(X):
        return X.tocsr()[numbers]
    if hasattr(X, "shape") or hasattr(X, "__dataframe__"):
        return X[numbers]
    return [X[i] for i in numbers]


def n_samples(X: Any) -> int:
    """Number of rows of an array, frame or list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


_CORE_KINDS = "fiub"  # float, signed, unsigned, bool
_SEARCH_ROWS = 65_536
_COUNTS = (np.float32, np.float64, np.int32, np.int64)  # dtypes that sparse counts may have


@contextmanager
def unchanged_on_error(model: Any) -> Iterator[None]:
    """A fit that fails leaves the model as it was, not with some of its attributes new."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def fit_source(
    model: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None
) -> Source:
    """The checked training rows. Sets n_features_in_ and feature_names_in_ on the model."""
    if isinstance(X, Source):
        _refuse_extra(y=y, sample_weight=sample_weight, offset=offset, exposure=exposure)
        refuse_offset(model, X)
        if X.first_block().y is None:
            raise ValueError("The scan has no target. Use scan_csv(path, target='name of the column').")
        _set_columns(model, X)
        return X
    _set_offsets(model, offset=offset, exposure=exposure)
    if getattr(model, "encoder", None) is not None:
        return _fit_table(model, _table(X), y, sample_weight, (offset, exposure))
    refuse_targets(y)
    rows, y = _checked_pair(model, X, y, y_numeric=True)
    y = plain_numbers(y)
    weight = None if sample_weight is None else checked_weight(sample_weight, len(y))
    row_offset = checked_offset(offset, exposure, len(y))
    return Memory(_core_array(rows), y, weight, _names_of(model), row_offset, coarseness(X))


def refuse_targets(y: Any) -> None:
    """Targets that are no finite numbers, by row; other faults of y are found by the checks behind."""
    values = np.asarray(y)
    if values.ndim not in (1, 2) or values.dtype.kind not in "fOUT":
        return
    try:
        numbers = values.astype(np.float64).reshape(len(values), -1)
    except (TypeError, ValueError) as error:
        if "could not convert string" not in str(error):
            return
        words = str(error).replace("np.str_(", "").rstrip(")")
        raise ValueError(f"y must be numbers: {words}. For labels use a classifier, as LogisticRegression.") from None
    wrong = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(wrong):
        what = "infinity or a value too large for dtype('float64')" if np.isinf(numbers[wrong[0]]).any() else "NaN"
        raise ValueError(f"Input y contains {what}: row {wrong[0]}. Remove such rows.")


def _checked_pair(model: Any, X: Any, y: Any, **kinds: bool) -> tuple[Any, Any]:
    """X and y by scikit-learn's rules. Plain arrays of numbers pass them all: they are not asked, which takes long."""
    if not _is_plain_pair(X, y):
        refuse_kinds(X)
        X, y = validate_data(model, canonical(X), y, **_ROWS, multi_output=False, **kinds)
        return X, y
    model.n_features_in_ = X.shape[1]
    _set_names(model, None)
    return X, y


def _is_plain_pair(X: Any, y: Any) -> bool:
    """Whether both are NumPy's own arrays of numbers, a row of X at least for every finite y."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.dtype.kind not in "fiu" or y.dtype.kind not in "fiu":
        return False
    return X.ndim == 2 and y.ndim == 1 and len(X) == len(y) and X.size > 0 and bool(np.isfinite(y).all())


def unlabelled_source(model: Any, X: Any, sample_weight: Any = None) -> Source:
    """The checked rows of a fit without a target. Sets n_features_in_ and feature_names_in_ on the model."""
    if isinstance(X, Source):
        if sample_weight is not None:
            raise ValueError("A scan carries its weight. Pass it as scan_csv(..., weight=), not to fit.")
        refuse_offset(model, X)
        model.n_features_in_ = X.n_features
        _set_names(model, X.names if X.named else None)
        return X
    if getattr(model, "encoder", None) is not None:
        return _unlabelled_table(model, _table(X), sample_weight)
    refuse_kinds(X)
    X = validate_data(model, canonical(X), **_ROWS)
    weight = None if sample_weight is None else checked_weight(sample_weight, X.shape[0])
    return Memory(_core_array(X), None, weight, _names_of(model))


def class_source(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    known: Array | None = None,
    offset: Any = None,
    exposure: Any = None,
) -> tuple[Source, Array]:
    """The checked training rows of a classifier with their labels as codes, and the classes.

    known: the classes that there are; None is those of the rows.
    """
    if isinstance(X, Source):
        _refuse_extra(y=y, sample_weight=sample_weight, offset=offset, exposure=exposure)
        refuse_offset(model, X)
        source, classes = with_codes(X, known)
        _set_columns(model, X)
        return source, classes
    _set_offsets(model, offset=offset, exposure=exposure)
    y = None if y is None else read_labels(y)
    if getattr(model, "encoder", None) is not None:
        return _class_table(model, _table(X), y, sample_weight, known, (offset, exposure))
    rows, y = _checked_pair(model, X, y)
    weight = None if sample_weight is None else checked_weight(sample_weight, len(y))
    classes, codes = coded(y, weight, known)
    row_offset = checked_offset(offset, exposure, len(codes))
    return Memory(_core_array(rows, _COUNTS), codes, weight, _names_of(model), row_offset, coarseness(X)), classes


def predict_rows(model: Any, X: Any, offset: Any = None, exposure: Any = None) -> Block:
    """The checked rows to predict; the columns must be those of the fit. No offset is 0: with a log link, a rate."""
    if getattr(model, "encoder_", None) is not None:
        rows = _table(X)
    else:
        refuse_kinds(X)
        is_kernel = get_tags(model).input_tags.pairwise  # a NaN is no kernel, whatever the number of columns
        kinds = _ROWS | {"ensure_all_finite": is_kernel, "ensure_min_samples": 0}
        rows = _core_array(validate_data(model, canonical(X), reset=False, **kinds), _COUNTS)
    return Block(rows, None, None, offset=checked_offset(offset, exposure, rows.shape[0]))


def predict_source(model: Any, source: Source, offset: Any = None, exposure: Any = None) -> Source:
    """A scan to predict. A table's columns are found by name; others must be those of the fit, in order."""
    _refuse_extra(offset=offset, exposure=exposure)
    refuse_offset(model, source)
    if source.is_table:
        if hasattr(model, "encoder_") and model.encoder_ is None:  # a selector leaves tables to its model
            raise TypeError(
                "The scan is a table of named columns, and the fit had an array. Fit to a scan or a frame "
                "(encoder=TableEncoder()), or predict for an array."
            )
        return source
    fitted = getattr(model, "feature_names_in_", None)
    if fitted is not None and source.named and list(fitted) != source.names:
        _refuse_missing_columns(model, source.names)
        raise ValueError(f"Columns are {source.names}, the fit had {list(fitted)}. Put them in that order.")
    if source.n_features != model.n_features_in_:
        # In scikit-learn's words, which its checks look for.
        raise ValueError(
            f"X has {source.n_features} features, but {type(model).__name__} is expecting {model.n_features_in_} "
            "features as input."
        )
    return source


def takes(model: Any, role: str) -> bool:
    """Whether `fit` of a model has an offset, or an exposure, among its arguments."""
    fit: Any = getattr(type(model), "fit", None)
    return fit is not None and role in _arguments_of(fit)


@cache
def _arguments_of(function: Any) -> frozenset[str]:
    """Names of its arguments, found once: that takes a tenth of a small fit."""
    return frozenset(signature(function).parameters)


def refuse_offset(model: Any, source: Source) -> None:
    """Refuse a source with an offset or exposure for a model that would not read it."""
    for role in ("offset", "exposure"):
        if role in source.view.roles.named() and not takes(model, role):
            raise ValueError(
                f"The scan has an {role}, and {type(model).__name__} takes none. Scan without {role}=, or use a model "
                "that takes one, such as PoissonRegressor."
            )


def _fit_table(model: Any, table: Any, y: Any, sample_weight: Any, offsets: tuple[Any, Any]) -> Source:
    """A frame with its target, weight and offset beside it, for a model with an encoder."""
    _refuse_empty(model, table, y)
    target = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=np.float64, input_name="y")
    return _joined_table(model, table, y, target, sample_weight, offsets)


def _class_table(
    model: Any, table: Any, y: Any, sample_weight: Any, known: Array | None, offsets: tuple[Any, Any]
) -> tuple[Source, Array]:
    """The same for a classifier."""
    _refuse_empty(model, table, y)
    values = column_or_1d(y, warn=True)
    if len(values) != table.num_rows:
        raise ValueError(f"y has {len(values)} rows but X has {table.num_rows}.")
    weight = None if sample_weight is None else checked_weight(sample_weight, len(values))
    classes, codes = coded(values, weight, known)
    return _joined_table(model, table, y, codes, weight, offsets), classes


def _refuse_empty(model: Any, table: Any, y: Any) -> None:
    if table.num_columns == 0 or table.num_rows == 0:
        raise ValueError(
            f"Found {table.num_rows} rows and {table.num_columns} columns. A fit needs one of each at least."
        )
    if y is None:
        raise ValueError(f"{type(model).__name__} requires y to be passed, but the target y is None.")


def _joined_table(
    model: Any, table: Any, y: Any, target: Array, sample_weight: Any, offsets: tuple[Any, Any]
) -> Source:
    if len(target) != table.num_rows:
        raise ValueError(f"y has {len(target)} rows but X has {table.num_rows}.")
    model.n_features_in_ = table.num_columns
    _set_names(model, table.column_names)
    name = _free_name(str(getattr(y, "name", None) or "y"), table.column_names)
    table = table.append_column(name, [target])
    beside = {
        "weight": None if sample_weight is None else checked_weight(sample_weight, len(target)),
        "offset": checked_offset(*offsets, len(target)),
    }
    roles: dict[str, Any] = {
        role: _free_name(role, table.column_names) for role, values in beside.items() if values is not None
    }
    for role, column in roles.items():
        table = table.append_column(column, [beside[role]])
    return ArrowSource.of_table(table, name, **roles)


def _unlabelled_table(model: Any, table: Any, sample_weight: Any) -> Source:
    """A frame with its weight beside it, for a model with an encoder and without a target."""
    if table.num_columns == 0 or table.num_rows == 0:
        raise ValueError(
            f"Found {table.num_rows} rows and {table.num_columns} columns. A fit needs one of each at least."
        )
    model.n_features_in_ = table.num_columns
    _set_names(model, table.column_names)
    weight = None
    if sample_weight is not None:
        weight = _free_name("weight", table.column_names)
        table = table.append_column(weight, [checked_weight(sample_weight, table.num_rows)])
    return ArrowSource.of_table(table, None, weight)


def _refuse_extra(**arguments: Any) -> None:
    """Refuse arrays beside a scan."""
    roles = {"y": "target", "sample_weight": "weight"}
    for name in (roles.get(name, name) for name, values in arguments.items() if values is not None):
        raise ValueError(f"A scan carries its {name}. Pass it as scan_csv(..., {name}='name of the column').")


def _set_columns(model: Any, source: Source) -> None:
    model.n_features_in_ = source.n_features
    _set_names(model, source.names if source.named else None)
    if takes(model, "offset"):
        model.offset_name_, model.exposure_name_ = source.view.roles.offset, source.view.roles.exposure


def _set_offsets(model: Any, **offsets: Any) -> None:
    """offset_name_ and exposure_name_ of a model that takes them: what they are called, None where not given."""
    if takes(model, "offset"):
        for role, values in offsets.items():
            name = None if values is None else str(getattr(values, "name", None) or role)
            setattr(model, f"{role}_name_", name)


def _table(X: Any) -> Any:
    if not is_frame(X):
        raise TypeError(
            f"An encoder needs a table with named columns (pandas, polars, pyarrow). Got {type(X).__name__}."
        )
    return frame_table(X)


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _refuse_missing_columns(model: Any, names: list[str]) -> None:
    missing = [name for name in getattr(model, "feature_names_in_", ()) if name not in names]
    if missing:
        raise ValueError(f"Columns missing: {missing}. The fit had {list(model.feature_names_in_)}.")


def refuse_nonfinite(source: Source) -> None:
    """Raise for the first NaN or infinity in X, naming its row and column; return if there is none."""
    for stretch in source.stretches():
        for begin in range(0, stretch.n_rows, _SEARCH_ROWS):
            _refuse_nonfinite_part(stretch.part(begin, begin + _SEARCH_ROWS), source.names)


def _refuse_nonfinite_part(part: Block, names: list[str]) -> None:
    if isinstance(part.X, Columns):
        part = replace(part, X=part.X.toarray())
    values = part.X.data if sp.issparse(part.X) else part.X
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    if sp.issparse(part.X):
        entry = int(np.flatnonzero(~np.isfinite(values))[0])
        row, column = int(np.searchsorted(part.X.indptr, entry, side="right")) - 1, int(part.X.indices[entry])
        value = values[entry]
    else:
        row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
        value = values[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"Input X contains {what}: row {part.first_row + row}, column {names[column]!r}. "
        "Remove such rows, or fill the values (for example with sklearn.impute.SimpleImputer)."
    )


_ROWS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": "numeric",
    "ensure_all_finite": False,
    "order": None,
    "copy": False,
}


def canonical(X: Any) -> Any:
    """A sparse matrix checked entry by entry and in canonical CSR form; anything else unchanged."""
    if not sp.issparse(X):
        return X
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions. Got a sparse array with {X.ndim}.")
    if _is_canonical(X, "csr"):
        return X
    if _is_canonical(X, "csc") and _is_plain(X.data):
        return RowsByColumn.of(X)
    if hasattr(X, "check_format"):
        try:
            X.check_format(full_check=True)
        except (ValueError, IndexError) as error:
            raise ValueError(f"X is a corrupt sparse {X.format} array: {error}.") from error
    csr = X.tocsr()
    if csr.has_canonical_format:
        # The flag is cached and may be stale after an edit in place; the answer costs one pass.
        csr = type(csr)((csr.data, csr.indices, csr.indptr), shape=csr.shape, copy=False)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _is_canonical(X: Any, layout: str) -> bool:
    """Whether X is CSR (CSC) without a fault, in order and each entry once: one pass over the indices for all of it."""
    if X.format != layout or X.indices.dtype != X.indptr.dtype or X.indptr.dtype not in (np.int32, np.int64):
        return False
    n_lines, length = X.shape if layout == "csr" else X.shape[::-1]
    fits = len(X.indptr) == n_lines + 1 and len(X.indices) == len(X.data)
    if not (fits and _is_plain(X.indices) and _is_plain(X.indptr)):
        return False
    return bool(core.is_canonical_csr(X.indices, X.indptr, length, n_threads()))


def _is_plain(vector: Array) -> bool:
    """Whether numbers lie side by side where the processor expects them."""
    return bool(vector.flags.c_contiguous and vector.flags.aligned)


def _core_array(X: Any, sparse_kinds: Sequence[Any] = (np.float32, np.float64)) -> Any:
    """X as the core can read it: a copy only for types and layouts it does not know (float16, big-endian, ...)."""
    if isinstance(X, RowsByColumn) and not X.has_rows and X.dtype in sparse_kinds:
        return X  # the rows that SciPy will make are as the core reads them
    if sp.issparse(X):
        index = np.promote_types(X.indices.dtype, X.indptr.dtype)
        kinds = (X.dtype if X.dtype in sparse_kinds else np.dtype(np.float64), index, index)
        parts = [X.data, X.indices, X.indptr]
        plain = [
            part if part.dtype == kind and _is_plain(part) else part.astype(kind, order="C")
            for part, kind in zip(parts, kinds, strict=True)
        ]
        is_known = all(part is known for part, known in zip(parts, plain, strict=True))
        return X if is_known else sp.csr_array(tuple(plain), shape=X.shape)
    dtype = X.dtype
    known = dtype.kind in _CORE_KINDS and dtype.isnative and (dtype.kind != "f" or dtype.itemsize in (4, 8))
    readable = X.flags.aligned and all(stride % X.itemsize == 0 for stride in X.strides)
    return X if known and readable else plain_numbers(X)


def checked_weight(sample_weight: Any, n_rows: int) -> Array:
    """One finite number >= 0 a row, not all zero."""
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n_rows, sample_weight)
    weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight", order="C")
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must be 1-D, one number per row. Got {weight.ndim} dimensions.")
    if len(weight) != n_rows:
        raise ValueError(f"sample_weight has {len(weight)} entries but X has {n_rows} rows.")
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(f"sample_weight must be >= 0. Row {row} is negative: {cell(weight[row])}.")
    if not (weight > 0).any():
        raise ValueError("sample_weight is zero for every row: no row is left to fit.")
    return plain_numbers(weight)


def _names_of(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _set_names(model: Any, names: list[str] | None) -> None:
    if names is not None:
        model.feature_names_in_ = np.asarray(names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
