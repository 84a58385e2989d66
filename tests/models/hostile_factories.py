"""Our estimators, for `python tests/hostile.py --factories hostile_factories:FACTORIES`."""

from __future__ import annotations

import certifit as cf

FACTORIES = {
    "LinearRegression": ("reg", cf.LinearRegression),
    "Ridge": ("reg", cf.Ridge),
    "Ridge(0.01)": ("reg", lambda: cf.Ridge(0.01)),
}
