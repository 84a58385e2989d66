"""Names of the parameters of a model, read once per class.

scikit-learn reads the signature of `__init__` whenever parameters are asked for, which a copy of a model does twice.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from sklearn.base import BaseEstimator

from certifit.data.user_input import Parameters

_known: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


class NamedParameters(BaseEstimator):
    """What scikit-learn calls an estimator; parameters are asked for by names that are known."""

    def get_params(self, deep: bool = True) -> Parameters:
        """The parameters by name. deep: also those of a parameter that is an estimator, as name__parameter."""
        names = _known.get(type(self))
        if names is None:
            names = _known[type(self)] = tuple(super().get_params(deep=False))
        params: dict[str, object] = {}
        for name in names:
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params.update((f"{name}__{inner}", of_inner) for inner, of_inner in value.get_params().items())
            params[name] = value
        return params
