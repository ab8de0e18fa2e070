"""Put words in alphabetical order: the whole list has to be right. Ground truth is Python's sort of the lower-case words."""

from __future__ import annotations

import random
import re

from harness.records import Checked, Format, Reading, Task

FORMAT: Format = "line"

_BETWEEN = re.compile(r"\s*(?:,|;|->|→|>|<|\band\b|\s)\s*", re.IGNORECASE)


def check(task: Task, reading: Reading) -> Checked:
    """Are the words of the answer the reference, in its order?"""
    found, expected = words(reading.value or ""), _reference(task)
    if found == expected:
        return Checked(passed=True, score=1.0, feedback="The words stand in alphabetical order.")
    return Checked(passed=False, score=in_place(found, expected), feedback=_fault(found, expected))


def right(task: Task) -> str:
    """The words in order."""
    return f"Answer: {', '.join(_reference(task))}"


def wrong(task: Task, rng: random.Random) -> str:
    """The words with two neighbours exchanged."""
    listed = _reference(task)
    place = rng.randrange(len(listed) - 1)
    listed[place], listed[place + 1] = listed[place + 1], listed[place]
    return f"Answer: {', '.join(listed)}"


def _reference(task: Task) -> list[str]:
    assert isinstance(task.reference, list)
    return [str(word) for word in task.reference]


def words(value: str) -> list[str]:
    """The words of an answer's value, in lower case, whatever stands between them: commas, blanks, arrows, `and`."""
    parts = _BETWEEN.split(value[:2000])
    return [word.lower() for part in parts if (word := part.strip("\"'`*_.:()[]{}“”‘’"))]


def in_place(found: list[str], expected: list[str]) -> float:
    """Share of places that hold the right word, in [0, 1]; 0 for a list of another length."""
    if len(found) != len(expected):
        return 0.0
    return sum(one == other for one, other in zip(found, expected, strict=True)) / len(expected)


def _fault(found: list[str], expected: list[str]) -> str:
    if sorted(found) != expected:
        return "The answer does not hold exactly the given words, each once."
    return "The given words are there, but not in alphabetical order."
