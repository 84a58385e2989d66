"""The expected squared error of a regression in three parts: noise + bias^2 + variance.

At a point x, over training sets D of one size and new targets y = f*(x) + noise:

    E (y - f(x; D))^2 = E (y - f*(x))^2 + (E_D f(x; D) - f*(x))^2 + E_D (f(x; D) - E_D f(x; D))^2

then averaged over the test points. A sampler draws D again each time, or bootstrap draws of one data set replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from textwrap import wrap
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from certifit.data.columns import Array
from certifit.data.source import Memory, Source
from certifit.data.user_input import n_samples, refuse_nonfinite, taken
from certifit.evaluation.metrics.intervals import drawn_rows, generator
from certifit.evaluation.metrics.rows import numbers
from certifit.models.adapter import learner_of
from certifit.models.parameters import checked_range

Sampler = Callable[[int], tuple[Any, Any]]

FRESH = (
    "Every training set was drawn anew: bias and variance are those of the definition, but for the chance of {n} draws."
)
BOOTSTRAP = (
    "Training sets are bootstrap draws of one data set. Variance is estimated by their spread. How far the fit to "
    "this data set lies from the mean over all data sets is not seen: it stays in bias^2, which comes out too large "
    "by about the variance. For the definition give sampler=, which draws new data sets."
)
_WIDTH = 100  # characters per line of the sentences under a table
TOGETHER = "Without truth=, bias^2 and noise cannot be told apart: bias_squared holds their sum."


def bias_variance(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    X_test: Any = None,
    truth: Any = None,
    y_test: Any = None,
    *,
    sampler: Sampler | None = None,
    noise: Any = None,
    param_name: str | None = None,
    param_range: Iterable[Any] | None = None,
    complexity: Sequence[Any] | None = None,
    n_resamples: int = 100,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> BiasVariance:
    """Noise, bias^2 and variance of the predictions at X_test, for one regressor or against complexity.

    Parameters
    ----------
    estimator : a regressor, or a list of them
    X, y : the data set that bootstrap draws come from: arrays, sparse matrices or data frames. None with a sampler.
    X_test : the points
    truth : f*(X_test), one number per point, or a function that gives it
        Without it only the sum of bias^2 and noise is estimated, from y_test.
    y_test : targets at X_test that no training set holds
    sampler : function seed -> (X, y), a new data set each time, always of one size
    noise : variance of the noise, a number or one per point; default mean of (y_test - truth)^2 where both are given
    param_name, param_range : a parameter of the estimator and its values, from simple to complex
    complexity : numbers or names for a list of estimators, default 1, 2, ...
    n_resamples : int >= 2, default 100
        Training sets. All estimators are fitted to the same ones.
    random_state : int >= 0, default 0
    n_jobs : int or None, default None
        Training sets at the same time.

    Variance divides by n_resamples - 1, and variance / n_resamples is taken off (mean fit - f*)^2: both are unbiased
    over draws, so a small bias^2 may come out a little below 0.

    >>> import numpy as np
    >>> import certifit as cf
    >>> def sampler(seed):
    ...     rng = np.random.default_rng(seed)
    ...     x = rng.uniform(-1, 1, (30, 1))
    ...     return x, np.sin(3 * x[:, 0]) + 0.3 * rng.normal(size=30)
    >>> points = np.linspace(-1, 1, 50)[:, None]
    >>> model = cf.LinearRegression(basis=cf.Polynomial(1))
    >>> options = {"param_name": "basis__degree", "param_range": [1, 3, 5], "noise": 0.09}
    >>> result = bias_variance(model, None, None, points, np.sin(3 * points[:, 0]), sampler=sampler, **options)
    >>> print(result)
    basis__degree  noise    bias^2  variance  error
                1   0.09     0.181    0.0232  0.294
                3   0.09   0.00348    0.0164   0.11
                5   0.09  0.000407    0.0569  0.147
    Every training set was drawn anew: bias and variance are those of the definition, but for the chance
    of 100 draws.
    """
    models, name, values = _models(estimator, param_name, param_range, complexity)
    if not isinstance(n_resamples, Integral) or isinstance(n_resamples, bool) or n_resamples < 3:
        raise ValueError(f"n_resamples must be a whole number >= 3. Got {n_resamples!r}.")
    draw = _draw_anew(X, y, sampler) if sampler is not None else _draw_rows(X, y, models)
    points = Points.of(X_test, truth, y_test, noise)
    predictions = _predictions(models, draw, X_test, points.n, int(n_resamples), random_state, n_jobs)
    sentence = BOOTSTRAP if sampler is None else FRESH.format(n=n_resamples)
    sentence = sentence if points.truth is not None else f"{sentence} {TOGETHER}"
    sampling = "bootstrap" if sampler is None else "fresh"
    return BiasVariance(predictions, points, name, values, sampling, sentence)


class BiasVariance:
    """The parts of the expected squared error, one entry per model.

    bias_squared, variance : means over the points; without the truth bias_squared is bias^2 + noise
    noise : mean over the points; None where it is not known
    error : noise + bias_squared + variance, of what is known
    test_error : mean of (y_test - f(x; D))^2 over points and training sets; None without y_test
    bias_standard_error, variance_standard_error : how far other draws of as many training sets would scatter these
    bias_squared_at, variance_at : models x points. noise_at : points, or None
    mean_prediction : E_D f(x; D), models x points
    name, complexity : what the models differ in, and its values
    has_truth, n_resamples, sampling ("fresh" or "bootstrap"), sentence : what was done, and what it cannot see
    """

    def __init__(
        self, predictions: Array, points: Points, name: str, complexity: list[Any], sampling: str, sentence: str
    ) -> None:
        """predictions: models x training sets x points."""
        n = predictions.shape[1]
        centre = points.y if points.truth is None else points.truth
        self.name, self.complexity, self.sampling, self.sentence = name, complexity, sampling, sentence
        self.n_resamples, self.has_truth = n, points.truth is not None
        self.mean_prediction = predictions.mean(axis=1)
        off = predictions - self.mean_prediction[:, None, :]
        bias = self.mean_prediction - centre
        self.variance_at = (off**2).sum(axis=1) / (n - 1)
        self.bias_squared_at = bias**2 - self.variance_at / n
        self.noise_at = points.noise
        self.variance, self.bias_squared = self.variance_at.mean(axis=1), self.bias_squared_at.mean(axis=1)
        self.noise = None if points.noise is None else float(points.noise.mean())
        self.error = self.bias_squared + self.variance + (self.noise or 0.0)
        squares = None if points.y is None else (predictions - points.y) ** 2
        self.test_error = None if squares is None else squares.mean(axis=(1, 2))
        self.bias_standard_error, self.variance_standard_error = _standard_errors(off, bias)

    @property
    def bias_name(self) -> str:
        """What bias_squared holds."""
        return "bias^2" if self.has_truth else "bias^2 + noise"

    def __repr__(self) -> str:
        at = int(np.argmin(self.error))
        return (
            f"BiasVariance(least error {self.error[at]:.4g} at {self.name} {self.complexity[at]}, "
            f"{self.n_resamples} {self.sampling} training sets)"
        )

    def __str__(self) -> str:
        columns = {self.name: [str(value) for value in self.complexity]}
        if self.noise is not None:
            columns["noise"] = [f"{self.noise:.3g}"] * len(self.complexity)
        parts = {self.bias_name: self.bias_squared, "variance": self.variance, "error": self.error}
        columns |= {name: [f"{value:.3g}" for value in values] for name, values in parts.items()}
        widths = [max(map(len, [name, *texts])) for name, texts in columns.items()]
        lines = [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]
        table = ["  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([*table, *wrap(self.sentence, _WIDTH)])


@dataclass(frozen=True)
class Points:
    """The number of test points, and what is known there."""

    n: int
    truth: Array | None
    y: Array | None
    noise: Array | None

    @staticmethod
    def of(X_test: Any, truth: Any, y_test: Any, noise: Any) -> Points:
        """Checked."""
        if X_test is None:
            raise ValueError("X_test is missing: the points where predictions are compared.")
        if isinstance(X_test, Source):
            raise TypeError("X_test must be an array or a data frame. Got a scan.")
        if truth is None and y_test is None:
            raise ValueError("Give truth, the values f*(X_test), or y_test, targets there: one of them at least.")
        if truth is None and noise is not None:
            raise ValueError("noise needs truth: without it only bias^2 and noise together can be told.")
        n = n_samples(X_test)
        truth = None if truth is None else _of_points(truth(X_test) if callable(truth) else truth, "truth", n)
        y_test = None if y_test is None else _of_points(y_test, "y_test", n)
        if noise is not None:
            noise = _of_points(np.full(n, noise) if np.ndim(noise) == 0 else noise, "noise", n)
            if (noise < 0).any():
                raise ValueError(f"noise is a variance and must be >= 0. Got {noise.min():g}.")
        elif truth is not None and y_test is not None:
            noise = (y_test - truth) ** 2
        return Points(n, truth, y_test, noise)


def _standard_errors(off: Array, bias: Array) -> tuple[Array, Array]:
    """Standard errors of bias^2 and variance, averaged over points, from leaving out each training set b.

    off: f_b - mean f, models x sets x points. Without b the mean moves by -off_b / (n - 1), and the sum of squares
    about it falls by off_b^2 n / (n - 1). Where bias is 0 the mean fit scatters about f* in second order only, which
    leaving out does not see: its variance 2 |C|^2 / n^2 is added, C the covariance of the fits between points.
    """
    n, n_points = off.shape[1:]
    squared_off = (off**2).mean(axis=2)
    cross = np.einsum("mbp,mp->mb", off, bias) / n_points
    variance = (squared_off.sum(axis=1, keepdims=True) - squared_off * n / (n - 1)) / (n - 2)
    squared = (bias**2).mean(axis=1)[:, None] - 2 * cross / (n - 1) + squared_off / (n - 1) ** 2 - variance / (n - 1)
    products = off @ off.transpose(0, 2, 1) / (n_points * (n - 1))  # |C|^2 = |products|^2 n_points^2
    second = 2 * (products**2).sum(axis=(1, 2)) / n**2
    # sqrt((n - 1) / n sum of squares) = sqrt(n - 1) sd
    return np.sqrt((n - 1) * squared.var(axis=1) + second), np.sqrt(n - 1) * variance.std(axis=1)


def _models(
    estimator: Any, param_name: str | None, param_range: Any, complexity: Any
) -> tuple[list[Any], str, list[Any]]:
    """The models, what they differ in, and its values."""
    if (param_name is None) != (param_range is None):
        raise ValueError("param_name and param_range go together. Only one of them was given.")
    several = isinstance(estimator, list | tuple)
    models = list(estimator) if several else [estimator]
    if not models:
        raise ValueError("The list of estimators is empty.")
    for model in models:
        if not hasattr(model, "fit") or not hasattr(model, "predict"):
            raise TypeError(f"estimator must be a regressor or a list of them. Got {model!r}.")
        if is_classifier(model):
            raise TypeError(f"Bias and variance are those of regressors. {type(model).__name__} is a classifier.")
    if param_name is None or param_range is None:
        values = list(range(1, len(models) + 1)) if complexity is None else list(complexity)
        if len(values) != len(models):
            raise ValueError(f"complexity has {len(values)} entries for {len(models)} estimators.")
        return models, "model" if complexity is None else "complexity", values
    if several or complexity is not None:
        raise ValueError("param_range is for one estimator, complexity for a list of them. Use one of the two.")
    return _varied(estimator, param_name, param_range)


def _varied(estimator: Any, param_name: str, param_range: Any) -> tuple[list[Any], str, list[Any]]:
    values = checked_range(estimator, param_name, param_range)
    return [clone(estimator).set_params(**{param_name: value}) for value in values], param_name, values


Draw = Callable[[np.random.Generator], tuple[Any, Any]]


def _draw_anew(X: Any, y: Any, sampler: Any) -> Draw:
    """New data sets, all of one size."""
    if not callable(sampler):
        raise TypeError(f"sampler must be a function seed -> (X, y). Got {sampler!r}.")
    if X is not None or y is not None:
        raise ValueError("A sampler draws X and y itself. Pass X=None and y=None with it.")
    return partial(_sampled, sampler)


def _sampled(sampler: Sampler, rng: np.random.Generator) -> tuple[Any, Any]:
    pair = sampler(int(rng.integers(2**31)))
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"sampler must return a pair (X, y). Got {type(pair).__name__}.")
    return pair


def _draw_rows(X: Any, y: Any, models: Sequence[Any]) -> Draw:
    """Rows of one data set, drawn with repetition."""
    if X is None or y is None:
        raise ValueError("Give X and y to draw rows from, or a sampler that draws new data sets.")
    if isinstance(X, Source):
        raise TypeError("Bootstrap draws need rows in memory. Give arrays or a data frame, not a scan.")
    target = numbers(y, "y")
    n_rows = n_samples(X)
    if len(target) != n_rows:
        raise ValueError(f"y has {len(target)} rows but X has {n_rows}.")
    if n_rows < 2:
        raise ValueError(f"A bootstrap needs at least 2 rows. The data has {n_rows}.")
    if not any(_takes_gaps(model) for model in models):
        _refuse_gaps(X)  # a fit would name the row by its number within a draw
    return partial(_resampled, X, target)


def _resampled(X: Any, y: Array, rng: np.random.Generator) -> tuple[Any, Any]:
    rows = drawn_rows(len(y), rng)
    return taken(X, rows), y[rows]


def _predictions(
    models: Sequence[Any], draw: Draw, X_test: Any, n_points: int, n_resamples: int, random_state: int, n_jobs: Any
) -> Array:
    """Models x training sets x points."""
    from joblib import Parallel, delayed

    jobs = [delayed(_fitted)(models, draw, generator(random_state, b), X_test, n_points) for b in range(n_resamples)]
    results = Parallel(n_jobs=n_jobs)(jobs)
    sizes = {size for size, _ in results}
    if len(sizes) > 1:
        raise ValueError(f"sampler must draw data sets of one size. Got {min(sizes)} to {max(sizes)} rows.")
    return np.stack([np.asarray(predictions) for _, predictions in results], axis=1)


def _fitted(
    models: Sequence[Any], draw: Draw, rng: np.random.Generator, X_test: Any, n_points: int
) -> tuple[int, list[Array]]:
    """The size of a training set, and the predictions of all models fitted to it."""
    X, y = draw(rng)
    rows = []
    for model in models:
        values = np.asarray(clone(model).fit(X, y).predict(X_test), dtype=np.float64)
        if values.shape != (n_points,) or not np.isfinite(values).all():
            what = "values that are not finite" if values.shape == (n_points,) else f"shape {values.shape}"
            raise ValueError(f"{type(model).__name__} must predict one finite number per point. Got {what}.")
        rows.append(values)
    return n_samples(X), rows


def _takes_gaps(model: Any) -> bool:
    return bool(get_tags(model).input_tags.allow_nan) or (learner_of(model).is_ours and model.encoder is not None)


def _refuse_gaps(X: Any) -> None:
    """Name the row and column of the first NaN or infinity of X."""
    values = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if values.ndim == 2 and values.dtype.kind == "f":
        names = getattr(X, "column_names", getattr(X, "columns", None))  # pyarrow; pandas, polars
        refuse_nonfinite(Memory(values, None, names=None if names is None else [str(name) for name in names]))


def _of_points(values: Any, name: str, n: int) -> Array:
    checked: Array = numbers(values, name)
    if len(checked) != n:
        raise ValueError(f"{name} has {len(checked)} rows but X_test has {n}.")
    return checked
