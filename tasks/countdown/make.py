"""Make tasks.jsonl: `python tasks/countdown/make.py`. Seeded; the same file comes out every time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

from harness.canonical import canonical, seed_of
from harness.records import Task

SEED = 20261201
PER_LEVEL = 12
"""Tasks of each level in each split."""


class Level(NamedTuple):
    """How hard: how many numbers are given, how many of them the generator's solution uses, and its operators."""

    name: str
    given: int
    used: int
    operators: str
    highest: int


LEVELS = (
    Level("two", 2, 2, "+-*", 12),
    Level("two-of-three", 3, 2, "+-*", 12),
    Level("three-sums", 3, 3, "+-", 20),
    Level("three", 3, 3, "+-*", 9),
)

PROMPT = (
    "Write an arithmetic expression that equals {target}. Use only the numbers {numbers}, each at most once, "
    "the signs + - * / and parentheses."
)


def solve(rng: random.Random, level: Level, numbers: list[int]) -> tuple[str, int]:
    """An expression over the first numbers of a level, computed left to right, and its value."""
    text, value = str(numbers[0]), numbers[0]
    for number in numbers[1 : level.used]:
        sign = rng.choice(level.operators)
        if sign == "*" and not text.isdigit():
            text = f"({text})"
        text = f"{text} {sign} {number}"
        value = value + number if sign == "+" else value - number if sign == "-" else value * number
    return text, value


def instance(rng: random.Random, level: Level) -> tuple[list[int], int, str]:
    """Numbers, target and solution; the target is positive and not one of the numbers."""
    while True:
        numbers = rng.sample(range(2, level.highest + 1), level.given)
        text, target = solve(rng, level, numbers)
        if target > 0 and target not in numbers:
            return rng.sample(numbers, len(numbers)), target, text


def tasks() -> list[Task]:
    """Both splits; no two tasks have the same numbers and target."""
    made: list[Task] = []
    seen: set[tuple[tuple[int, ...], int]] = set()
    for split in ("dev", "heldout"):
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


def data() -> bytes:
    """The file's bytes."""
    return b"".join(canonical(task.model_dump(mode="json", exclude_none=True)) + b"\n" for task in tasks())


if __name__ == "__main__":
    Path(__file__).with_name("tasks.jsonl").write_bytes(data())
