"""certifit: classical machine learning that proves its answers.

Names are loaded on first use, so `import certifit` and `certifit --help` cost nothing.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# the module that holds them -> public names; those of the models are in their table. __init__.pyi has all: make stub
_MODULES = {
    "models.penalties": ("alpha_from_C",),
    "solvers.stochastic": (
        "SGD",
        "AveragedSGD",
        "MiniBatch",
    ),
    "families": (
        "Gaussian",
        "families",
    ),
    "mathematics.kernels": ("kernels",),
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
    "runtime": ("memory", "threads", "work"),
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


@cache
def _public() -> dict[str, str]:
    """Every public name, and the module that holds it."""
    from certifit.models.table import STORED  # not before it is asked for: an import costs nothing

    names = {name: module for module, names in _MODULES.items() for name in names}
    return names | {learner.name: learner.module for learner in STORED.values()}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_public())
    if name not in _public():
        raise AttributeError(f"module 'certifit' has no attribute {name!r}")
    module = import_module(f"certifit.{_public()[name]}")
    value = getattr(module, name, module)  # a name that its module does not hold is the module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_public()])
