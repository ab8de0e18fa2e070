"""Judges measured: against statsmodels, scipy and worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analysis.estimate.agreement import (
    accuracy,
    cohen_kappa,
    effective_panel_size,
    first_position_bias,
    krippendorff_alpha,
)
from analysis.estimate.intervals import clopper_pearson

nan = float("nan")


def test_accuracy_has_its_exact_interval() -> None:
    """k of n, Clopper-Pearson."""
    assert accuracy(9, 12) == (0.75, clopper_pearson(9, 12))
    with pytest.raises(ValueError, match="a rate needs"):
        accuracy(0, 0)


def test_first_position_bias_is_the_exact_binomial() -> None:
    """Every count of 9, against scipy."""
    for first in range(10):
        share, p = first_position_bias(first, 9)
        assert share == first / 9
        assert p == pytest.approx(stats.binomtest(first, 9).pvalue)
    with pytest.raises(ValueError, match="a share needs"):
        first_position_bias(0, 0)


def test_kappa_agrees_with_statsmodels() -> None:
    """On random labels of three kinds; words do as well as numbers."""
    from statsmodels.stats.inter_rater import cohens_kappa, to_table

    labels = np.random.default_rng(41).integers(0, 3, (50, 2))
    labels[:25, 1] = labels[:25, 0]
    expected = cohens_kappa(to_table(labels)[0], return_results=False)
    assert cohen_kappa(labels[:, 0].tolist(), labels[:, 1].tolist()) == pytest.approx(expected)
    words = [["win", "loss", "tie"][label] for label in labels[:, 0]]
    assert cohen_kappa(words, words) == 1.0


def test_kappa_is_undefined_with_one_label() -> None:
    """Agreement that could not have failed says nothing."""
    assert cohen_kappa(["win"] * 3, ["win"] * 3) is None
    for a, b in (([], []), (["win"], [])):
        with pytest.raises(ValueError, match="kappa needs"):
            cohen_kappa(a, b)


def test_alpha_of_a_published_example() -> None:
    """Krippendorff's own example of four observers with missing ratings: nominal alpha .743."""
    rows = ["1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3", ". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 ."]
    ratings = [[None if mark == "." else mark for mark in row.split()] for row in rows]
    assert krippendorff_alpha(ratings) == pytest.approx(0.743, abs=5e-4)


def test_alpha_is_undefined_without_variety() -> None:
    """One label in use, or no unit with two ratings."""
    assert krippendorff_alpha([["a", "a"], ["a", "a"]]) is None
    assert krippendorff_alpha([["a", None], [None, "b"]]) is None
    assert krippendorff_alpha([]) is None
    with pytest.raises(ValueError, match="every unit"):
        krippendorff_alpha([["a"], ["a", "b"]])


def test_effective_panel_size() -> None:
    """Copies are worth one judge, independent ones as many as they are, never more; missing votes are left out."""
    votes = np.random.default_rng(42).integers(0, 2, 400).astype(float)
    assert effective_panel_size([votes, votes, votes]) == pytest.approx(1)
    independent = np.random.default_rng(43).integers(0, 2, (3, 4_000))
    assert effective_panel_size(independent) == pytest.approx(3, abs=0.15)
    assert effective_panel_size([votes, 1 - votes]) == 2
    holes = votes.copy()
    holes[:5] = nan
    assert effective_panel_size([votes, holes]) == pytest.approx(1)
    assert effective_panel_size([votes]) == 1
    assert effective_panel_size([[1, 1], [0, 0]]) is None
    with pytest.raises(ValueError, match="table of judges"):
        effective_panel_size([1.0, 0.0])
