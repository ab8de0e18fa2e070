"""Before the money is spent: what a study of so many tasks and repeats can detect, through its own interval.

The noncentral t gives a first answer; a seeded simulation of paired pass-fail outcomes, decided by the primary interval,
corrects it. Small studies need more than the t says, because the interval does not trust them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt
from typing import Literal

import numpy as np
from scipy.special import betaincinv, chdtri, nctdtr, stdtrit

from analysis.estimate.exact import Floats, gamma_sum_cdf, seed_of
from analysis.estimate.intervals import Kind, gaffke

SAMPLES = 4_000
"""Simulated studies for one point of the power curve: a standard error of 0.006 at a power of 80 %."""
STRATA = 40
"""Kinds of tasks in a simulated pool: equally spaced quantiles of the effect."""
MOST_TASKS = 100_000
MOST_REPEATS = 100


def decisive_tallies(
    tasks: int, *, level: float = 0.95, margin: float = 0.0, claims: int = 1, kind: Kind = "midp", most: int = 12
) -> list[tuple[int, int]]:
    """The fewest wins that support a claim, for each number of losses, the other tasks being ties; one repeat.

    With several claims each is held to its share of the level, which suffices whatever the others show.

    Args:
        tasks: T.
        level: of the study.
        margin: the difference that the lower limit must exceed; -m for a claim of not worse by m.
        claims: claims about differences.
        kind: of the interval.
        most: rows at most.

    Returns:
        Pairs (wins, losses), from no losses on; empty where no result decides.
    """
    found: list[tuple[int, int]] = []
    wins = 0
    for losses in range(min(most, tasks)):
        while wins + losses <= tasks and not _decides(tasks, wins, losses, (1 - level) / claims, margin, kind):
            wins += 1
        if wins + losses > tasks:
            break
        found.append((wins, losses))
    return found


def _decides(tasks: int, wins: int, losses: int, alpha: float, margin: float, kind: Kind) -> bool:
    counts = np.array([[losses, tasks - wins - losses, wins]], dtype=float)
    return tasks > 1 and bool(_below(counts, np.array([-1.0, 0.0, 1.0]), margin, kind)[0] < alpha / 2)


def _below(counts: Floats, values: Floats, margin: float, kind: Kind = "midp") -> Floats:
    """F(margin) of the primary interval for N studies on one lattice: the lower limit lies beyond where it is below a/2.

    Args:
        counts: shape (N, K), tasks at each value.
        values: shape (K,).
    """
    y = np.concatenate([values, [-1.0, 1.0]]) - margin
    n = len(counts)
    ends = {"midp": [[1.0, 0.0], [0.0, 1.0]], "strict": [[1.0, 0.0]], "half": [[0.5, 0.5]]}[kind]
    parts = [gamma_sum_cdf(y, np.column_stack([counts, np.tile(end, (n, 1))])) for end in ends]
    return np.asarray(sum(parts) / len(parts))


def can_be_supported(
    tasks: int,
    repeats: int,
    *,
    direction: Literal["better", "not_worse", "equivalent"],
    margin: float = 0.0,
    level: float = 0.95,
    claims: int = 1,
) -> bool:
    """Whether any data of this size could support a claim about differences: the clean sweep, or for `equivalent` all ties.

    Several claims on the same tasks may each keep the whole level, if sign flips can reject at all; with fewer tasks
    each has its share.

    Args:
        tasks: T.
        repeats: R; a clean sweep is the same whatever it is.
        direction: of the claim.
        margin: the claim's, 0 or more.
        level: of the study.
        claims: claims about differences.

    Raises:
        ValueError: no task, or no repeat.
    """
    if min(tasks, repeats) < 1:
        raise ValueError("a study has at least one task and one repeat")
    alpha = 1 - level
    if claims > 1 and 2.0 ** (1 - tasks) > alpha:
        alpha /= claims
    sweep = gaffke(np.full(tasks, 0.0 if direction == "equivalent" else 1.0), level=1 - alpha)
    if direction == "equivalent":
        return sweep.low > -margin and sweep.high < margin
    return sweep.low > (margin if direction == "better" else -margin)


# --- detectable differences ------------------------------------------------------------------------------------------


def minimum_detectable(
    tasks: int,
    repeats: int,
    *,
    var_task: float,
    var_within: float,
    level: float = 0.95,
    power: float = 0.8,
    claims: int = 1,
) -> float | None:
    """The smallest true difference that a claim of `better` (margin 0) detects with the wanted power; None: not even 1.

    Args:
        tasks: T.
        repeats: R.
        var_task: variance of the true paired difference between tasks.
        var_within: variance of the paired difference of one repeat within a task.
        level: of the study.
        power: wanted probability of support.
        claims: claims about differences; each is held to its share of the level.
    """
    alpha = (1 - level) / claims

    def enough(difference: float) -> bool:
        return _simulated_power(tasks, repeats, difference, var_task, var_within, alpha) >= power

    return _first(enough, 1.1 * _t_detectable(tasks, repeats, var_task, var_within, alpha, power), 1.0)


def tasks_needed(
    difference: float,
    repeats: int,
    *,
    var_task: float,
    var_within: float,
    level: float = 0.95,
    power: float = 0.8,
    claims: int = 1,
) -> int | None:
    """How many tasks detect a true difference with the wanted power; None: more than 100,000.

    Args:
        difference: above 0.
        repeats: R.
        var_task: as in `minimum_detectable`.
        var_within: as there.
        level: as there.
        power: as there.
        claims: as there.

    Raises:
        ValueError: a difference outside (0, 1].
    """
    if not 0 < difference <= 1:
        raise ValueError(f"a difference to detect lies above 0 and at most at 1, not at {difference}")
    alpha = (1 - level) / claims

    def enough(tasks: float) -> bool:
        return _simulated_power(ceil(tasks), repeats, difference, var_task, var_within, alpha) >= power

    start = 8 * min(var_task + var_within / repeats, 1 - difference**2) / difference**2
    found = _first(enough, max(4.0, start), MOST_TASKS)
    return None if found is None else ceil(found)


def _first(enough: Callable[[float], bool], guess: float, most: float) -> float | None:
    """The least number up to `most` from which on a condition holds, to one in a hundred; None: it never does."""
    low, high = 0.0, min(guess, most)
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(most, 1.25 * high)
    if not low and not enough(0.8 * high):
        low = 0.8 * high
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _t_detectable(tasks: int, repeats: int, var_task: float, var_within: float, alpha: float, power: float) -> float:
    """The difference that the t test of the task differences detects."""
    if tasks < 2:
        return 1.0
    error = sqrt(max(1e-12, var_task + var_within / repeats) / tasks)
    bar = float(stdtrit(tasks - 1, 1 - alpha / 2))
    low, high = 0.0, bar + 10.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if 1 - nctdtr(tasks - 1, middle, bar) >= power else (middle, high)
    return high * error


def _simulated_power(
    tasks: int, repeats: int, difference: float, var_task: float, var_within: float, alpha: float
) -> float:
    """Share of simulated studies whose lower limit lies above 0."""
    if tasks < 2:
        return 0.0
    values, law = _outcome_law(repeats, difference, var_task, var_within)
    generator = np.random.default_rng(seed_of(f"power {tasks} {repeats}"))
    counts = generator.multinomial(tasks, law, size=SAMPLES).astype(float)
    return float(np.mean(_below(counts, values, 0.0) < alpha / 2))


def _outcome_law(repeats: int, mean: float, var_task: float, var_within: float) -> tuple[Floats, Floats]:
    """Law of one task's mean difference over R repeats: values k/R and their probabilities.

    A task's true effect is Beta-distributed over [-1, 1]; given it, each repeat is won, tied or lost, with the share of
    ties that gives the variance within. Variances that the mean does not allow are cut to what it does.
    """
    room = 1 - mean**2
    between = min(var_task, 0.95 * room)
    effects = np.full(STRATA, mean)
    if between > 1e-9 and room > 1e-9:
        concentration = room / between - 1
        quantiles = (np.arange(STRATA) + 0.5) / STRATA
        effects = 2 * betaincinv(concentration * (1 + mean) / 2, concentration * (1 - mean) / 2, quantiles) - 1
        effects = np.clip(effects + (mean - effects.mean()), -1, 1)
    least = np.abs(effects)
    spare = float(np.mean(1 - least))
    mixing = (var_within + float(np.mean(effects**2 - least))) / spare if spare > 1e-12 else 0.0
    discordant = least + min(1.0, max(0.0, mixing)) * (1 - least)
    single = np.column_stack([(discordant - effects) / 2, 1 - discordant, (discordant + effects) / 2]).clip(0, 1)
    size = 2 * repeats + 1
    law = np.fft.irfft(np.fft.rfft(single, size, axis=1) ** repeats, size, axis=1).mean(axis=0).clip(0)
    return np.arange(-repeats, repeats + 1) / repeats, law / law.sum()


# --- design ----------------------------------------------------------------------------------------------------------


def best_repeats(*, cost_task: float, cost_run: float, var_task: float, var_within: float) -> int:
    """The repeats that give the least variance for the money: sqrt((cost_task / cost_run) * var_within / var_task),
    rounded, 1 to 100.

    Args:
        cost_task: of one more task, such as its authoring or judging; any unit, 0 or more.
        cost_run: of one more repeat of all arms on one task, in the same unit.
        var_task: as in `minimum_detectable`.
        var_within: as there.

    Raises:
        ValueError: a negative number, or nothing known of the cost of a run.
    """
    if min(cost_task, var_task, var_within) < 0 or cost_run <= 0:
        raise ValueError("best_repeats needs costs and variances of 0 or more, and a cost of one run above 0")
    if not var_within or not cost_task:
        return 1
    if not var_task:
        return MOST_REPEATS
    return int(min(MOST_REPEATS, max(1, round(sqrt(cost_task / cost_run * var_within / var_task)))))


def pilot_inflation(tasks: int, confidence: float = 0.8) -> float:
    """What to multiply a pilot's standard deviation by, so that it is too small with probability 1 - `confidence` only.

    sqrt((n - 1) / chi-square quantile): 1.35 for 8 pilot tasks, 1.16 for 24. A detectable difference grows by the same factor.

    Raises:
        ValueError: fewer than two tasks.
    """
    if tasks < 2:
        raise ValueError("a pilot needs at least two tasks")
    return sqrt((tasks - 1) / float(chdtri(tasks - 1, confidence)))


def sentence(
    tasks: int,
    repeats: int,
    *,
    var_task: float,
    var_within: float,
    level: float = 0.95,
    power: float = 0.8,
    claims: int = 1,
    target: float = 0.1,
) -> str:
    """One sentence for the plan: what the study detects, and how many tasks the target difference would need.

    Args:
        tasks: T.
        repeats: R.
        var_task: as in `minimum_detectable`.
        var_within: as there.
        level: as there.
        power: as there.
        claims: as there.
        target: a difference worth knowing of.
    """
    settings = {"var_task": var_task, "var_within": var_within, "level": level, "power": power}
    found = minimum_detectable(tasks, repeats, claims=claims, **settings)
    size = f"{tasks} {_plural('task', tasks)} x {repeats} {_plural('repeat', repeats)}"
    detects = f"{size} detect no difference at all" if found is None else f"{size} detect {_points(found)} or more"
    if found is not None and found <= target:
        return detects
    needed = tasks_needed(target, repeats, claims=claims, **settings)
    about = f"more than {MOST_TASKS:,} tasks" if needed is None else f"about {needed} tasks"
    return f"{detects}; {_points(target)} need {about}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _points(difference: float) -> str:
    return f"{ceil(round(100 * difference, 6))} points"
