"""The primary interval covers: a small sample here, the full sweep in `nox -s soak`."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from analysis.estimate.intervals import gaffke, gaffke_p
from tests.estimate.coverage import joint_coverage, processes, sweep


def test_p_above_the_level_is_a_covered_mean() -> None:
    """The sweep asks p, which is cheaper than the interval; both say the same."""
    generator = np.random.default_rng(51)
    for process in processes(2_000):
        for _ in range(4):
            data = process.draw(generator, 8, 2)
            found = gaffke(data)
            assert (found.low <= process.mean <= found.high) == (gaffke_p(data, null=process.mean) > 0.05)


def test_coverage_of_eight_tasks() -> None:
    """Nominal 95 %, 300 studies of each of the fifteen processes: never under .90."""
    found = sweep(300, (8,), (1,), population=20_000)
    assert len(found) == 15
    assert min(found.values()) >= 0.90, found
    assert np.mean(list(found.values())) >= 0.97


@pytest.mark.soak
def test_coverage_in_full() -> None:
    """4,000 studies of each process at five sizes, one and three repeats: never under .93 less three standard errors."""
    found = sweep(4_000, (8, 12, 24, 48, 100), (1, 3))
    bar = 0.93 - 3 * sqrt(0.93 * 0.07 / 4_000)
    assert not {name: value for name, value in found.items() if value < bar}


@pytest.mark.soak
@pytest.mark.parametrize("tasks", [6, 12, 24, 60])
@pytest.mark.parametrize("skills", [(0.5,) * 5, (0.95,) * 5, (0.3, 0.4, 0.5, 0.6), (0.9, 0.98, 0.9)], ids=str)
def test_simultaneous_intervals_hold_together(tasks: int, skills: tuple[float, ...]) -> None:
    """Nominal 95 % for all claims at once, 600 studies: never under .93."""
    assert joint_coverage(tasks, skills, 600) >= 0.93
