"""What tests of sources share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def cluster():
    """A client of two worker processes."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as workers, distributed.Client(workers) as client:
        yield client
