"""The decision table."""

from __future__ import annotations

from math import inf, nan

import pytest

from analysis.estimate.decide import decide

S, C, U = "supported", "contradicted", "inconclusive"


@pytest.mark.parametrize(
    ("direction", "margin", "low", "high", "expected"),
    [
        ("better", 0.0, 0.01, 0.5, S),
        ("better", 0.0, -0.5, -0.01, C),
        ("better", 0.0, -0.1, 0.3, U),
        ("better", 0.0, 0.0, 0.3, U),
        ("better", 0.0, 1e-12, 0.3, U),
        ("better", 0.1, 0.05, 0.3, U),
        ("better", 0.1, 0.02, 0.09, C),
        ("not_worse", 0.1, -0.05, 0.3, S),
        ("not_worse", 0.1, -0.3, -0.11, C),
        ("not_worse", 0.1, -0.3, 0.2, U),
        ("not_worse", 0.1, -0.1, 0.2, U),
        ("equivalent", 0.1, -0.09, 0.09, S),
        ("equivalent", 0.1, 0.11, 0.3, C),
        ("equivalent", 0.1, -0.3, -0.11, C),
        ("equivalent", 0.1, 0.05, 0.3, U),
        ("equivalent", 0.1, -0.1, 0.05, U),
        ("equivalent", 0.1, -0.5, 0.5, U),
    ],
)
def test_differences(direction: str, margin: float, low: float, high: float, expected: str) -> None:
    """Beyond the margin, below it, or neither; a limit on the margin is inconclusive."""
    assert decide(direction, margin, low, high, ratio=False) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("direction", "margin", "low", "high", "expected"),
    [
        ("better", 1.0, 1.1, inf, S),
        ("better", 1.0, 0.2, 0.9, C),
        ("better", 2.0, 1.5, 3.0, U),
        ("not_worse", 2.0, 0.51, 3.0, S),
        ("not_worse", 2.0, 0.1, 0.49, C),
        ("not_worse", 2.0, 0.0, inf, U),
        ("equivalent", 1.25, 0.81, 1.24, S),
        ("equivalent", 1.25, 1.3, inf, C),
        ("equivalent", 1.25, 0.7, 0.79, C),
        ("equivalent", 1.25, 0.7, 1.1, U),
    ],
)
def test_ratios(direction: str, margin: float, low: float, high: float, expected: str) -> None:
    """The same with ratios, the far margin being 1/m; an open end only ever hurts."""
    assert decide(direction, margin, low, high, ratio=True) == expected  # type: ignore[arg-type]


def test_no_interval_decides_nothing() -> None:
    """Where nothing cost anything there is no ratio."""
    assert decide("better", 1.0, None, None, ratio=True) == U


@pytest.mark.parametrize(
    ("margin", "low", "high", "ratio"),
    [(-0.1, 0, 1, False), (0.5, 1, 2, True), (nan, 0, 1, False), (0, nan, 1, False), (0, 1, 0, False)],
)
def test_what_cannot_be_is_refused(margin: float, low: float, high: float, ratio: bool) -> None:
    """Margins out of range, limits that are no numbers or in the wrong order."""
    with pytest.raises(ValueError, match=r"margin|limits"):
        decide("better", margin, low, high, ratio=ratio)


def test_an_unknown_direction_is_refused() -> None:
    """By name."""
    with pytest.raises(ValueError, match="worse"):
        decide("worse", 0.0, 0.1, 0.2, ratio=False)  # type: ignore[arg-type]
