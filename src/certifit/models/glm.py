"""Generalised linear models of a quantity: Poisson, Gamma, and any family with any link."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from certifit.certificates.certificate import Certificate
from certifit.certificates.generalised import certify
from certifit.data.columns import Array
from certifit.data.files import write_predictions
from certifit.data.gate import fit_source, predict_rows, predict_source
from certifit.data.source import Block, Source
from certifit.losses.scores import GammaLog, PoissonLog, ScoreLoss
from certifit.models.mapped import unchanged_on_error
from certifit.models.score_model import ScoreModel
from certifit.runtime import one_blas_thread


class GeneralisedRegressor(RegressorMixin, ScoreModel):
    """E y = mean(z), z = offset + b + x'w."""

    @one_blas_thread
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> Self:
        """Fit to rows X and target y (arrays, sparse matrices, data frames), or to a scan that carries its target.

        sample_weight: one number a row; weight 2 is the row twice.
        offset: one number a row, added to its score. exposure: one number > 0 a row, whose log is added to the offset;
        y stays a count.
        """
        self._check_parameters()
        with unchanged_on_error(self):
            source = fit_source(self, X, y, sample_weight, offset, exposure)
            self.target_name_ = source.target if isinstance(X, Source) else str(getattr(y, "name", None) or "y")
            self._fit_scores(source, stacklevel=4)
        return self

    def predict(self, X: Any, out: Any = None, *, offset: Any = None, exposure: Any = None) -> Any:
        """E y for every row of an array, a frame or a scan. Without an offset or exposure they are 0 and 1: a rate.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        check_is_fitted(self)
        if isinstance(X, Source):
            parts: Any = predict_source(self, X, offset, exposure).map(self.means)
        else:
            parts = [self.means(predict_rows(self, X, offset, exposure))]
        if out is not None:
            write_predictions(parts, out)
            return None
        whole = list(parts)
        return np.concatenate(whole) if whole else np.zeros(0)

    @one_blas_thread
    def certify(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> Certificate:
        """The certificate of this model recomputed on data; no solver takes part."""
        check_is_fitted(self)
        source = fit_source(self.reader(), X, y, sample_weight, offset, exposure)
        predict_source(self, source)
        task = self._score_task(self._mapped(source), self.alpha_)
        return certify(task, self._weights(), self._tolerance())

    def scores(self, block: Block) -> Array:
        """E y of the rows of a block of the source that the model was fitted to."""
        return self.means(block)

    def means(self, block: Block) -> Array:
        """E y of the rows of a block of the source that the model was fitted to."""
        return self._loss().mean(self._row_scores(block))

    @abstractmethod
    def _loss(self) -> ScoreLoss:
        """The loss of a score."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = not bool(self._loss().is_legal(np.array([-1.0]))[0])
        return tags


class PoissonRegressor(GeneralisedRegressor):
    """Counts: E y = exp(offset + b + x'w), y of Poisson's law.

    minimise over w, b:   sum_i weight_i [ e^z_i - y_i z_i ] / sum_i weight_i  (as half the deviance)
                          + alpha sum_j f_j ( l1_ratio |w_j| + (1 - l1_ratio)/2 w_j^2 )

    certificate:  self-concordance, relative to the objective; with an L1 penalty or bounds the duality gap

    Parameters
    ----------
    alpha : float >= 0, default 1.0
        Strength of the penalty. For p-values use GLM("poisson"), which has none.
    l1_ratio : float from 0 to 1, default 0.0
        Share of the L1 penalty: 0 is ridge, 1 the lasso.
    fit_intercept : bool, default True
        The intercept is never penalised.
    penalty_factors, bounds : as for Lasso
    solver : "auto" or the name of a solver
    basis, encoder : as for LinearRegression
    tol : float >= 0 or None, default None
        Largest relative excess of the objective that counts as converged; None is 1e-8, or 1e-3 for a solver that
        learns row by row.
    step_tol : float >= 0, default 0
        Stop also where a step is shorter than this.
    max_iter : int >= 1, default 1000

    Attributes
    ----------
    coef_, intercept_, alpha_, certificate_, history_, n_iter_, rank_, condition_ : as for Ridge

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = cf.PoissonRegressor(alpha=0.0).fit(X, [1.0, 2.0, 4.0, 8.0])
    >>> np.exp(model.coef_).round(8)
    array([2.])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        l1_ratio: float = 0.0,
        *,
        fit_intercept: bool = True,
        penalty_factors: Any = None,
        bounds: Any = None,
        solver: Any = "auto",
        basis: Any = None,
        encoder: Any = None,
        tol: float | None = None,
        step_tol: float = 0.0,
        max_iter: int = 1000,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.solver = solver
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.step_tol = step_tol
        self.max_iter = max_iter

    def _loss(self) -> ScoreLoss:
        return PoissonLog()


class GammaRegressor(PoissonRegressor):
    """Positive quantities whose spread grows with their mean: E y = exp(offset + b + x'w), y of a Gamma law.

    minimise over w, b:   sum_i weight_i [ y_i e^-z_i + z_i ] / sum_i weight_i  (as half the deviance)
                          + alpha sum_j f_j ( l1_ratio |w_j| + (1 - l1_ratio)/2 w_j^2 )

    certificate:  self-concordance, relative to the objective; with an L1 penalty or bounds the duality gap

    Parameters and attributes are those of PoissonRegressor.

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = cf.GammaRegressor(alpha=0.0).fit(X, [1.0, 2.0, 4.0, 8.0])
    >>> np.exp(model.coef_).round(8)
    array([2.])
    """

    def _loss(self) -> ScoreLoss:
        return GammaLog()
