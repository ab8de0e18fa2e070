"""What an arm costs against its baseline, and what a solved task costs, with unknown usage kept as a range.

Costs are heavy-tailed and partly unknown. Dropping the calls of unknown usage is wrong in the one direction that
flatters, so every limit here holds for all amounts that the unknown calls may have used.

Source of the expanded percentile: Hesterberg (2015), "What teachers should know about the bootstrap".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isinf, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, stdtrit

from analysis.estimate.exact import Floats, seed_of
from analysis.estimate.intervals import gaffke

DRAWS = 10_000
"""Resamples of tasks."""
OPEN = "some usage is unknown and has no cap: a limit is open"
CAPPED = "some usage is unknown: the limits hold for all amounts up to the caps"


@dataclass(frozen=True)
class RatioEstimate:
    """A ratio of costs. Its point is a range where usage is unknown; an infinite upper end means "at least"."""

    point_low: float | None
    """None, as all the numbers: nothing cost anything, and a ratio has no meaning."""
    point_high: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    n_tasks: int
    note: str | None = None


def cost_ratio(
    baseline_low: ArrayLike,
    baseline_high: ArrayLike,
    arm_low: ArrayLike,
    arm_high: ArrayLike,
    *,
    level: float = 0.95,
    name: str = "",
) -> RatioEstimate:
    """Mean cost of the baseline over mean cost of the arm, on the same tasks: above 1, the arm is cheaper.

    The interval is the percentile bootstrap over tasks with its tails moved out by the t factor. Its lower limit is that of
    the least baseline against the dearest arm, its upper limit that of the opposite, so that it holds for every completion.

    Args:
        baseline_low: shape (T,), what is recorded of the baseline's cost of each task; calls, tokens or US dollars.
        baseline_high: the same and the most that unknown calls may have added; may be infinite.
        arm_low: as `baseline_low`.
        arm_high: as `baseline_high`.
        level: nominal coverage.
        name: of the contrast; the seed of its own stream of draws.

    Raises:
        ValueError: no tasks, shapes that differ, or a range that is not 0 <= low <= high with a finite low.
    """
    rows = _rows(baseline_low, baseline_high, arm_low, arm_high)
    n, method = len(rows), "expanded-percentile-bootstrap"
    totals = rows.sum(axis=0)
    if not totals[1] and not totals[3]:
        return RatioEstimate(
            None, None, None, None, level, method, n, "neither arm costs anything: a ratio has no meaning"
        )
    point_low = float(_divide(totals[:1], totals[3:], 0.0)[0])
    point_high = float(_divide(totals[1:2], totals[2:3], inf)[0])
    if n == 1:
        return RatioEstimate(point_low, point_high, 0.0, inf, level, method, n, "one task says nothing of the others")
    lowest, highest = _resampled(rows, name)
    tail = float(ndtr(sqrt(n / (n - 1)) * stdtrit(n - 1, (1 - level) / 2)))
    place = int(tail * DRAWS)
    low, high = min(point_low, float(lowest[place])), max(point_high, float(highest[DRAWS - 1 - place]))
    return RatioEstimate(point_low, point_high, low, high, level, method, n, _ratio_note(rows, low, high))


def _rows(*ranges: ArrayLike) -> Floats:
    """Columns low, high, low, high; tasks in an order of their own, so that the given one cannot matter."""
    columns = [np.asarray(column, dtype=float).ravel() for column in ranges]
    if len({column.shape for column in columns}) > 1 or not columns[0].size:
        raise ValueError("costs are needed for the same tasks on both sides, and for one task at least")
    for low, high in zip(columns[::2], columns[1::2], strict=True):
        if not ((low >= 0) & np.isfinite(low) & (low <= high)).all():
            raise ValueError("a cost is a range 0 <= low <= high with a finite low")
    rows = np.column_stack(columns)
    return rows[np.lexsort(rows.T)]


def _divide(above: Floats, below: Floats, undefined: float) -> Floats:
    """Above over below; `undefined` for 0/0 and inf/inf."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = above / below
    return np.where(np.isnan(ratio), undefined, ratio)


def _resampled(rows: Floats, name: str) -> tuple[Floats, Floats]:
    """Sorted ratios of resampled totals at their least and at their largest, the same resamples for both."""
    n = len(rows)
    generator, block = np.random.default_rng(seed_of(f"cost ratio {name}")), max(1, 2_000_000 // n)
    sums = []
    for start in range(0, DRAWS, block):
        drawn = generator.integers(0, n, size=(min(block, DRAWS - start), n))
        sums.append(np.column_stack([column[drawn].sum(axis=1) for column in rows.T]))
    totals = np.concatenate(sums)
    lowest = np.sort(_divide(totals[:, 0], totals[:, 3], 0.0))
    highest = np.sort(_divide(totals[:, 1], totals[:, 2], inf))
    return lowest, highest


def _ratio_note(rows: Floats, low: float, high: float) -> str | None:
    if np.isinf(rows).any():
        return OPEN
    if not rows[:, 2].any():
        return "the arm may have cost nothing: the ratio has no upper limit"
    if low == high:
        return "the ratio is the same on every task: this method cannot see uncertainty here"
    return CAPPED if _ranged(rows) else None


def _ranged(rows: Floats) -> bool:
    return bool((rows[:, 0::2] != rows[:, 1::2]).any())


def cost_per_solved(
    costs_low: ArrayLike, costs_high: ArrayLike, solved: ArrayLike, *, level: float = 0.95
) -> RatioEstimate:
    """Mean cost over mean share solved: what one solved task costs, failures included.

    The delta method on the logarithm, with t. Where nothing was solved the point and the upper limit are infinite, and
    the lower limit is the mean cost over the largest share that the primary interval allows.

    Args:
        costs_low: shape (T,), as in `cost_ratio`.
        costs_high: as in `cost_ratio`.
        solved: shape (T,), the share of its repeats in which each task was solved.
        level: nominal coverage.

    Raises:
        ValueError: as `cost_ratio`, or a share outside [0, 1].
    """
    shares = np.asarray(solved, dtype=float).ravel()
    rows = _rows(costs_low, costs_high, shares, shares)
    if (shares > 1).any():
        raise ValueError("a share solved lies in [0, 1]")
    n, method, mean = len(rows), "log-delta-t", rows.sum(axis=0) / len(rows)
    if not mean[2]:
        most = gaffke(shares, level=level, low=0.0, high=1.0).high
        return RatioEstimate(inf, inf, float(mean[0]) / most, inf, level, method, n, "no task was solved")
    points = float(mean[0] / mean[2]), float(mean[1] / mean[2])
    if n == 1:
        return RatioEstimate(*points, 0.0, inf, level, method, n, "one task says nothing of the others")
    low = points[0] * exp(-_log_reach(rows[:, 0], rows[:, 2], level))
    high = points[1] if isinf(points[1]) else points[1] * exp(min(700.0, _log_reach(rows[:, 1], rows[:, 2], level)))
    note = None
    if not mean[1]:
        note = "nothing cost anything"
    elif isinf(high):
        note = OPEN
    elif _ranged(rows):
        note = CAPPED
    return RatioEstimate(*points, low, high, level, method, n, note)


def _log_reach(costs: Floats, shares: Floats, level: float) -> float:
    """Half the width of the interval of log(mean cost / mean share)."""
    n, mean = costs.size, float(costs.mean())
    relative = (costs / mean if mean else np.ones(n)) - shares / shares.mean()
    return float(stdtrit(n - 1, (1 + level) / 2)) * sqrt(float(relative @ relative) / (n * (n - 1)))
