"""What is read of a row beside its features: the target, in one of four ways, and the columns that have a role."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from certifit.data.columns import Array
from certifit.data.roles import Roles

NO_CLASS = -1.0  # the code of a label that no class has


class Target(Enum):
    """How the target is read."""

    NUMBER = "number"  # y is float64
    CODES = "codes"  # y is the place of a row's label among the sorted classes
    RAW = "raw"  # as it is stored, of any type; rows of a table then have no other column, and no offset
    NONE = "none"  # not at all


@dataclass(frozen=True, eq=False)
class View:
    """Which target a fit reads, and the names of target, weight, group, offset and exposure; None where there is none.

    classes: the sorted labels of Target.CODES.
    """

    roles: Roles
    target: Target
    classes: Array | None = None

    @staticmethod
    def of(roles: Roles) -> View:
        """A target that is read as a number, where the rows have one."""
        return View(roles, Target.NONE if roles.target is None else Target.NUMBER)

    @property
    def has_target(self) -> bool:
        """Whether blocks have a y."""
        return self.target in (Target.NUMBER, Target.CODES)

    @property
    def has_offset(self) -> bool:
        """Whether blocks have an offset."""
        return self.roles.offset is not None or self.roles.exposure is not None

    @property
    def beside(self) -> Roles:
        """The columns that are read beside the features."""
        return self.roles if self.has_target else replace(self.roles, target=None)

    def reading(self, target: Target, classes: Array | None = None) -> View:
        """The same rows with their target read in another way; rows without a target stay without one."""
        if self.roles.target is None and target is Target.RAW:
            raise ValueError("The scan has no target. Use scan_csv(path, target='name of the column').")
        if self.roles.target is None:
            return self
        roles = replace(self.roles, offset=None, exposure=None) if target is Target.RAW else self.roles
        return View(roles, target, classes)


def code_places(numbers: Array, classes: Array) -> Array:
    """The place of every number among the sorted classes as float64, NO_CLASS where it is none of them."""
    classes = classes.astype(np.float64)
    places = np.searchsorted(classes, numbers).clip(max=len(classes) - 1)
    return np.where(classes[places] == numbers, places, NO_CLASS)
