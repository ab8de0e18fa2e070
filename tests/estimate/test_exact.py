"""Exact laws against enumeration, closed forms and simulation."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.estimate import exact
from tests.estimate import enumeration

quick = settings(max_examples=40, derandomize=True, deadline=None)
repeats = st.integers(1, 5)


@st.composite
def lattice_differences(draw: st.DrawFn, most: int = 6) -> list[Fraction]:
    """Up to six task differences k/R."""
    r = draw(repeats)
    return [Fraction(k, r) for k in draw(st.lists(st.integers(-r, r), min_size=1, max_size=most))]


@quick
@given(lattice_differences(most=5))
def test_bootstrap_law_is_that_of_all_resamples(values: list[Fraction]) -> None:
    """The Fourier law equals the law over all T^T resamples."""
    expected = enumeration.bootstrap_law(values)
    support, probabilities = exact.bootstrap_law([float(v) for v in values])
    assert np.allclose(support, [float(v) for v in sorted(expected)], atol=1e-12)
    assert np.allclose(probabilities, [float(expected[v]) for v in sorted(expected)], atol=1e-13)


def test_bootstrap_law_on_a_window_has_the_right_moments() -> None:
    """For 10,000 tasks the window is a small part of the support, and mean, variance and skewness are those of the bootstrap."""
    values = np.random.default_rng(1).choice(
        [-1, -1 / 3, 0, 1 / 3, 2 / 3, 1], 10_000, p=[0.02, 0.1, 0.6, 0.1, 0.08, 0.1]
    )
    support, p = exact.bootstrap_law(values)
    assert len(support) < 4_000
    assert p.sum() == pytest.approx(1)
    assert support @ p == pytest.approx(values.mean(), abs=1e-12)
    central = support - values.mean()
    assert central**2 @ p == pytest.approx(values.var() / 10_000, rel=1e-9)
    assert central**3 @ p == pytest.approx(((values - values.mean()) ** 3).mean() / 10_000**2, rel=1e-6)


@pytest.mark.parametrize("values", [[], [0.1, np.pi / 10, 0.2]])
def test_bootstrap_law_refuses_what_has_no_lattice(values: list[float]) -> None:
    """No values, or values on no lattice."""
    with pytest.raises(ValueError, match="lattice"):
        exact.bootstrap_law(values)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.0, 1.0, -1.0], 1.0),
        ([0.0, 2 / 3, -2 / 3], 2 / 3),
        ([1 / 3, 0.5], 1 / 6),
        ([0.1 + 0.2, 0.7], 0.1),
        ([0.07, 0.31], 0.01),
        ([4, 6, 100], 2.0),
        ([0.0, 0.0], 1.0),
        ([0.123456789, 0.5], None),
    ],
)
def test_lattice_step_is_the_largest_one(values: list[float], step: float | None) -> None:
    """Found through rounding noise; None off the lattice."""
    found = exact.lattice_step(values)
    assert found == (None if step is None else pytest.approx(step, rel=1e-12))


def test_lattice_step_looks_at_all_values() -> None:
    """One value off the lattice among a thousand is seen."""
    values = np.ones(1_000)
    values[501] = 0.1234567
    assert exact.lattice_step(values) is None


@quick
@given(lattice_differences(most=6))
def test_sign_flip_is_that_of_all_flips(differences: list[Fraction]) -> None:
    """p equals the share over all 2^T flips."""
    found = exact.sign_flip([float(d) for d in differences])
    assert found == pytest.approx(float(enumeration.sign_flip(differences)), abs=1e-12)


def test_sign_flip_off_the_lattice() -> None:
    """Enumerated for few differences; drawn, near the normal limit and always the same for many."""
    generator = np.random.default_rng(2)
    few = generator.normal(0.3, 1, 10)
    assert exact.sign_flip(few) == float(enumeration.sign_flip([Fraction(x) for x in few]))
    many = generator.normal(0.1, 1, 400)
    z = many.sum() / np.sqrt((many**2).sum())
    assert exact.sign_flip(many) == pytest.approx(2 * stats.norm.sf(abs(z)), abs=0.01)
    assert exact.sign_flip(many) == exact.sign_flip(many[::-1])


def test_sign_flip_of_large_pools() -> None:
    """With one size it is the binomial; with three, at 3,000 tasks, near the normal limit; far out it is floored."""
    assert exact.sign_flip([1.0] * 60 + [-1.0] * 40 + [0.0] * 900) == pytest.approx(
        stats.binomtest(60, 100).pvalue, rel=1e-10
    )
    values = np.random.default_rng(3).choice([-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1], 3_000)
    z = abs(values.sum()) / np.sqrt((values**2).sum())
    assert exact.sign_flip(values) == pytest.approx(2 * stats.norm.sf(z), abs=0.02)
    assert exact.sign_flip(np.tile([1.0, 0.5], 500)) == 1e-15
    assert exact.sign_flip([0.0, 0.0]) == 1.0
    with pytest.raises(ValueError, match="at least one"):
        exact.sign_flip([])


def test_mcnemar_agrees_with_statsmodels() -> None:
    """The exact test, for all small tables."""
    from statsmodels.stats.contingency_tables import mcnemar

    for b in range(9):
        for c in range(9):
            if b + c:
                assert exact.mcnemar(b, c) == pytest.approx(mcnemar([[3, b], [c, 4]], exact=True).pvalue, abs=1e-12)
    assert exact.mcnemar(0, 0) == 1.0
    with pytest.raises(ValueError, match="negative"):
        exact.mcnemar(-1, 2)


# --- means under Dirichlet weights -----------------------------------------------------------------------------------


@quick
@given(st.floats(0.5, 3_000), st.floats(0.5, 3_000), st.floats(0.001, 0.999))
def test_two_values_give_the_beta_law(a: float, b: float, c: float) -> None:
    """The weight of the upper of two values is Beta-distributed."""
    assert exact.dirichlet_mean_cdf([0.0, 1.0], [b, a], c) == pytest.approx(stats.beta.cdf(c, a, b), abs=2e-12)


@quick
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=6, unique=True), st.floats(-0.99, 0.99))
def test_distinct_values_give_the_closed_form(places: list[int], c: float) -> None:
    """For distinct values of weight 1 the law is a sum of partial fractions."""
    y = np.array([place / 20 - c for place in places])
    gaps = [abs(one - other) for one, other in combinations([*y, 0.0], 2)]
    if min(gaps) < 1e-3:
        return
    fractions = [np.prod([y[i] / (y[i] - y[j]) for j in range(len(y)) if j != i]) for i in range(len(y))]
    expected = sum(f for f, value in zip(fractions, y, strict=True) if value < 0)
    found = exact.dirichlet_mean_cdf([place / 20 for place in places], np.ones(len(places)), c)
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_cluster_of_near_ties_and_a_distant_atom_are_resolved() -> None:
    """The hard case of the integral: a thousand ties just above the point, one atom far below it."""
    for ties, c in ((1_000, -0.003), (10_000, -0.0003), (10_000, -0.00001)):
        expected = stats.beta.cdf(-c, ties, 1)  # weight of the ties at most 1 + c ...
        expected = stats.beta.sf(-c, 1, ties)  # ... or that of the atom at least -c
        assert exact.dirichlet_mean_cdf([0.0, -1.0], [ties, 1.0], c) == pytest.approx(expected, abs=1e-12)


def test_dirichlet_mean_agrees_with_drawing() -> None:
    """Unequal weights, equal values merged: 200,000 draws."""
    values, weights = [-1.0, -0.5, 0.2, 0.2, 0.9], [1.0, 2.5, 0.7, 1.3, 3.0]
    drawn = np.random.default_rng(4).dirichlet(weights, 200_000) @ values
    for c in (-0.5, 0.0, 0.2, 0.5):
        assert exact.dirichlet_mean_cdf(values, weights, c) == pytest.approx(np.mean(drawn <= c), abs=0.004)


def test_dirichlet_mean_outside_its_values() -> None:
    """Certain outside the range of the values, a step where all are equal; shapes are checked."""
    assert exact.dirichlet_mean_cdf([0.0, 0.5], [1, 1], -0.1) == 0.0
    assert exact.dirichlet_mean_cdf([0.0, 0.5], [1, 1], 0.5) == 1.0
    assert exact.dirichlet_mean_cdf([0.3, 0.3], [1, 1], 0.3) == 1.0
    for values, weights in (([], []), ([1.0], [1.0, 2.0]), ([1.0], [0.0])):
        with pytest.raises(ValueError, match="positive weights"):
            exact.dirichlet_mean_cdf(values, weights, 0.0)


def test_increasing_root_finds_steep_and_flat_roots() -> None:
    """To 1e-12, wherever the guess."""
    for function, root in ((lambda x: x**3 - 2, 2 ** (1 / 3)), (lambda x: np.expm1(30 * (x - 1.9)), 1.9)):
        for guess in (0.0, 1.0, 3.0):
            found = exact.increasing_root(function, (0.0, function(0.0)), (3.0, function(3.0)), guess)
            assert found == pytest.approx(root, abs=1e-12)
