"""What every part of the report is made from: a fitted model, its data, and what passes over them told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.privacy import Rule
from certifit.data.source import Source
from certifit.models.adapter import answer_of, learner_of, sections_of
from certifit.models.learner import Answer, Params, Words
from certifit.report import class_passes, lift, passes
from certifit.report.class_passes import ByClass
from certifit.report.lift import Means
from certifit.report.passes import HIDES, Seen, Shapes, Survey
from certifit.report.printed import Printed
from certifit.report.text import Table


@dataclass(frozen=True)
class Errors:
    """Residuals of a fitted quantity, in two passes."""

    seen: Survey
    shapes: Shapes


@dataclass(frozen=True)
class Fit:
    """A fit as the sections see it. validation, selection: tables of `report.validation`, or None.

    seen: of the rows. errors: of a model of a quantity, means: of a generalised linear model, by_class: of a model of
    classes; the others are None.
    """

    model: Any
    source: Source
    files: Mapping[str, Any]
    level: float
    validation: Table | None
    selection: Table | None
    words: Words
    params: Params
    sections: tuple[str, ...]
    seen: Seen
    errors: Errors | None = None
    by_class: ByClass | None = None
    means: Means | None = None
    printed: Printed = field(kw_only=True)

    @property
    def has_intercept(self) -> bool:
        """Whether the model has one."""
        return self.weights is not None and _has_intercept(self.model)

    @property
    def is_centred(self) -> bool:
        """Whether the fit is compared with the mean of the target; else, of a model without an intercept, with 0."""
        return _has_intercept(self.model)

    @property
    def is_flexible(self) -> bool:
        """Whether the model can follow single rows (trees, forests, kernels): figures on its rows flatter it."""
        return self.weights is None

    @property
    def weights(self) -> Array | None:
        """One coefficient a column; None for a model of classes that has none, or several."""
        return single_weights(self.model)

    @property
    def intercept(self) -> float:
        """The intercept of a model with one coefficient a column."""
        return float(np.ravel(self.model.intercept_)[0])

    def printed_mass(self, mass: Any) -> Any:
        """A sum of weights, or an array of them, that may be of one row: to three digits, where there are weights."""
        if self.seen.mass == self.seen.n_rows:
            return mass
        rounded = np.vectorize(self.printed.rule.of_row, otypes=[float])(mass)
        return rounded if np.ndim(mass) else float(rounded)

    def is_text(self, column: str) -> bool:
        """Whether a column of the table is free text."""
        encoder = self.model.encoder_
        return encoder is not None and any(kind.name == column and kind.kind == "text" for kind in encoder.columns_)

    @property
    def link(self) -> str | None:
        """How the prediction follows from the score; None where it is the score."""
        return getattr(self.inference, "link", self.words.link)

    @property
    def inference(self) -> Any:
        """Standard errors and the like; None where there are none."""
        return self.model.inference_

    @staticmethod
    def of(
        model: Any,
        source: Source,
        files: Mapping[str, Any],
        level: float,
        validation: Table | None,
        selection: Table | None,
        positive: Any = None,
        rule: Rule = HIDES,
    ) -> "Fit":
        """Passes over the data: those of residuals, of means, or of classes. positive: one of two labels."""
        params, answer, inference = model.get_params(deep=False), answer_of(model), model.inference_
        words = learner_of(model).words.of_fit(model.alpha_, params.get("l1_ratio", 0))
        parts = (model, source, files, level, validation, selection, words, params, sections_of(model))
        if answer.is_class:
            seen, by_class = class_passes.survey(model, source, positive)
            return Fit(*parts, seen, by_class=by_class, printed=Printed.of(model, rule, by_class.coded.n_rows))
        if answer is Answer.MEAN:
            means = lift.survey(model, source, has_exposure=getattr(inference, "link", words.link) == "log")
            return Fit(*parts, means, means=means, printed=Printed.of(model, rule))
        errors = _errors(model, source, rule)
        return Fit(*parts, errors.seen, errors=errors, printed=Printed.of(model, rule))


def single_weights(model: Any) -> Array | None:
    """One coefficient a column, those that standard errors may be had of; None where there are none, or several."""
    if "coefficients" not in sections_of(model):
        return None
    coef: Array = model.coef_
    if not answer_of(model).is_class:
        return coef
    return coef[0] if len(coef) == 1 else None


def _errors(model: Any, source: Source, rule: Rule) -> Errors:
    sd, mean = float(model.data_["target_sd"]), float(model.data_["target_mean"])
    scale = sd if sd > 0 else max(abs(mean), 1.0)
    seen = passes.survey(model, source, scale, mean if _has_intercept(model) else 0.0)
    return Errors(seen, passes.shapes(model, source, seen, rule))


def _has_intercept(model: Any) -> bool:
    return bool(model.get_params(deep=False).get("fit_intercept", True))
