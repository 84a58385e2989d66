"""Every fault that the hostile battery must notice, for `python tests/hostile.py --factories broken:ALL`."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
from learners import ATTACKED

import certifit as cf


class Broken(cf.Ridge):
    """A fault for each type of X."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        dtype = getattr(X, "dtype", None)
        if dtype == np.float16:
            os.abort()
        if dtype == np.dtype(bool):
            os.kill(os.getpid(), signal.SIGXCPU)  # what the system sends to a fit that never ends
        if dtype == np.uint8:
            raise KeyError(3)
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_ * (np.nan if dtype == np.float32 else 2.0 if dtype == np.dtype(">f8") else 1.0)
        return self


ALL = ATTACKED | {"Broken": ("reg", Broken)}
