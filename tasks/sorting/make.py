"""Make tasks.jsonl: `python -m tasks.sorting.make`. Seeded; the same file comes out every time."""

from __future__ import annotations

import random
from typing import Literal, NamedTuple

from harness.canonical import seed_of
from harness.records import Task
from tasks.making import write

SEED = 20261202
PER_LEVEL = 12
"""Tasks of each level in each split."""
SPLITS: tuple[Literal["dev", "heldout"], ...] = ("dev", "heldout")

WORDS = (
    "anchor apple arrow autumn badge bakery basket bridge butter cabin candle carpet castle cellar cherry copper cotton "
    "cradle desert dinner dragon drawer eagle engine evening falcon feather ferry forest garden ginger glacier hammer "
    "harbor honey island ivory jacket jungle kettle kitchen ladder lantern lemon magnet marble meadow mirror needle "
    "nephew ocean olive onion orchid paddle parrot pencil pepper planet quarry rabbit ribbon river saddle salmon "
    "shadow silver spider summer table temple thunder ticket tunnel umbrella valley velvet violin wagon walnut "
    "window winter yellow zebra"
).split()


class Level(NamedTuple):
    """How hard: two-digit numbers or words, and how many."""

    name: str
    kind: str
    size: int


LEVELS = (
    Level("numbers-three", "numbers", 3),
    Level("numbers-four", "numbers", 4),
    Level("numbers-six", "numbers", 6),
    Level("words-three", "words", 3),
)


def instance(rng: random.Random, level: Level) -> list[str]:
    """Items out of order."""
    while True:
        drawn = rng.sample(WORDS if level.kind == "words" else [str(number) for number in range(10, 100)], level.size)
        if drawn != sorted(drawn):
            return drawn


def prompt(level: Level, drawn: list[str]) -> str:
    """The task as it is put."""
    if level.kind == "words":
        return f"Sort this list of words alphabetically: [{', '.join(drawn)}]"
    return f"Sort these numbers from the smallest to the largest: {', '.join(drawn)}."


def make() -> list[Task]:
    """Both splits; no two tasks have the same items."""
    made: list[Task] = []
    seen: set[frozenset[str]] = set()
    for split in SPLITS:
        for level in LEVELS:
            rng = random.Random(seed_of(SEED, split, level.name))
            number = 0
            while number < PER_LEVEL:
                drawn = instance(rng, level)
                if frozenset(drawn) in seen:
                    continue
                seen.add(frozenset(drawn))
                number += 1
                made.append(
                    Task(
                        id=f"{split}-{level.name}-{number:02d}",
                        family="sorting",
                        split=split,
                        prompt=prompt(level, drawn),
                        answer_format="line",
                        reference=[*sorted(drawn)],
                        ground_truth="exact",
                    )
                )
    return made


if __name__ == "__main__":
    write(__file__, "tasks.jsonl", make())
