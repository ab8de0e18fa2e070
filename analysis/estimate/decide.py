"""The decision of a claim: where its interval lies against its margin."""

from __future__ import annotations

from math import isnan
from typing import Literal

Direction = Literal["better", "not_worse", "equivalent"]
Decision = Literal["supported", "contradicted", "inconclusive"]

ON_THE_MARGIN = 1e-9
"""A limit within this of the margin lies on it: the last digit that a report prints."""


def decide(
    direction: Direction, margin: float, low: float | None, high: float | None, *, ratio: bool = False
) -> Decision:
    """Whether an interval supports a claim, contradicts it or leaves it open.

    Effects are oriented so that more is better for the arm. `better` by m: supported beyond m, contradicted below it.
    `not_worse` by m: the same at -m (a ratio: 1/m). `equivalent`: supported inside the two margins, contradicted wholly
    outside. A limit on the margin decides nothing, nor does an interval that does not exist.

    Args:
        direction: of the claim.
        margin: a difference of 0 or more, or a ratio of 1 or more.
        low: lower limit of the simultaneous interval, None where the estimate is undefined; may be infinite.
        high: upper limit.
        ratio: whether the effect is a ratio, for which 1 means equal.

    Raises:
        ValueError: a margin out of its range, limits that are no numbers or in the wrong order, or an unknown direction.
    """
    if margin < (1 if ratio else 0) or isnan(margin):
        raise ValueError(f"a margin is a {'ratio of 1' if ratio else 'difference of 0'} or more, not {margin}")
    if low is None or high is None:
        return "inconclusive"
    if isnan(low) or isnan(high) or low > high:
        raise ValueError(f"limits must be numbers in order, not {low} and {high}")
    far = 1 / margin if ratio else -margin
    if direction == "better":
        return _against(margin, low, high)
    if direction == "not_worse":
        return _against(far, low, high)
    if direction != "equivalent":
        raise ValueError(f"a direction is better, not_worse or equivalent, not {direction!r}")
    above, below = _against(far, low, high), _against(margin, low, high)
    if above == "supported" and below == "contradicted":
        return "supported"
    return "contradicted" if above == "contradicted" or below == "supported" else "inconclusive"


def _against(bar: float, low: float, high: float) -> Decision:
    """Beyond the bar, below it, or neither."""
    if low > bar + ON_THE_MARGIN:
        return "supported"
    return "contradicted" if high < bar - ON_THE_MARGIN else "inconclusive"
