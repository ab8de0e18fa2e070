"""Make tasks/judge-calibration/pairs.jsonl: `python tasks/judge-calibration/make.py`.

Each label has grounds that a reader, and the test of this pool, can check: a product, a sorted list, a count, a field of a notice. The
strata: obvious (right against nonsense), subtle (off by little), adversarial (longer, or more confident, but wrong), equal (two wordings of one
right answer).
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal, NamedTuple

from harness.records import LabelledPair
from tasks.making import lines

SEED = 20261204
EACH = 18
STRATA: tuple[Literal["obvious", "subtle", "adversarial", "equal"], ...] = ("obvious", "subtle", "adversarial", "equal")
WORDS = "basket candle drawer falcon garlic hammer island jacket ladder mirror needle orchid pepper ribbon saddle timber velvet window".split()
NONSENSE = (
    "Bananas are blue on Tuesdays.",
    "The question has no verbs.",
    "Seven, because it is round.",
    "I would rather talk about ships.",
)
CONFIDENT = (
    "This is certain, and every expert agrees: the answer is {wrong}. It follows at once from first principles, and no other answer was ever possible.",
    "After checking this three times by independent methods I can state with full confidence that the answer is {wrong}, without any doubt.",
    "Let me explain in detail. First one reads the question with care. Then one works through each part in turn. Each step was verified. The answer is {wrong}.",
)


class Fact(NamedTuple):
    """A question with one right answer and a near miss."""

    question: str
    right: str
    near: str
    grounds: str


def fact(rng: random.Random, number: int) -> Fact:
    """A question whose answer is computed here."""
    kind = number % 3
    if kind == 0:
        a, b = rng.randint(6, 19), rng.randint(6, 19)
        return Fact(
            f"What is {a} times {b}?", str(a * b), str(a * b + rng.choice([-2, -1, 1, 2, 10])), f"{a} * {b} = {a * b}"
        )
    if kind == 1:
        words = rng.sample(WORDS, 4)
        order = sorted(words)
        swapped = [order[0], order[2], order[1], order[3]]
        return Fact(
            f"Put into alphabetical order: {', '.join(words)}.",
            ", ".join(order),
            ", ".join(swapped),
            f"sorted: {', '.join(order)}",
        )
    word = rng.choice(WORDS) + rng.choice(WORDS)
    return Fact(
        f"How many letters has {word!r}?", str(len(word)), str(len(word) + rng.choice([-1, 1])), f"{len(word)} letters"
    )


def pair(
    rng: random.Random, stratum: Literal["obvious", "subtle", "adversarial", "equal"], number: int
) -> LabelledPair:
    """One labelled pair; the better text stands left and right in turn."""
    one = fact(rng, number)
    good, label = f"The answer is {one.right}.", "left" if number % 2 else "right"
    if stratum == "obvious":
        bad = rng.choice(NONSENSE)
    elif stratum == "subtle":
        bad = f"The answer is {one.near}."
    elif stratum == "adversarial":
        bad = rng.choice(CONFIDENT).format(wrong=one.near)
    else:
        bad, label = f"It is {one.right}.", "tie"
    first, second = (good, bad) if number % 2 else (bad, good)
    return LabelledPair(
        id=f"{stratum}-{number:02d}",
        stratum=stratum,
        question=one.question,
        left=first,
        right=second,
        label=label,  # type: ignore[arg-type]
        grounds=one.grounds,
    )


def make() -> list[LabelledPair]:
    """All pairs."""
    rng = random.Random(SEED)
    return [pair(rng, stratum, number) for stratum in STRATA for number in range(1, EACH + 1)]


if __name__ == "__main__":
    (Path(__file__).parent / "pairs.jsonl").write_bytes(lines(make()))
