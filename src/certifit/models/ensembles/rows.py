"""Rows in memory for models of models: checked once, equal ones merged, and handed to copies of an estimator."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import column_or_1d, validate_data

from certifit.data.columns import Array, refuse_kinds
from certifit.data.labels import coded, read_labels, with_codes
from certifit.data.source import Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights, canonical, checked_weight, taken
from certifit.models.composite import Composite
from certifit.models.ensembles.draws import DistinctRows, distinct_rows
from certifit.models.estimator import name_of_target


@dataclass(frozen=True)
class CheckedRows:
    """Checked rows, a number or the code of a class for each, weights, and the rows that differ."""

    X: Any
    y: Array
    weight: Array | None
    distinct: DistinctRows


class InMemory(Composite[CheckedRows]):
    """A model of models that are fitted to rows by their numbers."""

    @abstractmethod
    def _targets(self, y: UserTarget, weight: Array | None, is_fitted: bool) -> Array:
        """Targets as the estimators get them."""

    def _gate(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> CheckedRows:
        self.target_name_ = name_of_target(X, y)
        return self._rows(X, y, roles.get("sample_weight"), reset=True)

    def _rows(self, X: UserRows, y: UserTarget, sample_weight: UserWeights, reset: bool) -> CheckedRows:
        if isinstance(X, Source) and not reset and not X.is_table:
            return self._gathered(X)
        if isinstance(X, Source):
            raise TypeError(
                f"{type(self).__name__} draws rows by number, and of {type(self.estimator).__name__} it takes rows in "
                "memory. Got a scan."
            )
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        checked = self._checked(X, reset)
        n_rows = int(checked.shape[0])
        weight = None if sample_weight is None else checked_weight(sample_weight, n_rows)
        targets = self._targets(y, weight, not reset)
        if len(targets) != n_rows:
            raise ValueError(f"X has {n_rows} rows and y has {len(targets)}: inconsistent numbers of samples.")
        distinct = distinct_rows(checked, targets, weight)
        named = self.estimator.get_params().items()
        encodes = any(value is not None for name, value in named if name.split("__")[-1] == "encoder")
        if encodes and hasattr(checked, "iloc") and checked.columns.is_unique:  # a sample may lack levels of texts
            from pandas.api.types import infer_dtype

            texts = [name for name in checked.columns if infer_dtype(checked[name], skipna=True) == "string"]
            checked = checked.astype(dict.fromkeys(texts, "category"))
        return CheckedRows(checked, targets, weight, distinct)

    def _gathered(self, scan: Source) -> CheckedRows:
        """The rows of a scan of numbers, to look at a fit again: they are drawn by their values, wherever they were."""
        classes = getattr(self, "classes_", None)
        rows = (scan if classes is None else with_codes(scan, classes)[0]).gather()
        if rows.y is None:
            raise ValueError("The rows carry no target.")
        is_named = hasattr(self, "feature_names_in_")
        X = pa.table({name: rows.X[:, j] for j, name in enumerate(scan.names)}) if is_named else rows.X
        return CheckedRows(X, rows.y, rows.weight, distinct_rows(rows.X, rows.y, rows.weight))

    def _checked(self, X: Any, reset: bool) -> Any:
        """Rows that the estimator can take; frames stay frames, for encoders and pipelines inside."""
        if isinstance(X, Source) and not reset:
            return X  # the copies check it
        if hasattr(X, "iloc") and any(getattr(kind, "kind", "O") not in "fiub" for kind in X.dtypes):
            validate_data(self, X, skip_check_array=True, reset=reset)
            return X
        tags = get_tags(self.estimator).input_tags
        refuse_kinds(X)
        is_frame = hasattr(X, "iloc")
        checked = validate_data(
            self,
            canonical(X),
            reset=reset,
            accept_sparse="csr" if tags.sparse else False,
            dtype="numeric",
            ensure_all_finite="allow-nan" if tags.allow_nan else True,
        )
        return X if is_frame else checked

    def _take_names(self) -> None:
        """What the copies keep of the columns; rows are counted before they are drawn."""
        whole = {
            name: vars(self)[name] for name in ("n_features_in_", "feature_names_in_", "data_") if name in vars(self)
        }
        super()._take_names()
        for name, value in whole.items():
            setattr(self, name, value)


def class_codes(model: Any, y: UserTarget, weight: Array | None, is_fitted: bool) -> Array:
    """Places of labels in the classes of a model, which a fit sets."""
    values = column_or_1d(np.asarray(read_labels(y)), warn=True)
    if weight is not None and len(weight) != len(values):
        raise ValueError(f"sample_weight has {len(weight)} entries but y has {len(values)} rows.")
    if is_fitted:
        return coded(values, weight, model.classes_)[1].astype(np.int64)
    model.classes_, codes = coded(values, weight)
    return codes.astype(np.int64)


def drawn(rows: CheckedRows, counts: Array, takes_weight: bool) -> tuple[UserRows, Array, Array | None]:
    """The rows of a sample: each once with its count as weight, or as often as it was drawn."""
    places = np.flatnonzero(counts)
    numbers = rows.distinct.numbers[places]
    if takes_weight:
        return taken(rows.X, numbers), rows.y[numbers], counts[places]
    numbers = np.repeat(numbers, counts[places].astype(np.int64))
    return taken(rows.X, numbers), rows.y[numbers], None


def fitted(model: BaseEstimator, X: UserRows, y: Array, weight: Array | None) -> BaseEstimator:
    """An estimator after its fit to a sample."""
    return model.fit(X, y) if weight is None else model.fit(X, y, sample_weight=weight)
