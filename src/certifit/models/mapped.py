"""What rows become on their way into a model: a table's encoder, then basis functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from certifit.data.gate import refuse_nonfinite
from certifit.data.source import Block, RowError, Source
from certifit.maps import Functions, Polynomial, TableEncoder
from certifit.statistics.gram import ColumnRange


class MappedRows:
    """A model with parameters `encoder` and `basis`, and what a fit made of them."""

    basis: Any
    encoder: Any
    basis_: Any
    encoder_: Any

    def _mapped(self, source: Source) -> Source:
        source = self._encoded(source)
        return source if self.basis_ is None else source.through(self.basis_)

    def _encoded(self, source: Source) -> Source:
        return source if self.encoder_ is None else source.through(self.encoder_)

    def _columns(self, block: Block) -> Any:
        X = block.X
        try:
            for row_map in (self.encoder_, self.basis_):
                X = X if row_map is None else row_map.apply(X)
        except RowError as error:
            raise error.moved(block.first_row) from None
        return X

    def _fitted_encoder(self, source: Source) -> Any:
        encoder = TableEncoder() if self.encoder is None else clone(self.encoder)
        return encoder.fit_source(source)

    def _check_maps(self) -> None:
        if self.basis is not None and not isinstance(self.basis, Polynomial | Functions):
            raise TypeError(f"basis must be None, Polynomial(degree) or Functions([...]). Got {self.basis!r}.")
        if self.encoder is not None and not isinstance(self.encoder, TableEncoder):
            raise TypeError(f"encoder must be None or TableEncoder(...). Got {self.encoder!r}.")


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
