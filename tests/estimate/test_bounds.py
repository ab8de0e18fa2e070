"""Unresolved preferences and unknown usage stay in, as bounds."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from analysis.estimate.bounds import preference, sensitivity, total
from analysis.estimate.intervals import gaffke

RESOLVED = np.array([1, 1, 0, -1, 1, 0, 1, 1], dtype=float)
LOW = np.append(RESOLVED, [-1.0, -1.0])
HIGH = np.append(RESOLVED, [1.0, 1.0])


def test_the_interval_reaches_from_the_worst_to_the_best_data() -> None:
    """Lower limit from all -1, upper limit from all +1; the identified range between the means."""
    found = preference(LOW, HIGH, level=0.9)
    assert (found.point_low, found.point_high) == (0.2, 0.6)
    assert (found.low, found.high) == (gaffke(LOW, level=0.9).low, gaffke(HIGH, level=0.9).high)
    assert found.method == "gaffke-midp, unresolved at both ends"


def test_it_holds_for_every_completion() -> None:
    """Whatever the unresolved pairs are, the interval of the completed data lies inside."""
    found = preference(LOW, HIGH)
    for first in (-1, 0, 1):
        for second in (-1, 0, 1):
            inner = gaffke(np.append(RESOLVED, [first, second]))
            assert found.low <= inner.low
            assert inner.high <= found.high


def test_without_unresolved_pairs_it_is_the_primary_interval() -> None:
    """No bounds where nothing is unknown."""
    found, plain = preference(RESOLVED, RESOLVED), gaffke(RESOLVED)
    assert (found.low, found.high, found.method) == (plain.low, plain.high, plain.method)
    assert found.point_low == found.point_high == 0.5


def test_clusters_reach_both_ends() -> None:
    """Clusters are handed on."""
    names = ["a", "a", *[None] * 8]
    assert preference(LOW, HIGH, clusters=names).low == gaffke(LOW, clusters=names).low


def test_bounds_in_the_wrong_order_are_refused() -> None:
    """A low difference above its high one, or different tasks."""
    for low, high in ((HIGH, LOW), (LOW, RESOLVED)):
        with pytest.raises(ValueError, match="low and a high"):
            preference(low, high)


def test_sensitivity_rows() -> None:
    """Ties put them at 0, missing at random drops them, the worst for the claim puts them at -1."""
    ties, missing, worst = sensitivity(LOW, HIGH)
    assert (ties.assumption, ties.point, ties.n_tasks) == ("ties", 0.4, 10)
    assert (missing.assumption, missing.point, missing.n_tasks) == ("missing at random", 0.5, 8)
    assert (worst.assumption, worst.point, worst.low) == ("worst for the claim", 0.2, gaffke(LOW).low)
    assert (missing.low, missing.high) == (gaffke(RESOLVED).low, gaffke(RESOLVED).high)


def test_missing_at_random_is_taken_within_a_task() -> None:
    """Three repeats: a win, a win and an unresolved one have a mean of 1 over the resolved."""
    _, missing, _ = sensitivity([1 / 3, 0.0], [1.0, 0.0])
    assert missing.point == pytest.approx(0.5)


def test_the_worst_for_equivalence_is_the_whole_range() -> None:
    """Either end is bad for a claim of equivalence."""
    _, _, worst = sensitivity(LOW, HIGH, direction="equivalent")
    whole = preference(LOW, HIGH)
    assert (worst.point, worst.low, worst.high) == (None, whole.low, whole.high)
    assert sensitivity(RESOLVED, RESOLVED, direction="equivalent")[2].point == 0.5


def test_nothing_resolved_leaves_no_row() -> None:
    """All unresolved: missing at random has nothing to say, and says so with None."""
    _, missing, _ = sensitivity([-1.0, -1.0], [1.0, 1.0])
    assert (missing.point, missing.low, missing.high, missing.n_tasks) == (None, None, None, 0)


@pytest.mark.parametrize(
    ("known", "caps", "expected"),
    [
        ([10, 20], [0, 0], (30, 30)),
        ([10, 20], [0, 256], (30, 286)),
        ([10, nan], [0, 256], (10, 266)),
        ([10, 20], [0, nan], (30, inf)),
        ([10, 20], [0, inf], (30, inf)),
        ([10, nan], [0, 0], (10, inf)),
        ([], [], (0, 0)),
    ],
)
def test_total_is_known_to_known_plus_caps(
    known: list[float], caps: list[float], expected: tuple[float, float]
) -> None:
    """Unknown is never 0: without a cap the upper end is open, also where nothing is recorded and nothing more is allowed."""
    assert total(known, caps) == expected


def test_total_refuses_negative_usage() -> None:
    """And shapes that differ."""
    for known, caps in (([-1.0], [0.0]), ([1.0], [-1.0]), ([1.0], [])):
        with pytest.raises(ValueError, match="as many caps"):
            total(known, caps)
