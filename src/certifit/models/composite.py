"""Models that are made of other models.

More than two classes by classifiers of two: each class against the rest.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d

from certifit.data.columns import Array
from certifit.data.labels import coded, one_type, read_labels
from certifit.data.source import Block, Source
from certifit.data.source_wrappers import OneAgainstRest
from certifit.data.user_input import UserRows, UserTarget, UserWeights, class_source, predict_source
from certifit.data.view import Target
from certifit.minimise.steps import full_row
from certifit.models.adapter import learner_of
from certifit.models.certificate import Certificate, least_certain
from certifit.models.classifier import Classifier
from certifit.models.estimator import Estimator, RowsT, name_of_target
from certifit.models.table import COMPOSITES


@dataclass(frozen=True)
class Unfinished(Certificate):
    """The certificate of an ensemble that was stopped on its way; what was made is right."""

    fault: str = ""

    def sentences(self) -> list[str]:
        """The certificate in words."""
        return [f"NOT certified: {self.fault}"]


class Composite(MetaEstimatorMixin, Estimator[RowsT]):
    """An estimator of estimators, ours or of any library: `estimator` is what is copied, `estimators_` are fitted.

    Its certificate is the one of them that says least. A model writes `_gate`, `_learn`, which sets estimators_, and
    `_gate_again`: the checked rows of every estimator.
    """

    estimator: BaseEstimator
    estimators_: list[BaseEstimator]

    @property
    def certificates_(self) -> list[Certificate | None]:
        """The certificates of the estimators; None of one that has none."""
        check_is_fitted(self)
        return [getattr(model, "certificate_", None) for model in self.estimators_]

    @property
    def certificate_(self) -> Certificate:
        """The certificate that says least: one that does not hold, else the one nearest to its tolerance."""
        return self._joint(self.certificates_)

    def _check_parameters(self) -> None:
        """Refuse values that are not legal, by the table of models of models."""
        for row in (row for row in COMPOSITES.values() if isinstance(self, row.load())):
            for name, param in row.params.items():
                param.check(name, getattr(self, name))

    def certify(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Certificate:
        """The certificate that says least of the estimators, recomputed on data; no solver takes part."""
        check_is_fitted(self)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.certify_source(self._gate_again(X, y, **weight))

    def certify_source(self, sources: Sequence[object]) -> Certificate:
        """The certificate that says least of the estimators on checked rows, those of `_gate_again`."""
        pairs = zip(self.estimators_, sources, strict=True)
        return self._joint([model.certify_source(source) for model, source in pairs])

    @abstractmethod
    def _gate_again(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> Sequence[object]:
        """Checked rows with a target for every estimator, of the form of those of the fit."""

    def _joint(self, certificates: list[Certificate | None]) -> Certificate:
        stated = [certificate for certificate in certificates if certificate is not None]
        if not stated:
            raise AttributeError(f"{type(self.estimator).__name__} has no certificates.")
        least = least_certain(stated)
        if self.shortfall and least.holds:
            return Unfinished(
                least.claim, least.theorem, math.inf, least.tolerance, least.rounding, fault=self.shortfall
            )
        return least

    @property
    def shortfall(self) -> str:
        """What was asked for and is not there; empty where nothing is missing."""
        return ""

    def _handed_on(self, params: Mapping[str, object]) -> dict[str, object]:
        """What of fit's own arguments the estimators' fit gets."""
        handed = {name: value for name, value in params.items() if value is not None}
        if sklearn.get_config()["enable_metadata_routing"]:
            handed = dict(process_routing(self, "fit", **handed).estimator.fit)
        return handed

    def _take_names(self) -> None:
        """What the estimators keep of the rows and their columns, as the first one has it."""
        first = self.estimators_[0]
        self.history_ = [full_row(k + 1) for k in range(len(self.estimators_))]
        for name in ("n_features_in_", "feature_names_in_", "column_names_", "encoder_"):
            self.__dict__.pop(name, None)
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        if hasattr(first, "data_"):
            self.data_ = {name: first.data_[name] for name in ("n_rows", "sum_weight")}

    def get_metadata_routing(self) -> MetadataRouter:
        """What fit hands on to the estimator."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


def _has_probabilities(model: OneVsRestClassifier) -> bool:
    return hasattr(model.estimators_[0] if hasattr(model, "estimators_") else model.estimator, "predict_proba")


def _has_scores(model: OneVsRestClassifier) -> bool:
    return hasattr(model.estimators_[0] if hasattr(model, "estimators_") else model.estimator, "decision_function")


@dataclass(frozen=True)
class CodedRows:
    """Rows as the user gave them, the code of every row (empty for a scan), and what else the estimators' fit gets."""

    X: UserRows
    codes: Array
    handed: dict[str, Any]


class OneVsRestClassifier(ClassifierMixin, Composite[CodedRows]):
    """A classifier of two classes for every class against the rest; the class of the largest score is predicted.

    Scores are decision_function of the estimators, or else their probabilities. Of two classes one estimator is
    fitted, of the second class. Certificates are those of the estimators.

    Parameters
    ----------
    estimator : a classifier of two classes, ours or of any library with scikit-learn's contract
    n_jobs : int or None, default None
        Estimators that are fitted at a time; None is one.

    Attributes
    ----------
    classes_ : the labels, sorted
    estimators_ : a fitted copy for each class
    certificates_ : a certificate each, None of an estimator that has none; certificate_ is the one that says least

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    >>> model = cf.OneVsRestClassifier(cf.Perceptron()).fit(X, ["a", "b", "c"])
    >>> model.predict([[0.0, 8.0], [8.0, 1.0]])
    array(['b', 'c'], dtype='<U1')
    >>> [certificate.n_updates for certificate in model.certificates_]
    [5, 3, 3]
    """

    classes_: Array

    def __init__(self, estimator: BaseEstimator, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    def fit(self, X: UserRows, y: UserTarget = None, **params: Any) -> Self:
        """Fit to rows X and labels y of any type, or, with an estimator of ours, to a scan that carries its target.

        params: what the estimator's fit takes in addition to the rows: sample_weight, offset.
        """
        return self._fit(X, y, **params)

    def _gate_again(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> list[Source]:
        if None in self.certificates_:
            raise AttributeError(f"{type(self.estimator).__name__} has no certificates.")
        pairs = list(zip(self._codes(), self.estimators_, strict=True))
        if isinstance(X, Source):
            return [_against_rest(model, X, self.classes_, code) for code, model in pairs]
        codes = coded(column_or_1d(np.asarray(read_labels(y))), known=self.classes_)[1]
        return [model._gate_again(X, (codes == code).astype(np.int64), **roles) for code, model in pairs]

    def _gate(self, X: UserRows, y: UserTarget, **params: Any) -> CodedRows:
        handed = self._handed_on(params)
        self.target_name_ = name_of_target(X, y)
        if isinstance(X, Source):
            self._refuse_beside_scan(y, handed)
            self.classes_ = class_source(clone(self.estimator), X, None, None)[1]
            return CodedRows(X, np.zeros(0), handed)
        if y is None:
            raise ValueError("OneVsRestClassifier requires y to be passed, but the target y is None.")
        values = column_or_1d(np.asarray(read_labels(y)), warn=True)
        self.classes_, codes = _classes_of(values, handed.get("sample_weight"))
        return CodedRows(X, codes, handed)

    def _refuse_beside_scan(self, y: UserTarget, handed: dict[str, Any]) -> None:
        if not learner_of(self.estimator).is_ours:
            raise TypeError(f"A scan needs a classifier of certifit, and {self.estimator!r} is none. Give arrays.")
        if y is not None or handed:
            raise ValueError("A scan carries its target, weight and offset. Pass them to the scan, not to fit.")

    def _learn(self, rows: CodedRows) -> None:
        if isinstance(rows.X, Source):
            self.estimators_ = [self._fitted_to_scan(rows.X, code) for code in self._codes()]
        else:
            self.estimators_ = Parallel(n_jobs=self.n_jobs)(
                delayed(_fitted)(self.estimator, rows.X, (rows.codes == code).astype(np.int64), rows.handed)
                for code in self._codes()
            )
        self._take_names()

    def _fitted_to_scan(self, scan: Source, code: int) -> BaseEstimator:
        model = clone(self.estimator)
        source, _ = class_source(model, scan, None, None)
        model.target_name_ = scan.target
        return model.fit_codes(OneAgainstRest(source, code), np.array([0, 1]))

    def _codes(self) -> list[int]:
        """The classes that have an estimator."""
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    @available_if(_has_scores)
    def decision_function(self, X: UserRows) -> Array:
        """decision_function of the estimators, rows x classes; of two classes that of the second."""
        check_is_fitted(self)
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: UserRows) -> Array:
        """The class of the largest score."""
        check_is_fitted(self)
        scores = self._scores(X)
        if len(self.classes_) > 2:
            return np.asarray(self.classes_[scores.argmax(axis=1)])
        is_second = scores[:, 0] > (0.0 if _has_scores(self) else 0.5)
        return np.asarray(self.classes_[is_second.astype(np.int64)])

    def _scores(self, X: UserRows) -> Array:
        return np.column_stack([_scores(model, X) for model in self.estimators_])

    @available_if(_has_probabilities)
    def predict_proba(self, X: UserRows) -> Array:
        """The probabilities of the estimators, scaled to a sum of 1 a row; all classes alike where all are 0."""
        check_is_fitted(self)
        chances = np.column_stack([model.predict_proba(X)[:, 1] for model in self.estimators_])
        if len(self.classes_) == 2:
            return np.hstack([1 - chances, chances])
        total = chances.sum(axis=1, keepdims=True)
        return np.where(total > 0, chances / np.where(total > 0, total, 1.0), 1 / len(self.classes_))

    def score(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> float:
        """The share of rows that are predicted right; of a scan with its own target too."""
        if not isinstance(X, Source):
            return float(super().score(X, one_type(np.asarray(read_labels(y))), sample_weight))
        codes, weights = np.hstack(list(X.reading(Target.CODES, self.classes_).map(_codes_and_weights)))
        hits = np.where(codes >= 0, self.classes_[codes.astype(np.int64)] == self.predict(X), False)
        return float(weights @ hits / weights.sum())


def _against_rest(model: Classifier[Any, Any], scan: Source, classes: Array, code: int) -> Source:
    """The checked rows of a scan, of one class against the rest, for an estimator that is fitted."""
    predict_source(model, scan)
    return OneAgainstRest(class_source(model.reader(), scan, None, None, classes)[0], code)


def _fitted(estimator: Any, X: UserRows, y: Array, arguments: dict[str, Any]) -> Any:
    return clone(estimator).fit(X, y, **arguments)


def _scores(model: Any, X: UserRows) -> Array:
    if hasattr(model, "decision_function"):
        return np.ravel(model.decision_function(X))
    return np.asarray(model.predict_proba(X)[:, 1])


def _classes_of(values: Array, weight: Any) -> tuple[Array, Array]:
    """The classes of rows with a weight, and the code of every row."""
    if weight is None:
        return coded(values)
    try:
        return coded(values, np.asarray(weight, dtype=np.float64))
    except ValueError as error:
        raise ValueError(f"{error} Rows of sample_weight 0 are no rows.") from None


def _codes_and_weights(stretch: Block) -> Array:
    codes = np.asarray(stretch.y, dtype=np.float64)
    return np.stack([codes, np.ones(len(codes)) if stretch.weight is None else stretch.weight])
