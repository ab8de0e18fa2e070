"""Make tasks/sorting/tasks.jsonl: `python -m tasks.sorting.make`."""

from __future__ import annotations

import random
from typing import Literal

from harness.records import Task
from tasks.making import write

SEED = 20261202
EACH = 48
WORDS = """
anchor apple arrow basket beacon berry bottle branch bridge button cabin candle canyon carpet castle cellar chalk cherry circle clover
copper corner cotton crystal dancer desert dragon drawer eagle ember engine falcon feather fiddle flower forest fossil garden garlic ginger
glacier goblet granite hammer harbor helmet honey island ivory jacket jungle kettle kitten ladder lantern lemon letter lizard magnet maple
marble meadow mirror mountain needle nickel oyster paddle parrot pebble pencil pepper pillow pirate planet pocket ribbon river rocket saddle
sailor salmon shadow silver spider squirrel stable sugar table temple thunder ticket timber tunnel turtle valley velvet violin wagon walnut
window winter
""".split()


def make() -> list[Task]:
    """All tasks of both splits."""
    rng, made = random.Random(SEED), []
    splits: tuple[Literal["dev", "heldout"], ...] = ("dev", "heldout")
    for split in splits:
        for number in range(1, EACH + 1):
            size = 4 if number % 3 == 0 else 3
            words = rng.sample(WORDS, size)
            while words == sorted(words):
                rng.shuffle(words)
            made.append(
                Task(
                    id=f"{split}-{number:02d}",
                    family="sorting",
                    split=split,
                    prompt=f"Put these words into alphabetical order: {', '.join(words)}. The answer is the words, separated by commas.",
                    answer_format="line",
                    given={"words": list(words)},
                    reference=", ".join(sorted(words)),
                    ground_truth="exact",
                )
            )
    return made


if __name__ == "__main__":
    write(__file__, "tasks.jsonl", make())
