"""Several claims at once: max-T against enumeration, its error rate, and the p-value adjustments against statsmodels."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.estimate.exact import sign_flip
from analysis.estimate.intervals import gaffke
from analysis.estimate.multiplicity import Simultaneous, benjamini_hochberg, holm, simultaneous, split_level
from tests.estimate import enumeration

quick = settings(max_examples=25, derandomize=True, deadline=None)


def together(table: np.ndarray, margin: float = 0.0, **more: object) -> dict[str, Simultaneous]:
    """`simultaneous` for a table of tasks by claims."""
    tasks = [f"t{i}" for i in range(len(table))]
    names = [f"c{j}" for j in range(table.shape[1])]
    columns = {name: table[:, j] for j, name in enumerate(names)}
    return simultaneous(columns, dict.fromkeys(names, tasks), dict.fromkeys(names, margin), **more)  # type: ignore[arg-type]


tables = st.integers(2, 6).flatmap(
    lambda tasks: st.lists(st.lists(st.integers(-2, 2), min_size=tasks, max_size=tasks), min_size=2, max_size=3)
)


@quick
@given(tables)
def test_p_values_and_levels_are_those_of_all_flips(twice: list[list[int]]) -> None:
    """Step-down max-T by brute force over 2^T flips of whole rows, in fractions."""
    columns = [[Fraction(k, 2) for k in column] for column in twice]
    flips = enumeration.largest_t_squared(columns)
    observed, m, n = flips[0], len(columns), len(columns[0])
    found = list(together(np.array(twice, dtype=float).T / 2).values())
    order, so_far = sorted(range(m), key=lambda j: -observed[j]), 0.0
    for rank, j in enumerate(order):
        rest = order[rank:]
        so_far = max(so_far, np.mean([max(flip[k] for k in rest) >= observed[j] for flip in flips]))
        assert found[j].p_adjusted == pytest.approx(so_far)
    largest = sorted((max(flip) for flip in flips), reverse=True)
    critical = sqrt(largest[int(0.05 * len(flips) + 1e-9)])
    alpha = min(0.05, max(0.05 / m, 2 * stats.t.sf(critical, n - 1)))
    assert [one.level_used for one in found] == pytest.approx([1 - alpha] * m)


def test_one_claim_keeps_the_whole_level() -> None:
    """m = 1: a' is a, the interval is the primary one, and p is the sign-flip test's."""
    data = np.array([1, 1, 0, -1, 1, 1, 0, 1, 1, 0], dtype=float)
    found = together(data[:, None])["c0"]
    assert found.level_used == pytest.approx(0.95, abs=1e-15)
    assert found.interval == gaffke(data, level=found.level_used)
    assert found.p_adjusted == pytest.approx(sign_flip(data))


def test_identical_claims_cost_nothing() -> None:
    """Asked twice, a question keeps its level almost whole; unrelated questions pay up to Bonferroni's price."""
    generator = np.random.default_rng(21)
    data = generator.choice([-1.0, 0.0, 1.0], 30, p=[0.2, 0.4, 0.4])
    same = together(np.column_stack([data, data]))["c0"].level_used
    unrelated = together(generator.choice([-1.0, 0.0, 1.0], (30, 4)))["c0"].level_used
    assert 0.95 <= same < 0.965
    assert 0.975 < unrelated <= 1 - 0.05 / 4 + 1e-12


def test_claims_on_different_pools_share_the_signs_of_their_common_tasks() -> None:
    """Each has its own number of tasks; the order of claims and of tasks changes no byte."""
    generator = np.random.default_rng(22)
    columns = {"a": generator.choice([-1.0, 0.0, 1.0], 9), "b": generator.choice([-1.0, 0.0, 1.0], 20)}
    tasks = {"a": [f"t{i}" for i in range(9)], "b": [f"t{i}" for i in range(4, 24)]}
    found = simultaneous(columns, tasks, {"a": 0.0, "b": -0.1})
    order = generator.permutation(20)
    shuffled = simultaneous(
        {"b": columns["b"][order], "a": columns["a"]},
        {"b": [tasks["b"][i] for i in order], "a": tasks["a"]},
        {"a": 0.0, "b": -0.1},
    )
    assert repr(found["a"]) == repr(shuffled["a"])
    assert repr(found["b"]) == repr(shuffled["b"])
    assert found["a"].interval.level == found["a"].level_used
    assert list(shuffled) == ["b", "a"]


def test_columns_without_variance() -> None:
    """All ties: statistic 0, p = 1. A clean sweep: infinite, so p is the share of flips that keep or turn all signs."""
    found = together(np.column_stack([np.zeros(8), np.ones(8)]))
    assert found["c0"].p_adjusted == 1.0
    assert found["c1"].p_adjusted == 2 / 2**8
    assert together(np.ones((8, 1)), margin=1.0)["c0"].p_adjusted == 1.0


def test_too_few_tasks_pay_the_whole_price() -> None:
    """Where flips cannot reject at all, each claim gets a / m."""
    assert together(np.ones((4, 2)))["c0"].level_used == pytest.approx(0.975)
    assert together(np.ones((1, 2)))["c0"].level_used == pytest.approx(0.975)


def test_unresolved_pairs_take_the_smaller_level_and_the_larger_p() -> None:
    """Lower limit from all -1, upper from all +1; where the two versions point opposite ways, p is 1."""
    generator = np.random.default_rng(23)
    same = generator.choice([-1.0, -1 / 3, 0.0, 1 / 3, 1.0], 16, p=[0.05, 0.1, 0.2, 0.3, 0.35])
    same[:3] = 1.0
    # Won, the unresolved pairs make the two claims agree in full, and they pay little.
    high = np.column_stack([same, same])
    low = high.copy()
    low[:3, 0] = -1.0
    tasks = [f"t{i}" for i in range(16)]
    names = {"c0": 0, "c1": 1}
    found = simultaneous(
        {n: low[:, j] for n, j in names.items()},
        dict.fromkeys(names, tasks),
        dict.fromkeys(names, 0.0),
        columns_high={n: high[:, j] for n, j in names.items()},
    )
    apart = [together(low), together(high)]
    assert apart[0]["c1"].level_used != apart[1]["c1"].level_used
    for name, j in names.items():
        assert found[name].level_used == max(one[name].level_used for one in apart)
        assert found[name].p_adjusted == max(one[name].p_adjusted for one in apart)
        level = found[name].level_used
        assert found[name].interval.low == gaffke(low[:, j], level=level).low
        assert found[name].interval.high == gaffke(high[:, j], level=level).high
    ends = np.ones(16)
    torn = simultaneous({"x": -ends}, {"x": tasks}, {"x": 0.0}, columns_high={"x": ends})
    assert torn["x"].p_adjusted == 1.0


def test_clusters_flip_together() -> None:
    """Ten copies of four tasks, clustered, cannot reject more than four tasks do."""
    data = np.repeat([1.0, 1.0, 1.0, 0.0], 10)
    tasks = [f"t{i}" for i in range(40)]
    clusters: dict[str, str | None] = {task: f"k{i // 10}" for i, task in enumerate(tasks)}
    found = simultaneous({"x": data}, {"x": tasks}, {"x": 0.0}, clusters=clusters)["x"]
    assert found.p_adjusted == pytest.approx(sign_flip([1.0, 1.0, 1.0, 0.0]))
    single = gaffke([1.0, 1.0, 1.0, 0.0], level=found.level_used)
    assert (found.interval.low, found.interval.high) == pytest.approx((single.low, single.high), abs=1e-10)
    pair: dict[str, str | None] = {"a": "k", "b": "k"}
    uneven = simultaneous({"x": [1.0, 1.0, 1.0, -1.0]}, {"x": list("abcd")}, {"x": 0.0}, clusters=pair)["x"]
    assert uneven.p_adjusted == pytest.approx(sign_flip([2.0, 1.0, -1.0])) == 0.75
    split = simultaneous({"x": [1.0, -1.0, 1.0]}, {"x": ["a", "b", "c"]}, {"x": 0.0}, clusters=pair)["x"]
    assert split.p_adjusted == pytest.approx(sign_flip([0.0, 1.0]))


def test_many_tasks_are_flipped_at_random_but_always_alike() -> None:
    """40 tasks: drawn flips, the same at every call, near the exact test of one claim."""
    data = np.random.default_rng(24).choice([-1.0, 0.0, 1.0], 40, p=[0.2, 0.4, 0.4])
    one, again = together(data[:, None]), together(data[:, None])
    assert repr(one) == repr(again)
    assert one["c0"].p_adjusted == pytest.approx(sign_flip(data), abs=0.01)


def test_family_wise_error_of_true_null_claims() -> None:
    """Six claims without effect against one baseline, eight tasks: some interval excludes 0 in at most 5 % of studies."""
    generator, wrong = np.random.default_rng(25), 0
    for _ in range(150):
        baseline = generator.random((8, 1)) < 0.5
        table = (generator.random((8, 6)) < 0.5).astype(float) - baseline
        found = together(table).values()
        wrong += any(one.interval.low > 0 or one.interval.high < 0 for one in found)
    assert wrong / 150 <= 0.05


def test_inputs_that_do_not_fit_are_refused() -> None:
    """No claims, other claims, other tasks, a task twice, a level that is none."""
    with pytest.raises(ValueError, match="at least one claim"):
        simultaneous({}, {}, {})
    with pytest.raises(ValueError, match="same claims"):
        simultaneous({"a": [0.0]}, {"a": ["t"]}, {})
    for values, tasks in (([0.0], ["t", "u"]), ([0.0, 0.0], ["t", "t"]), ([], [])):
        with pytest.raises(ValueError, match="each task once"):
            simultaneous({"a": values}, {"a": tasks}, {"a": 0.0})
    with pytest.raises(ValueError, match="between 0 and 1"):
        together(np.ones((3, 1)), level=95.0)


p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@quick
@given(p_lists)
def test_adjustments_agree_with_statsmodels(p: list[float]) -> None:
    """Holm, and Benjamini and Hochberg."""
    from statsmodels.stats.multitest import multipletests

    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])


def test_adjustments_refuse_what_is_no_p_value() -> None:
    """Above 1, or not a number; none at all stays none."""
    for bad in ([1.5], [float("nan")], [-0.1]):
        with pytest.raises(ValueError, match="p-values"):
            holm(bad)
    assert holm([]).size == benjamini_hochberg([]).size == 0


@pytest.mark.parametrize(
    ("differences", "ratios", "expected"),
    [(1, 0, (0.95, 0.95)), (0, 2, (0.95, 0.975)), (3, 1, (0.9625, 0.9875)), (0, 0, (0.95, 0.95))],
)
def test_the_level_is_split_by_the_number_of_claims(
    differences: int, ratios: int, expected: tuple[float, float]
) -> None:
    """The errors of both groups add up to the study's."""
    assert split_level(0.95, differences, ratios) == pytest.approx(expected)
    with pytest.raises(ValueError, match="negative"):
        split_level(0.95, -1, 0)
