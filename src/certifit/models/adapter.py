"""What an estimator is: the only place that asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if

from certifit.data.columns import Array
from certifit.data.user_input import UserRows
from certifit.models.learner import Answer, Keeps, Learner, Param, Params, Told, Words
from certifit.models.table import COMPOSITES, LEARNERS

Method = TypeVar("Method", bound=Callable[..., object])

TASK_ESTIMATOR = "certifit.models.estimator.TaskEstimator"  # by name: the table is read without the models


@dataclass(frozen=True)
class Foreign:
    """An estimator that is not in the table of models: of another library, or one that is made of others."""

    estimator: object
    params: ClassVar[Mapping[str, Param]] = {}
    exact: ClassVar[None] = None
    keeps: ClassVar[Keeps] = Keeps.NOTHING

    @property
    def is_ours(self) -> bool:
        """Whether it is a user's own model on the bases of ours: it takes checked rows from any engine."""
        return any(
            f"{base.__module__}.{base.__qualname__}" == TASK_ESTIMATOR for base in _class_of(self.estimator).__mro__
        )

    @property
    def name(self) -> str:
        """The name of the class."""
        return _class_of(self.estimator).__name__

    def answers(self, params: Params) -> Answer:
        """What it says of a row, by the tags of scikit-learn; params belong to its estimator."""
        if is_classifier(self.estimator):
            return Answer.CLASSES if hasattr(self.estimator, "predict_proba") else Answer.MARGINS
        return Answer.NUMBER if is_regressor(self.estimator) else Answer.NONE

    @property
    def words(self) -> Words:
        """Its name."""
        return Words(self.name)

    def metric(self, params: Params) -> None:
        """Not known: its own score."""
        return None

    def sections(self, params: Params) -> tuple[str, ...]:
        """Those that a user's own model names in `report_sections`."""
        return tuple(getattr(self.estimator, "report_sections", ()))

    def objective(self, told: Told) -> str:
        """Not known."""
        return ""


def learner_of(estimator: object) -> Learner | Foreign:
    """The row of an estimator or its class, or of the class it was derived from."""
    return _row_of(_class_of(estimator)) or _composite_row(estimator) or Foreign(estimator)


def answer_of(estimator: BaseEstimator) -> Answer:
    """What an estimator says of a row."""
    learner = learner_of(estimator)
    return learner.answers(estimator.get_params(deep=False) if learner.is_ours else {})


def sections_of(estimator: BaseEstimator) -> tuple[str, ...]:
    """Sections of a report that not every model has."""
    learner = learner_of(estimator)
    return learner.sections(estimator.get_params(deep=False) if learner.is_ours else {})


def _class_of(estimator: object) -> type[object]:
    return estimator if isinstance(estimator, type) else type(estimator)


def _row_of(cls: type[object]) -> Learner | None:
    rows = _rows_by_place(len(LEARNERS))
    return next((rows[place] for place in _places_of(*cls.__mro__) if place in rows), None)


@cache
def _rows_by_place(n_learners: int) -> dict[str, Learner]:
    """The table by place, made again where it has grown: small fits ask some ten times."""
    return {learner.place: learner for learner in LEARNERS.values()}


def _composite_row(estimator: object) -> Learner | None:
    """The row of a model of copies of one of ours that takes checked rows as the copies do; it keeps what they keep."""
    inner = getattr(estimator, "estimator", None)
    if inner is None or not hasattr(estimator, "fit_codes") or not learner_of(inner).is_ours:
        return None
    places = _places_of(*_class_of(estimator).__mro__)
    row = next((row for row in COMPOSITES.values() if row.place in places), None)
    copied = learner_of(inner)
    if row is None or not isinstance(copied, Learner):
        return row
    shown = {name: _shown(value) for name, value in inner.get_params(deep=False).items()}
    what = copied.words.name.format_map({name: copied.words.spelt.get(word, word) for name, word in shown.items()})
    words = replace(row.words, name=f"{row.words.name} of {what}", stores=copied.words.stores)
    return replace(row, words=words, keeps=copied.keeps)


def _shown(value: object) -> str:
    return "usual" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


@cache
def _places_of(*classes: type) -> tuple[str, ...]:
    """How the table would name classes."""
    return tuple(f"{cls.__module__.removeprefix('certifit.')}:{cls.__qualname__}" for cls in classes)


def origins_of(estimator: object) -> list[tuple[str, str]]:
    """(library, class) of an estimator or a fitted result and of the classes that it derives from, nearest first."""
    return [(base.__module__.partition(".")[0], base.__name__) for base in _class_of(estimator).__mro__]


def feature_names(model: BaseEstimator) -> list[str] | None:
    """Names of the features of a fit; None where they had none."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def where_inner_has(fitted: str, name: str) -> Callable[[Method], Method]:
    """Of a meta-estimator: a method that is there where its estimator, fitted (the attribute) or not, has it."""

    def has_it(meta: BaseEstimator) -> bool:
        getattr(getattr(meta, fitted, meta.estimator), name)  # its AttributeError names what is missing
        return True

    decorator: Callable[[Method], Method] = available_if(has_it)
    return decorator


def boundary_weights(model: BaseEstimator) -> tuple[Array, Array]:
    """Weights and intercepts of a fitted linear classifier of any library, a row per class; one row for two classes."""
    if not hasattr(model, "coef_") or not hasattr(model, "classes_"):
        raise TypeError(f"Margins are of linear classifiers, with coef_ and classes_. {type(model).__name__} is none.")
    if getattr(model, "basis_", None) is not None or getattr(model, "encoder_", None) is not None:
        raise ValueError("Margins are of the columns that the weights belong to: fit without a basis and an encoder.")
    W = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    intercept = np.ravel(np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64))
    return W, np.broadcast_to(intercept, len(W))


def bands_of(model: BaseEstimator, rows: UserRows, level: float) -> dict[str, Array]:
    """Intervals of predictions that a fitted model has, by what they are of; rows x 2 each. Empty: it has none."""
    if hasattr(model, "predict_band"):
        return {"mean of the fit": np.asarray(model.predict_band(rows, level))}
    if not hasattr(model, "predict_interval"):
        return {}
    try:
        kinds = {"new row": {"kind": "prediction"}, "mean": {"kind": "confidence"}}
        return {name: np.asarray(model.predict_interval(rows, level, **kind)) for name, kind in kinds.items()}
    except TypeError:  # generalised linear models have an interval of the mean alone
        return {"mean": np.asarray(model.predict_interval(rows, level))}
    except ValueError:  # a penalty forbids it
        return {}
