"""The closed table of estimators: the only classes a model file can name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from certifit.modelfile import components, counts, gaussian, perceptron, scores
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Family
from certifit.modelfile.linear import LINEAR
from certifit.modelfile.robust import ROBUST
from certifit.modelfile.schema import Check, Spec, brief, one_of, plain, stored
from certifit.modelfile.sparse import PENALTY
from certifit.models.learner import Learner
from certifit.models.table import LEARNERS


@dataclass(frozen=True)
class Entry:
    """A row of the table of models, its family, and what its metadata says beyond that.

    Basis, encoder, penalty factors, bounds and priors are stored apart. switches: parameters that are False unless the
    file has them. named: parameters that may be objects, and that a file can hold where they are names.
    """

    learner: Learner
    family: Family = LINEAR
    own: Mapping[str, Spec] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    named: Mapping[str, Spec] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Spec]:
        """The legal values of every parameter that a file always has."""
        single = {name: stored(param) for name, param in self.learner.params.items() if name not in self.switches}
        return {**single, **self.named}

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
        return self.learner.load()


SWITCHED_ON = Check("true", lambda value: value is True)
_STANDARDIZE = ("standardize",)
_SCORES: dict[str, Any] = {"switches": _STANDARDIZE, "named": {"solver": one_of(*scores.SOLVERS)}}
REGISTRY: Mapping[str, Entry] = {
    "linear_regression": Entry(LEARNERS["linear_regression"]),
    "ridge": Entry(LEARNERS["ridge"], switches=_STANDARDIZE),
    "lasso": Entry(LEARNERS["lasso"], own={"penalty": PENALTY}),
    "elastic_net": Entry(LEARNERS["elastic_net"], own={"penalty": PENALTY}),
    "huber_regressor": Entry(LEARNERS["huber_regressor"], own={"robust": ROBUST}, switches=_STANDARDIZE),
    "gaussian_discriminant": Entry(LEARNERS["gaussian_discriminant"], gaussian.DISCRIMINANT),
    "gaussian_nb": Entry(LEARNERS["gaussian_nb"], gaussian.GAUSSIAN_NAIVE, {"sums": gaussian.SUMS}),
    "bernoulli_nb": Entry(LEARNERS["bernoulli_nb"], counts.BERNOULLI),
    "multinomial_nb": Entry(LEARNERS["multinomial_nb"], counts.MULTINOMIAL),
    "logistic_regression": Entry(LEARNERS["logistic_regression"], scores.family(has_classes=True), **_SCORES),
    "poisson_regressor": Entry(LEARNERS["poisson_regressor"], scores.family(), **_SCORES),
    "gamma_regressor": Entry(LEARNERS["gamma_regressor"], scores.family(), **_SCORES),
    "glm": Entry(LEARNERS["glm"], scores.family(has_law=True), **_SCORES),
    "perceptron": Entry(LEARNERS["perceptron"], perceptron.PERCEPTRON),
    "pca": Entry(LEARNERS["pca"], components.COMPONENTS),
}


def entry_of(model: Any) -> tuple[str, Entry]:
    """The id and entry of a model's class; a subclass is another class."""
    for key, entry in REGISTRY.items():
        if type(model) is entry.load_class():
            return key, entry
    for inner in ("best_estimator_", "estimator_"):
        if hasattr(model, inner):
            raise ModelFileError(f"Save the model inside {type(model).__name__}: save(model.{inner}, path).")
    legal = ", ".join(entry.learner.name for entry in REGISTRY.values())
    raise ModelFileError(f"A model file holds one of {legal}. Got {brief(type(model).__qualname__)}.")


def entry_named(key: str) -> Entry:
    """The entry of an id read from a file."""
    if key not in REGISTRY:
        raise ModelFileError(
            f"it holds the estimator {brief(key)}, and this version knows {', '.join(REGISTRY)}. "
            "A newer certifit may read it."
        )
    return REGISTRY[key]
