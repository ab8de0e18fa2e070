"""Make tasks.jsonl: `python -m tasks.countdown.make`. Seeded; the same file comes out every time."""

from __future__ import annotations

import random
from typing import Literal, NamedTuple

from harness.canonical import seed_of
from harness.records import Task
from tasks.making import write

SEED = 20261201
PER_LEVEL = 12
"""Tasks of each level in each split."""
SPLITS: tuple[Literal["dev", "heldout"], ...] = ("dev", "heldout")


class Level(NamedTuple):
    """How hard: the operators of the generator's solution, one fewer than numbers, and the highest number."""

    name: str
    operators: str
    highest: int


LEVELS = (
    Level("sum-two", "+", 40),
    Level("sum-three", "++", 20),
    Level("sum-four", "+++", 12),
    Level("product-sum", "*+", 9),
)

PROMPT = (
    "Use {numbers} to make {target}. The answer is an equation. "
    "(Basic arithmetic with only these numbers, each at most once.)"
)


def instance(rng: random.Random, level: Level) -> tuple[list[int], int, str]:
    """Numbers, target and solution; the target is not one of the numbers."""
    numbers = rng.sample(range(2, level.highest + 1), len(level.operators) + 1)
    text, target = str(numbers[0]), numbers[0]
    for sign, number in zip(level.operators, numbers[1:], strict=True):
        text = f"{text} {sign} {number}"
        target = target * number if sign == "*" else target + number
    return numbers, target, text


def make() -> list[Task]:
    """Both splits; no two tasks have the same numbers and target."""
    made: list[Task] = []
    seen: set[tuple[tuple[int, ...], int]] = set()
    for split in SPLITS:
        for level in LEVELS:
            number = 0
            rng = random.Random(seed_of(SEED, split, level.name))
            while number < PER_LEVEL:
                numbers, target, solution = instance(rng, level)
                key = (tuple(sorted(numbers)), target)
                if key in seen:
                    continue
                seen.add(key)
                number += 1
                listed = f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
                made.append(
                    Task(
                        id=f"{split}-{level.name}-{number:02d}",
                        family="countdown",
                        split=split,
                        prompt=PROMPT.format(target=target, numbers=listed),
                        answer_format="line",
                        given={"numbers": [*numbers], "target": target},
                        reference=solution,
                        ground_truth="exact",
                    )
                )
    return made


if __name__ == "__main__":
    write(__file__, "tasks.jsonl", make())
