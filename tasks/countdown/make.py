"""Make tasks/countdown/tasks.jsonl: `python -m tasks.countdown.make`."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations, product
from typing import Literal

from harness.records import Task
from tasks.making import write

SEED = 20261201
EACH = 48


def solutions(numbers: list[int], target: int) -> list[str]:
    """Every way to combine all numbers, left to right and with the last pair bracketed, that has the target as its value."""
    found = []
    for order in permutations(numbers):
        for signs in product("+-*/", repeat=len(order) - 1):
            left = _left_to_right(list(order), list(signs))
            if left is not None and left[0] == target:
                found.append(left[1])
    return sorted(set(found), key=lambda text: (len(text), text))


def _left_to_right(numbers: list[int], signs: list[str]) -> tuple[Fraction, str] | None:
    value, text = Fraction(numbers[0]), str(numbers[0])
    for position, (sign, number) in enumerate(zip(signs, numbers[1:], strict=True)):
        if sign == "/" and (number == 0 or value % number):
            return None
        value = {"+": value + number, "-": value - number, "*": value * number}.get(
            sign, value / number if number else value
        )
        bracket = position > 0 and sign in "*/" and any(s in "+-" for s in signs[:position])
        text = f"({text}) {sign} {number}" if bracket else f"{text} {sign} {number}"
    return value, text


def make() -> list[Task]:
    """All tasks of both splits."""
    rng, seen, made = random.Random(SEED), set(), []
    splits: tuple[Literal["dev", "heldout"], ...] = ("dev", "heldout")
    for split in splits:
        count = 0
        while count < EACH:
            size = 2 if count % 3 == 0 else 3
            numbers = sorted(rng.sample(range(2, 13), size))
            target = rng.randint(5, 40)
            ways = solutions(numbers, target)
            key = (tuple(numbers), target)
            if not ways or key in seen or target in numbers:
                continue
            seen.add(key)
            count += 1
            listed = f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
            made.append(
                Task(
                    id=f"{split}-{count:02d}",
                    family="countdown",
                    split=split,
                    prompt=f"Use the numbers {listed}, each at most once, with + - * / and brackets, to make {target}. "
                    "The answer is one expression, such as 2 * (3 + 4).",
                    answer_format="line",
                    given={"numbers": list(numbers), "target": target},
                    reference=ways[0],
                    ground_truth="exact",
                )
            )
    return made


if __name__ == "__main__":
    write(__file__, "tasks.jsonl", make())
