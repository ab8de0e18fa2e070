"""Exact laws: of the bootstrap mean, of sign flips, of discordant pairs, and of a mean under Dirichlet weights.

The lowest floor of the estimators: arrays in, numbers out, no seed where the outcomes lie on a lattice (pass or fail over
R repeats puts every task's difference on k/R). Nothing here knows of levels or intervals.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from math import ceil, log, log2, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

Floats = NDArray[np.float64]

FINEST = 5_040
"""Largest denominator that is looked for; it holds every mean over up to ten repeats."""
LATTICE_TOLERANCE = 1e-9
"""How far a value times the denominator may lie from an integer."""
NEGLIGIBLE = 1e-16
"""Probability left outside a window or cut from an integral."""
DRAWS = 99_999
"""Sign flips drawn where the differences lie on no lattice."""
ENUMERATED = 18
"""Up to so many differences off the lattice, all sign flips are enumerated."""


def seed_of(name: str) -> int:
    """A seed from a name, so that no order of computation matters: the first 8 bytes of its SHA-256."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def merge(values: ArrayLike) -> tuple[Floats, Floats]:
    """Distinct values, sorted, and how often each occurs; values within 1e-12 are one, and -0 is 0."""
    distinct, counts = np.unique(np.round(np.asarray(values, dtype=float), 12) + 0.0, return_counts=True)
    return distinct, counts.astype(float)


# --- lattices --------------------------------------------------------------------------------------------------------


def lattice_step(values: ArrayLike) -> float | None:
    """The largest step of which every value is a multiple: 1/R for means of pass and fail over R repeats.

    None where there is none down to 1/5040. Values that are all zero have step 1.
    """
    array = np.asarray(values, dtype=float).ravel()
    few = array[:: max(1, array.size // 8)][:8]
    for finest in (24, FINEST):
        denominators = np.arange(1, finest + 1, dtype=float)
        for denominator in denominators[_near_integers(few[:, None] * denominators).all(axis=0)]:
            scaled = array * denominator
            if _near_integers(scaled).all():
                return float(np.gcd.reduce(np.rint(np.abs(scaled)).astype(np.int64)) or denominator) / float(
                    denominator
                )
    return None


def _near_integers(scaled: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.abs(scaled - np.rint(scaled)) <= LATTICE_TOLERANCE * np.maximum(1.0, np.abs(scaled) * 1e-4))


def _transform_length(size: int) -> int:
    """The smallest length of at least `size` that the FFT likes: 8, 9, 10, 12 or 15 times a power of two."""
    return min(m << max(0, ceil(log2(size / m))) for m in (8, 9, 10, 12, 15))


def bernstein_half_width(variance: float, largest: float) -> float:
    """Distance from its mean that a sum of independent terms exceeds with probability under 1e-16.

    Args:
        variance: of the sum.
        largest: distance of one term from its own mean at most.
    """
    exponent = log(2 / NEGLIGIBLE)
    linear = exponent * largest / 3
    return linear + sqrt(linear * linear + 2 * exponent * variance)


# --- the bootstrap ---------------------------------------------------------------------------------------------------


def bootstrap_law(values: ArrayLike, lattice: float | None = None) -> tuple[Floats, Floats]:
    """The exact law of the mean of T values drawn with replacement from T values on a lattice.

    It is the T-fold convolution of their empirical law: the T-th power of its Fourier transform, taken on a window around the
    mean outside of which Bernstein's inequality leaves less than 1e-16.

    Args:
        values: shape (T,).
        lattice: the step of which they are multiples; None: found.

    Returns:
        Support, ascending, and probabilities, both of shape (points,).

    Raises:
        ValueError: no values, or they lie on no lattice.
    """
    array = np.asarray(values, dtype=float).ravel()
    step = (lattice or lattice_step(array)) if array.size else None
    if step is None:
        raise ValueError("bootstrap_law needs at least one value, and all of them on a lattice")
    positions = np.rint(array / step).astype(np.int64)
    first, count = int(positions.min()), array.size
    pmf = np.bincount(positions - first) / count
    start, size = _window(pmf, count)
    length = _transform_length(size)
    law = np.fft.irfft(np.fft.rfft(pmf, length) ** count, length)
    law = np.roll(law, -(start % length))[:size]
    kept = law > NEGLIGIBLE
    support = (np.arange(start, start + size) + count * first)[kept] * step / count
    return support, law[kept] / law[kept].sum()


def _window(pmf: Floats, count: int) -> tuple[int, int]:
    """First point and number of points that hold the law of the sum of `count` draws from `pmf` on 0, 1, ..."""
    points = np.arange(pmf.size)
    mean = float(pmf @ points)
    variance = float(pmf @ (points - mean) ** 2)
    half = bernstein_half_width(count * variance, max(mean, pmf.size - 1 - mean))
    start = max(0, int(count * mean - half))
    stop = min(count * (pmf.size - 1), ceil(count * mean + half))
    return start, stop - start + 1


# --- tests of exchangeability ----------------------------------------------------------------------------------------


def sign_flip(differences: ArrayLike) -> float:
    """Two-sided p of the sign-flip test: how often the mean with random signs is at least as far from 0 as the observed one.

    Exact on a lattice, by the product of the characteristic functions of scaled binomials (values under 1e-15 are given as
    1e-15), and by enumeration up to 18 differences off it; else 99,999 drawn flips with a fixed seed.

    Args:
        differences: shape (T,).

    Raises:
        ValueError: no differences.
    """
    array = np.asarray(differences, dtype=float).ravel()
    if not array.size:
        raise ValueError("sign_flip needs at least one difference")
    sizes, counts = merge(np.abs(array))
    sizes, counts = sizes[sizes > 0], counts[sizes > 0]
    if not sizes.size:
        return 1.0
    observed = abs(float(array.sum()))
    step = lattice_step(sizes)
    if step is not None:
        return _flips_on_lattice(np.rint(sizes / step).astype(np.int64), counts, round(observed / step))
    return _flips_off_lattice(np.repeat(sizes, counts.astype(int)), observed)


def _flips_on_lattice(sizes: NDArray[np.int64], counts: Floats, observed: int) -> float:
    """P(|sum| >= observed) where each of `counts` terms is +size or -size."""
    if sizes.size == 1:
        tail = float(bdtr((counts[0] * sizes[0] - observed) // (2 * sizes[0]), int(counts[0]), 0.5))
        return min(1.0, 2 * tail) if observed else 1.0
    reach = min(int(counts @ sizes), ceil(bernstein_half_width(float(counts @ sizes**2), float(sizes.max()))))
    length = _transform_length(2 * reach + 1)
    angles = 2 * pi * np.arange(length // 2 + 1) / length
    powers = np.prod(np.cos(np.outer(sizes, angles)) ** counts[:, None], axis=0)
    law = np.fft.irfft(powers, length)
    return float(np.clip(2 * law[observed : reach + 1].sum() if observed else 1.0, 1e-15, 1.0))


def _flips_off_lattice(sizes: Floats, observed: float) -> float:
    bar = observed - 1e-12 * float(sizes.sum())
    if sizes.size <= ENUMERATED:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate([sums - size, sums + size])
        return float(np.mean(np.abs(sums) >= bar))
    generator, beyond, block = np.random.default_rng(seed_of("sign flip")), 0, max(1, 4_000_000 // sizes.size)
    for start in range(0, DRAWS, block):
        signs = generator.integers(0, 2, size=(min(block, DRAWS - start), sizes.size), dtype=np.int8)
        beyond += int(np.sum(np.abs((2.0 * signs - 1.0) @ sizes) >= bar))
    return (1 + beyond) / (1 + DRAWS)


def mcnemar(b: int, c: int) -> float:
    """Exact two-sided p of McNemar's test: `b` and `c` tasks that only one of two arms solved. No discordant task: 1.

    Raises:
        ValueError: a negative count.
    """
    if min(b, c) < 0:
        raise ValueError(f"counts of discordant tasks cannot be negative: {b}, {c}")
    return float(min(1.0, 2 * bdtr(min(b, c), b + c, 0.5))) if b + c else 1.0


# --- means under Dirichlet weights -----------------------------------------------------------------------------------


SCAN = 2.0 ** np.arange(-4.0, 32.0, 0.5)
"""Values of sinh(u) at which the phase speed is looked at."""


def dirichlet_mean_cdf(values: ArrayLike, weights: ArrayLike, c: float) -> float:
    """P(sum w_i x_i <= c) for w ~ Dirichlet(weights).

    Dirichlet weights are normalised gamma variables, so this is P(sum Gamma(a_i) (x_i - c) <= 0): see `gamma_sum_cdf`.

    Args:
        values: shape (K,).
        weights: shape (K,), the parameters of the Dirichlet law, positive.
        c: the point.

    Raises:
        ValueError: shapes that differ, none at all, or a weight that is not positive.
    """
    x, a = np.asarray(values, dtype=float).ravel(), np.asarray(weights, dtype=float).ravel()
    if x.shape != a.shape or not x.size or not (a > 0).all():
        raise ValueError("dirichlet_mean_cdf needs as many positive weights as values, and at least one")
    distinct, place = np.unique(x, return_inverse=True)
    shapes = np.bincount(place, weights=a).astype(float)
    return float(gamma_sum_cdf(distinct - c, shapes[None, :])[0])


def gamma_sum_cdf(y: Floats, shapes: Floats) -> Floats:
    """P(sum_k G_k y_k <= 0), G_k ~ Gamma(shape_k, 1) independent, for N rows of shapes at once.

    Gil-Pelaez: 1/2 - (1/pi) * integral over t > 0 of Im phi(t) / t, phi(t) = prod (1 - i t y_k) ** -shape_k. With t = s
    sinh(u), s one over the sum's scale, the integrand is even and analytic in a strip around the real line, so the
    midpoint rule converges exponentially: linear steps where phi turns, logarithmic ones along its algebraic tail. The
    step follows from the phase speed, scanned where phi is not negligible. Error about 1e-14 with 30 to 1,000 points.

    Args:
        y: shape (K,).
        shapes: shape (N, K), not negative; a shape of 0 leaves the term out.

    Returns:
        Shape (N,).
    """
    above, below = shapes @ (y > 0), shapes @ (y < 0)
    scale = sqrt(max(float((shapes @ y**2).max()), float(np.abs(y).max()) ** 2))
    if scale == 0:
        return np.ones(len(shapes))
    unit = y / scale
    step = 2 * pi / (50 + _phase_speed(unit, shapes))
    total, start, block = np.zeros(len(shapes)), 0, 48
    while True:
        u = (np.arange(start, start + block) + 0.5) * step
        ty = np.outer(unit, np.sinh(u))
        envelope = np.exp(-0.5 * (shapes @ np.log1p(ty * ty)))
        total += (envelope * np.sin(shapes @ np.arctan(ty))) @ (1 / np.tanh(u))
        start += block
        if envelope[:, -1].max() < NEGLIGIBLE or u[-1] > 300:
            break
    inner = np.clip(0.5 - total * step / pi, 0.0, 1.0)
    return np.where(above == 0, 1.0, np.where(below == 0, 0.0, inner))


def _phase_speed(unit: Floats, shapes: Floats) -> float:
    """The largest |d arg phi / du| where |phi| is above 1e-16, over a grid of u that is fine against its changes."""
    ty = np.outer(unit, SCAN)
    squares = ty * ty
    alive = shapes @ np.log1p(squares) < -2 * log(NEGLIGIBLE)
    speed = np.abs(shapes @ (ty / (1 + squares))) * (np.sqrt(1 + SCAN**2) / SCAN)
    return float((speed * alive).max())


def increasing_root(
    function: Callable[[float], float], left: tuple[float, float], right: tuple[float, float], guess: float
) -> float:
    """The root of an increasing function in a bracket, to 1e-13: Chandrupatla's (1997) mixture of bisection and inverse
    interpolation.

    Args:
        function: increasing and continuous.
        left: a point below the root, and a value there or a negative stand-in for it.
        right: a point above it, and its value.
        guess: where to look first.
    """
    (x1, f1), (x2, f2) = left, right
    t = min(0.99, max(0.01, (guess - x1) / (x2 - x1)))
    while True:
        x = x1 + t * (x2 - x1)
        f = function(x)
        if (f < 0) == (f1 < 0):
            x3, f3 = x1, f1
        else:
            x3, f3, x2, f2 = x2, f2, x1, f1
        x1, f1 = x, f
        best = x1 if abs(f1) < abs(f2) else x2
        least = (1e-13 + 4e-16 * abs(best)) / abs(x2 - x1)
        if least > 0.5 or f1 == 0:
            return best
        place, height = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
        t = 0.5
        if height**2 < place and (1 - height) ** 2 < 1 - place:
            t = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
        t = min(1 - least, max(least, t))
