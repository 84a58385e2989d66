"""Tables with categories, gaps and dates as numeric columns."""

from certifit.maps.table.encoder import TableEncoder, UserEncoder, encoder_key, encoder_of

__all__ = ["TableEncoder", "UserEncoder", "encoder_key", "encoder_of"]
