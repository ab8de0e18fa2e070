"""pass@k and pass^k against all subsets."""

from __future__ import annotations

from itertools import combinations

import pytest

from analysis.estimate.passk import pass_at_k, pass_power_k


@pytest.mark.parametrize(("n", "solved"), [(1, 0), (1, 1), (5, 0), (5, 2), (5, 5), (6, 1)])
def test_both_are_shares_of_all_subsets(n: int, solved: int) -> None:
    """Of the k-subsets of n runs: those with a pass, and those of passes only."""
    runs = [True] * solved + [False] * (n - solved)
    for k in range(1, n + 1):
        subsets = list(combinations(runs, k))
        assert pass_at_k(n, solved, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
        assert pass_power_k(n, solved, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


@pytest.mark.parametrize(("n", "solved", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (0, 0, 1)])
def test_more_runs_than_there_are_cannot_be_drawn(n: int, solved: int, k: int) -> None:
    """No extrapolation."""
    for estimator in (pass_at_k, pass_power_k):
        with pytest.raises(ValueError, match="k of n"):
            estimator(n, solved, k)
