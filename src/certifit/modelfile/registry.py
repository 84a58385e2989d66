"""The closed table of estimators: the only classes a model file can name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from certifit.modelfile import components, counts, gaussian, perceptron, scores
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Family
from certifit.modelfile.linear import LINEAR
from certifit.modelfile.robust import PARAMETERS, ROBUST
from certifit.modelfile.schema import COUNT_FROM_1, FLAG, SETTING_FROM_0, SHARE, Check, OrNull, Spec, brief, plain
from certifit.modelfile.sparse import PENALTY


@dataclass(frozen=True)
class Entry:
    """Where a class stands, the legal values of its parameters, its family, and what its metadata says beyond that.

    Basis, encoder, penalty factors, bounds and priors are stored apart. switches: parameters that are False unless the
    file has them.
    """

    module: str  # of certifit.models
    name: str
    parameters: Mapping[str, Spec]
    own: Mapping[str, Spec] = field(default_factory=dict)
    family: Family = LINEAR
    switches: tuple[str, ...] = ()

    def parameters_in(self, found: Any) -> Mapping[str, Spec]:
        """The legal parameters of a file that has these."""
        on = [name for name in self.switches if isinstance(found, dict) and name in found]
        return {**self.parameters, **dict.fromkeys(on, SWITCHED_ON)}

    def parameters_of(self, model: Any) -> dict[str, Any]:
        """The parameters of a model, as a file has them."""
        own = {name: plain(getattr(model, name)) for name in self.parameters}
        return own | {name: True for name in self.switches if getattr(model, name)}

    def load_class(self) -> type[Any]:
        """The class; models are imported when one is needed."""
        found: type[Any] = getattr(import_module(f"certifit.models.{self.module}"), self.name)
        return found


SWITCHED_ON = Check("true", lambda value: value is True)
_STANDARDIZE = ("standardize",)
_SPARSE: Mapping[str, Spec] = {
    "alpha": SETTING_FROM_0,
    "fit_intercept": FLAG,
    "max_iter": COUNT_FROM_1,
    "standardize": FLAG,
    "tol": SETTING_FROM_0,
}
REGISTRY: Mapping[str, Entry] = {
    "linear_regression": Entry("linear", "LinearRegression", {"fit_intercept": FLAG, "tol": SETTING_FROM_0}),
    "ridge": Entry(
        "linear",
        "Ridge",
        {"alpha": OrNull(SETTING_FROM_0), "fit_intercept": FLAG, "tol": SETTING_FROM_0},
        switches=_STANDARDIZE,
    ),
    "lasso": Entry("sparse", "Lasso", _SPARSE, {"penalty": PENALTY}),
    "elastic_net": Entry("sparse", "ElasticNet", {**_SPARSE, "l1_ratio": SHARE}, {"penalty": PENALTY}),
    "huber_regressor": Entry("robust", "HuberRegressor", PARAMETERS, {"robust": ROBUST}),
    "gaussian_discriminant": Entry(
        "generative", "GaussianDiscriminant", gaussian.DISCRIMINANT_PARAMETERS, family=gaussian.DISCRIMINANT
    ),
    "gaussian_nb": Entry(
        "naive_bayes", "GaussianNB", gaussian.NAIVE_PARAMETERS, {"sums": gaussian.SUMS}, gaussian.GAUSSIAN_NAIVE
    ),
    "bernoulli_nb": Entry("count_naive_bayes", "BernoulliNB", counts.BERNOULLI_PARAMETERS, family=counts.BERNOULLI),
    "multinomial_nb": Entry(
        "count_naive_bayes", "MultinomialNB", counts.MULTINOMIAL_PARAMETERS, family=counts.MULTINOMIAL
    ),
    "logistic_regression": Entry(
        "logistic",
        "LogisticRegression",
        scores.CLASS_PARAMETERS,
        family=scores.family(has_classes=True),
        switches=_STANDARDIZE,
    ),
    "poisson_regressor": Entry(
        "glm", "PoissonRegressor", scores.PARAMETERS, family=scores.family(), switches=_STANDARDIZE
    ),
    "gamma_regressor": Entry("glm", "GammaRegressor", scores.PARAMETERS, family=scores.family(), switches=_STANDARDIZE),
    "glm": Entry("glm", "GLM", scores.PARAMETERS, family=scores.family(has_law=True), switches=_STANDARDIZE),
    "perceptron": Entry("perceptron", "Perceptron", perceptron.PARAMETERS, family=perceptron.PERCEPTRON),
    "pca": Entry("components", "PCA", components.PARAMETERS, family=components.COMPONENTS),
}


def entry_of(model: Any) -> tuple[str, Entry]:
    """The id and entry of a model's class; a subclass is another class."""
    for key, entry in REGISTRY.items():
        if type(model) is entry.load_class():
            return key, entry
    for inner in ("best_estimator_", "estimator_"):
        if hasattr(model, inner):
            raise ModelFileError(f"Save the model inside {type(model).__name__}: save(model.{inner}, path).")
    legal = ", ".join(entry.name for entry in REGISTRY.values())
    raise ModelFileError(f"A model file holds one of {legal}. Got {brief(type(model).__qualname__)}.")


def entry_named(key: str) -> Entry:
    """The entry of an id read from a file."""
    if key not in REGISTRY:
        raise ModelFileError(
            f"it holds the estimator {brief(key)}, and this version knows {', '.join(REGISTRY)}. "
            "A newer certifit may read it."
        )
    return REGISTRY[key]
