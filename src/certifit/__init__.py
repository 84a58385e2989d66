"""certifit: classical machine learning that proves its answers.

Names are loaded on first use, so `import certifit` and `certifit --help` cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# the module that holds them -> public names
_MODULES = {
    "models.linear": (
        "LinearRegression",
        "Ridge",
    ),
    "models.sparse": (
        "Lasso",
        "ElasticNet",
    ),
    "models.robust": ("HuberRegressor",),
    "models.glm": (
        "GLM",
        "GammaRegressor",
        "PoissonRegressor",
    ),
    "models.logistic": ("LogisticRegression",),
    "models.perceptron": ("Perceptron",),
    "models.one_vs_rest": ("OneVsRestClassifier",),
    "models.components": ("PCA",),
    "models.penalties": ("alpha_from_C",),
    "models.generative": ("GaussianDiscriminant",),
    "models.naive_bayes": ("GaussianNB",),
    "models.count_naive_bayes": (
        "BernoulliNB",
        "MultinomialNB",
    ),
    "solvers.stochastic": (
        "SGD",
        "AveragedSGD",
        "MiniBatch",
    ),
    "families": (
        "Gaussian",
        "families",
    ),
    "maps": (
        "Polynomial",
        "Functions",
        "TableEncoder",
        "TextBinarizer",
    ),
    "selection.splits": (
        "Folds",
        "Bootstrap",
        "HoldOut",
    ),
    "selection.cross_validated": ("CrossValidated",),
    "selection.intervals": ("jackknife_plus",),
    "evaluation.intervals": (
        "Estimate",
        "clopper_pearson",
        "bootstrap_interval",
    ),
    "evaluation.confusion": ("ConfusionMatrix",),
    "evaluation.class_scores": (
        "confusion_matrix",
        "accuracy_score",
        "balanced_accuracy_score",
        "precision_score",
        "recall_score",
        "fbeta_score",
        "f1_score",
    ),
    "evaluation.probabilities": (
        "log_loss",
        "brier_score_loss",
        "Calibration",
        "calibration",
    ),
    "evaluation.errors": (
        "mean_squared_error",
        "root_mean_squared_error",
        "mean_absolute_error",
        "r2_score",
        "explained_variance_score",
        "mean_tweedie_deviance",
        "mean_poisson_deviance",
        "mean_gamma_deviance",
        "d2_tweedie_score",
    ),
    "evaluation.bounds": ("bounds",),
    "evaluation.displays.boundary": ("BoundaryDisplay",),
    "evaluation.displays.confusion": ("ConfusionMatrixDisplay",),
    "evaluation.displays.calibration": ("CalibrationDisplay",),
    "evaluation.displays.components": (
        "ScreeDisplay",
        "BiplotDisplay",
    ),
    "data.files": (
        "scan_csv",
        "scan_parquet",
        "scan_svmlight",
    ),
    "data.streams": ("from_arrow",),
    "data.engines.dask": ("from_dask",),
    "modelfile": (
        "save",
        "load",
        "verify",
    ),
    "runtime": ("memory", "threads"),
    "evaluation.ranking": (
        "roc_auc_score",
        "roc_curve",
        "precision_recall_curve",
        "average_precision_score",
        "compare_auc",
    ),
    "evaluation.displays.ranking": (
        "RocCurveDisplay",
        "PrecisionRecallDisplay",
    ),
    "selection.information": ("MutualInformationFilter",),
    "selection.information_display": ("MutualInformationDisplay",),
    "selection.curves": (
        "cross_validate",
        "learning_curve",
        "validation_curve",
    ),
    "evaluation.bias_variance": ("bias_variance",),
    "selection.displays_curves": (
        "LearningCurveDisplay",
        "ValidationCurveDisplay",
    ),
    "evaluation.displays.bias_variance": ("BiasVarianceDisplay",),
    "selection.class_validation": ("class_validation",),
    "selection.leaderboard": ("leaderboard",),
    "selection.wrappers": (
        "ForwardSelection",
        "BackwardSelection",
    ),
    "selection.display_path": ("SelectionPathDisplay",),
    "evaluation.displays.convergence": ("ConvergenceDisplay",),
    "evaluation.displays.path": ("PathDisplay",),
    "evaluation.displays.influence": ("InfluenceDisplay",),
    "evaluation.displays.coefficients": ("CoefficientDisplay",),
    "optimise.kkt": ("check_kkt",),
    "optimise.minimise": ("minimize",),
    "optimise.zero": ("find_zero",),
    "solvers.conjugate_gradient": ("ConjugateGradient",),
    "solvers.gradient_descent": ("GradientDescent",),
    "solvers.newton": ("Newton",),
    "solvers.quasi_newton": (
        "BFGS",
        "LBFGS",
    ),
    "losses.user": ("Loss",),
}
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "BFGS",
    "GLM",
    "LBFGS",
    "PCA",
    "SGD",
    "AveragedSGD",
    "BackwardSelection",
    "BernoulliNB",
    "BiasVarianceDisplay",
    "BiplotDisplay",
    "Bootstrap",
    "BoundaryDisplay",
    "Calibration",
    "CalibrationDisplay",
    "CoefficientDisplay",
    "ConfusionMatrix",
    "ConfusionMatrixDisplay",
    "ConjugateGradient",
    "ConvergenceDisplay",
    "CrossValidated",
    "ElasticNet",
    "Estimate",
    "Folds",
    "ForwardSelection",
    "Functions",
    "GammaRegressor",
    "Gaussian",
    "GaussianDiscriminant",
    "GaussianNB",
    "GradientDescent",
    "HoldOut",
    "HuberRegressor",
    "InfluenceDisplay",
    "Lasso",
    "LearningCurveDisplay",
    "LinearRegression",
    "LogisticRegression",
    "Loss",
    "MiniBatch",
    "MultinomialNB",
    "MutualInformationDisplay",
    "MutualInformationFilter",
    "Newton",
    "OneVsRestClassifier",
    "PathDisplay",
    "Perceptron",
    "PoissonRegressor",
    "Polynomial",
    "PrecisionRecallDisplay",
    "Ridge",
    "RocCurveDisplay",
    "ScreeDisplay",
    "SelectionPathDisplay",
    "TableEncoder",
    "TextBinarizer",
    "ValidationCurveDisplay",
    "accuracy_score",
    "alpha_from_C",
    "average_precision_score",
    "balanced_accuracy_score",
    "bias_variance",
    "bootstrap_interval",
    "bounds",
    "brier_score_loss",
    "calibration",
    "check_kkt",
    "class_validation",
    "clopper_pearson",
    "compare_auc",
    "confusion_matrix",
    "cross_validate",
    "d2_tweedie_score",
    "explained_variance_score",
    "f1_score",
    "families",
    "fbeta_score",
    "find_zero",
    "from_arrow",
    "from_dask",
    "jackknife_plus",
    "leaderboard",
    "learning_curve",
    "load",
    "log_loss",
    "mean_absolute_error",
    "mean_gamma_deviance",
    "mean_poisson_deviance",
    "mean_squared_error",
    "mean_tweedie_deviance",
    "memory",
    "minimize",
    "precision_recall_curve",
    "precision_score",
    "r2_score",
    "recall_score",
    "roc_auc_score",
    "roc_curve",
    "root_mean_squared_error",
    "save",
    "scan_csv",
    "scan_parquet",
    "scan_svmlight",
    "threads",
    "validation_curve",
    "verify",
]

if TYPE_CHECKING:
    from certifit import families
    from certifit.data.engines.dask import from_dask
    from certifit.data.files import scan_csv, scan_parquet, scan_svmlight
    from certifit.data.streams import from_arrow
    from certifit.evaluation import bias_variance, bounds
    from certifit.evaluation.class_scores import (
        accuracy_score,
        balanced_accuracy_score,
        confusion_matrix,
        f1_score,
        fbeta_score,
        precision_score,
        recall_score,
    )
    from certifit.evaluation.confusion import ConfusionMatrix
    from certifit.evaluation.displays.bias_variance import BiasVarianceDisplay
    from certifit.evaluation.displays.boundary import BoundaryDisplay
    from certifit.evaluation.displays.calibration import CalibrationDisplay
    from certifit.evaluation.displays.coefficients import CoefficientDisplay
    from certifit.evaluation.displays.components import BiplotDisplay, ScreeDisplay
    from certifit.evaluation.displays.confusion import ConfusionMatrixDisplay
    from certifit.evaluation.displays.convergence import ConvergenceDisplay
    from certifit.evaluation.displays.influence import InfluenceDisplay
    from certifit.evaluation.displays.path import PathDisplay
    from certifit.evaluation.displays.ranking import PrecisionRecallDisplay, RocCurveDisplay
    from certifit.evaluation.errors import (
        d2_tweedie_score,
        explained_variance_score,
        mean_absolute_error,
        mean_gamma_deviance,
        mean_poisson_deviance,
        mean_squared_error,
        mean_tweedie_deviance,
        r2_score,
        root_mean_squared_error,
    )
    from certifit.evaluation.intervals import Estimate, bootstrap_interval, clopper_pearson
    from certifit.evaluation.probabilities import Calibration, brier_score_loss, calibration, log_loss
    from certifit.evaluation.ranking import (
        average_precision_score,
        compare_auc,
        precision_recall_curve,
        roc_auc_score,
        roc_curve,
    )
    from certifit.families import Gaussian
    from certifit.losses.user import Loss
    from certifit.maps import Functions, Polynomial, TableEncoder, TextBinarizer
    from certifit.modelfile import load, save, verify
    from certifit.models.components import PCA
    from certifit.models.count_naive_bayes import BernoulliNB, MultinomialNB
    from certifit.models.generative import GaussianDiscriminant
    from certifit.models.glm import GLM, GammaRegressor, PoissonRegressor
    from certifit.models.linear import LinearRegression, Ridge
    from certifit.models.logistic import LogisticRegression
    from certifit.models.naive_bayes import GaussianNB
    from certifit.models.one_vs_rest import OneVsRestClassifier
    from certifit.models.penalties import alpha_from_C
    from certifit.models.perceptron import Perceptron
    from certifit.models.robust import HuberRegressor
    from certifit.models.sparse import ElasticNet, Lasso
    from certifit.optimise.kkt import check_kkt
    from certifit.optimise.minimise import minimize
    from certifit.optimise.zero import find_zero
    from certifit.runtime import memory, threads
    from certifit.selection import class_validation, leaderboard
    from certifit.selection.cross_validated import CrossValidated
    from certifit.selection.curves import cross_validate, learning_curve, validation_curve
    from certifit.selection.display_path import SelectionPathDisplay
    from certifit.selection.displays_curves import LearningCurveDisplay, ValidationCurveDisplay
    from certifit.selection.information import MutualInformationFilter
    from certifit.selection.information_display import MutualInformationDisplay
    from certifit.selection.intervals import jackknife_plus
    from certifit.selection.splits import Bootstrap, Folds, HoldOut
    from certifit.selection.wrappers import BackwardSelection, ForwardSelection
    from certifit.solvers.conjugate_gradient import ConjugateGradient
    from certifit.solvers.gradient_descent import GradientDescent
    from certifit.solvers.newton import Newton
    from certifit.solvers.quasi_newton import BFGS, LBFGS
    from certifit.solvers.stochastic import SGD, AveragedSGD, MiniBatch


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'certifit' has no attribute {name!r}")
    module = import_module(f"certifit.{_PUBLIC[name]}")
    value = getattr(module, name, module)  # a name that its module does not hold is the module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
