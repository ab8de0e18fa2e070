"""What is not known stays in: bounds for unresolved preferences and for unknown usage.

An unresolved pair may have been a win or a loss, so it lies in [-1, +1]; usage that a provider did not report lies between
what is recorded and the cap. An estimate is then a range, and its interval holds for every completion of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analysis.estimate.exact import Floats
from analysis.estimate.intervals import Clusters, gaffke


@dataclass(frozen=True)
class Bounded:
    """The identified range of a mean, and one interval that covers the truth wherever in the range it lies."""

    point_low: float
    """The mean with every unresolved pair lost."""
    point_high: float
    """The mean with every unresolved pair won."""
    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class Row:
    """One reading of the unresolved pairs: a sensitivity, never the primary estimate."""

    assumption: Literal["ties", "missing at random", "worst for the claim"]
    point: float | None
    """None: nothing is left under this assumption."""
    low: float | None
    high: float | None
    n_tasks: int


def preference(
    differences_low: ArrayLike, differences_high: ArrayLike, *, level: float = 0.95, clusters: Clusters | None = None
) -> Bounded:
    """The identified range and its interval: the lower limit of the worst data, the upper limit of the best.

    Valid because the primary interval is monotone in the outcomes.

    Args:
        differences_low: shape (T,), task means in [-1, 1] with every unresolved pair at -1.
        differences_high: the same with every unresolved pair at +1.
        level: nominal coverage.
        clusters: as in `gaffke`.

    Raises:
        ValueError: shapes that differ, a low above its high, or what `gaffke` refuses.
    """
    worst, best = _both(differences_low, differences_high)
    bottom = gaffke(worst, level=level, clusters=clusters)
    top = gaffke(best, level=level, clusters=clusters)
    method = bottom.method if np.array_equal(worst, best) else f"{bottom.method}, unresolved at both ends"
    return Bounded(_mean(worst), _mean(best), bottom.low, top.high, level, method)


def sensitivity(
    differences_low: ArrayLike,
    differences_high: ArrayLike,
    *,
    level: float = 0.95,
    direction: Literal["better", "not_worse", "equivalent"] = "better",
) -> tuple[Row, Row, Row]:
    """Three other readings of the unresolved pairs: as ties, as missing at random, and as bad for the claim as they can be.

    Missing at random: each task's mean is taken over its resolved pairs, and a task without any is dropped. Worst for a
    claim of equivalence is the whole bounded interval, without a point.

    Args:
        differences_low: as in `preference`.
        differences_high: as in `preference`.
        level: nominal coverage.
        direction: the claim's.

    Raises:
        ValueError: as `preference`.
    """
    worst, best = _both(differences_low, differences_high)
    middle, unresolved = (worst + best) / 2, (best - worst) / 2
    some = unresolved < 1 - 1e-9
    resolved = np.clip(middle[some] / (1 - unresolved[some]), -1.0, 1.0)
    ties, missing = _row("ties", middle, level), _row("missing at random", resolved, level)
    if direction != "equivalent":
        return ties, missing, _row("worst for the claim", worst, level)
    whole = preference(worst, best, level=level)
    point = whole.point_low if np.array_equal(worst, best) else None
    return ties, missing, Row("worst for the claim", point, whole.low, whole.high, worst.size)


def _row(
    assumption: Literal["ties", "missing at random", "worst for the claim"], differences: Floats, level: float
) -> Row:
    if not differences.size:
        return Row(assumption, None, None, None, 0)
    interval = gaffke(differences, level=level)
    return Row(assumption, _mean(differences), interval.low, interval.high, differences.size)


def _both(low: ArrayLike, high: ArrayLike) -> tuple[Floats, Floats]:
    worst, best = np.asarray(low, dtype=float).ravel(), np.asarray(high, dtype=float).ravel()
    if worst.shape != best.shape or not (worst <= best + 1e-9).all():
        raise ValueError("each task needs a low and a high difference, the low one not above the high one")
    return worst, best


def _mean(values: Floats) -> float:
    return float(np.sort(values).sum() / values.size)


def total(known: ArrayLike, caps: ArrayLike) -> tuple[float, float]:
    """A total of usage with unknown parts: [known, known + caps], or "at least" where an upper end is infinite.

    Args:
        known: shape (calls,), what each receipt records; NaN where it records nothing. Tokens, calls or US dollars.
        caps: shape (calls,), how much each call may have used beyond that: 0 for a complete receipt, its cap for
            another, NaN or infinite where no cap is known. A call without any record needs a cap above 0 to be bounded.

    Raises:
        ValueError: shapes that differ, or a negative number.
    """
    recorded, beyond = np.asarray(known, dtype=float).ravel(), np.asarray(caps, dtype=float).ravel()
    if recorded.shape != beyond.shape or (recorded < 0).any() or (beyond < 0).any():
        raise ValueError("usage needs as many caps as amounts, none of them negative")
    low = float(np.nansum(np.sort(recorded)))
    open_ended = np.isnan(beyond) | (np.isnan(recorded) & (beyond == 0))
    return low, inf if open_ended.any() else low + float(np.sort(beyond).sum())
