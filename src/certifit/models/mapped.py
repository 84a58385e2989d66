"""What a model does to rows before it weighs them: a table's columns become numbers, then functions of them."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from certifit.data.gate import refuse_nonfinite
from certifit.data.source import Block, RowError, Source
from certifit.maps import Functions, Polynomial, TableEncoder
from certifit.statistics.gram import ColumnRange


class MappedRows(BaseEstimator):
    """A model with an encoder and a basis, and their fitted copies encoder_ and basis_."""

    basis: Any = None
    encoder: Any
    encoder_: Any
    basis_: Any

    def fit_maps(self, source: Source) -> Source:
        """Fit the encoder and the basis; the mapped source."""
        self.encoder_ = self._fitted_encoder(source) if source.is_table else None
        self.basis_ = None if self.basis is None else fitted_basis(self.basis, self._encoded(source))
        return self._mapped(source)

    def _mapped(self, source: Source) -> Source:
        source = self._encoded(source)
        return source if self.basis_ is None else source.through(self.basis_)

    def _encoded(self, source: Source) -> Source:
        return source if self.encoder_ is None else source.through(self.encoder_)

    def columns_of(self, block: Block) -> Any:
        """The columns that the fitted encoder and basis make of the rows of a block."""
        X = block.X
        try:
            for row_map in (self.encoder_, self.basis_):
                X = X if row_map is None else row_map.apply(X)
        except RowError as error:
            raise error.moved(block.first_row) from None
        return X

    def reader(self) -> Self:
        """A copy that reads rows as this model was fitted to them; the gate may set its attributes."""
        probe: Self = clone(self)
        if self.encoder_ is not None and probe.encoder is None:
            probe.encoder = self.encoder_  # a frame is then read as the table that the model was fitted to
        return probe

    def _fitted_encoder(self, source: Source) -> Any:
        encoder = TableEncoder() if self.encoder is None else clone(self.encoder)
        return encoder.fit_source(source)

    def _check_maps(self) -> None:
        if self.basis is not None and not isinstance(self.basis, Polynomial | Functions):
            raise TypeError(f"basis must be None, Polynomial(degree) or Functions([...]). Got {self.basis!r}.")
        if self.encoder is not None and not isinstance(self.encoder, TableEncoder):
            raise TypeError(f"encoder must be None or TableEncoder(...). Got {self.encoder!r}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis is None
        return tags


def check_number(name: str, value: Any) -> None:
    """Refuse what is not a finite number >= 0."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number >= 0. Got {value!r}.")
    if not (math.isfinite(float(value)) and float(value) >= 0):
        raise ValueError(f"{name} must be a finite number >= 0. Got {value}.")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False. Got {value!r}.")


def fitted_basis(basis: Any, source: Source) -> Any:
    """A fitted copy of the basis; a polynomial needs only the range of each column, one pass."""
    basis = clone(basis)
    names = source.names if source.named else None
    if isinstance(basis, Polynomial):
        span = source.reduce(ColumnRange.of)
        if not (np.isfinite(span.lower).all() and np.isfinite(span.upper).all()):
            refuse_nonfinite(source)
        return basis.fit_range(span.lower, span.upper, names=names)
    return basis.fit(source.first_block().X)
