"""Runs pytest on a build of the package given by PYTHONPATH instead of the installed one. Used by `make sanitize`."""

import os
import sys
from pathlib import Path

import pytest

# An editable install answers imports before PYTHONPATH is asked.
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]

import certifit.runtime  # noqa: E402

wanted = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0]).resolve()
if not Path(certifit.runtime.core.__file__).resolve().is_relative_to(wanted):
    sys.exit(f"certifit's core is {certifit.runtime.core.__file__}, not the one in {wanted}")
sys.exit(pytest.main(sys.argv[1:]))
