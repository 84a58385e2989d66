"""The mutual-information filter."""
