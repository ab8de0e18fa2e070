"""Brute force for a handful of tasks: every resample, every flip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product


def bootstrap_law(values: Sequence[Fraction]) -> dict[Fraction, Fraction]:
    """Law of the mean over all T^T resamples."""
    count = len(values)
    means = Counter(sum(drawn, Fraction(0)) / count for drawn in product(values, repeat=count))
    return {mean: Fraction(times, count**count) for mean, times in means.items()}


def sign_flip(differences: Sequence[Fraction]) -> Fraction:
    """Two-sided p over all 2^T flips."""
    bar = abs(sum(differences, Fraction(0)))
    signs = list(product((1, -1), repeat=len(differences)))
    beyond = sum(
        abs(sum((s * d for s, d in zip(flip, differences, strict=True)), Fraction(0))) >= bar for flip in signs
    )
    return Fraction(beyond, len(signs))


def t_squared(column: Sequence[Fraction]) -> Fraction | float:
    """t^2 of the mean against 0; infinite without variance, 0 where the mean is 0."""
    n, total = len(column), sum(column, Fraction(0))
    rest = n * sum((x * x for x in column), Fraction(0)) - total * total
    if total == 0:
        return Fraction(0)
    return float("inf") if rest == 0 else total * total * (n - 1) / rest


def largest_t_squared(columns: Sequence[Sequence[Fraction]]) -> list[list[Fraction | float]]:
    """t^2 of every column of one table of tasks, for every flip of whole rows: [flip][column], the observed one first."""
    tasks = len(columns[0])
    return [
        [t_squared([s * x for s, x in zip(flip, column, strict=True)]) for column in columns]
        for flip in product((1, -1), repeat=tasks)
    ]
