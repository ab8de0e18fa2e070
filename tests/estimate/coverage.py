"""How often the primary interval covers: fifteen processes that pools of tasks and pairs of arms may follow.

Each process is a population of tasks, drawn once: for each task what both arms do in expectation, and how one repeat
falls around it. A study draws T tasks from it and R repeats of each; the target is the population's mean difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from analysis.estimate.intervals import gaffke_p
from analysis.estimate.multiplicity import simultaneous

Floats = NDArray[np.float64]
POPULATION = 200_000


@dataclass(frozen=True)
class Process:
    """A population of tasks."""

    name: str
    mean: float
    """The true mean difference."""
    draw: Callable[[np.random.Generator, int, int], Floats]
    """(generator, T, R) -> differences of T tasks, shape (T,)."""


def beta_pairs(generator: np.random.Generator, size: int, means: tuple[float, float], *, same: bool = False) -> Floats:
    """Solve probabilities of two arms: Beta marginals of concentration 1, Gaussian copula .7; shape (size, 2)."""
    normal = generator.standard_normal((size, 2))
    normal[:, 1] = 0.7 * normal[:, 0] + np.sqrt(1 - 0.49) * normal[:, 1]
    if same:
        normal[:, 1] = normal[:, 0]
    uniform = ndtr(normal)
    return np.column_stack([betaincinv(m, 1 - m, uniform[:, j]) for j, m in enumerate(means)])


def balanced(pairs: Floats, means: tuple[float, float]) -> Floats:
    """Equal means are made exactly symmetric, by pooling both orders."""
    return np.concatenate([pairs, pairs[:, ::-1]]) if means[0] == means[1] else pairs


def binary(name: str, pairs: Floats) -> Process:
    """Pass or fail of both arms, independent given the task."""

    def draw(generator: np.random.Generator, tasks: int, repeats: int) -> Floats:
        chosen = pairs[generator.integers(0, len(pairs), tasks)]
        solved = generator.binomial(repeats, chosen)
        return (solved[:, 0] - solved[:, 1]) / repeats

    return Process(name, float((pairs[:, 0] - pairs[:, 1]).mean()), draw)


def win_tie_loss(name: str, law: Floats) -> Process:
    """A judge's verdicts, with their own law on each task."""
    edges = np.cumsum(law, axis=1)[:, :2]

    def draw(generator: np.random.Generator, tasks: int, repeats: int) -> Floats:
        chosen = edges[generator.integers(0, len(law), tasks)]
        uniform = generator.random((tasks, repeats))
        return ((uniform < chosen[:, :1]).sum(axis=1) - (uniform > chosen[:, 1:]).sum(axis=1)) / repeats

    return Process(name, float((law[:, 0] - law[:, 2]).mean()), draw)


def score(name: str, effects: Floats) -> Process:
    """Differences of continuous scores, with noise of their own in each repeat."""

    def draw(generator: np.random.Generator, tasks: int, repeats: int) -> Floats:
        chosen = effects[generator.integers(0, len(effects), tasks)]
        return np.asarray(np.clip(chosen + 0.05 * generator.standard_normal((repeats, tasks)), -1, 1).mean(axis=0))

    return Process(name, float(effects.mean()), draw)


@lru_cache
def processes(size: int = POPULATION) -> tuple[Process, ...]:
    """The fifteen, with effects from 0 to .3."""
    generator, found = np.random.default_rng(20261201), []
    for means in ((0.5, 0.5), (0.55, 0.45), (0.65, 0.35)):
        found += [binary(f"binary {means}", balanced(beta_pairs(generator, size, means), means))]
    found.append(binary("binary, identical", beta_pairs(generator, size, (0.5, 0.5), same=True)))
    for means in ((0.95, 0.95), (0.96, 0.94), (0.98, 0.88)):
        found += [binary(f"ceiling {means}", balanced(beta_pairs(generator, size, means), means))]
    for means in ((0.5, 0.5), (0.53, 0.47), (0.67, 0.33)):
        pairs = balanced(beta_pairs(generator, size, means), means)
        pairs[generator.permutation(len(pairs))[: int(0.7 * len(pairs))]] = 0.0
        found.append(binary(f"zero-inflated {means}", pairs))
    for law in ((0.3, 0.4, 0.3), (0.35, 0.4, 0.25), (0.45, 0.4, 0.15), (0.06, 0.93, 0.01)):
        drawn = generator.dirichlet(2 * np.array(law), size)
        found.append(
            win_tie_loss(f"win/tie/loss {law}", np.concatenate([drawn, drawn[:, ::-1]]) if law[0] == law[2] else drawn)
        )
    effects = generator.normal(0.02, 0.05, size)
    few = generator.random(size) < 0.15
    effects[few] = generator.uniform(-0.7, -0.5, few.sum())
    found.append(score("scores, some far below", effects))
    return tuple(found)


def coverage(process: Process, tasks: int, repeats: int, samples: int, level: float = 0.95) -> float:
    """Share of seeded studies whose primary interval holds the true mean (whose p against it is above 1 - level)."""
    generator = np.random.default_rng([tasks, repeats, samples])
    known: dict[bytes, bool] = {}
    covered = 0
    for _ in range(samples):
        data = np.sort(process.draw(generator, tasks, repeats))
        key = data.tobytes()
        if key not in known:
            known[key] = gaffke_p(data, null=process.mean) > 1 - level
        covered += known[key]
    return covered / samples


def sweep(
    samples: int, sizes: tuple[int, ...], repeats: tuple[int, ...], population: int = POPULATION
) -> dict[str, float]:
    """Coverage of every process at every size, by a readable name."""
    return {
        f"{process.name}, T={tasks}, R={r}": coverage(process, tasks, r, samples)
        for process in processes(population)
        for tasks in sizes
        for r in repeats
    }


def joint_coverage(tasks: int, skills: tuple[float, ...], samples: int, level: float = 0.95) -> float:
    """Share of seeded studies whose simultaneous intervals, of all arms against the first, hold all true differences at once."""
    generator, covered = np.random.default_rng([tasks, len(skills), samples]), 0
    names = [f"t{place}" for place in range(tasks)]
    arms = range(1, len(skills))
    for _ in range(samples):
        uniform = ndtr(
            0.7 * generator.standard_normal((tasks, 1)) + 0.714 * generator.standard_normal((tasks, len(skills)))
        )
        solved = (uniform < np.array(skills)).astype(float)
        columns = {str(arm): solved[:, arm] - solved[:, 0] for arm in arms}
        found = simultaneous(columns, dict.fromkeys(columns, names), dict.fromkeys(columns, 0.0), level=level)
        truths = {str(arm): skills[arm] - skills[0] for arm in arms}
        covered += all(one.interval.low <= truths[name] <= one.interval.high for name, one in found.items())
    return covered / samples
