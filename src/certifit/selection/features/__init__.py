"""Forward and backward selection of features."""
