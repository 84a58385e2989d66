"""Certifit and its best peers on the same data in the same run: `python -m benchmarks.run --quick`."""
