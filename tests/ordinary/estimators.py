"""The models under the hunt, their parameters, and which reference they are compared with."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import certifit as cf
from tests.hunt.class_truth import ComponentsTruth, CountTruth, GaussianTruth, PerceptronTruth
from tests.hunt.derived_truth import LocalTruth, TreeTruth, VoteTruth
from tests.hunt.huber_truth import HuberTruth
from tests.hunt.kernel_truth import KernelComponentsTruth, KernelTruth
from tests.hunt.margin_truth import LinearMarginTruth, MarginTruth
from tests.hunt.quantile_truth import QuantileTruth
from tests.hunt.references.numbers import as_float
from tests.hunt.score_truth import NamedTruth, ScoreTruth, SoftmaxTruth
from tests.hunt.truth import KinkedTruth, SquaresTruth
from tests.ordinary.judge import examined
from tests.ordinary.problems import Ordinary, drawn


class NearVertexTruth(QuantileTruth):
    """The rows that the fit meets stand first: the simplex method starts at them and needs few steps."""

    def __init__(self, problem: Ordinary, model: Any) -> None:
        super().__init__(problem, model)
        z = np.append(model.coef_, [model.intercept_] * self.has_intercept)
        fitted = np.array([[as_float(a) for a in row] for row in self.rows]) @ z
        order = np.argsort(np.abs([as_float(a) for a in self.target] - fitted), kind="stable")
        for name in ("rows", "target", "upper", "lower"):
            setattr(self, name, [getattr(self, name)[i] for i in order])


@dataclass(frozen=True)
class Estimator:
    """options: values of parameters to draw from, None for the default; truth: None where nothing is known of it."""

    name: str
    model: Callable[..., Any]
    target: str
    truth: Any
    options: dict[str, Any]
    most_rows: int = 220
    most_columns: int = 28
    n_cases: int = 1000

    def problem(self, seed: int, case: int) -> Ordinary:
        """The problem of a case: of its numbers and the estimator's name alone."""
        rng, other = np.random.default_rng([seed, zlib.crc32(self.name.encode()), case]).spawn(2)
        parameters = {name: values[other.integers(len(values))] for name, values in self.options.items()}
        parameters = {name: value for name, value in parameters.items() if value is not None}
        problem = drawn(rng, self.target, parameters, self.most_rows, self.most_columns)
        problem.weights = None if self.model is cf.Perceptron else problem.weights
        return problem

    def run(self, seed: int, case: int) -> dict[str, Any]:
        """The record of a case."""
        problem = self.problem(seed, case)
        record = examined(problem, self.model(**problem.parameters), self.truth)
        return {"estimator": self.name, "case": case} | record


def linear(name: str, target: str, truth: Any, shape: tuple[int, int] = (220, 28), **options: Any) -> Estimator:
    """A model whose name begins with that of its class."""
    own = name.replace(",", " ").split(maxsplit=1)[0]
    return Estimator(name, getattr(cf, own), target, truth, options, *shape)


def other(name: str, target: str, truth: Any = None, shape: tuple[int, int] = (220, 28), **options: Any) -> Estimator:
    """The same, of 300 cases."""
    return Estimator(name, getattr(cf, name), target, truth, options, *shape, n_cases=300)


STRENGTHS = (1e-4, 1e-3, 0.01, 0.1, 1.0)
SCALED = (None, None, True)
PULLS = {"alpha": (None, *STRENGTHS), "l1_ratio": (0.0, 0.0, 0.5, 1.0), "standardize": SCALED}
FEW = {"n_estimators": (10,)}
COUNTS = ("poisson", cf.families.NegativeBinomial(alpha=0.5), cf.families.Tweedie(power=1.5))
KINDS = (("Gaussian", "number", ("gaussian",)), ("counts", "count", COUNTS), ("Gamma", "positive", ("gamma",) * 2),
         ("Bernoulli", "two", ("bernoulli",)))  # fmt: skip
SOFTMAX, SMALL = "Softmax", (160, 16)
ROWS = (
    linear("LinearRegression", "number", SquaresTruth),
    linear("Ridge", "number", SquaresTruth, alpha=(None, 1e-6, *STRENGTHS, 100.0), standardize=SCALED),
    linear("Lasso", "number", KinkedTruth, alpha=STRENGTHS, standardize=SCALED),
    linear("ElasticNet", "number", KinkedTruth, alpha=STRENGTHS, l1_ratio=(0.1, 0.5, 0.9), standardize=SCALED),
    linear("HuberRegressor", "number", HuberTruth, alpha=(0.0, 0.0, 1e-3, 0.1), scale=(None, None, "mad"),
           standardize=SCALED),
    linear("QuantileRegressor", "number", NearVertexTruth, (120, 16), quantile=(0.5, 0.1, 0.9),
           alpha=(0.0, 0.0, 0.01), standardize=SCALED),
    linear("LogisticRegression, alpha 0", "two", ScoreTruth, alpha=(0.0,)),
    linear("LogisticRegression, L2 or L1", "two", ScoreTruth, **PULLS, class_weight=(None, None, "balanced")),
    Estimator("Softmax, alpha 0", cf.LogisticRegression, "classes", SoftmaxTruth, {"alpha": (0.0,)}, *SMALL),
    Estimator("Softmax, L2 or L1", cf.LogisticRegression, "classes", SoftmaxTruth, PULLS, *SMALL),
    linear("PoissonRegressor", "count", NamedTruth, alpha=(0.0, 0.0, *STRENGTHS), standardize=SCALED),
    linear("GammaRegressor", "positive", NamedTruth, alpha=(0.0, 0.0, *STRENGTHS), standardize=SCALED),
    *(linear(f"GLM {kind}", target, ScoreTruth, family=families, standardize=SCALED)
      for kind, target, families in KINDS),
    *(linear(f"GLM L1 {kind}", target, ScoreTruth, family=families, standardize=SCALED, alpha=STRENGTHS,
             l1_ratio=(0.5, 1.0, 1.0)) for kind, target, families in KINDS),
    linear("LinearSVC", "two", LinearMarginTruth, (120, 28), alpha=(None, *STRENGTHS), loss=("hinge", "squared_hinge")),
    other("KernelRidge", "number", KernelTruth, (60, 28), alpha=(None, *STRENGTHS)),
    other("SVC", "two", MarginTruth, (80, 28), alpha=(None, *STRENGTHS)),
    other("SVR", "number", MarginTruth, (60, 28), alpha=(None, *STRENGTHS)),
    other("GaussianDiscriminant", "classes", GaussianTruth, (160, 12), covariance=("shared", "class", "diagonal"),
          shrinkage=(None, None, 0.1)),
    other("GaussianNB", "classes", GaussianTruth),
    other("BernoulliNB", "words", CountTruth, alpha=(None, 0.5)),
    other("MultinomialNB", "words", CountTruth, alpha=(None, 0.5)),
    other("PCA", "none", ComponentsTruth, (160, 12), n_components=(None, 1, 2), standardize=SCALED),
    other("KernelPCA", "none", KernelComponentsTruth, (24, 28), n_components=(None, 2)),
    other("Perceptron", "two", PerceptronTruth, (80, 8), max_iter=(100,)),
    other("LocallyWeightedRegression", "number", LocalTruth, (24, 4)),
    other("DecisionTreeClassifier", "classes", TreeTruth, max_depth=(None, 3)),
    other("DecisionTreeRegressor", "number", TreeTruth, max_depth=(None, 3)),
    other("AdaBoostClassifier", "two", VoteTruth, (80, 12), **FEW),
    *(other(name, "number", **FEW) for name in ("AdaBoostRegressor", "RandomForestRegressor",
                                                "GradientBoostingRegressor")),
    *(other(name, "classes", **FEW) for name in ("RandomForestClassifier", "GradientBoostingClassifier")),
    other("MLPRegressor", "number", hidden_layer_sizes=((8,),), max_iter=(20,)),
    other("MLPClassifier", "classes", hidden_layer_sizes=((8,),), max_iter=(20,)),
)  # fmt: skip
ESTIMATORS = {row.name: row for row in ROWS}
