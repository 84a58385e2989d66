"""A fitted model seen with the offsets of some rows, for scorers that know none."""

from __future__ import annotations

from functools import partial, update_wrapper
from inspect import signature
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags

from certifit.data.columns import Array
from certifit.data.offsets import checked_offset
from certifit.data.source import Source
from certifit.data.user_rows import n_samples
from certifit.data.user_types import UserRows, UserWeights

_PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")


def with_offset(model: BaseEstimator, X: UserRows, offset: UserWeights, exposure: UserWeights) -> BaseEstimator:
    """A fitted model as it predicts rows X with these offsets; a scan carries its own."""
    if offset is None and exposure is None:
        return model
    if isinstance(X, Source):
        raise ValueError("A scan carries its offset and exposure: scan_csv(..., offset=, exposure=).")
    return WithOffset(model, checked_offset(offset, exposure, n_samples(X)))


class WithOffset:
    """A fitted model whose predictions and own score are given the offset of every row."""

    def __init__(self, model: BaseEstimator, offset: Array | None) -> None:
        self._model, self._offset = model, offset

    def __getattr__(self, name: str) -> Any:
        if name in ("_model", "_offset"):
            raise AttributeError(name)
        found = getattr(self._model, name)
        if name not in _PREDICTIONS:
            return found
        if "offset" not in signature(found).parameters:
            raise TypeError(f"{name} of {type(self._model).__name__} takes no offset, so rows with one have no score.")
        return update_wrapper(partial(found, offset=self._offset), found)

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self._model)

    def __sklearn_is_fitted__(self) -> bool:
        return True
