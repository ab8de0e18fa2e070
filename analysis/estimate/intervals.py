"""Intervals for the mean of bounded outcomes over tasks, and for single rates.

The primary one is Gaffke's with a mid-p: Dirichlet weights over the T tasks and one pseudo-task, which lies half the time at
the lower and half the time at the upper end of the range. It knows that a pool of T tasks may have missed a kind of task, where
the bootstrap, which knows only what it has seen, can have no width at all. The field's bootstraps stand beside it.

Sources: Gaffke (2005), "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable"; Learned-Miller and Thomas (2019), "A new confidence interval for the mean of a bounded random variable"; Efron (1987)
for BCa; Wilson (1927); Clopper and Pearson (1934).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtr, ndtri

from analysis.estimate.exact import Floats, bootstrap_law, gamma_sum_cdf, increasing_root, lattice_step, merge, seed_of

Kind = Literal["midp", "strict", "half"]
Clusters = Sequence[str | None]

DRAWS = 10_000
"""Resamples drawn where outcomes lie on no lattice."""
NODES = 1_025
"""More distinct outcomes than this are spread over so many points of the range."""
DEGENERATE = "all differences are equal: this method cannot see uncertainty here"
ONE_TASK = "one task: nothing is known of the others, so the interval is the whole range"


@dataclass(frozen=True)
class Interval:
    """A confidence interval of the mean over the population of tasks."""

    low: float
    high: float
    level: float
    """Nominal coverage, such as 0.95."""
    method: str
    note: str | None = None
    """What a reader must know of it: a degenerate or a drawn one."""


class _Atoms(NamedTuple):
    """What carries weight: distinct outcomes with the size of their cluster, how many of each; and the pseudo-task's size."""

    values: Floats
    sizes: Floats
    counts: Floats
    pseudo: float
    mean: float

    def mirrored(self) -> _Atoms:
        return _Atoms(-self.values[::-1], self.sizes[::-1], self.counts[::-1], self.pseudo, -self.mean)


def gaffke(
    differences: ArrayLike,
    *,
    level: float = 0.95,
    low: float = -1.0,
    high: float = 1.0,
    kind: Kind = "midp",
    clusters: Clusters | None = None,
) -> Interval:
    """The primary interval of a mean of outcomes in [low, high]; deterministic, at any number of tasks.

    With w ~ Dirichlet(1, ..., 1) over T + 1 atoms, F_x(c) = P(sum w_i d_i + w_0 x <= c). `midp` inverts (F_low + F_high)
    / 2 at a/2 and 1 - a/2; `strict` F_low at a/2 and F_high at 1 - a/2 (Clopper-Pearson for one arm, exact McNemar for
    pairs); `half` puts half an atom at each end. It has width, holds the mean, stays in the range and is monotone in the
    outcomes.

    Args:
        differences: shape (T,), one outcome a task.
        level: nominal coverage.
        low: least possible outcome.
        high: largest possible outcome.
        kind: see above.
        clusters: shape (T,); tasks of one cluster move together, None is a cluster of its own. The target stays the mean
            over tasks.

    Raises:
        ValueError: no outcomes, one outside the range or not a number, or a level outside (0, 1).
    """
    alpha = _alpha(level)
    atoms = _atoms(differences, low, high, clusters)
    method = f"gaffke-{kind}"
    if atoms.counts.sum() == 1:
        return Interval(low, high, level, method, ONE_TASK)
    return Interval(
        _lower(atoms, low, high, alpha / 2, kind),
        -_lower(atoms.mirrored(), -high, -low, alpha / 2, kind),
        level,
        method,
    )


def gaffke_p(
    differences: ArrayLike, *, null: float = 0.0, low: float = -1.0, high: float = 1.0, kind: Kind = "midp"
) -> float:
    """Two-sided p of the hypothesis that the mean is `null`: the a at which the interval's limit reaches it. One task: 1.

    Raises:
        ValueError: as `gaffke`.
    """
    atoms = _atoms(differences, low, high, None)
    if atoms.counts.sum() == 1:
        return 1.0
    below = _cdf(atoms, low, high, null, kind)
    above = _cdf(atoms.mirrored(), -high, -low, -null, kind)
    return float(min(1.0, 2 * min(below, above)))


def _alpha(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    return 1 - level


def _atoms(differences: ArrayLike, low: float, high: float, clusters: Clusters | None) -> _Atoms:
    array = np.asarray(differences, dtype=float).ravel()
    if not array.size:
        raise ValueError("an interval needs at least one task")
    if not ((array >= low - 1e-9) & (array <= high + 1e-9)).all():
        raise ValueError(f"outcomes must be numbers in [{low:g}, {high:g}]")
    array = np.clip(array, low, high)
    if clusters is None:
        values, counts = merge(array)
        mean = float(values @ counts) / array.size
        if values.size > NODES:
            return _spread(values, counts, low, high, mean)
        return _Atoms(values, np.ones(values.size), counts, 1.0, mean)
    totals, sizes = cluster_sums(array, clusters)
    rows = np.column_stack([np.round(totals / sizes, 12) + 0.0, sizes])
    distinct, occurrences = np.unique(rows, axis=0, return_counts=True)
    mean = float((distinct[:, 0] * distinct[:, 1]) @ occurrences) / array.size
    return _Atoms(distinct[:, 0], distinct[:, 1], occurrences.astype(float), float(sizes.mean()), mean)


def cluster_sums(values: ArrayLike, clusters: Clusters) -> tuple[Floats, Floats]:
    """Sums over clusters and their sizes, both of shape (clusters,); None is a cluster of its own.

    Raises:
        ValueError: not one cluster for each value.
    """
    array = np.asarray(values, dtype=float).ravel()
    if len(clusters) != array.size:
        raise ValueError(f"{array.size} outcomes need as many clusters, not {len(clusters)}")
    names = [(1, str(place)) if name is None else (0, name) for place, name in enumerate(clusters)]
    number = {name: place for place, name in enumerate(dict.fromkeys(names))}
    places = np.array([number[name] for name in names])
    ordered = np.lexsort((array, places))  # sums in an order of their own, so that the tasks' order cannot matter
    sums = np.bincount(places[ordered], weights=array[ordered]).astype(float)
    return sums, np.bincount(places).astype(float)


def _spread(values: Floats, counts: Floats, low: float, high: float, mean: float) -> _Atoms:
    """Split each outcome's weight between its two neighbours on a grid: same mean, monotone, and wider by about 1e-6."""
    nodes = np.linspace(low, high, NODES)
    place = (values - low) / (high - low) * (NODES - 1)
    left = np.minimum(place.astype(np.int64), NODES - 2)
    share = place - left
    weights = np.zeros(NODES)
    weights += np.bincount(left, counts * (1 - share), NODES)
    weights += np.bincount(left + 1, counts * share, NODES)
    kept = weights > 0
    return _Atoms(nodes[kept], np.ones(int(kept.sum())), weights[kept], 1.0, mean)


def _cdf(atoms: _Atoms, low: float, high: float, c: float, kind: Kind) -> float:
    """F(c) as the lower limit reads it: mid-p, atom at `low`, or half an atom at each end."""
    y = np.concatenate([atoms.sizes * (atoms.values - c), atoms.pseudo * (np.array([low, high]) - c)])
    ends = {"midp": [[1.0, 0.0], [0.0, 1.0]], "strict": [[1.0, 0.0]], "half": [[0.5, 0.5]]}[kind]
    shapes = np.array([[*atoms.counts, *end] for end in ends])
    return float(gamma_sum_cdf(y, shapes).mean())


def _lower(atoms: _Atoms, low: float, high: float, tail: float, kind: Kind) -> float:
    """F^-1(tail), never above the mean. The upper limit is the lower one of the mirrored outcomes.

    The root is sought on the probit scale, where F is nearly a straight line.
    """

    def probit(c: float) -> float:
        return float(ndtri(min(1 - 1e-16, max(1e-300, _cdf(atoms, low, high, c, kind)))) - ndtri(tail))

    at_mean = probit(atoms.mean) if atoms.mean > low else 0.0
    if at_mean <= 0:
        return atoms.mean
    weights = atoms.counts * atoms.sizes**2
    spread = sqrt(float(weights @ (atoms.values - atoms.mean) ** 2) + (atoms.pseudo * (high - low)) ** 2 / 3)
    guess = atoms.mean + float(ndtri(tail)) * spread / float(atoms.counts @ atoms.sizes)
    root = increasing_root(probit, (low, -40.0), (atoms.mean, at_mean), max(guess, (low + atoms.mean) / 2))
    return min(round(root, 12), atoms.mean) + 0.0


# --- the field's bootstraps ------------------------------------------------------------------------------------------


class _Law(NamedTuple):
    """The law of the bootstrap mean, exact or drawn."""

    support: Floats
    probabilities: Floats
    draws: int | None

    def lower(self, tail: float) -> float:
        """The smallest point with at least `tail` at or below it."""
        reached = np.cumsum(self.probabilities) >= tail - 1e-12
        return float(self.support[np.argmax(reached)] if reached.any() else self.support[-1])

    def mirrored(self) -> _Law:
        return _Law(-self.support[::-1], self.probabilities[::-1], self.draws)

    def upper(self, tail: float) -> float:
        """The largest point with at least `tail` at or above it."""
        return -self.mirrored().lower(tail)

    def note(self, lower_tail: float, upper_tail: float) -> str | None:
        """The Monte-Carlo standard error of the limits, from the draws around them."""
        if self.draws is None:
            return None
        errors = []
        for law, tail in ((self, lower_tail), (self.mirrored(), upper_tail)):
            off = sqrt(tail * (1 - tail) / self.draws)
            errors.append((law.lower(min(1.0, tail + off)) - law.lower(max(0.0, tail - off))) / 2)
        return f"{self.draws} seeded draws; Monte-Carlo standard error of a limit at most {max(errors):.1g}"


def percentile_bootstrap(
    differences: ArrayLike, *, level: float = 0.95, name: str = "", clusters: Clusters | None = None
) -> Interval:
    """The percentile interval of the bootstrap over tasks: exact on a lattice, else 10,000 draws.

    Args:
        differences: shape (T,).
        level: nominal coverage.
        name: of the contrast; the seed of its own stream of draws, so that adding an arm changes nothing here.
        clusters: shape (T,); clusters are resampled whole.

    Returns:
        Its note holds the Monte-Carlo error of a drawn one, and marks a degenerate one.

    Raises:
        ValueError: no outcomes, or a level outside (0, 1).
    """
    tail = _alpha(level) / 2
    law = _bootstrap(differences, name, clusters)
    note = law.note(tail, tail) if law.support.size > 1 else DEGENERATE
    return Interval(law.lower(tail) + 0.0, law.upper(tail) + 0.0, level, "percentile-bootstrap", note)


def bca_bootstrap(
    differences: ArrayLike, *, level: float = 0.95, name: str = ""
) -> tuple[Interval, None] | tuple[None, str]:
    """The bias-corrected and accelerated bootstrap interval (Efron 1987), or None and the reason why there is none.

    The bias correction counts half the bootstrap means that equal the observed one; the acceleration is the jackknife's.

    Raises:
        ValueError: as `percentile_bootstrap`.
    """
    tail = _alpha(level) / 2
    law = _bootstrap(differences, name, None)
    if law.support.size == 1:
        return None, DEGENERATE
    values, counts = merge(differences)
    mean = float(values @ counts) / counts.sum()
    spread = values - mean
    acceleration = float(counts @ spread**3) / (6 * float(counts @ spread**2) ** 1.5)
    at = np.isclose(law.support, mean, rtol=0, atol=1e-12)
    bias = ndtri(float(law.probabilities @ ((law.support < mean) & ~at) + 0.5 * (law.probabilities @ at)))
    tails = []
    for z in (bias + ndtri(tail), bias - ndtri(tail)):
        if not np.isfinite(z) or acceleration * z >= 1:
            return None, "the acceleration is too large for the correction to be defined"
        tails.append(float(ndtr(bias + z / (1 - acceleration * z))))
    low, high = law.lower(tails[0]), law.upper(1 - tails[1])
    return Interval(low + 0.0, high + 0.0, level, "bca-bootstrap", law.note(tails[0], 1 - tails[1])), None


def _bootstrap(differences: ArrayLike, name: str, clusters: Clusters | None) -> _Law:
    array = (
        np.sort(np.asarray(differences, dtype=float).ravel()) if clusters is None else np.asarray(differences, float)
    )
    if not array.size:
        raise ValueError("an interval needs at least one task")
    if clusters is None:
        totals, sizes = array, np.ones(array.size)
    else:
        totals, sizes = cluster_sums(array, clusters)
        order = np.lexsort((totals, sizes))
        totals, sizes = totals[order], sizes[order]
    means = totals / sizes
    if np.ptp(means) <= 1e-12:
        return _Law(np.array([float(means[0])]), np.ones(1), None)
    step = lattice_step(means) if np.ptp(sizes) == 0 else None
    if step is not None:
        return _Law(*bootstrap_law(means, step), None)
    drawn, counts = np.unique(_draw(totals, sizes, name), return_counts=True)
    return _Law(drawn, counts / DRAWS, DRAWS)


def _draw(totals: Floats, sizes: Floats, name: str) -> Floats:
    """Means of resampled clusters, shape (DRAWS,)."""
    generator, block = np.random.default_rng(seed_of(f"bootstrap {name}")), max(1, 2_000_000 // totals.size)
    found = []
    for start in range(0, DRAWS, block):
        rows = generator.integers(0, totals.size, size=(min(block, DRAWS - start), totals.size))
        found.append(totals[rows].sum(axis=1) / sizes[rows].sum(axis=1))
    return np.concatenate(found)


# --- single rates ----------------------------------------------------------------------------------------------------


def wilson(k: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of a rate: k of n.

    Raises:
        ValueError: n is 0, k is not in 0..n, or a level outside (0, 1).
    """
    _check_rate(k, n)
    z = float(ndtri(1 - _alpha(level) / 2))
    centre, width = (k + z * z / 2) / (n + z * z), z * sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return Interval(max(0.0, centre - width) if k else 0.0, min(1.0, centre + width) if k < n else 1.0, level, "wilson")


def clopper_pearson(k: int, n: int, level: float = 0.95) -> Interval:
    """The exact interval of a rate: k of n.

    Raises:
        ValueError: n is 0, k is not in 0..n, or a level outside (0, 1).
    """
    _check_rate(k, n)
    tail = _alpha(level) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Interval(low, high, level, "clopper-pearson")


def _check_rate(k: int, n: int) -> None:
    if not 0 <= k <= n or n == 0:
        raise ValueError(f"a rate needs 0 <= k <= n and n > 0, not k = {k}, n = {n}")
