"""Data that come with the package, so that `certifit demo` runs without a file and without a network."""

from pathlib import Path

TARGET = "arr_delay"
REPEATED = "sched_minutes"  # = 60 hour + minute


def path() -> Path:
    """Where flights.csv lies: 3,000 flights from New York City, twelve columns and the target arr_delay."""
    return Path(__file__).with_name("flights.csv")
