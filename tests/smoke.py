"""Every module imports and a model fits, with nothing installed but what the package needs: python tests/smoke.py."""

from importlib import import_module
from pkgutil import walk_packages

import certifit as cf

EXTRAS = {"matplotlib", "pandas", "openpyxl", "dask", "distributed", "flint"}


def main() -> None:
    """Import all, fit one."""
    for module in walk_packages(cf.__path__, "certifit."):
        if module.name.endswith("__main__"):
            continue
        try:
            import_module(module.name)
        except ImportError as error:
            if error.name is None or error.name.partition(".")[0] not in EXTRAS:
                raise
    assert cf.LinearRegression().fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0]).certificate_.holds


if __name__ == "__main__":
    main()
