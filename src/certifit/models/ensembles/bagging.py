"""Bagging: copies of any estimator, each fitted to its own sample of the rows, and their mean or their vote."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from certifit.data.columns import Array
from certifit.data.user_input import UserRows, UserTarget, UserWeights, taken
from certifit.minimise.steps import Steps, is_watched
from certifit.models.ensembles.draws import counts_of
from certifit.models.ensembles.rows import CheckedRows, InMemory, class_codes, drawn, fitted
from certifit.models.forest.out_of_bag import OutOfBag, out_of_bag

MOST_ATTEMPTS = 1000  # to draw a sample of more than one class


class Bagging(InMemory):
    """What bagging of classes and of numbers shares."""

    n_estimators: int
    max_samples: float | int
    bootstrap: bool
    random_state: int
    max_time: float | None
    n_jobs: int | None

    def fit(self, X: UserRows, y: UserTarget, sample_weight: UserWeights = None) -> Self:
        """Fit every copy to its own sample of the rows X with targets y; weights count rows."""
        return self._fit(X, y, sample_weight=sample_weight)

    @abstractmethod
    def _answers(self, model: BaseEstimator, X: UserRows) -> Array:
        """What an estimator adds to the mean of all, rows x columns."""

    def _learn(self, rows: CheckedRows) -> None:
        self.estimators_, samples, steps = self._copies(rows)
        weight = float(rows.distinct.weight.sum())
        self.data_ = {"n_rows": int((rows.distinct.kind >= 0).sum()), "sum_weight": weight}
        self._take_names()
        self.history_ = steps.rows
        self.oob_error_, self.oob_interval_ = self._error(rows, samples)
        if self.shortfall:
            warnings.warn(f"NOT certified: {self.shortfall} {steps.reason}", ConvergenceWarning, stacklevel=4)

    def _copies(self, rows: CheckedRows) -> tuple[list[BaseEstimator], list[Array], Steps]:
        """Fitted copies and their samples; where the fit is watched n_jobs at a time, until it is over."""
        takes_weight = has_fit_parameter(self.estimator, "sample_weight")
        n_asked = int(self.n_estimators)
        at_once = effective_n_jobs(self.n_jobs) if is_watched() else n_asked
        models: list[BaseEstimator] = []
        samples: list[Array] = []
        steps = Steps(first=1)
        while len(models) < n_asked and not steps.is_over:
            numbers = range(len(models), min(len(models) + at_once, n_asked))
            samples += [self._sample(rows, number) for number in numbers]
            models += Parallel(n_jobs=self.n_jobs)(
                delayed(fitted)(self._copy(number), *drawn(rows, samples[number], takes_weight)) for number in numbers
            )
            for _ in numbers:
                steps.add()
        return models, samples, steps

    @property
    def shortfall(self) -> str:
        """What was asked for and is not there: copies that max_time left no time for."""
        n_made, n_asked = len(self.estimators_), int(self.n_estimators)
        return "" if n_made >= n_asked else f"{n_made:,} of the {n_asked:,} estimators asked for were fitted."

    def _copy(self, number: int) -> BaseEstimator:
        """A copy of the estimator; one whose random_state is None gets one that follows from that of the bagging."""
        model = clone(self.estimator)
        free = [name for name, value in model.get_params().items() if value is None and _is_random_state(name)]
        return model.set_params(**dict.fromkeys(free, (int(self.random_state) + 1_000_003 * number) % 2**31))

    def _sample(self, rows: CheckedRows, number: int) -> Array:
        """How often each distinct row is in a sample. One that a model cannot be fitted to is drawn again."""
        for attempt in range(MOST_ATTEMPTS):
            place = number + attempt * int(self.n_estimators)
            counts = counts_of(rows.distinct, self.max_samples, self.bootstrap, int(self.random_state), place)
            if self._is_enough(rows.y[rows.distinct.numbers[counts > 0]]):
                return counts
        raise ValueError(f"{MOST_ATTEMPTS} samples of rows had one class each. Raise max_samples.")

    def _is_enough(self, y: Array) -> bool:
        return True

    def _error(self, rows: CheckedRows, samples: list[Array]) -> tuple[float | None, tuple[float, float] | None]:
        """The error on rows that some estimators did not draw, by the mean of these; None where there is none."""
        distinct = rows.distinct
        total, n_out = None, np.zeros(len(distinct.numbers))
        for model, counts in zip(self.estimators_, samples, strict=True):
            out = np.flatnonzero(counts == 0)
            if not len(out):
                continue
            answers = self._answers(model, taken(rows.X, distinct.numbers[out]))
            if total is None:
                total = np.zeros((len(n_out), answers.shape[1]))
            total[out] += answers
            n_out[out] += 1
        if total is None:
            return None, None
        n_classes, weight = len(getattr(self, "classes_", ())), distinct.weight / distinct.weight.max()
        means, y = total / np.maximum(n_out, 1)[:, None], rows.y[distinct.numbers]
        error, low, high = out_of_bag(OutOfBag(), means, n_out, y, weight, n_classes).error(n_classes > 0)
        return error, None if low is None or high is None else (low, high)

    def _gate_again(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> list[object]:
        """The checked sample of every estimator, drawn again."""
        if None in self.certificates_:
            raise AttributeError(f"{type(self.estimator).__name__} has no certificates.")
        rows = self._rows(X, y, roles.get("sample_weight"), reset=False)
        return [*self._sources(rows)]

    def _sources(self, rows: CheckedRows) -> Iterator[object]:
        takes_weight = has_fit_parameter(self.estimator, "sample_weight")
        for number, model in enumerate(self.estimators_):
            X, y, weight = drawn(rows, self._sample(rows, number), takes_weight)
            roles = {} if weight is None else {"sample_weight": weight}
            yield model._gate_again(X, y, **roles)

    def _mean(self, X: UserRows) -> Array:
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        total = self._answers(self.estimators_[0], X)
        for model in self.estimators_[1:]:
            total = total + self._answers(model, X)
        return np.asarray(total / len(self.estimators_))


def _has_probabilities(model: BaggingClassifier) -> bool:
    return model.voting == "soft"


class BaggingClassifier(ClassifierMixin, Bagging):
    """The mean of the probabilities, or the vote, of copies of a classifier, each fitted to its own draws of the rows.

    voting "soft":  p(k | x) = mean over the copies of p(k | x); the class of the largest mean is predicted
    voting "hard":  the class that most copies predict, the first of equal ones

    certificate:  that of the copy that says least; verify draws the rows again. No claim about other samples

    Rows that are equal in every column and in the class are one row with their weights added, and rows are numbered by
    a hash of their values: neither the order of rows nor copies instead of weights change a sample. A copy gets each
    row that was drawn once, with the number of its draws as its weight, or the row that often where its fit takes no
    sample_weight. There are as many draws as distinct rows of positive weight, each with a chance in proportion to the
    weight, whatever its unit. A sample of one class only is drawn again.

    Parameters
    ----------
    estimator : a classifier, ours or of any library with scikit-learn's contract
    n_estimators : int >= 1, default 10
    max_samples : float in (0, 1] or int >= 1, default 1.0
        Draws of a copy: a share of the number of distinct rows of positive weight, or a number.
    bootstrap : bool, default True
        Draw with replacement; False draws every distinct row at most once.
    voting : "soft" or "hard", default "soft"
        "soft" needs predict_proba.
    random_state : int >= 0, default 0
    max_time : float > 0 or None, default None
        Seconds after which no further copy is fitted; a copy that iterates stops then too. What was fitted is kept and
        not certified as a whole.
    n_jobs : int or None, default None
        Copies that are fitted at a time; None is one.

    Attributes
    ----------
    classes_ : the labels, sorted
    estimators_ : the fitted copies; their classes are the places of labels in classes_
    oob_error_, oob_interval_ : the share of wrong classes on rows that at least 10 copies did not draw, by these
        copies, and a 95 % interval for it; None where such rows hold less than 95 % of the weight: some 50 copies do
    certificates_ : a certificate each, None of an estimator that has none; certificate_ is the one that says least

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = cf.BaggingClassifier(cf.DecisionTreeClassifier(), 50).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.certificate_.holds, model.oob_error_ < 0.1
    (True, True)
    """

    classes_: Array

    def __init__(
        self,
        estimator: BaseEstimator,
        n_estimators: int = 10,
        *,
        max_samples: float | int = 1.0,
        bootstrap: bool = True,
        voting: str = "soft",
        random_state: int = 0,
        max_time: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.voting = voting
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs

    def predict(self, X: UserRows) -> Array:
        """The class of the largest mean probability, or of most votes; the first of equal ones."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self._mean(X).argmax(axis=1)])

    @available_if(_has_probabilities)
    def predict_proba(self, X: UserRows) -> Array:
        """The mean of the probabilities of the copies, in the order of classes_."""
        return self._mean(X)

    def _targets(self, y: UserTarget, weight: Array | None, is_fitted: bool) -> Array:
        return class_codes(self, y, weight, is_fitted)

    def _is_enough(self, y: Array) -> bool:
        return bool((y != y[0]).any())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.voting == "soft" and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"voting='soft' needs predict_proba, and {type(self.estimator).__name__} has none. Use voting='hard'."
            )

    def _answers(self, model: BaseEstimator, X: UserRows) -> Array:
        places = np.asarray(model.classes_).astype(np.int64)
        if self.voting == "soft":
            shares = model.predict_proba(X)
            answers = np.zeros((len(shares), len(self.classes_)))
            answers[:, places] = shares
            return answers
        return np.eye(len(self.classes_))[np.asarray(model.predict(X)).astype(np.int64)]


class BaggingRegressor(RegressorMixin, Bagging):
    """The mean of copies of a regressor, each fitted to its own draws of the rows.

    prediction = mean over the copies of their predictions

    Everything else is as for BaggingClassifier.

    Parameters
    ----------
    estimator : a regressor, ours or of any library with scikit-learn's contract
    n_estimators, max_samples, bootstrap, random_state, max_time, n_jobs : as for BaggingClassifier

    Attributes
    ----------
    estimators_, certificates_ : as for BaggingClassifier
    oob_error_, oob_interval_ : the mean squared error on rows that at least 10 copies did not draw, by these copies,
        and a 95 % interval for it; None where such rows hold less than 95 % of the weight: some 50 copies do

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = cf.BaggingRegressor(cf.DecisionTreeRegressor(), 50).fit(X, np.sin(X[:, 0]) + X[:, 1])
    >>> model.certificate_.holds, model.oob_error_ < 0.2
    (True, True)
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        n_estimators: int = 10,
        *,
        max_samples: float | int = 1.0,
        bootstrap: bool = True,
        random_state: int = 0,
        max_time: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs

    def predict(self, X: UserRows) -> Array:
        """The mean of the predictions of the copies."""
        return np.ascontiguousarray(self._mean(X)[:, 0])

    def _targets(self, y: UserTarget, weight: Array | None, is_fitted: bool) -> Array:
        if isinstance(y, np.ma.MaskedArray):
            raise TypeError("y is a masked array, whose mask would be lost. Drop the masked rows.")
        values = column_or_1d(np.asarray(y), dtype=np.float64, warn=True)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise ValueError(f"Input y contains NaN, infinity or a missing value: row {wrong[0]}. Remove such rows.")
        return np.asarray(values)

    def _answers(self, model: BaseEstimator, X: UserRows) -> Array:
        return np.asarray(model.predict(X), dtype=np.float64)[:, None]


def _is_random_state(name: str) -> bool:
    return name == "random_state" or name.endswith("__random_state")
