"""What rounds of boosting ask of the rows of a part: functions that can be sent to a worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from certifit.data.columns import Array
from certifit.data.parts import Arrays, Part
from certifit.data.source import Block
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.models.boosting.draws import rows_of_round
from certifit.models.boosting.losses import RowsToScore, scored
from certifit.models.boosting.state import BoostingState, RoundTrees
from certifit.models.trees import passes
from certifit.runtime import core, n_threads


def added(results: Iterable[Array]) -> Array:
    """The sum of arrays, one after the other."""
    total: Array | None = None
    for result in results:
        total = np.asarray(result) if total is None else total + result
    assert total is not None
    return total


def trained_mass(part: Part) -> Array:
    """Weights of the rows trained on, 0 of the others."""
    trained = part.get("trained")
    return part["weight"] if trained is None else np.where(trained, part["weight"], 0.0)


def held_mass(part: Part) -> Array | None:
    """Weights of the rows held out, 0 of the others; None where none is."""
    trained = part.get("trained")
    return None if trained is None else np.where(trained, 0.0, part["weight"])


def masses_of(part: Part) -> Array:
    """The weight of the rows trained on, and of those held out."""
    held = held_mass(part)
    return np.array([trained_mass(part).sum(), 0.0 if held is None else held.sum()])


def class_masses(part: Part, n_classes: int) -> Array:
    """The weight of every class, of the rows trained on."""
    return np.bincount(part["y"].astype(np.int64), weights=trained_mass(part), minlength=n_classes)


def offset_of(part: Part) -> Array:
    """Offsets of rows."""
    offset = part.get("offset")
    return np.zeros(len(part["y"])) if offset is None else offset


def sums_of_means(part: Part) -> Array:
    """Sums of targets and of offsets, of the rows trained on."""
    mass = trained_mass(part)
    return np.array([(mass * part["y"]).sum(), (mass * offset_of(part)).sum()])


def slopes_at(part: Part, loss: ScoreLoss, z: float) -> Array:
    """Sums of slopes and curvatures where every score is z and the offset."""
    mass, scores = trained_mass(part), z + offset_of(part)
    return np.array([(mass * loss.slope(part["y"], scores)).sum(), (mass * loss.curvature(part["y"], scores)).sum()])


def target(part: Part) -> Array:
    """Targets."""
    return part["y"]


def weight_of(part: Part) -> Array:
    """Weights."""
    return part["weight"]


def trained_weight(part: Part) -> Array:
    """Weights of the rows trained on alone."""
    trained = part.get("trained")
    return part["weight"] if trained is None else part["weight"][trained.astype(bool)]


def without_offset(part: Part) -> Array:
    """Targets less offsets, of the rows trained on alone."""
    values, trained = part["y"] - offset_of(part), part.get("trained")
    return values if trained is None else values[trained.astype(bool)]


def scores_of(block: Block, state: BoostingState) -> Array:
    """Scores of rows by earlier rounds."""
    return state.scores(replace(block, y=None, weight=None, offset=None))[0]


def _kept(part: Part, loss: ScoreLoss | None, scores: Array, values: Sequence[Array] = ()) -> tuple[Arrays, Array]:
    """Scores, slopes and curvatures that are kept; sums of losses."""
    leaves = [part[f"leaf {k}"] for k in range(len(values))]
    made = scored(loss, RowsToScore(part["y"], part["weight"], part.get("trained")), scores, leaves, values)
    arrays = {"scores": made.scores} | {f"slope {k}": slope for k, slope in enumerate(made.slopes)}
    return arrays | {f"curvature {k}": curvature for k, curvature in enumerate(made.curvatures)}, made.sums


def begun(part: Part, start: Array | None, unit: float, loss: ScoreLoss | None, width: int) -> tuple[Arrays, Array]:
    """Rows before the first round; start: None where they have scores of earlier rounds, `more`."""
    offset = offset_of(part)[:, None]
    scores = part["more"] / unit + offset if start is None else start + offset + np.zeros((len(part["y"]), width))
    return _kept(part, loss, scores)


def advanced(part: Part, values: list[Array], loss: ScoreLoss | None) -> tuple[Arrays, Array]:
    """Rows after a round."""
    return _kept(part, loss, part["scores"], values)


def derived(part: Part, trees: RoundTrees, loss: ScoreLoss) -> tuple[Arrays, Array]:
    """Scores after some rounds; sums over their leaves and losses, in one array.

    codes: ranks of values among the thresholds of the trees, which are ranks then; or `X`, values.
    """
    ranks, trained = part.get("codes"), part.get("trained")
    rows = part["X"] if ranks is None else ranks
    sums, losses, scores = (core.derive_rounds if ranks is None else core.derive_rounds_of_ranks)(
        rows, *trees.arrays, loss.code, loss.parameter, part["y"], part["weight"],
        np.ascontiguousarray(part["scores"][:, 0]), None if trained is None else trained.view(np.uint8), n_threads(),
    )  # fmt: skip
    return {"scores": scores[:, None]}, np.concatenate([sums.ravel(), losses.ravel()])


class TrainedFlags:
    """Whether each row of a part is trained on, and how many before it are. bits: of all rows."""

    def __init__(self, bits: Array, before: Array) -> None:
        self.bits, self.before, self.part_rows = bits, before, passes.PART_ROWS

    def __call__(self, part: Part) -> tuple[Arrays, None]:
        """The flags of a part."""
        n = len(part["y"])
        flags = np.unpackbits(self.bits[part.first // 8 : -(-(part.first + n) // 8)])[:n]
        n_before = np.full(n, self.before[part.first // self.part_rows], dtype=np.int64)
        return {"trained": flags, "trained before": n_before}, None


def drawn_rows(part: Part, seed: int, number: int, share: float) -> tuple[Arrays, tuple[int, int]]:
    """Which rows of a part are drawn; how many are trained on, and how many of these are drawn."""
    trained = part.get("trained")
    is_trained = np.ones(len(part["y"]), dtype=bool) if trained is None else trained.astype(bool)
    n_trained = int(is_trained.sum())
    n_before = part.first if trained is None else int(part["trained before"][0])
    drawn = np.zeros(len(is_trained), dtype=np.uint8)
    drawn[is_trained] = True if share > 1 else rows_of_round(seed, number, share, n_trained, n_before)
    return {"drawn": drawn}, (n_trained, int(drawn.sum()))


def sizes_of(part: Part, before: tuple[float, float, int], k: int) -> tuple[float, float, int]:
    """Sums of sizes of slopes and of curvatures, and rows, after those of the parts before."""
    sizes: tuple[float, float, int] = core.newton_sizes(
        part[f"slope {k}"], part[f"curvature {k}"], part.get("drawn"), before
    )
    return sizes


def walked(part: Part, k: int, paths: tuple[Array | None, ...]) -> tuple[Arrays, Array]:
    """Rows at the leaves of a tree, and sums over its leaves."""
    ranks = part.get("codes")
    rows = part["X"] if ranks is None else ranks
    leaves, sums = (core.sum_leaves if ranks is None else core.sum_leaves_of_ranks)(
        rows, *paths, part[f"slope {k}"], part[f"curvature {k}"], part["weight"], part.get("drawn"),
        n_threads(),
    )  # fmt: skip
    return {f"leaf {k}": leaves}, sums


def residuals_of(part: Part, k: int) -> tuple[Array, Array, Array]:
    """Residual, weight and leaf of the rows drawn."""
    drawn = part.get("drawn")
    keep = np.ones(len(part["y"]), dtype=bool) if drawn is None else drawn.astype(bool)
    return (part["y"] - part["scores"][:, 0])[keep], part["weight"][keep], part[f"leaf {k}"][keep]
