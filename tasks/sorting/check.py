"""Put numbers or words in order: the whole list has to be right. Ground truth is Python's sort of whole numbers or lower-case words."""

from __future__ import annotations

import random
import re

from harness.records import Checked, Format, Reading, Task

FORMAT: Format = "line"

LONGEST = 400
"""Signs of a value that are looked at."""
_BRACKETED = re.compile(r"[\[(]([^\[\]()]*)[\])][\s.`*]*$")
_BETWEEN = re.compile(r",|;|->|→|>|<|\band\b|\s", re.IGNORECASE)


def check(task: Task, reading: Reading) -> Checked:
    """Is the list of the answer the reference, in its order?"""
    found, expected = items(reading.value or ""), _reference(task)
    if found == expected:
        return Checked(passed=True, score=1.0, feedback="The list is in order.")
    return Checked(passed=False, score=in_place(found, expected), feedback=_fault(found, expected))


def right(task: Task) -> str:
    """The list in order."""
    return f"Answer: {', '.join(_reference(task))}"


def wrong(task: Task, rng: random.Random) -> str:
    """The list with two neighbours exchanged."""
    listed = _reference(task)
    place = rng.randrange(len(listed) - 1)
    listed[place], listed[place + 1] = listed[place + 1], listed[place]
    return f"Answer: {', '.join(listed)}"


def _reference(task: Task) -> list[str]:
    assert isinstance(task.reference, list)
    return [str(item) for item in task.reference]


def items(value: str) -> list[str]:
    """The items of an answer's value, in lower case, whatever stands between them: commas, blanks, arrows, `and`.

    Words that introduce the list on the same line, as in `The sorted list is [3, 5]` or `Sorted: 3, 5`, are passed over.
    """
    text = value[:LONGEST]
    bracketed = _BRACKETED.search(text)
    text = bracketed[1] if bracketed else text.rpartition(":")[2]
    return [item.lower() for part in _BETWEEN.split(text) if (item := part.strip("\"'`*_.()“”‘’"))]


def in_place(found: list[str], expected: list[str]) -> float:
    """Share of places that hold the right item, in [0, 1]; 0 for a list of another length."""
    if len(found) != len(expected):
        return 0.0
    return sum(one == other for one, other in zip(found, expected, strict=True)) / len(expected)


def _fault(found: list[str], expected: list[str]) -> str:
    if sorted(found) != sorted(expected):
        return "The answer does not hold exactly the given items, each once."
    return "The given items are there, but not in order."
