"""Several questions at once: simultaneous intervals and adjusted p-values of the claims about differences.

Step-down max-T by flipping the signs of whole task rows: a task keeps its row together, so the claims' dependence is in
the reference law and need not be assumed. Sources: Westfall and Young (1993), "Resampling-based multiple testing"; Holm (1979);
Benjamini and Hochberg (1995).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from analysis.estimate.exact import Floats, seed_of
from analysis.estimate.intervals import Interval, gaffke

ENUMERATED = 14
"""Up to so many tasks, all sign flips are enumerated."""
DRAWS = 9_999
"""Flips drawn beyond that, the observed one added."""


@dataclass(frozen=True)
class Simultaneous:
    """One claim among several."""

    level_used: float
    """1 - a'_j: the level at which the claim's own interval is taken, so that all hold together at the study's level."""
    p_adjusted: float
    """Step-down max-T; two-sided, against the margin."""
    interval: Interval


def simultaneous(
    columns: Mapping[str, ArrayLike],
    task_ids: Mapping[str, Sequence[str]],
    margins: Mapping[str, float],
    *,
    level: float = 0.95,
    columns_high: Mapping[str, ArrayLike] | None = None,
    clusters: Mapping[str, str | None] | None = None,
) -> dict[str, Simultaneous]:
    """Intervals of all claims that hold together, and their adjusted p-values.

    The claim's interval is the primary one at a'_j = 2 P(t with T_j - 1 degrees > c), c the upper quantile of the
    largest |t| of all claims under flips, clipped to [a/m, a], and exactly a for one claim.

    Args:
        columns: claim -> its differences, shape (T_j,), in [-1, 1].
        task_ids: claim -> the tasks of these, T_j names, all different; tasks of one name share their sign.
        margins: claim -> the difference that it is compared with: m for better, -m for not worse, 0 for equivalent.
        level: joint nominal coverage.
        columns_high: the same with every unresolved pair at +1, where `columns` has it at -1. Lower limits then come
            from `columns`, upper ones from here, and the smaller a'_j and the larger p count.
        clusters: task -> its cluster, whose tasks share their sign; tasks that are absent or None are alone.

    Raises:
        ValueError: no claims, keys or lengths that do not fit, or what `gaffke` refuses.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    highs = columns if columns_high is None else columns_high
    _check(columns, highs, task_ids, margins)
    names, groups = sorted(columns), clusters or {}
    versions = [columns] if columns_high is None else [columns, highs]
    tests = [_max_t(_table(version, task_ids, margins, names, groups), 1 - level) for version in versions]
    p_values = np.max([test.p for test in tests], axis=0)
    if len(tests) > 1:
        p_values = np.where(tests[0].signs * tests[1].signs < 0, 1.0, p_values)
    found = {}
    for place, name in enumerate(names):
        alpha = min(float(test.alphas[place]) for test in tests)
        interval = _interval(columns[name], highs[name], 1 - alpha, [groups.get(task) for task in task_ids[name]])
        found[name] = Simultaneous(1 - alpha, float(p_values[place]), interval)
    return {name: found[name] for name in columns}


def _check(
    columns: Mapping[str, ArrayLike],
    highs: Mapping[str, ArrayLike],
    task_ids: Mapping[str, Sequence[str]],
    margins: Mapping[str, float],
) -> None:
    if not columns:
        raise ValueError("simultaneous intervals need at least one claim")
    if not set(columns) == set(highs) == set(task_ids) == set(margins):
        raise ValueError("columns, columns_high, task_ids and margins must be about the same claims")
    for name in columns:
        sizes = {np.size(columns[name]), np.size(highs[name]), len(task_ids[name]), len(set(task_ids[name]))}
        if len(sizes) > 1 or 0 in sizes:
            raise ValueError(f"claim {name}: needs one difference for each of its tasks, and each task once")


def _interval(low: ArrayLike, high: ArrayLike, level: float, clusters: Sequence[str | None]) -> Interval:
    own = clusters if any(cluster is not None for cluster in clusters) else None
    bottom = gaffke(low, level=level, clusters=own)
    if np.array_equal(np.asarray(low), np.asarray(high)):
        return bottom
    top = gaffke(high, level=level, clusters=own)
    return Interval(bottom.low, top.high, level, f"{bottom.method}, unresolved at both ends", bottom.note)


# --- max-T -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """One row for each unit that flips (a task or a cluster), one column for each claim; 0 where a claim has no such task."""

    rows: Floats
    sizes: Floats
    """Units of each claim."""


@dataclass(frozen=True)
class _MaxT:
    alphas: Floats
    p: Floats
    signs: Floats


def _table(
    columns: Mapping[str, ArrayLike],
    task_ids: Mapping[str, Sequence[str]],
    margins: Mapping[str, float],
    names: list[str],
    clusters: Mapping[str, str | None],
) -> _Table:
    units: dict[tuple[str, str], int] = {}
    entries: list[tuple[int, int, float]] = []
    for place, name in enumerate(names):
        values = np.asarray(columns[name], dtype=float).ravel() - margins[name]
        for task, value in sorted(zip(task_ids[name], values.tolist(), strict=True)):
            cluster = clusters.get(task)
            unit = ("task", task) if cluster is None else ("cluster", cluster)
            entries.append((units.setdefault(unit, len(units)), place, value))
    rows, present = np.zeros((len(units), len(names))), np.zeros((len(units), len(names)), dtype=bool)
    for unit_place, place, value in entries:
        rows[unit_place, place] += value
        present[unit_place, place] = True
    rows = np.round(rows, 12) + 0.0
    return _Table(rows[np.lexsort(rows.T)], present.sum(axis=0).astype(float))


def _sums(rows: Floats) -> Floats:
    """|sums| of all columns under every flip, the observed one first: shape (flips, claims).

    For few units all flips are enumerated, the last one's sign held (|t| does not see a flip of everything).
    """
    units = len(rows)
    if units <= ENUMERATED:
        codes = np.arange(2 ** (units - 1))[:, None] >> np.arange(units)[None, :]
        return np.asarray(np.abs((1.0 - 2.0 * (codes & 1)) @ rows))
    generator, block = np.random.default_rng(seed_of("max-t")), max(1, 2_000_000 // units)
    found = [rows.sum(axis=0)[None, :]]
    for start in range(0, DRAWS, block):
        drawn = generator.integers(0, 2, size=(min(block, DRAWS - start), units), dtype=np.int8)
        found.append((1.0 - 2.0 * drawn) @ rows)
    return np.asarray(np.abs(np.concatenate(found)))


def _statistics(rows: Floats, sizes: Floats) -> Floats:
    """|t| of every claim under every flip, the observed one first: shape (flips, claims).

    Flips leave the sum of squares Q, so t follows from the sum S: S sqrt((n - 1) / (n Q - S^2)). Without variance it is
    infinite, or 0 where the mean is 0.
    """
    sums, squares = _sums(rows), (rows**2).sum(axis=0)
    rest = np.clip(sizes * squares - sums**2, 0.0, None)
    flat = rest <= 1e-10 * sizes * squares
    with np.errstate(divide="ignore", invalid="ignore"):
        t = sums * np.sqrt((sizes - 1) / rest)
    return np.where(flat, np.where(sums > 1e-9, inf, 0.0), t)


def _max_t(table: _Table, alpha: float) -> _MaxT:
    t = _statistics(table.rows, table.sizes)
    return _MaxT(_alphas(t, table.sizes, alpha), _step_down(t), np.sign(table.rows.sum(axis=0)))


def _alphas(t: Floats, sizes: Floats, alpha: float) -> Floats:
    """a'_j of every claim, from the upper quantile of the largest |t|: at most a share `alpha` of the flips lies above it."""
    flips, m = t.shape
    if m == 1:
        return np.array([alpha])
    largest = np.sort(t.max(axis=1))[::-1]
    critical = float(largest[int(alpha * flips + 1e-9)])
    own = np.where(sizes > 1, 2 * stdtr(np.maximum(sizes - 1, 1), -critical), 0.0)
    return np.clip(own, alpha / m, alpha)


def _step_down(t: Floats) -> Floats:
    """Adjusted p: each claim against the largest |t| of those that are not more extreme than itself."""
    observed = t[0]
    order = np.argsort(-observed, kind="stable")
    adjusted, so_far = np.empty(observed.size), 0.0
    for rank, place in enumerate(order):
        bar = observed[place] * (1 - 1e-9)
        so_far = max(so_far, float(np.mean(t[:, order[rank:]].max(axis=1) >= bar)))
        adjusted[place] = so_far
    return adjusted


# --- p-values alone --------------------------------------------------------------------------------------------------


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down adjustment, valid under any dependence. Shape (m,) in and out."""
    values = _p_values(p)
    order, m = np.argsort(values, kind="stable"), values.size
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * (m - np.arange(m))))
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Benjamini and Hochberg's adjustment for the false discovery rate: for exploratory contrasts. Shape (m,) in and out."""
    values = _p_values(p)
    order, m = np.argsort(values, kind="stable"), values.size
    adjusted = np.empty(m)
    scaled = values[order] * m / np.arange(1, m + 1)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return adjusted


def _p_values(p: ArrayLike) -> Floats:
    values = np.asarray(p, dtype=float).ravel()
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("p-values lie in [0, 1]")
    return values


def split_level(level: float, differences: int, ratios: int) -> tuple[float, float]:
    """The level divided between the two groups of claims, by their number.

    Args:
        level: of the study.
        differences: number of claims about differences.
        ratios: number of claims about cost ratios.

    Returns:
        The joint level for `simultaneous`, and the level of each single cost ratio (Bonferroni inside that group). A
        group without claims has the whole level.

    Raises:
        ValueError: a negative number of claims.
    """
    if min(differences, ratios) < 0:
        raise ValueError("a number of claims is not negative")
    alpha, claims = 1 - level, max(1, differences + ratios)
    share = differences / claims if differences else 1.0
    return 1 - alpha * share, 1 - alpha / claims if ratios else level
