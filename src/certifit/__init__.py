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
    "models.linear": ("alpha_from_C",),
    "minimise.stochastic": (
        "SGD",
        "AveragedSGD",
        "MiniBatch",
    ),
    "mathematics.families": (
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
    "selection.folds.splits": (
        "Folds",
        "Bootstrap",
        "HoldOut",
    ),
    "selection.compare.cross_validated": ("CrossValidated",),
    "selection.compare.intervals": ("jackknife_plus",),
    "evaluation.metrics.intervals": (
        "Estimate",
        "clopper_pearson",
        "bootstrap_interval",
    ),
    "evaluation.metrics.confusion": (
        "ConfusionMatrix",
        "confusion_matrix",
        "accuracy_score",
        "balanced_accuracy_score",
        "precision_score",
        "recall_score",
        "fbeta_score",
        "f1_score",
    ),
    "evaluation.metrics.probabilities": (
        "log_loss",
        "brier_score_loss",
        "Calibration",
        "calibration",
    ),
    "evaluation.metrics.errors": (
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
    "evaluation.pictures.boundary": (
        "BoundaryDisplay",
        "BoundariesDisplay",
    ),
    "evaluation.pictures.network": (
        "ApproximationDisplay",
        "Waves",
        "EpochsDisplay",
        "HiddenUnitsDisplay",
    ),
    "evaluation.pictures.local": ("LocalFitDisplay", "LocalWidthsDisplay", "TauDisplay"),
    "evaluation.pictures.dependence": (
        "FittedCurveDisplay",
        "DependenceDisplay",
        "ImportanceDisplay",
    ),
    "evaluation.pictures.contours": (
        "DescentDisplay",
        "NewtonDisplay",
        "PenaltyDisplay",
    ),
    "evaluation.pictures.formulas": (
        "DensityDisplay",
        "LinkDisplay",
        "LossDisplay",
        "GaussianDisplay",
    ),
    "evaluation.pictures.components": (
        "ProjectionDisplay",
        "ScreeDisplay",
        "BiplotDisplay",
    ),
    "selection.pictures": (
        "FoldsDisplay",
        "LearningCurveDisplay",
        "ValidationCurveDisplay",
    ),
    "evaluation.pictures.confusion_and_calibration": (
        "ConfusionMatrixDisplay",
        "CalibrationDisplay",
    ),
    "data.files": (
        "scan_arrow",
        "scan_csv",
        "scan_excel",
        "scan_json",
        "scan_parquet",
        "scan_svmlight",
    ),
    "data.arrow": ("from_arrow",),
    "data.engines.dask": ("from_dask",),
    "modelfile": (
        "save",
        "load",
        "verify",
    ),
    "models.callbacks": ("progress",),
    "models.peers.audit": ("audit",),
    "models.peers.convert": (
        "from_sklearn",
        "to_sklearn",
    ),
    "evaluation.margins": ("margins",),
    "runtime": (
        "memory",
        "threads",
        "work",
    ),
    "evaluation.metrics.ranking": (
        "roc_auc_score",
        "roc_curve",
        "precision_recall_curve",
        "average_precision_score",
        "compare_auc",
    ),
    "evaluation.pictures.roc_and_precision": (
        "RocCurveDisplay",
        "PrecisionRecallDisplay",
    ),
    "selection.information.filter": ("MutualInformationFilter", "MutualInformationDisplay"),
    "selection.compare.curves": (
        "cross_validate",
        "learning_curve",
        "validation_curve",
    ),
    "evaluation.bias_variance": ("bias_variance",),
    "evaluation.importance": (
        "permutation_importance",
        "deciding_words",
    ),
    "evaluation.independence": ("conditional_independence",),
    "evaluation.pictures.trees": (
        "TreeDisplay",
        "BoostingDisplay",
        "MarginDisplay",
    ),
    "evaluation.pictures.kernels": (
        "AlphaWidthDisplay",
        "FeatureSpaceDisplay",
        "GramDisplay",
        "WidthDisplay",
    ),
    "evaluation.pictures.machines": (
        "AlphaMarginDisplay",
        "SmoDisplay",
        "SupportVectorDisplay",
    ),
    "evaluation.pictures.bias_variance": ("BiasVarianceDisplay",),
    "selection.folds.class_validation": ("class_validation",),
    "selection.compare.leaderboard": ("leaderboard",),
    "selection.compare.explain": ("explain",),
    "selection.features.wrappers": (
        "ForwardSelection",
        "BackwardSelection",
    ),
    "selection.features.features": ("SelectionPathDisplay",),
    "evaluation.pictures.convergence": ("ConvergenceDisplay",),
    "evaluation.pictures.coefficients": (
        "PathDisplay",
        "CoefficientDisplay",
    ),
    "evaluation.pictures.influence": ("InfluenceDisplay",),
    "models.local.lowess": ("lowess",),
    "minimise.function": ("derivatives", "is_convex"),
    "minimise.kkt": ("check_kkt",),
    "minimise.minimum": ("minimize",),
    "minimise.zero": ("find_zero",),
    "models.lasso.solver": ("CoordinateDescent",),
    "minimise.gradient_descent": ("ConjugateGradient", "GradientDescent"),
    "minimise.newton": ("BFGS", "LBFGS", "Newton"),
    "mathematics.losses.scores": ("EpsilonInsensitiveLoss", "ExponentialLoss", "HingeLoss", "SquaredHingeLoss"),
    "mathematics.losses.user": ("Loss",),
    "mathematics.penalties": ("Penalty",),
}


@cache
def _public() -> dict[str, str]:
    """Every public name, and the module that holds it."""
    from certifit.models.table import PUBLIC  # not before it is asked for: an import costs nothing

    names = {name: module for module, names in _MODULES.items() for name in names}
    return names | {learner.name: learner.module for learner in PUBLIC.values()}


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
