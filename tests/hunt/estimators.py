"""The models under the hunt: how a problem is made for each, and which truth it is compared with.

A model family joins the hunt by a row in ESTIMATORS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import certifit as cf
from tests.hunt import generate as make
from tests.hunt import options
from tests.hunt.class_truth import ComponentsTruth, CountTruth, GaussianTruth, PerceptronTruth
from tests.hunt.derived_truth import LocalTruth, TreeTruth, VoteTruth
from tests.hunt.exact import examine_exact
from tests.hunt.generate import Problem, Random, chance
from tests.hunt.huber_truth import HuberTruth
from tests.hunt.judge import Record, examine
from tests.hunt.kernel_truth import KernelComponentsTruth, KernelStepsTruth, KernelTruth
from tests.hunt.margin_truth import HardMarginTruth, LinearMarginTruth, MarginTruth
from tests.hunt.quantile_truth import QuantileTruth
from tests.hunt.score_truth import NamedTruth, ScoreTruth, SoftmaxTruth
from tests.hunt.truth import KinkedTruth, SquaresTruth, Truth

MOST_MARGIN_ROWS = 14
MOST_KERNEL_ROWS = 10  # whose eigenvalues are found in many bits


@dataclass(frozen=True)
class Estimator:
    """problem: of a random generator; model: of a problem's parameters; truth: of the problem and the fitted model.

    options: what a problem may have beside that, by a generator of its own.
    """

    name: str
    problem: Callable[[Random], Problem]
    model: Callable[..., Any]
    truth: Callable[[Problem, Any], Truth | None]
    options: Callable[[Random, Problem], None] = options.nothing

    def drawn(self, seed: int, case: int) -> tuple[Random, Problem]:
        """The problem of a case, and the generator that goes on from it."""
        rng = np.random.default_rng([seed, case])
        problem = self.problem(rng)
        self.options(np.random.default_rng([seed, case, 1]), problem)
        return rng, problem

    def run(self, seed: int, case: int, exact: bool = False) -> Record:
        """One case. exact: the fit's exact proof is made too."""
        rng, problem = self.drawn(seed, case)
        beside = examine_exact if exact else None
        return examine(case, self.name, problem, self.model(**problem.parameters), self.truth, rng, beside=beside)


def _least_squares(rng: Random) -> Problem:
    return make.regression(rng, {})


def _ridge(rng: Random) -> Problem:
    alpha = rng.choice([None, 0.0, 1e-30, 1e-20, 1e-10, 1e-4, 0.1, 10.0, 1e10])
    problem = make.regression(rng, {"alpha": None if alpha is None else float(alpha)})
    return problem


def _sparse(rng: Random, names: tuple[str, ...]) -> Problem:
    alpha = float(rng.choice([1e-8, 1e-3, 0.03, 0.3, 1.0, 10.0]))
    problem = make.regression(rng, {"alpha": alpha})
    d = problem.rows.shape[1]
    if "l1_ratio" in names:
        problem.parameters["l1_ratio"] = float(rng.choice([0.1, 0.5, 0.9, 1.0]))
    if chance(rng, 0.2):
        problem.parameters["penalty_factors"] = [float(f) for f in rng.choice([0.0, 0.5, 1.0, 3.0], size=d)]
    if chance(rng, 0.25):
        high = float(rng.choice([0.1, 1.0, np.inf]))
        problem.parameters["bounds"] = (float(rng.choice([0.0, -0.5])), high)
    if chance(rng, 0.5):  # a penalty that matters in the units of the target
        problem.parameters["alpha"] = float(alpha * max(np.std(problem.y), 1e-300))
        if not np.isfinite(problem.parameters["alpha"]):
            problem.parameters["alpha"] = alpha
    return problem


def _penalised(rng: Random, parameters: dict[str, Any], d: int, bounds: bool = True) -> None:
    """A penalty, its mix, factors and bounds."""
    parameters["alpha"] = float(rng.choice([0.0, 0.0, 1e-12, 1e-4, 0.01, 0.1, 1.0]))
    if chance(rng, 0.35):
        parameters["l1_ratio"] = float(rng.choice([0.3, 1.0]))
    if chance(rng, 0.1):
        parameters["penalty_factors"] = [float(f) for f in rng.choice([0.0, 0.5, 1.0, 3.0], size=d)]
    if bounds and chance(rng, 0.1):
        parameters["bounds"] = (float(rng.choice([0.0, -0.5])), float(rng.choice([0.1, 1.0, np.inf])))


def _logistic(rng: Random) -> Problem:
    problem = make.classification(rng, {})
    _penalised(rng, problem.parameters, problem.rows.shape[1])
    if chance(rng, 0.15):
        problem.parameters["fit_intercept"] = False
    return problem


def _softmax(rng: Random) -> Problem:
    alpha = float(rng.choice([0.0, 1e-12, 1e-4, 0.01, 0.1, 1.0]))
    problem = make.classification(rng, {"alpha": alpha}, int(rng.integers(3, 5)), most_columns=3)
    if alpha > 0 and chance(rng, 0.35):
        problem.parameters["l1_ratio"] = float(rng.choice([0.3, 1.0]))
    if chance(rng, 0.15):
        problem.parameters["bounds"] = (float(rng.choice([0.0, -0.5])), float(rng.choice([0.1, 1.0, np.inf])))
    if chance(rng, 0.15):
        factors = rng.choice([0.0, 0.5, 1.0, 3.0], size=problem.rows.shape[1])
        problem.parameters["penalty_factors"] = [float(f) for f in factors]
    if chance(rng, 0.15):
        problem.parameters["fit_intercept"] = False
    return problem


def _family(*pairs: tuple[Any, str | None]) -> Callable[[Random], Problem]:
    def problem(rng: Random) -> Problem:
        family, link = pairs[rng.integers(len(pairs))]
        name = getattr(family, "name", family)
        found = make.generalised(rng, {"family": family, "link": link}, name)
        if chance(rng, 0.4):
            _penalised(rng, found.parameters, found.rows.shape[1], bounds=link is None)
        return found

    return problem


def _named(family: str) -> Callable[[Random], Problem]:
    def problem(rng: Random) -> Problem:
        found = make.generalised(rng, {}, family)
        _penalised(rng, found.parameters, found.rows.shape[1])
        return found

    return problem


def _huber(rng: Random) -> Problem:
    problem = make.regression(rng, {}, most_columns=4)
    parameters = problem.parameters
    parameters["scale"] = ["joint", "joint", "mad", "number"][rng.integers(4)]
    if parameters["scale"] == "number":
        spread = float(np.std(problem.y))
        usual = spread if 0 < spread < 1e200 else 1.0
        parameters["scale"] = float(np.clip(usual * 10.0 ** rng.uniform(-3, 1), 1e-300, 1e300))
    parameters["delta"] = float(rng.choice([1.35, 1.01, 2.5, 1.5]))
    if chance(rng, 0.3):
        parameters["alpha"] = float(rng.choice([1e-20, 1e-6, 0.01, 1.0]))
    return problem


def _kernel_ridge(rng: Random) -> Problem:
    alpha = rng.choice([None, 1e-12, 1e-8, 1e-4, 0.1, 10.0, 1e10])
    problem = make.regression(rng, {"alpha": None if alpha is None else float(alpha)}, most_columns=4)
    problem.parameters["kernel"] = _kernel(rng, problem)
    return problem


def _kernel(rng: Random, problem: Problem) -> cf.kernels.Kernel | None:
    spread = float(np.std(problem.rows))
    usual = spread if 0 < spread < 1e200 else 1.0
    width = float(np.clip(usual * 10.0 ** rng.uniform(-1, 2), 1e-300, 1e300))
    kernel = (None, cf.kernels.Gaussian(width), cf.kernels.Linear(), cf.kernels.Polynomial(int(rng.integers(2, 4))))
    return kernel[rng.integers(4)]


def _kernel_steps(rng: Random) -> Problem:
    problem = make.regression(rng, {"max_iter": int(rng.integers(1, 30))}, most_columns=4)
    few = slice(0, MOST_KERNEL_ROWS)
    problem.X, problem.y, problem.weights = problem.X[few], problem.y[few], None
    problem.parameters = {key: value for key, value in problem.parameters.items() if key == "max_iter"}
    problem.parameters |= {"updates": str(rng.choice(["batch", "rows"])), "kernel": _kernel(rng, problem)}
    return problem


def _few_rows(problem: Problem) -> None:
    few = slice(0, MOST_MARGIN_ROWS)
    weights = None if problem.weights is None else problem.weights[few]
    if weights is not None and not weights.max() > 0:
        weights = None
    problem.X, problem.y, problem.weights = problem.X[few], problem.y[few], weights


def _margins(rng: Random, problem: Problem) -> Problem:
    """Few rows of a problem, with a kernel."""
    _few_rows(problem)
    problem.parameters["kernel"] = _kernel(rng, problem)
    if chance(rng, 0.15):
        problem.parameters["fit_intercept"] = False
    return problem


def _linear_margins(rng: Random) -> Problem:
    alpha = rng.choice([None, 1e-12, 1e-4, 0.01, 0.1, 1.0, 1e4])
    problem = make.classification(rng, {"alpha": None if alpha is None else float(alpha)})
    _few_rows(problem)
    loss = str(rng.choice(["hinge", "squared_hinge"]))
    solvers = ("interior-point", "coordinate", "sgd") if loss == "hinge" else ("newton", "coordinate")
    problem.parameters |= {"loss": loss, "solver": "auto" if chance(rng, 0.5) else str(rng.choice(solvers))}
    if chance(rng, 0.15):
        problem.parameters["fit_intercept"] = False
    return problem


def _margin_classes(rng: Random) -> Problem:
    alpha = rng.choice([None, 1e-12, 1e-4, 0.01, 0.1, 1.0, 1e4])
    return _margins(rng, make.classification(rng, {"alpha": None if alpha is None else float(alpha)}))


def _margin_numbers(rng: Random) -> Problem:
    problem = _margins(rng, make.regression(rng, {}, most_columns=4))
    spread = float(np.std(problem.y))
    unit = spread if 0 < spread < 1e200 else 1.0
    problem.parameters["epsilon"] = unit * float(rng.choice([0.0, 0.01, 0.1, 1.0, 3.0]))
    alpha = rng.choice([None, 1e-8, 1e-3, 0.1, 10.0])
    problem.parameters["alpha"] = None if alpha is None else float(alpha / unit)
    return problem


def _hard_margins(rng: Random) -> Problem:
    problem = _margins(rng, make.classification(rng, {}))
    problem.weights = None
    return problem


def _tree(problem: Callable[[Random, dict[str, Any]], Problem]) -> Callable[[Random], Problem]:
    def grown(rng: Random) -> Problem:
        drawn = problem(rng, {"max_depth": [None, 1, 2, 4][rng.integers(4)]})
        if chance(rng, 0.2):
            drawn.parameters["min_samples_leaf"] = 3
        drawn.parameters.pop("fit_intercept", None)
        return drawn

    return grown


def _stumps(rng: Random) -> Problem:
    return make.classification(rng, {"n_estimators": int(rng.integers(1, 12))}, most_columns=3)


def _local(rng: Random) -> Problem:
    problem = make.regression(rng, {}, most_columns=3)
    few = slice(0, MOST_KERNEL_ROWS)
    problem.X, problem.y = problem.X[few], problem.y[few]
    weights = None if problem.weights is None else problem.weights[few]
    problem.weights = weights if weights is None or weights.max() > 0 else None
    problem.parameters = {
        "tau": float(rng.choice([0.1, 0.5, 1.0, 3.0, 100.0])),
        "terms": str(rng.choice(["constant", "linear"])),
    }
    if chance(rng, 0.3):
        problem.parameters["weights"] = "tricube"
    return problem


def _kernel_components(rng: Random) -> Problem:
    n, d = make.shape_of(rng, 4, MOST_KERNEL_ROWS)
    X, tags = make.design(rng, n, d)
    problem = Problem(make.dressed(rng, X, tags), None, make.weights_of(rng, n, tags), {}, tags)
    problem.parameters["kernel"] = _kernel(rng, problem)
    if chance(rng, 0.5):
        problem.parameters["n_components"] = int(rng.integers(1, n + 1))
    return problem


def _quantile(rng: Random) -> Problem:
    problem = make.regression(rng, {"quantile": float(rng.choice([0.5, 0.1, 0.25, 0.9, 0.99]))}, most_columns=4)
    if chance(rng, 0.4):
        spread = float(np.std(problem.y))
        unit = spread if chance(rng, 0.5) and 0 < spread < 1e200 else 1.0
        problem.parameters["alpha"] = float(rng.choice([1e-12, 1e-3, 0.03, 0.3])) * unit
    if chance(rng, 0.15):
        problem.parameters["fit_intercept"] = False
    return problem


def _priors(rng: Random, problem: Problem, name: str) -> None:
    if chance(rng, 0.1):
        n_classes = len(np.unique(problem.y))
        problem.parameters[name] = [0.5, 0.5] if n_classes == 2 else [0.25, 0.25, 0.5]


def _discriminant(rng: Random) -> Problem:
    problem = make.classification(rng, {}, int(rng.integers(2, 4)))
    problem.parameters["covariance"] = str(rng.choice(["shared", "class", "diagonal"]))
    if chance(rng, 0.25):
        problem.parameters["shrinkage"] = float(rng.choice([0.1, 0.5, 1e-6]))
    _priors(rng, problem, "priors")
    return problem


def _gaussian_naive_bayes(rng: Random) -> Problem:
    problem = make.classification(rng, {}, int(rng.integers(2, 4)))
    if chance(rng, 0.4):
        problem.parameters["var_smoothing"] = float(rng.choice([0.0, 1e-12, 1e-3]))
    _priors(rng, problem, "priors")
    return problem


def _words(rng: Random) -> Problem:
    problem = make.word_counts(rng, {})
    problem.parameters["alpha"] = float(rng.choice([1.0, 1.0, 0.5, 1e-10, 0.0, 100.0]))
    _priors(rng, problem, "class_prior")
    return problem


def _components(rng: Random) -> Problem:
    n, d = make.shape_of(rng, 5, 25)
    X, tags = make.design(rng, n, d)
    weights = make.weights_of(rng, n, tags)
    parameters: dict[str, Any] = {}
    if chance(rng, 0.4):
        parameters["n_components"] = int(rng.integers(1, d + 1))
    if chance(rng, 0.15):
        parameters["center"] = False
    if chance(rng, 0.2):
        parameters["standardize"] = True
    if chance(rng, 0.5):
        parameters["ddof"] = 0
    return Problem(make.dressed(rng, X, tags), None, weights, parameters, tags)


def _wide_components(rng: Random) -> Problem:
    """More columns than rows: copies of a few columns in other units, with some noise."""
    n, d = int(rng.integers(2, 8)), int(rng.integers(257, 262))
    few, tags = make.design(rng, n, 5)
    with np.errstate(over="ignore"):
        X = few[:, rng.integers(5, size=d)] * rng.choice([1.0, -0.5, 1e-3, 1e3], size=d)
    if not np.isfinite(X).all():
        X = few[:, rng.integers(5, size=d)]
    if chance(rng, 0.5):
        X = X * (1 + rng.choice([1e-12, 1e-3]) * rng.normal(size=X.shape))
    parameters: dict[str, Any] = {"n_components": int(rng.integers(1, n + 1))} if chance(rng, 0.5) else {}
    for name, value in (("center", False), ("standardize", True), ("ddof", 0)):
        if chance(rng, 0.25):
            parameters[name] = value
    return Problem(make.dressed(rng, X, tags), None, make.weights_of(rng, n, tags), parameters, tags)


def _perceptron(rng: Random) -> Problem:
    problem = make.classification(rng, {"max_iter": 100})
    problem.weights = None
    if chance(rng, 0.3):
        problem.parameters["delta"] = float(rng.choice([0.1, 1.0]))
    return problem


NEGATIVE_BINOMIALS = [(cf.families.NegativeBinomial(alpha=alpha), None) for alpha in (1e-8, 0.01, 0.5, 1.0, 30.0, 1e8)]
POISSONS = [("poisson", link) for link in (None, "identity", "sqrt")]
GAMMAS = [("gamma", None), ("gamma", "inverse")]
INVERSE_GAUSSIANS = [("inverse-gaussian", link) for link in ("inverse-squared", "inverse")]
TWEEDIES = [(cf.families.Tweedie(power=power), None) for power in (1 + 1e-9, 1.01, 1.1, 1.5, 1.9, 1.999)]
BERNOULLIS = [(family, link) for family in ("bernoulli", "binomial") for link in (None, "probit", "cloglog")]

ROWS = (
    Estimator("LinearRegression", _least_squares, cf.LinearRegression, SquaresTruth),
    Estimator("Ridge", _ridge, cf.Ridge, SquaresTruth, options.standardised),
    Estimator("Lasso", lambda rng: _sparse(rng, ()), cf.Lasso, KinkedTruth, options.standardised),
    Estimator("ElasticNet", lambda rng: _sparse(rng, ("l1_ratio",)), cf.ElasticNet, KinkedTruth, options.standardised),
    Estimator("HuberRegressor", _huber, cf.HuberRegressor, HuberTruth, options.standardised),
    Estimator("KernelRidge", _kernel_ridge, cf.KernelRidge, KernelTruth),
    Estimator("QuantileRegressor", _quantile, cf.QuantileRegressor, QuantileTruth, options.standardised),
    Estimator("LogisticRegression", _logistic, cf.LogisticRegression, ScoreTruth, options.for_two_classes),
    Estimator("Softmax", _softmax, cf.LogisticRegression, SoftmaxTruth, options.for_classes),
    Estimator("PoissonRegressor", _named("poisson"), cf.PoissonRegressor, NamedTruth, options.for_scores),
    Estimator("GammaRegressor", _named("gamma"), cf.GammaRegressor, NamedTruth, options.for_scores),
    Estimator("GLM Bernoulli", _family(*BERNOULLIS), cf.GLM, ScoreTruth, options.for_scores),
    Estimator("GLM Poisson", _family(*POISSONS), cf.GLM, ScoreTruth, options.for_scores),
    Estimator("GLM Gamma", _family(*GAMMAS), cf.GLM, ScoreTruth, options.for_scores),
    Estimator("GLM inverse Gaussian", _family(*INVERSE_GAUSSIANS), cf.GLM, ScoreTruth, options.for_scores),
    Estimator("GLM negative binomial", _family(*NEGATIVE_BINOMIALS), cf.GLM, ScoreTruth, options.for_scores),
    Estimator("GLM Tweedie", _family(*TWEEDIES), cf.GLM, ScoreTruth, options.for_scores),
    Estimator("GLM Gaussian", _family(("gaussian", None)), cf.GLM, ScoreTruth, options.for_scores),
    Estimator("GaussianDiscriminant", _discriminant, cf.GaussianDiscriminant, GaussianTruth, options.standardised),
    Estimator("GaussianNB", _gaussian_naive_bayes, cf.GaussianNB, GaussianTruth),
    Estimator("BernoulliNB", _words, cf.BernoulliNB, CountTruth),
    Estimator("MultinomialNB", _words, cf.MultinomialNB, CountTruth),
    Estimator("PCA", _components, cf.PCA, ComponentsTruth, options.by_products),
    Estimator("PCA by rows", _wide_components, cf.PCA, ComponentsTruth, options.by_products),
    Estimator("Perceptron", _perceptron, cf.Perceptron, PerceptronTruth),
    Estimator("KernelPCA", _kernel_components, cf.KernelPCA, KernelComponentsTruth),
    Estimator("KernelLMS", _kernel_steps, cf.KernelLMS, KernelStepsTruth),
    Estimator("SVC", _margin_classes, cf.SVC, MarginTruth),
    Estimator("SVR", _margin_numbers, cf.SVR, MarginTruth),
    Estimator("LinearSVC", _linear_margins, cf.LinearSVC, LinearMarginTruth),
    Estimator("HardMarginSVC", _hard_margins, cf.HardMarginSVC, HardMarginTruth),
    Estimator("Classification tree", _tree(make.classification), cf.DecisionTreeClassifier, TreeTruth),
    Estimator("Regression tree", _tree(make.regression), cf.DecisionTreeRegressor, TreeTruth),
    Estimator("AdaBoost", _stumps, cf.AdaBoostClassifier, VoteTruth),
    Estimator("LocallyWeightedRegression", _local, cf.LocallyWeightedRegression, LocalTruth),
)
ESTIMATORS = {row.name: row for row in ROWS}


def estimator_of(case: int) -> Estimator:
    """Cases go round the table."""
    return ROWS[case % len(ROWS)]
