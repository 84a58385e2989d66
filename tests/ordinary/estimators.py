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
from tests.hunt.score_truth import NamedTruth, ScoreTruth, SoftmaxTruth
from tests.hunt.truth import KinkedTruth, SquaresTruth, Truth
from tests.ordinary.columns import Random
from tests.ordinary.judge import examined
from tests.ordinary.problems import Ordinary, drawn

GLM_CASES, OTHER_CASES = 1000, 300


class NearVertexTruth(QuantileTruth):
    """The rows that the fit meets stand first: the simplex method starts at them and needs few steps."""

    def __init__(self, problem: Ordinary, model: Any) -> None:
        super().__init__(problem, model)
        z = np.append(model.coef_, [model.intercept_] * self.has_intercept)
        rows = np.array([[float(int(a.p) / int(a.q)) for a in row] for row in self.rows])
        target = np.array([float(int(a.p) / int(a.q)) for a in self.target])
        order = np.argsort(np.abs(target - rows @ z), kind="stable")
        for name in ("rows", "target", "upper", "lower"):
            setattr(self, name, [getattr(self, name)[i] for i in order])


@dataclass(frozen=True)
class Estimator:
    """parameters: of a generator and the kind of target; truth: None where nothing but crashes and time is judged."""

    name: str
    model: Callable[..., Any]
    target: str
    parameters: Callable[[Random], dict[str, Any]]
    truth: Callable[[Any, Any], Truth | None] | None
    most_rows: int = 220
    most_columns: int = 28
    n_cases: int = OTHER_CASES

    def problem(self, seed: int, case: int) -> Ordinary:
        """The problem of a case: of its numbers and the estimator's name alone."""
        rng, other = np.random.default_rng([seed, zlib.crc32(self.name.encode()), case]).spawn(2)
        problem = drawn(rng, self.target, self.parameters(other), self.most_rows, self.most_columns)
        if self.model in (cf.Perceptron,):
            problem.weights = None
        return problem

    def run(self, seed: int, case: int) -> dict[str, Any]:
        """The record of a case."""
        problem = self.problem(seed, case)
        model = self.model(**problem.parameters)
        return {"estimator": self.name, "case": case} | examined(problem, model, self.truth or (lambda *_: None))


def one_of(**values: tuple[Any, ...]) -> Callable[[Random], dict[str, Any]]:
    """Parameters drawn from lists; None leaves the default."""

    def parameters(rng: Random) -> dict[str, Any]:
        drawn_values = {name: options[rng.integers(len(options))] for name, options in values.items()}
        return {name: value for name, value in drawn_values.items() if value is not None}

    return parameters


SCALED = (None, None, True)
FAMILIES = (
    "gaussian", "poisson", "gamma", "bernoulli", "inverse-gaussian", cf.families.NegativeBinomial(alpha=0.5),
    cf.families.Tweedie(power=1.5),
)  # fmt: skip


def _families(target: str) -> tuple[Any, ...]:
    return {
        "number": FAMILIES[:1],
        "count": (FAMILIES[1], *FAMILIES[5:]),
        "positive": (FAMILIES[2], FAMILIES[2]),
        "two": FAMILIES[3:4],
    }[target]


def _glm(name: str, truth: Any, **given: Any) -> tuple[Estimator, ...]:
    rows = []
    for target, label in (("number", "Gaussian"), ("count", "counts"), ("positive", "Gamma"), ("two", "Bernoulli")):
        parameters = one_of(family=_families(target), standardize=SCALED, **given)
        rows.append(Estimator(f"{name} {label}", cf.GLM, target, parameters, truth, n_cases=GLM_CASES // 4))
    return tuple(rows)


STRENGTHS = (1e-4, 1e-3, 0.01, 0.1, 1.0)
ROWS = (
    Estimator("LinearRegression", cf.LinearRegression, "number", one_of(), SquaresTruth, n_cases=GLM_CASES),
    Estimator("Ridge", cf.Ridge, "number", one_of(alpha=(None, 1e-6, *STRENGTHS, 100.0), standardize=SCALED), SquaresTruth, n_cases=GLM_CASES),
    Estimator("Lasso", cf.Lasso, "number", one_of(alpha=STRENGTHS, standardize=SCALED), KinkedTruth, n_cases=GLM_CASES),
    Estimator("ElasticNet", cf.ElasticNet, "number", one_of(alpha=STRENGTHS, l1_ratio=(0.1, 0.5, 0.9), standardize=SCALED), KinkedTruth, n_cases=GLM_CASES),
    Estimator("HuberRegressor", cf.HuberRegressor, "number", one_of(alpha=(0.0, 0.0, 1e-3, 0.1), scale=(None, None, "mad"), standardize=SCALED), HuberTruth, n_cases=GLM_CASES),
    Estimator("QuantileRegressor", cf.QuantileRegressor, "number", one_of(quantile=(0.5, 0.1, 0.9), alpha=(0.0, 0.0, 0.01), standardize=SCALED), NearVertexTruth, 120, 16, GLM_CASES),
    Estimator("LogisticRegression, alpha 0", cf.LogisticRegression, "two", one_of(alpha=(0.0,)), ScoreTruth, n_cases=GLM_CASES),
    Estimator("LogisticRegression, L2 or L1", cf.LogisticRegression, "two", one_of(alpha=(None, *STRENGTHS), l1_ratio=(0.0, 0.0, 0.5, 1.0), standardize=SCALED, class_weight=(None, None, "balanced")), ScoreTruth, n_cases=GLM_CASES),
    Estimator("Softmax, alpha 0", cf.LogisticRegression, "classes", one_of(alpha=(0.0,)), SoftmaxTruth, 160, 16, GLM_CASES),
    Estimator("Softmax, L2 or L1", cf.LogisticRegression, "classes", one_of(alpha=(None, *STRENGTHS), l1_ratio=(0.0, 0.0, 0.5, 1.0), standardize=SCALED), SoftmaxTruth, 160, 16, GLM_CASES),
    Estimator("PoissonRegressor", cf.PoissonRegressor, "count", one_of(alpha=(0.0, 0.0, *STRENGTHS), standardize=SCALED), NamedTruth, n_cases=GLM_CASES),
    Estimator("GammaRegressor", cf.GammaRegressor, "positive", one_of(alpha=(0.0, 0.0, *STRENGTHS), standardize=SCALED), NamedTruth, n_cases=GLM_CASES),
    *_glm("GLM", ScoreTruth),
    *_glm("GLM L1", ScoreTruth, alpha=STRENGTHS, l1_ratio=(0.5, 1.0, 1.0)),
    Estimator("LinearSVC", cf.LinearSVC, "two", one_of(alpha=(None, *STRENGTHS), loss=("hinge", "squared_hinge")), LinearMarginTruth, 120, n_cases=GLM_CASES),
    Estimator("KernelRidge", cf.KernelRidge, "number", one_of(alpha=(None, *STRENGTHS)), KernelTruth, 60),
    Estimator("SVC", cf.SVC, "two", one_of(alpha=(None, *STRENGTHS)), MarginTruth, 80),
    Estimator("SVR", cf.SVR, "number", one_of(alpha=(None, *STRENGTHS)), MarginTruth, 60),
    Estimator("GaussianDiscriminant", cf.GaussianDiscriminant, "classes", one_of(covariance=("shared", "class", "diagonal"), shrinkage=(None, None, 0.1)), GaussianTruth, 160, 12),
    Estimator("GaussianNB", cf.GaussianNB, "classes", one_of(), GaussianTruth),
    Estimator("BernoulliNB", cf.BernoulliNB, "words", one_of(alpha=(None, 0.5)), CountTruth),
    Estimator("MultinomialNB", cf.MultinomialNB, "words", one_of(alpha=(None, 0.5)), CountTruth),
    Estimator("PCA", cf.PCA, "none", one_of(n_components=(None, 1, 2), standardize=SCALED), ComponentsTruth, 160, 12),
    Estimator("KernelPCA", cf.KernelPCA, "none", one_of(n_components=(None, 2)), KernelComponentsTruth, 24),
    Estimator("Perceptron", cf.Perceptron, "two", one_of(max_iter=(100,)), PerceptronTruth, 80, 8),
    Estimator("LocallyWeightedRegression", cf.LocallyWeightedRegression, "number", one_of(), LocalTruth, 24, 4),
    Estimator("DecisionTreeClassifier", cf.DecisionTreeClassifier, "classes", one_of(max_depth=(None, 3)), TreeTruth),
    Estimator("DecisionTreeRegressor", cf.DecisionTreeRegressor, "number", one_of(max_depth=(None, 3)), TreeTruth),
    Estimator("AdaBoostClassifier", cf.AdaBoostClassifier, "two", one_of(n_estimators=(10,)), VoteTruth, 80, 12),
    *(
        Estimator(model.__name__, model, target, one_of(**dict.fromkeys(["n_estimators"], (10,))), None)
        for model, target in (
            (cf.AdaBoostRegressor, "number"), (cf.RandomForestClassifier, "classes"), (cf.RandomForestRegressor, "number"),
            (cf.GradientBoostingClassifier, "classes"), (cf.GradientBoostingRegressor, "number"),
        )
    ),
    Estimator("MLPRegressor", cf.MLPRegressor, "number", one_of(hidden_layer_sizes=((8,),), max_iter=(20,)), None),
    Estimator("MLPClassifier", cf.MLPClassifier, "classes", one_of(hidden_layer_sizes=((8,),), max_iter=(20,)), None),
)  # fmt: skip
ESTIMATORS = {row.name: row for row in ROWS}
