"""Make tasks/judge-calibration/pairs.jsonl: `python -m tasks.judge-calibration.make`. Seeded; the same file comes out every time.

Each label has grounds that a reader, and the test of this pool, can check: a product, a sorted list, a count, a number in a
notice, a count of words. The strata: obvious (right against nonsense), subtle (off by little), adversarial (longer, or
more confident, but wrong), equal (two wordings of one right answer).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, NamedTuple

from harness.records import LabelledPair
from tasks.making import write

SEED = 20261204
EACH = 20
"""Pairs of a stratum: four of each kind of fact."""
Stratum = Literal["obvious", "subtle", "adversarial", "equal"]
STRATA: tuple[Stratum, ...] = ("obvious", "subtle", "adversarial", "equal")
WORDS = (
    "basket candle drawer falcon garlic hammer island jacket ladder mirror needle orchid pepper ribbon saddle timber "
    "velvet window"
).split()
NAMES = "Adler Brandt Castillo Duarte Eriksen Fischer Grant Hansen Ibrahim Keller".split()
NONSENSE = (
    "Bananas are blue on Tuesdays.",
    "The question has no verbs in it at all.",
    "That is because it is round.",
    "I would rather talk about ships today.",
)
WORDINGS = ("The answer is {}.", "It is {}.", "That gives {}.", "{} is the answer.")
CONFIDENT = (
    "This is certain, and every expert agrees: the answer is {}. It follows at once from first principles.",
    "After checking this again and again I can state with full confidence that the answer is {}, without any doubt.",
    "First one reads the question with care. Then one works through each part. Each step was verified. The answer is {}.",
)
SENTENCES = (
    ("what do bees make", ("Bees make honey", "They make honey"), "Bees make very sweet honey"),
    ("what do fish breathe with", ("Fish use gills", "They use gills"), "Fish breathe with gills"),
    ("what does the sun give us", ("It gives light", "Light and warmth"), "The sun gives us light"),
    ("what do bakers bake", ("Bakers bake bread", "They bake bread"), "Bakers bake fresh bread"),
)
"""What is asked for in exactly three words, two answers that keep to it, and one that says the same in more words."""


class Fact(NamedTuple):
    """A question, two wordings of its right answer, a near miss, the same miss with much confidence, and the grounds."""

    question: str
    right: tuple[str, str]
    near: str
    confident: str
    grounds: str


def _fact(rng: random.Random, question: str, right: str, near: str, grounds: str) -> Fact:
    first, second = rng.sample(WORDINGS, 2)
    confident = rng.choice(CONFIDENT).format(near)
    return Fact(question, (first.format(right), second.format(right)), first.format(near), confident, grounds)


def product(rng: random.Random) -> Fact:
    """A multiplication, missed by a little."""
    a, b = rng.randint(6, 19), rng.randint(6, 19)
    near = a * b + rng.choice((-2, -1, 1, 2, 10))
    return _fact(rng, f"What is {a} times {b}?", str(a * b), str(near), f"{a} * {b} = {a * b}")


def order(rng: random.Random) -> Fact:
    """Four words to sort, missed by one exchange."""
    words = rng.sample(WORDS, 4)
    a, b, c, d = sorted(words)
    question = f"Put into alphabetical order: {', '.join(words)}."
    return _fact(rng, question, f"{a}, {b}, {c}, {d}", f"{a}, {c}, {b}, {d}", f"sorted: {a}, {b}, {c}, {d}")


def letters(rng: random.Random) -> Fact:
    """The letters of a compound word, missed by one."""
    word = "".join(rng.sample(WORDS, 2))
    near = len(word) + rng.choice((-1, 1))
    return _fact(rng, f"How many letters has {word!r}?", str(len(word)), str(near), f"{word}: {len(word)} letters")


def notice(rng: random.Random) -> Fact:
    """One of three numbers in a notice; the miss is another of them."""
    name = rng.choice(NAMES)
    room, hour, extension = rng.sample(range(11, 60), 3)
    text = f"{name} sits in room {room}, extension {extension}, and has {hour} files to read."
    return _fact(
        rng, f"Which room is it? Notice: {text}", str(room), str(rng.choice((hour, extension))), f"it says: room {room}"
    )


def three_words(rng: random.Random) -> Fact:
    """An answer of exactly three words, missed by one or two words."""
    asked, right, near = rng.choice(SENTENCES)
    tag = rng.choice(NAMES)
    confident = (
        f"Certainly, with pleasure! Everybody knows it, and there is no doubt at all: {near[0].lower()}{near[1:]}."
    )
    grounds = f"three words: {right[0]}; {right[1]}"
    question = f"{tag} asks for an answer of exactly three words: {asked}?"
    return Fact(question, (f"{right[0]}.", f"{right[1]}."), f"{near}.", confident, grounds)


KINDS: tuple[Callable[[random.Random], Fact], ...] = (product, order, letters, notice, three_words)


def pair(rng: random.Random, stratum: Stratum, number: int, fact: Fact) -> LabelledPair:
    """One labelled pair; the better text stands left and right in turn."""
    good, other = rng.sample(fact.right, 2)
    worse = {"obvious": rng.choice(NONSENSE), "subtle": fact.near, "adversarial": fact.confident, "equal": other}
    good_left = number % 2 == 1
    label: Literal["left", "right", "tie"] = "tie" if stratum == "equal" else "left" if good_left else "right"
    return LabelledPair(
        id=f"{stratum}-{number:02d}",
        stratum=stratum,
        question=fact.question,
        left=good if good_left else worse[stratum],
        right=worse[stratum] if good_left else good,
        label=label,
        grounds=fact.grounds,
    )


def make() -> list[LabelledPair]:
    """All pairs; no question is asked twice."""
    rng = random.Random(SEED)
    made: list[LabelledPair] = []
    asked: set[str] = set()
    for stratum in STRATA:
        for number in range(1, EACH + 1):
            fact = KINDS[number % len(KINDS)](rng)
            while fact.question in asked:
                fact = KINDS[number % len(KINDS)](rng)
            asked.add(fact.question)
            made.append(pair(rng, stratum, number, fact))
    return made


if __name__ == "__main__":
    write(__file__, "pairs.jsonl", make())
