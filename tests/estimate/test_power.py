"""What a study can detect, through its own interval."""

from __future__ import annotations

import time

import numpy as np
import pytest

from analysis.estimate import power
from analysis.estimate.intervals import gaffke
from analysis.estimate.power import (
    best_repeats,
    can_be_supported,
    decisive_tallies,
    minimum_detectable,
    pilot_inflation,
    sentence,
    tasks_needed,
)

PAIRS = {"var_task": 0.07, "var_within": 0.24}


def test_known_tallies() -> None:
    """5-0, 7-1 and 9-2 decide; strict needs one more win."""
    assert decisive_tallies(24)[:3] == [(5, 0), (7, 1), (9, 2)]
    assert decisive_tallies(24, kind="strict")[:3] == [(6, 0), (8, 1), (10, 2)]


@pytest.mark.parametrize(
    ("tasks", "margin", "claims", "level"), [(8, 0.0, 1, 0.95), (20, 0.1, 3, 0.9), (12, -0.2, 1, 0.95)]
)
@pytest.mark.parametrize("kind", ["midp", "strict", "half"])
def test_tallies_decide_and_one_win_less_does_not(
    tasks: int, margin: float, claims: int, level: float, kind: str
) -> None:
    """By the interval itself."""
    found = decisive_tallies(tasks, level=level, margin=margin, claims=claims, kind=kind)  # type: ignore[arg-type]
    assert found
    for wins, losses in found:
        for won in {wins, max(0, wins - 1)}:
            data = [1.0] * won + [-1.0] * losses + [0.0] * (tasks - won - losses)
            low = gaffke(data, level=1 - (1 - level) / claims, kind=kind).low  # type: ignore[arg-type]
            assert (low > margin) == (won == wins)


def test_too_few_tasks_have_no_tally() -> None:
    """Below five tasks even a clean sweep decides nothing; nor does one task."""
    assert [decisive_tallies(tasks) for tasks in (1, 2, 3, 4)] == [[], [], [], []]
    assert decisive_tallies(5) == [(5, 0)]
    assert len(decisive_tallies(200)) == 12


@pytest.mark.parametrize(
    ("tasks", "direction", "margin", "claims", "expected"),
    [
        (4, "better", 0.0, 1, False),
        (5, "better", 0.0, 1, True),
        (5, "better", 0.0, 2, False),
        (6, "better", 0.0, 6, True),
        (6, "better", 0.5, 1, False),
        (3, "not_worse", 0.5, 1, True),
        (8, "equivalent", 0.3, 1, False),
        (9, "equivalent", 0.3, 1, True),
    ],
)
def test_what_no_data_could_support(tasks: int, direction: str, margin: float, claims: int, expected: bool) -> None:
    """By the clean sweep, or by all ties."""
    found = can_be_supported(tasks, 3, direction=direction, margin=margin, level=0.95, claims=claims)  # type: ignore[arg-type]
    assert found is expected
    with pytest.raises(ValueError, match="at least one"):
        can_be_supported(0, 1, direction="better")


@pytest.mark.parametrize(
    ("repeats", "mean", "var_task", "var_within"),
    [(1, 0.2, 0.07, 0.24), (3, 0.1, 0.16, 0.34), (5, -0.3, 0.0, 0.3), (2, 0.0, 0.2, 0.0)],
)
def test_simulated_outcomes_have_the_planned_moments(
    repeats: int, mean: float, var_task: float, var_within: float
) -> None:
    """Mean, and variance between and within tasks, as far as a mean on [-1, 1] allows them."""
    values, law = power._outcome_law(repeats, mean, var_task, var_within)
    assert law.sum() == pytest.approx(1)
    assert values @ law == pytest.approx(mean, abs=1e-3)
    expected = var_task + (0.0 if var_within == 0 else var_within / repeats)
    if var_within or repeats == 1:
        assert (values - mean) ** 2 @ law == pytest.approx(expected, rel=0.03)


def test_variances_that_cannot_be_are_cut() -> None:
    """A mean of 0.95 leaves little room; a mean of 1 none."""
    values, law = power._outcome_law(1, 0.95, 0.5, 0.5)
    assert values @ law == pytest.approx(0.95, abs=1e-3)
    _, sure = power._outcome_law(2, 1.0, 0.1, 0.1)
    assert sure[-1] == pytest.approx(1)


def test_the_detectable_difference_has_the_wanted_power() -> None:
    """Checked by drawing other data and deciding by the interval itself."""
    difference = minimum_detectable(24, 3, **PAIRS)
    assert difference is not None
    values, law = power._outcome_law(3, difference, **PAIRS)
    generator = np.random.default_rng(31)
    studies = [generator.choice(values, 24, p=law) for _ in range(600)]
    assert np.mean([gaffke(data).low > 0 for data in studies]) == pytest.approx(0.8, abs=0.05)


def test_typical_detectable_differences() -> None:
    """Near the t's answer at 100 tasks, above it at 24, and much above it at 8: the interval does not trust few tasks."""
    for tasks, by_t, more in ((100, 0.11, 0.01), (24, 0.23, 0.05)):
        found = minimum_detectable(tasks, 3, **PAIRS)
        assert found is not None
        assert by_t - 0.01 <= found <= by_t + more
    assert minimum_detectable(3, 3, **PAIRS) is None
    assert minimum_detectable(1, 1, **PAIRS) is None


def test_more_of_anything_detects_less_or_costs_more() -> None:
    """More tasks and repeats detect smaller differences; more power and more claims larger ones."""
    plain = minimum_detectable(30, 1, **PAIRS)
    assert plain is not None
    assert (minimum_detectable(60, 1, **PAIRS) or 1) < plain
    assert (minimum_detectable(30, 3, **PAIRS) or 1) < plain
    assert (minimum_detectable(30, 1, power=0.9, **PAIRS) or 1) > plain
    assert (minimum_detectable(30, 1, claims=5, **PAIRS) or 1) > plain


def test_tasks_needed_is_the_other_way_round() -> None:
    """The tasks that a difference needs detect about that difference."""
    needed = tasks_needed(0.2, 1, **PAIRS)
    assert needed is not None
    assert minimum_detectable(needed, 1, **PAIRS) == pytest.approx(0.2, rel=0.05)
    assert tasks_needed(0.001, 1, var_task=0.3, var_within=0.6) is None
    with pytest.raises(ValueError, match="difference to detect"):
        tasks_needed(0.0, 1, **PAIRS)


def test_the_sentence() -> None:
    """One sentence, the same at every call, with both answers or the one that is needed."""
    text = sentence(24, 3, **PAIRS)
    assert text == sentence(24, 3, **PAIRS)
    assert text.startswith("24 tasks x 3 repeats detect 2")
    assert "points or more; 10 points need about 12" in text
    assert sentence(1, 1, **PAIRS).startswith("1 task x 1 repeat detect no difference at all")
    assert sentence(1_000, 1, **PAIRS).endswith("points or more")
    assert sentence(24, 1, target=0.002, **PAIRS).endswith("more than 100,000 tasks")


def test_a_plan_is_quick() -> None:
    """A sentence for a small study takes far less than a second and a half."""
    start = time.perf_counter()
    sentence(12, 1, var_task=0.16, var_within=0.34)
    assert time.perf_counter() - start < 1.5


def test_best_repeats() -> None:
    """sqrt of the cost ratio times the variance ratio; one run at least, and no more than 100."""
    assert best_repeats(cost_task=9.0, cost_run=1.0, var_task=0.1, var_within=0.4) == 6
    assert best_repeats(cost_task=0.0, cost_run=1.0, var_task=0.1, var_within=0.4) == 1
    assert best_repeats(cost_task=1.0, cost_run=1.0, var_task=0.1, var_within=0.0) == 1
    assert best_repeats(cost_task=1.0, cost_run=1.0, var_task=0.0, var_within=0.4) == 100
    for wrong in ({"cost_run": 0.0}, {"var_task": -0.1}):
        with pytest.raises(ValueError, match="best_repeats"):
            best_repeats(**{"cost_task": 1.0, "cost_run": 1.0, "var_task": 0.1, "var_within": 0.1, **wrong})


def test_a_pilot_is_inflated() -> None:
    """1.35 for 8 pilot tasks, 1.16 for 24."""
    assert [round(pilot_inflation(n), 2) for n in (8, 24)] == [1.35, 1.16]
    with pytest.raises(ValueError, match="two tasks"):
        pilot_inflation(1)
