"""Rows of a table for copies of one estimator: encoded once, by all rows, so that all copies have the same columns.

An encoder learns from columns alone (levels, means that fill gaps, words): no copy sees labels of rows that it scores.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from certifit.data.columns import Array
from certifit.data.source import Memory, Source
from certifit.data.user_input import UserRows
from certifit.maps import TableEncoder, encoder_key
from certifit.models.adapter import learner_of
from certifit.models.classifier import codes_of
from certifit.models.ensembles.draws import distinct_rows
from certifit.models.ensembles.rows import CheckedRows


@dataclass(frozen=True)
class EncodedRows(CheckedRows):
    """Rows as an encoder made them, X an array or CSR; names: of its columns. encoder: None where rows were numbers."""

    encoder: TableEncoder | None
    names: list[str] | None


def reads_sources(estimator: BaseEstimator) -> bool:
    """Whether copies of an estimator take checked rows, some of them several times."""
    learner = learner_of(estimator)
    return learner.is_ours and has_fit_parameter(estimator, "sample_weight")


def encoded_rows(estimator: BaseEstimator, source: Source) -> EncodedRows:
    """All rows of a source of codes, as an encoder of the estimator that is fitted to them makes them."""

    def make() -> EncodedRows:
        reader = clone(estimator)
        reader.basis = None  # of each copy its own
        return rows_of(reader.fit_maps(source), reader.encoder_)

    question = ("calibrated", type(estimator), encoder_key(estimator.encoder))
    return source.remembered(question, make) if source.is_shared else make()


def rows_of(mapped: Source, encoder: TableEncoder | None) -> EncodedRows:
    """All rows of encoded columns; one without a class has no weight."""
    block = mapped.gather(keeps_sparse=True)
    codes, weight = codes_of(block), block.weight
    if (codes < 0).any():
        weight = np.where(codes < 0, 0.0, 1.0 if weight is None else weight)
    named = mapped.names if mapped.named or encoder is not None else None
    return EncodedRows(block.X, codes, weight, distinct_rows(block.X, codes, weight), encoder, named)


def fitted_copy(
    model: BaseEstimator, rows: EncodedRows, sample: tuple[UserRows, Array, Array | None], whole: BaseEstimator
) -> BaseEstimator:
    """An estimator after its fit to some of the rows; it then reads the table that they were made of, as whole does."""
    X, y, weight = sample
    source = Memory(X, y.astype(np.float64), weight, rows.names)
    model.fit_codes(source, np.arange(len(whole.classes_)))
    model.n_features_in_, model.target_name_ = source.n_features, "y"
    if rows.encoder is not None:
        model.encoder_ = rows.encoder
        model.n_features_in_, model.feature_names_in_ = whole.n_features_in_, whole.feature_names_in_
    return model


def past_encoder(model: BaseEstimator, n_columns: int) -> BaseEstimator:
    """A fitted estimator that takes so many columns as its encoder makes them."""
    plain = copy(model)
    plain.encoder_, plain.n_features_in_ = None, n_columns
    plain.__dict__.pop("feature_names_in_", None)
    return plain
