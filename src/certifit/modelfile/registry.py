"""The closed table of estimators: the only classes a model file can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from certifit.modelfile import components, counts, gaussian
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Family
from certifit.modelfile.linear import LINEAR
from certifit.modelfile.robust import PARAMETERS, ROBUST
from certifit.modelfile.schema import COUNT_FROM_1, FLAG, SETTING_FROM_0, SHARE, OrNull, Spec, brief
from certifit.modelfile.sparse import PENALTY


@dataclass(frozen=True)
class Entry:
    """How a class is reached, the legal values of its parameters, its family, and what its metadata says beyond that.

    Basis, encoder, penalty factors, bounds and priors are stored apart.
    """

    load_class: Callable[[], type[Any]]
    parameters: Mapping[str, Spec]
    own: Mapping[str, Spec] = field(default_factory=dict)
    family: Family = LINEAR


def _linear_regression() -> type[Any]:
    from certifit.models.linear import LinearRegression

    return LinearRegression


def _ridge() -> type[Any]:
    from certifit.models.linear import Ridge

    return Ridge


def _lasso() -> type[Any]:
    from certifit.models.sparse import Lasso

    return Lasso


def _elastic_net() -> type[Any]:
    from certifit.models.sparse import ElasticNet

    return ElasticNet


def _huber_regressor() -> type[Any]:
    from certifit.models.robust import HuberRegressor

    return HuberRegressor


def _gaussian_discriminant() -> type[Any]:
    from certifit.models.generative import GaussianDiscriminant

    return GaussianDiscriminant


def _gaussian_nb() -> type[Any]:
    from certifit.models.naive_bayes import GaussianNB

    return GaussianNB


def _bernoulli_nb() -> type[Any]:
    from certifit.models.count_naive_bayes import BernoulliNB

    return BernoulliNB


def _multinomial_nb() -> type[Any]:
    from certifit.models.count_naive_bayes import MultinomialNB

    return MultinomialNB


def _pca() -> type[Any]:
    from certifit.models.components import PCA

    return PCA


_SPARSE: Mapping[str, Spec] = {
    "alpha": SETTING_FROM_0,
    "fit_intercept": FLAG,
    "max_iter": COUNT_FROM_1,
    "standardize": FLAG,
    "tol": SETTING_FROM_0,
}
REGISTRY: Mapping[str, Entry] = {
    "linear_regression": Entry(_linear_regression, {"fit_intercept": FLAG, "tol": SETTING_FROM_0}),
    "ridge": Entry(_ridge, {"alpha": OrNull(SETTING_FROM_0), "fit_intercept": FLAG, "tol": SETTING_FROM_0}),
    "lasso": Entry(_lasso, _SPARSE, {"penalty": PENALTY}),
    "elastic_net": Entry(_elastic_net, {**_SPARSE, "l1_ratio": SHARE}, {"penalty": PENALTY}),
    "huber_regressor": Entry(_huber_regressor, PARAMETERS, {"robust": ROBUST}),
    "gaussian_discriminant": Entry(
        _gaussian_discriminant, gaussian.DISCRIMINANT_PARAMETERS, family=gaussian.DISCRIMINANT
    ),
    "gaussian_nb": Entry(_gaussian_nb, gaussian.NAIVE_PARAMETERS, {"sums": gaussian.SUMS}, gaussian.GAUSSIAN_NAIVE),
    "bernoulli_nb": Entry(_bernoulli_nb, counts.BERNOULLI_PARAMETERS, family=counts.BERNOULLI),
    "multinomial_nb": Entry(_multinomial_nb, counts.MULTINOMIAL_PARAMETERS, family=counts.MULTINOMIAL),
    "pca": Entry(_pca, components.PARAMETERS, family=components.COMPONENTS),
}


def entry_of(model: Any) -> tuple[str, Entry]:
    """The id and entry of a model's class; a subclass is another class."""
    for key, entry in REGISTRY.items():
        if type(model) is entry.load_class():
            return key, entry
    for inner in ("best_estimator_", "estimator_"):
        if hasattr(model, inner):
            raise ModelFileError(f"Save the model inside {type(model).__name__}: save(model.{inner}, path).")
    legal = ", ".join(entry.load_class().__name__ for entry in REGISTRY.values())
    raise ModelFileError(f"A model file holds one of {legal}. Got {brief(type(model).__qualname__)}.")


def entry_named(key: str) -> Entry:
    """The entry of an id read from a file."""
    if key not in REGISTRY:
        raise ModelFileError(
            f"it holds the estimator {brief(key)}, and this version knows {', '.join(REGISTRY)}. "
            "A newer certifit may read it."
        )
    return REGISTRY[key]
