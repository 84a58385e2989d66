"""The models of certifit, a row each, a line per family. The keys are the names that model files have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certifit.models.adaboost import about as adaboost
from certifit.models.adaboost_r2 import about as adaboost_r2
from certifit.models.boosting import about as boosting
from certifit.models.calibrated import about as calibrated
from certifit.models.discriminant import about as discriminant
from certifit.models.ensembles import about as ensembles
from certifit.models.forest import about as forest
from certifit.models.glm import about as glm
from certifit.models.huber import about as huber
from certifit.models.kernel import about as kernel
from certifit.models.lasso import about as lasso
from certifit.models.learner import Learner, Words, how_sure
from certifit.models.least_squares import about as least_squares
from certifit.models.linear_svm import about as linear_svm
from certifit.models.local import about as local
from certifit.models.naive_bayes import about as naive_bayes
from certifit.models.network import about as network
from certifit.models.pca import about as pca
from certifit.models.perceptron import about as perceptron
from certifit.models.quantile import about as quantile
from certifit.models.svm import about as svm
from certifit.models.trees import about as trees

if TYPE_CHECKING:
    from certifit.models.certificate import Certificate

FAMILIES: tuple[tuple[Learner, ...], ...] = (
    least_squares.ROWS,
    lasso.ROWS,
    huber.ROWS,
    quantile.ROWS,
    kernel.ROWS,
    local.ROWS,
    network.ROWS,
    discriminant.ROWS,
    naive_bayes.ROWS,
    glm.ROWS,
    perceptron.ROWS,
    svm.ROWS,
    linear_svm.ROWS,
    trees.ROWS,
    adaboost.ROWS,
    adaboost_r2.ROWS,
    boosting.ROWS,
    forest.ROWS,
    pca.ROWS,
)
LEARNERS = {row.key: row for family in FAMILIES for row in family}
# Models that are made of models. Selection and reports see them as they see estimators of other libraries.
COMPOSITES = {row.key: row for row in (*ensembles.ROWS, *calibrated.ROWS)}
PUBLIC = LEARNERS | COMPOSITES
STORED = PUBLIC | {row.key: row for row in calibrated.PARTS}  # what a model file can hold, parts of models too


def kind_of_proof(words: Words, exact: str | None, certificate: Certificate) -> str:
    """Which kind of proof a fit has, in words. A later verification adds nothing to a fit or its file."""
    sure = how_sure(words.goal.is_derived, getattr(certificate, "is_local", False))
    if sure != "proven":
        return f"none: {'an estimate' if sure == 'estimated' else 'its numbers were computed again'} in float64"
    return f"float64, with an allowance for rounding{'; certifit verify --exact leaves none open' if exact else ''}"
