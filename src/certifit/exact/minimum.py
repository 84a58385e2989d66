"""The minimum of a smooth convex objective, enclosed: Newton's method in balls.

At a point t near the minimum, with F the slope there and H(B) the second derivatives over a box B around t, the box
N = t - H(B)^-1 F holds a zero of the slope if N lies in B (Brouwer; the interval Newton theorem). The objective is
convex, so that zero t* is a minimum, and   P(t) >= P(t*) >= P(t) + F'(t* - t),  t* in N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from certifit.exact import balls
from certifit.exact.balls import Ball, Matrix, ball, flint
from certifit.exact.losses import Evaluation

MOST_STEPS = 100
MOST_HALVINGS = 60
MOST_POLISHING = 12
SEEN = 64  # roundings of the objective: a promised fall that a full step near the minimum shows
WIDER = (2, 16, 1024)  # boxes that are tried, in units of the moves seen so far


class Smooth(Protocol):
    """A convex objective of some unknowns."""

    @property
    def size(self) -> int:
        """Number of unknowns."""

    def at(self, theta: list[Ball], hessian: bool = False) -> Evaluation | None:
        """The objective; None where it is not finite."""


@dataclass(frozen=True)
class Minimum:
    """Balls of the least value and of the place of it; is_proven: the place was shown to exist."""

    value: Ball
    place: list[Ball]


@dataclass(frozen=True)
class NoMinimum:
    """Where Newton's method ended, and why nothing is proven there: "singular", "far" or "illegal"."""

    reason: str
    place: list[Ball]


def minimum(problem: Smooth, start: list[Ball]) -> Minimum | NoMinimum:
    """The minimum, from a point that should be near it."""
    if not problem.size:
        at = problem.at([])
        return NoMinimum("illegal", []) if at is None else Minimum(at.value, [])
    descent = descended(problem, [t.mid() for t in start])
    if isinstance(descent, NoMinimum):
        return descent
    return _enclosed(problem, *descent)


def descended(problem: Smooth, theta: list[Ball]) -> tuple[list[Ball], Evaluation, list[Ball]] | NoMinimum:
    """Damped Newton steps on midpoints until they are rounding: the point, the objective there, the step left."""
    at = problem.at(theta, hessian=True)
    if at is None:
        return NoMinimum("illegal", theta)
    tiny = ball(2) ** (-flint().ctx.prec)
    for _ in range(MOST_STEPS):
        step = newton_step(at)
        if step is None:
            return NoMinimum("singular", theta)
        promised = balls.dot(at.slope, step)
        if not abs(promised) > tiny * (abs(at.value) + tiny):
            return theta, at, step
        if not abs(promised) > SEEN * _rounding(at.value):
            return _polished(problem, theta, at, step)
        moved = _moved(problem, theta, step, at.value, promised)
        if moved is None:
            return NoMinimum("far", theta)
        theta, at = moved
    return NoMinimum("far", theta)


def _polished(
    problem: Smooth, theta: list[Ball], at: Evaluation, step: list[Ball]
) -> tuple[list[Ball], Evaluation, list[Ball]]:
    """Full steps while what they promise shrinks: slopes tell twice as many digits of the place as values do."""
    promised = abs(balls.dot(at.slope, step)).mid()
    for _ in range(MOST_POLISHING):
        tried = [(t - s).mid() for t, s in zip(theta, step, strict=True)]
        there = problem.at(tried, hessian=True)
        way = None if there is None else newton_step(there)
        if there is None or way is None:
            break
        left = abs(balls.dot(there.slope, way)).mid()
        if not 4 * left < promised:
            break
        theta, at, step, promised = tried, there, way, left
    return theta, at, step


def newton_step(at: Evaluation) -> list[Ball] | None:
    """H^-1 F; None where H may be singular."""
    step = balls.solved(_matrix(at), balls.column(at.slope))
    return None if step is None else list(step.entries())


def _matrix(at: Evaluation) -> Matrix:
    assert at.hessian is not None
    return at.hessian


def _rounding(value: Ball) -> Ball:
    """What the objective's own roundings may be: no smaller fall is seen."""
    return (abs(value) * ball(2) ** (-flint().ctx.prec + 8)).mid().max(value.rad())


def _moved(
    problem: Smooth, theta: list[Ball], step: list[Ball], value: Ball, promised: Ball
) -> tuple[list[Ball], Evaluation] | None:
    """The first of the steps 1, 1/2, 1/4, ... after which the objective is lower; None where there is none."""
    share = ball(1)
    for _ in range(MOST_HALVINGS):
        tried = [(t - share * s).mid() for t, s in zip(theta, step, strict=True)]
        at = problem.at(tried, hessian=True)
        if at is not None and at.value.mid() < (value - share * promised / 10).mid():
            return tried, at
        share = share / 2
    return None


def _enclosed(problem: Smooth, theta: list[Ball], at: Evaluation, step: list[Ball]) -> Minimum | NoMinimum:
    tiny = ball(2) ** (-flint().ctx.prec)
    moved = [s.abs_upper() for s in step]
    for width in WIDER:
        radii = [width * m + tiny * (abs(t) + tiny) for t, m in zip(theta, moved, strict=True)]
        box = [balls.around(t, r) for t, r in zip(theta, radii, strict=True)]
        over = problem.at(box, hessian=True)
        if over is None:
            return NoMinimum("illegal", theta)
        away = balls.solved(_matrix(over), balls.column(at.slope))
        if away is None:
            return NoMinimum("singular", theta)
        moves = away.entries()
        place = [t - s for t, s in zip(theta, moves, strict=True)]
        if all(b.contains(p) for b, p in zip(box, place, strict=True)):
            below = balls.dot(at.slope, moves)  # P(t) - P(t*) is between 0 and this
            return Minimum(at.value - balls.up_to(below), place)
        # An unknown whose step is nearly 0 by chance is moved by the others' uncertainty: its box follows that.
        moved = [m.max(s.abs_upper()) for m, s in zip(moved, moves, strict=True)]
    return NoMinimum("far", theta)
