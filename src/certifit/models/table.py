"""The models of certifit, a row each, a line per family. The keys are the names that model files have."""

from __future__ import annotations

from certifit.models.about import discriminant, glm, huber, lasso, least_squares, naive_bayes, pca, perceptron
from certifit.models.ensembles import about as ensembles
from certifit.models.learner import Learner
from certifit.models.quantile import about as quantile
from certifit.models.trees import about as trees

FAMILIES: tuple[tuple[Learner, ...], ...] = (
    least_squares.ROWS,
    lasso.ROWS,
    huber.ROWS,
    quantile.ROWS,
    discriminant.ROWS,
    naive_bayes.ROWS,
    glm.ROWS,
    perceptron.ROWS,
    trees.ROWS,
    pca.ROWS,
)
LEARNERS = {row.key: row for family in FAMILIES for row in family}
# Models that are made of models. Selection and reports see them as they see estimators of other libraries.
COMPOSITES = {row.key: row for row in ensembles.ROWS}
STORED = LEARNERS | COMPOSITES  # what a model file can hold
