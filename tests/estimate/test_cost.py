"""Ratios of costs, with unknown usage as a range."""

from __future__ import annotations

from itertools import product
from math import exp, inf, nan, sqrt

import numpy as np
import pytest
from scipy import stats

from analysis.estimate.cost import cost_per_solved, cost_ratio
from analysis.estimate.intervals import gaffke

GENERATOR = np.random.default_rng(11)
BASELINE = GENERATOR.lognormal(0.0, 0.6, 24)
ARM = BASELINE * GENERATOR.lognormal(-0.7, 0.4, 24)


def test_ratio_agrees_with_scipy_at_the_expanded_level() -> None:
    """A percentile bootstrap of the ratio of means, its tail moved out by the t factor."""
    tail = stats.norm.cdf(sqrt(24 / 23) * stats.t.ppf(0.025, 23))
    drawn = stats.bootstrap(
        (BASELINE, ARM),
        lambda b, a, axis: b.mean(axis) / a.mean(axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        confidence_level=1 - 2 * tail,
        method="percentile",
        rng=np.random.default_rng(12),
    ).confidence_interval
    found = cost_ratio(BASELINE, BASELINE, ARM, ARM)
    assert found.point_low == found.point_high == pytest.approx(BASELINE.sum() / ARM.sum())
    assert (found.low, found.high) == pytest.approx((drawn.low, drawn.high), rel=0.02)
    assert found.note is None


def test_few_tasks_have_wider_tails() -> None:
    """At six tasks the t factor leaves 0.24 % in each tail: checked on all 6^6 resamples."""
    rows = np.array(list(product(range(6), repeat=6)))
    ratios = BASELINE[:6][rows].sum(axis=1) / ARM[:6][rows].sum(axis=1)
    found = cost_ratio(BASELINE[:6], BASELINE[:6], ARM[:6], ARM[:6])
    assert np.mean(ratios <= found.low) == pytest.approx(0.0024, abs=0.0015)
    assert np.mean(ratios >= found.high) == pytest.approx(0.0024, abs=0.0015)


def test_ratio_holds_for_every_completion() -> None:
    """The point of every completion lies in the range, and its interval inside the interval (as drawn: to 1 %)."""
    more = np.zeros(24)
    more[[2, 9]] = [0.7, 1.1]
    found = cost_ratio(BASELINE, BASELINE + more, ARM, ARM + more, name="x")
    for one, other in product((0.0, 0.4, 1.0), repeat=2):
        baseline, arm = BASELINE + one * more, ARM + other * more
        inner = cost_ratio(baseline, baseline, arm, arm, name="x")
        assert found.point_low - 1e-12 <= inner.point_low <= found.point_high + 1e-12
        assert found.low <= 1.01 * inner.low
        assert inner.high <= 1.01 * found.high
    assert "up to the caps" in str(found.note)


def test_the_order_of_tasks_cannot_matter_and_the_name_is_the_seed() -> None:
    """Same bytes in any order; another name draws otherwise, nearby."""
    one, shuffled = (
        cost_ratio(BASELINE[o], BASELINE[o], ARM[o], ARM[o], name="x") for o in (slice(None), slice(None, None, -1))
    )
    other = cost_ratio(BASELINE, BASELINE, ARM, ARM, name="y")
    assert repr(one) == repr(shuffled)
    assert one.low != other.low
    assert one.low == pytest.approx(other.low, rel=0.05)


def test_unknown_usage_without_a_cap_opens_a_limit() -> None:
    """An arm that may have cost anything has no lower limit above 0; a baseline that may have, no upper one."""
    open_end = ARM.copy()
    open_end[3] = inf
    arm = cost_ratio(BASELINE, BASELINE, ARM, open_end)
    assert (arm.point_low, arm.low) == (0.0, 0.0)
    assert arm.high == pytest.approx(cost_ratio(BASELINE, BASELINE, ARM, ARM).high, rel=0.01)
    baseline = cost_ratio(BASELINE, np.where(open_end == inf, inf, BASELINE), ARM, ARM)
    assert (baseline.point_high, baseline.high) == (inf, inf)
    assert baseline.low > 1
    assert "no cap" in str(arm.note)
    assert "no cap" in str(baseline.note)


def test_zero_cost_is_told_and_never_nan() -> None:
    """Both free: no ratio. A free arm: infinite. A free baseline: 0."""
    free, paid = np.zeros(6), np.ones(6)
    neither = cost_ratio(free, free, free, free)
    assert (neither.point_low, neither.point_high, neither.low, neither.high) == (None, None, None, None)
    assert "no meaning" in str(neither.note)
    arm = cost_ratio(paid, paid, free, free)
    assert (arm.point_low, arm.low, arm.high) == (inf, inf, inf)
    assert "no upper limit" in str(arm.note)
    baseline = cost_ratio(free, free, paid, paid)
    assert (baseline.point_high, baseline.low, baseline.high) == (0.0, 0.0, 0.0)
    unknown = cost_ratio(free, free, free, np.full(6, inf))
    assert (unknown.low, unknown.high) == (0.0, inf)


def test_a_constant_ratio_is_marked() -> None:
    """Three calls against one, on every task: no width, and the note says what that is worth."""
    found = cost_ratio(np.full(8, 3.0), np.full(8, 3.0), np.ones(8), np.ones(8))
    assert (found.low, found.high) == (3.0, 3.0)
    assert "cannot see uncertainty" in str(found.note)


def test_one_task_has_no_limits() -> None:
    """The ratio itself, and [0, inf]."""
    found = cost_ratio([2.0], [2.0], [1.0], [1.0])
    assert (found.point_low, found.low, found.high) == (2.0, 0.0, inf)


@pytest.mark.parametrize(
    ("baseline", "arm"),
    [(([], []), ([], [])), (([1.0], [1.0]), ([1.0, 2.0], [1.0, 2.0])), (([2.0], [1.0]), ([1.0], [1.0]))],
)
def test_costs_that_cannot_be_are_refused(
    baseline: tuple[list[float], list[float]], arm: tuple[list[float], list[float]]
) -> None:
    """No tasks, different tasks, a low above its high."""
    with pytest.raises(ValueError, match="cost"):
        cost_ratio(*baseline, *arm)
    for wrong in (-1.0, nan, inf):
        with pytest.raises(ValueError, match="0 <= low"):
            cost_ratio([wrong], [wrong], [1.0], [1.0])


def test_coverage_of_the_ratio_on_skewed_costs() -> None:
    """Nominal 95 % at 24 tasks of lognormal costs: within .90 and .98 in 400 samples."""
    generator, covered = np.random.default_rng(13), 0
    for sample in range(400):
        baseline = generator.lognormal(0.0, 0.8, 24)
        arm = baseline**0.5 * generator.lognormal(0.0, 0.5, 24)
        found = cost_ratio(baseline, baseline, arm, arm, name=str(sample % 5))
        truth = exp(0.32) / exp(0.08 + 0.125)
        covered += found.low <= truth <= found.high
    assert 0.90 <= covered / 400 <= 0.985


# --- cost per solved task --------------------------------------------------------------------------------------------

SOLVED = (GENERATOR.random(24) < 0.6).astype(float)


def test_cost_per_solved_is_the_delta_method_on_the_log() -> None:
    """By the covariance matrix of the two means."""
    found = cost_per_solved(ARM, ARM, SOLVED)
    cost, share = ARM.mean(), SOLVED.mean()
    gradient = np.array([1 / cost, -1 / share])
    error = sqrt(gradient @ (np.cov(ARM, SOLVED) / 24) @ gradient)
    reach = stats.t.ppf(0.975, 23) * error
    assert found.point_low == pytest.approx(cost / share)
    assert (found.low, found.high) == pytest.approx((cost / share * exp(-reach), cost / share * exp(reach)))


def test_nothing_solved_has_no_upper_end() -> None:
    """Infinite, not an error; the lower limit uses the largest share that the primary interval allows."""
    found = cost_per_solved([2.0] * 10, [2.0] * 10, [0.0] * 10)
    assert (found.point_low, found.high) == (inf, inf)
    assert found.low == pytest.approx(2 / gaffke([0.0] * 10, low=0.0, high=1.0).high)
    assert found.note == "no task was solved"


def test_cost_per_solved_with_unknown_usage() -> None:
    """A range up to the caps; open where there is none; zero where nothing cost anything."""
    capped = cost_per_solved(ARM, ARM + 0.1, SOLVED)
    assert capped.point_low < capped.point_high
    assert capped.low == cost_per_solved(ARM, ARM, SOLVED).low
    assert "up to the caps" in str(capped.note)
    unknown = cost_per_solved(ARM, np.append(ARM[:-1], inf), SOLVED)
    assert (unknown.point_high, unknown.high) == (inf, inf)
    assert "no cap" in str(unknown.note)
    free = cost_per_solved(np.zeros(24), np.zeros(24), SOLVED)
    assert (free.point_high, free.high, free.note) == (0.0, 0.0, "nothing cost anything")


def test_cost_per_solved_of_one_task_and_of_no_share() -> None:
    """One task has no limits; a share above 1 is refused."""
    found = cost_per_solved([2.0], [2.0], [0.5])
    assert (found.point_low, found.low, found.high) == (4.0, 0.0, inf)
    with pytest.raises(ValueError, match="share"):
        cost_per_solved([1.0], [1.0], [1.5])
