"""What every part of the report is made from: a fitted model, its data, and what passes over them told.

Names as the report prints them: no level, word or label that fewer rows hold than `data.privacy` asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.privacy import FEWEST, NOT_SHOWN, Mask, Rule, quoted_labels, rare_label
from certifit.data.source import Source
from certifit.maps.table.survey import reference_rows, rows_apart, told_names
from certifit.models.adapter import answer_of, learner_of, sections_of
from certifit.models.learner import Answer, Params, Words
from certifit.report import class_passes, lift, passes, text
from certifit.report.class_passes import ByClass
from certifit.report.lift import Means
from certifit.report.passes import HIDES, Grid, Seen, Shapes, Survey
from certifit.report.text import Table


@dataclass(frozen=True)
class Printed:
    """The rule, the printed names of the fitted columns, and which of them tell of too few rows to be printed.

    labels: of the classes; is_rare_label: those of too few rows. mask: takes what is not printed out of sentences.
    """

    rule: Rule
    columns: list[str]
    is_rare: Array
    labels: list[str] = field(default_factory=list)
    is_rare_label: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    mask: Mask = field(default_factory=Mask)

    @staticmethod
    def of(model: Any, rule: Rule, class_rows: Array | None = None) -> Printed:
        """Of a fitted model; class_rows: rows of each of its classes."""
        mask = Mask()
        encoder = model.encoder_
        if encoder is not None and not rule.shows:
            mask.hide(*told_names(encoder))
        names = [str(name) for name in model.column_names_]
        columns = [mask(name) for name in names] if mask.secrets else names
        is_rare = np.array([one != name for one, name in zip(columns, names, strict=True)], dtype=bool)
        if encoder is not None and not rule.shows:
            is_rare = _are_terms_rare(model.basis_, rows_apart(encoder) < FEWEST, len(names))
        labels, is_rare_label = _labels(model, rule, class_rows, mask)
        return Printed(rule, columns, is_rare, labels, is_rare_label, mask)

    @property
    def n_rare(self) -> int:
        """Fitted columns that are not printed."""
        return int(self.is_rare.sum())

    def reference(self, kind: Any, surveyed: Any) -> tuple[str, bool]:
        """The reference level of a category as it is printed, and whether too few rows hold it."""
        is_rare = not self.rule.may_print(reference_rows(kind, surveyed))
        return NOT_SHOWN if is_rare else str(kind.reference), is_rare


def _are_terms_rare(basis: Any, is_rare: Array, n_terms: int) -> Array:
    """Which fitted columns are made of an encoded column that too few rows decide."""
    if basis is None:
        return is_rare
    exponents = getattr(basis, "exponents_", None)  # functions of the user's own may read every column
    return np.full(n_terms, is_rare.any()) if exponents is None else (exponents[:, is_rare] > 0).any(axis=1)


def _labels(model: Any, rule: Rule, class_rows: Array | None, mask: Mask) -> tuple[list[str], Array]:
    labels = [] if class_rows is None else model.classes_.tolist()
    rows = np.array([] if class_rows is None else class_rows)
    is_rare = np.array([not rule.may_print(n_rows) for n_rows in rows], dtype=bool)
    if is_rare.any():
        mask.hide(quoted_labels(dict(zip(labels, rows.tolist(), strict=True))))
    printed = [rare_label(k + 1, len(labels)) if is_rare[k] else _shown(label) for k, label in enumerate(labels)]
    return printed, is_rare


def _shown(label: Any) -> str:
    """The label; between quotes where it is made of blanks."""
    return str(label) if str(label).strip() else repr(str(label))


def pooled_words(n_levels: int, noun: str = "level", nouns: str | None = None) -> str:
    """What stands for levels that are not printed.

    >>> pooled_words(3)
    '3 levels held by fewer than 5 rows each: not shown'
    """
    each = " each" if n_levels > 1 else ""
    return f"{text.plural(n_levels, noun, nouns)} held by fewer than {FEWEST} rows{each}: not shown"


@dataclass(frozen=True)
class Errors:
    """Residuals of a fitted quantity, in two passes. new: predicted against actual, rows that no fit saw."""

    seen: Survey
    shapes: Shapes
    new: Grid | None = None


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
        """One coefficient per column; None for a model of classes that has none, or several."""
        return single_weights(self.model)

    @property
    def intercept(self) -> float:
        """The intercept of a model with one coefficient per column."""
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
    ) -> Fit:
        """Passes over the data: those of residuals, of means, or of classes. positive: one of two labels."""
        params, answer, inference = model.get_params(deep=False), answer_of(model), model.inference_
        words = learner_of(model).words.of_fit(model.alpha_, params.get("l1_ratio", 0))
        parts = (model, source, files, level, validation, selection, words, params, sections_of(model))
        new = new_predictions(validation)
        if answer.is_class:
            seen, by_class = class_passes.survey(model, source, positive)
            return Fit(*parts, seen, by_class=by_class, printed=Printed.of(model, rule, by_class.coded.n_rows))
        if answer is Answer.MEAN:
            has_exposure = getattr(inference, "link", words.link) == "log"
            means = lift.survey(model, source, has_exposure, new)
            return Fit(*parts, means, means=means, printed=Printed.of(model, rule))
        errors = _errors(model, source, rule, new)
        return Fit(*parts, errors.seen, errors=errors, printed=Printed.of(model, rule))


def single_weights(model: Any) -> Array | None:
    """One coefficient per column, those that standard errors may be had of; None where there are none, or several."""
    if "coefficients" not in sections_of(model):
        return None
    coef: Array = model.coef_
    if not answer_of(model).is_class:
        return coef
    return coef[0] if len(coef) == 1 else None


def new_predictions(validation: Table | None) -> Array | None:
    """One prediction per row by fits of the chosen model that did not see it, where cross-validation kept them."""
    rows = [] if validation is None else validation["rows"]
    return next((row["predicted"] for row in rows if row["is_chosen"]), None)


def _errors(model: Any, source: Source, rule: Rule, new: Array | None) -> Errors:
    sd, mean = float(model.data_["target_sd"]), float(model.data_["target_mean"])
    scale = sd if sd > 0 else max(abs(mean), 1.0)
    seen = passes.survey(model, source, scale, mean if _has_intercept(model) else 0.0)
    grid = None if new is None else passes.new_fit(new, source, rule)
    return Errors(seen, passes.shapes(model, source, seen, rule), grid)


def _has_intercept(model: Any) -> bool:
    return bool(model.get_params(deep=False).get("fit_intercept", True))
