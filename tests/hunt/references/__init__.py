"""True objectives and infima, in exact rationals or 300 bits and more. No import from the package under test."""
