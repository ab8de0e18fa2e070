"""How far judges can be believed: accuracy, position bias, agreement, and how many judges a panel is worth.

Sources: Cohen (1960) for kappa; Krippendorff (2004) for alpha; Kish's design effect for the effective size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from analysis.estimate.intervals import Interval, clopper_pearson


def accuracy(right: int, n: int, *, level: float = 0.95) -> tuple[float, Interval]:
    """The share of `n` labelled pairs that a judge got right, with its Clopper-Pearson interval.

    Raises:
        ValueError: as `clopper_pearson`.
    """
    interval = clopper_pearson(right, n, level)
    return right / n, interval


def first_position_bias(first: int, n: int) -> tuple[float, float]:
    """The share of `n` inconsistent pairs in which the judge named the first text both times, and the exact binomial p
    against 1/2.

    Raises:
        ValueError: n is 0, or `first` is not in 0..n.
    """
    if not 0 <= first <= n or n == 0:
        raise ValueError(f"a share needs 0 <= first <= n and n > 0, not first = {first}, n = {n}")
    return first / n, float(min(1.0, 2 * bdtr(min(first, n - first), n, 0.5)))


def cohen_kappa(a: Sequence[Hashable], b: Sequence[Hashable]) -> float | None:
    """Agreement of two raters beyond chance; None where chance alone agrees always (one label in use, by both).

    Args:
        a: the first rater's label of each unit.
        b: the second rater's.

    Raises:
        ValueError: no units, or not as many labels from both.
    """
    if len(a) != len(b) or not a:
        raise ValueError(f"kappa needs as many labels from both raters, and at least one: {len(a)} and {len(b)}")
    n, mine, theirs = len(a), Counter(a), Counter(b)
    together = sum(mine[label] * theirs[label] for label in mine)
    if together == n * n:
        return None
    agreed = sum(x == y for x, y in zip(a, b, strict=True))
    return (n * agreed - together) / (n * n - together)


def krippendorff_alpha(ratings: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Krippendorff's alpha for nominal labels, any number of raters, None where a rating is missing.

    None as a result: no unit has two ratings, or only one label is in use.

    Args:
        ratings: shape (raters, units).

    Raises:
        ValueError: raters with different numbers of units.
    """
    if len({len(row) for row in ratings}) > 1:
        raise ValueError("every rater needs a label or None for every unit")
    units = [Counter(label for label in unit if label is not None) for unit in zip(*ratings, strict=True)]
    units = [unit for unit in units if unit.total() > 1]
    totals = sum(units, Counter())
    n = totals.total()
    expected = n * n - sum(count * count for count in totals.values())
    if not expected:
        return None
    observed = sum((u.total() ** 2 - sum(c * c for c in u.values())) / (u.total() - 1) for u in units)
    return 1 - (n - 1) * observed / expected


def effective_panel_size(votes: ArrayLike) -> float | None:
    """How many independent judges a panel is worth: K / (1 + (K - 1) r), r the mean correlation of its errors or votes.

    None where no two judges both vary. A negative r counts as 0: no panel is worth more than its judges.

    Args:
        votes: shape (K judges, units), numbers; NaN where a judge gave none.

    Raises:
        ValueError: not a table of at least one judge.
    """
    table = np.asarray(votes, dtype=float)
    if table.ndim != 2 or not len(table):
        raise ValueError("votes are a table of judges by units")
    if len(table) == 1:
        return 1.0
    found = []
    for one, other in combinations(table, 2):
        both = np.isfinite(one) & np.isfinite(other)
        if both.sum() > 1 and np.ptp(one[both]) and np.ptp(other[both]):
            found.append(float(np.corrcoef(one[both], other[both])[0, 1]))
    if not found:
        return None
    return len(table) / (1 + (len(table) - 1) * max(0.0, sum(found) / len(found)))
