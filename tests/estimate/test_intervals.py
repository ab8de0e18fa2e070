"""The primary interval's promises, and the field's intervals against independent sources."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.estimate import exact, intervals
from analysis.estimate.intervals import gaffke, gaffke_p

quick = settings(max_examples=60, derandomize=True, deadline=None)
kinds = st.sampled_from(["midp", "strict", "half"])


@st.composite
def outcomes(draw: st.DrawFn, least: int = 1) -> list[float]:
    """Differences k/R of up to twelve tasks."""
    r = draw(st.sampled_from([1, 2, 3, 5]))
    return [k / r for k in draw(st.lists(st.integers(-r, r), min_size=least, max_size=12))]


scores = st.lists(st.floats(-1, 1), min_size=1, max_size=10)
any_data = st.one_of(outcomes(), scores)


@quick
@given(any_data, kinds)
def test_it_holds_the_mean_and_has_width_inside_the_range(data: list[float], kind: intervals.Kind) -> None:
    """Never zero-width, never outside [-1, 1], never beside the estimate."""
    found = gaffke(data, kind=kind)
    mean = sum(data) / len(data)
    assert -1 <= found.low <= mean + 1e-12
    assert mean - 1e-12 <= found.high <= 1
    assert found.high - found.low > 1e-3


@quick
@given(any_data, kinds)
def test_swapping_the_arms_negates_it(data: list[float], kind: intervals.Kind) -> None:
    """To the last bit."""
    one, other = gaffke(data, kind=kind), gaffke([-d for d in data], kind=kind)
    assert (one.low, one.high) == (-other.high, -other.low)


@quick
@given(any_data, st.randoms(use_true_random=False))
def test_the_order_of_tasks_cannot_matter(data: list[float], random: object) -> None:
    """Bit for bit, for all intervals; and the same input gives the same bytes."""
    shuffled = list(data)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert repr(gaffke(data)) == repr(gaffke(data)) == repr(gaffke(shuffled))
    assert gaffke_p(data) == gaffke_p(shuffled)
    assert exact.sign_flip(outcome_sums := np.round(data, 1)) == exact.sign_flip(np.round(shuffled, 1)), outcome_sums
    assert intervals.percentile_bootstrap(data) == intervals.percentile_bootstrap(shuffled)
    assert intervals.bca_bootstrap(data) == intervals.bca_bootstrap(shuffled)


@quick
@given(any_data, st.data(), kinds)
def test_raising_an_outcome_never_lowers_a_limit(data: list[float], more: st.DataObject, kind: intervals.Kind) -> None:
    """Monotone in every task: what the bounds for unresolved preferences rest on."""
    place = more.draw(st.integers(0, len(data) - 1))
    raised = list(data)
    raised[place] = more.draw(st.floats(data[place], 1))
    before, after = gaffke(data, kind=kind), gaffke(raised, kind=kind)
    assert after.low >= before.low - 1e-11
    assert after.high >= before.high - 1e-11


@quick
@given(outcomes(least=2), kinds)
def test_a_task_at_the_top_never_lowers_a_limit(data: list[float], kind: intervals.Kind) -> None:
    """Adding a win of the whole range helps."""
    before, after = gaffke(data, kind=kind), gaffke([*data, 1.0], kind=kind)
    assert after.low >= before.low - 1e-11
    assert after.high >= before.high - 1e-11


@quick
@given(outcomes(least=2), kinds, st.sampled_from([0.8, 0.95, 0.99]))
def test_the_p_value_inverts_the_interval(data: list[float], kind: intervals.Kind, level: float) -> None:
    """At a limit inside the range, p is 1 - level."""
    found = gaffke(data, kind=kind, level=level)
    mean = sum(data) / len(data)
    for limit in (found.low, found.high):
        if -1 < limit < 1 and abs(limit - mean) > 1e-9:
            assert gaffke_p(data, null=limit, kind=kind) == pytest.approx(1 - level, abs=1e-9)


@pytest.mark.parametrize(("k", "n"), [(0, 2), (1, 3), (2, 2), (5, 24), (24, 24), (40, 100), (999, 1000)])
def test_strict_equals_clopper_pearson_for_one_arm(k: int, n: int) -> None:
    """On [0, 1] with outcomes 0 and 1."""
    found = gaffke([1.0] * k + [0.0] * (n - k), low=0.0, high=1.0, kind="strict")
    expected = intervals.clopper_pearson(k, n)
    assert found.low == pytest.approx(expected.low, abs=1e-9)
    assert found.high == pytest.approx(expected.high, abs=1e-9)


def test_strict_equals_exact_mcnemar_for_pairs() -> None:
    """Wins, losses and ties: the p against 0."""
    for wins in range(7):
        for losses in range(7):
            data = [1.0] * wins + [-1.0] * losses + [0.0] * 4
            assert gaffke_p(data, kind="strict") == pytest.approx(exact.mcnemar(wins, losses), abs=1e-9)


def test_midp_equals_midp_mcnemar_for_pairs() -> None:
    """The mid-p version counts half of the observed table."""
    for wins, losses in ((5, 0), (4, 0), (7, 1), (9, 2), (3, 3)):
        n, few = wins + losses, min(wins, losses)
        half = stats.binom.cdf(few, n, 0.5) - 0.5 * stats.binom.pmf(few, n, 0.5)
        found = gaffke_p([1.0] * wins + [-1.0] * losses + [0.0] * 4)
        assert found == pytest.approx(min(1.0, 2 * half), abs=1e-9)


def test_half_agrees_with_drawing() -> None:
    """The Bayesian bootstrap with half an atom at each end, by 400,000 draws."""
    data = [0.0, 0.0, 1 / 3, -2 / 3, 1.0, 1.0, 0.5, 0.0]
    drawn = np.random.default_rng(5).dirichlet([0.5, 0.5, *[1.0] * 8], 400_000) @ [-1.0, 1.0, *data]
    found = gaffke(data, kind="half")
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.004)


def test_one_task_has_the_whole_range_and_none_is_refused() -> None:
    """n = 1 says nothing of other tasks; n = 0 is an error, and so are outcomes outside the range."""
    found = gaffke([0.4])
    assert (found.low, found.high, found.note) == (-1.0, 1.0, intervals.ONE_TASK)
    assert gaffke_p([1.0]) == 1.0
    for bad in ([], [1.5], [float("nan")]):
        with pytest.raises(ValueError, match=r"at least one task|numbers in \[-1, 1\]"):
            gaffke(bad)
    with pytest.raises(ValueError, match="between 0 and 1"):
        gaffke([0.0, 1.0], level=95)


def test_eight_ties_leave_room() -> None:
    """Where the bootstrap has no width at all: known numbers."""
    found = gaffke([0.0] * 8)
    expected = 1 - 0.05 ** (1 / 8)  # half the time the atom lies at -1, and its weight is Beta(1, 8)
    assert (found.low, found.high) == pytest.approx((-expected, expected), abs=1e-11)


def test_many_distinct_scores_are_spread_without_harm() -> None:
    """Above 1,025 distinct outcomes a grid is used: it agrees with the t interval, and shifts nothing."""
    data = np.clip(np.random.default_rng(6).normal(0.1, 0.3, 4_000), -1, 1)
    found = gaffke(data)
    low, high = stats.t.interval(0.95, len(data) - 1, data.mean(), stats.sem(data))
    assert (found.low, found.high) == pytest.approx((low, high), abs=3e-4)
    weights = np.column_stack([np.ones((1, len(data))), [[1.0]]])
    both = [exact.gamma_sum_cdf(np.append(data, end) - found.low, weights)[0] for end in (-1.0, 1.0)]
    assert sum(both) / 2 == pytest.approx(0.025, abs=1e-6)


# --- clusters --------------------------------------------------------------------------------------------------------


def test_clusters_of_one_change_nothing() -> None:
    """None is a cluster of its own; names are only names."""
    data = [0.0, 1.0, -1.0, 1 / 3, 0.0]
    assert gaffke(data, clusters=[None] * 5) == gaffke(data) == gaffke(data, clusters=list("abcde"))


def test_duplicated_tasks_in_one_cluster_add_nothing() -> None:
    """Three copies of each task, clustered, have the interval of the tasks."""
    data = [0.0, 1.0, -1.0, 1 / 3, 0.0, 1.0]
    tripled, names = np.repeat(data, 3), np.repeat(list("abcdef"), 3).tolist()
    plain, clustered = gaffke(data), gaffke(tripled, clusters=names)
    assert (clustered.low, clustered.high) == pytest.approx((plain.low, plain.high), abs=1e-10)
    assert intervals.percentile_bootstrap(tripled, clusters=names) == intervals.percentile_bootstrap(data)


def test_unequal_clusters_keep_the_mean_over_tasks() -> None:
    """The target stays the mean over tasks; order cannot matter; a single cluster is one task."""
    data, names = [1.0, 1.0, 1.0, 0.0, -1.0, 0.0], ["a", "a", "a", None, "b", "b"]
    found = gaffke(data, clusters=names)
    order = [5, 0, 3, 2, 4, 1]
    assert found == gaffke([data[i] for i in order], clusters=[names[i] for i in order])
    assert found.low < sum(data) / 6 < found.high
    drawn = intervals.percentile_bootstrap(data, clusters=names)
    assert drawn.low < sum(data) / 6 < drawn.high
    assert "seeded draws" in str(drawn.note)
    assert gaffke(data, clusters=["a"] * 6).note == intervals.ONE_TASK
    with pytest.raises(ValueError, match="as many clusters"):
        gaffke(data, clusters=["a"])


# --- the field's bootstraps ------------------------------------------------------------------------------------------

PAIRS = np.array([1, 0, 0, -1, 1, 1, 0, 0, 1, 0, 1, -1, 0, 0, 1, 0, 1, 0, 0, 1, 0, -1, 1, 0], dtype=float)
SCORES = np.random.default_rng(7).beta(2, 5, 40) - 0.25


@pytest.mark.parametrize("data", [PAIRS, PAIRS[:8] / 3 + PAIRS[8:16] / 3, SCORES], ids=["pairs", "thirds", "scores"])
@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_bootstraps_agree_with_scipy(data: np.ndarray, method: str) -> None:
    """Within a step of the lattice or the Monte-Carlo error of scipy's 20,000 draws."""
    drawn = stats.bootstrap(
        (data,), np.mean, n_resamples=20_000, method=method, rng=np.random.default_rng(8)
    ).confidence_interval
    found = intervals.percentile_bootstrap(data) if method == "percentile" else intervals.bca_bootstrap(data)[0]
    assert found is not None
    step = 0.0 if data is SCORES else (exact.lattice_step(data) or 0) / len(data)
    assert found.low == pytest.approx(drawn.low, abs=step + 0.004)
    assert found.high == pytest.approx(drawn.high, abs=step + 0.004)


def test_symmetric_data_need_no_correction() -> None:
    """No bias and no acceleration: BCa is the percentile interval, because ties with the mean count half."""
    data = [1.0, 0.0, 0.0, -1.0]
    corrected, plain = intervals.bca_bootstrap(data)[0], intervals.percentile_bootstrap(data)
    assert corrected is not None
    assert (corrected.low, corrected.high) == (plain.low, plain.high)


def test_percentile_limits_are_the_quantiles_of_all_resamples() -> None:
    """Exact on the lattice: the smallest mean with 2.5 % at or below it, the largest with 2.5 % at or above."""
    data = [1.0, 0.0, 0.0, -1.0, 1.0]
    support, p = exact.bootstrap_law(data)
    found = intervals.percentile_bootstrap(data)
    assert found.note is None
    assert found.low == pytest.approx(support[np.argmax(np.cumsum(p) >= 0.025)])
    assert found.high == pytest.approx(support[::-1][np.argmax(np.cumsum(p[::-1]) >= 0.025)])


def test_a_degenerate_bootstrap_is_marked() -> None:
    """All differences equal: a percentile interval without width, said so; no BCa, with the reason."""
    found = intervals.percentile_bootstrap([0.0] * 8)
    assert (found.low, found.high) == (0.0, 0.0)
    assert "cannot see uncertainty" in str(found.note)
    interval, reason = intervals.bca_bootstrap([0.0] * 8)
    assert interval is None
    assert "cannot see uncertainty" in str(reason)


def test_each_contrast_has_its_own_draws() -> None:
    """Off the lattice the seed is the contrast's name, and the Monte-Carlo error is printed."""
    one, again, other = (intervals.percentile_bootstrap(SCORES, name=name) for name in ("a", "a", "b"))
    assert one == again
    assert one.low != other.low
    assert abs(one.low - other.low) < 0.01
    assert "10000 seeded draws; Monte-Carlo standard error" in str(one.note)


def test_an_extreme_acceleration_has_no_bca() -> None:
    """A far tail and a level near 1 leave the correction undefined; the reason says so."""
    interval, reason = intervals.bca_bootstrap([0.0] * 400 + [1.0], level=1 - 1e-10)
    assert interval is None
    assert "acceleration" in str(reason)


def test_bootstraps_refuse_nothing_at_all() -> None:
    """n = 0."""
    for method in (intervals.percentile_bootstrap, intervals.bca_bootstrap):
        with pytest.raises(ValueError, match="at least one"):
            method([])


# --- single rates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ours", "theirs"), [("wilson", "wilson"), ("clopper_pearson", "beta")])
def test_rates_agree_with_statsmodels(ours: str, theirs: str) -> None:
    """All counts of 1, 7 and 30, at two levels."""
    from statsmodels.stats.proportion import proportion_confint

    for n in (1, 7, 30):
        for k in range(n + 1):
            for level in (0.9, 0.95):
                found = getattr(intervals, ours)(k, n, level)
                low, high = proportion_confint(k, n, 1 - level, method=theirs)
                assert (found.low, found.high) == pytest.approx((max(0, low), min(1, high)), abs=1e-10)


def test_rates_of_nothing_are_refused() -> None:
    """n = 0, and counts that cannot be."""
    for k, n in ((0, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="a rate needs"):
            intervals.wilson(k, n)
        with pytest.raises(ValueError, match="a rate needs"):
            intervals.clopper_pearson(k, n)
