"""One file an engine: where rows live that one process does not hold."""

from certifit.data.engines.dask import from_dask

__all__ = ["from_dask"]
