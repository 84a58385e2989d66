"""Tables with categories, gaps and dates as numeric columns."""

from certifit.maps.table.encoder import TableEncoder

__all__ = ["TableEncoder"]
