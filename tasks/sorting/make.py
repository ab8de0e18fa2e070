"""Make tasks.jsonl: `python tasks/sorting/make.py`. Seeded; the same file comes out every time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

from harness.canonical import canonical, seed_of
from harness.records import Task

SEED = 20261202
PER_LEVEL = 16
"""Tasks of each level in each split."""

WORDS = (
    "anchor apple arrow autumn badge bakery basket bridge butter cabin candle carpet castle cellar cherry copper cotton "
    "cradle desert dinner dragon drawer eagle engine evening falcon feather ferry forest garden ginger glacier hammer "
    "harbor honey island ivory jacket jungle kettle kitchen ladder lantern lemon magnet marble meadow mirror needle "
    "nephew ocean olive onion orchid paddle parrot pencil pepper planet quarry rabbit ribbon river saddle salmon "
    "shadow silver spider summer table temple thunder ticket tunnel umbrella valley velvet violin wagon walnut "
    "window winter yellow zebra"
).split()


class Level(NamedTuple):
    """How hard: how many words, and whether their first letters differ."""

    name: str
    words: int
    distinct: bool


LEVELS = (Level("three", 3, True), Level("four", 4, True), Level("four-shared", 4, False))


def instance(rng: random.Random, level: Level) -> list[str]:
    """Words out of order; in a level that is not distinct, at least two share the first letter."""
    while True:
        drawn = rng.sample(WORDS, level.words)
        initials = {word[0] for word in drawn}
        if (len(initials) == len(drawn)) == level.distinct and drawn != sorted(drawn):
            return drawn


def tasks() -> list[Task]:
    """Both splits; no two tasks have the same words."""
    made: list[Task] = []
    seen: set[frozenset[str]] = set()
    for split in ("dev", "heldout"):
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
                        prompt=f"Sort these words alphabetically: {', '.join(drawn)}.",
                        answer_format="line",
                        reference=[*sorted(drawn)],
                        ground_truth="exact",
                    )
                )
    return made


def data() -> bytes:
    """The file's bytes."""
    return b"".join(canonical(task.model_dump(mode="json", exclude_none=True)) + b"\n" for task in tasks())


if __name__ == "__main__":
    Path(__file__).with_name("tasks.jsonl").write_bytes(data())
