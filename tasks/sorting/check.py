"""Sorting: the given words in alphabetical order, separated by commas or blanks."""

from __future__ import annotations

import random
import re

from harness.reading import read
from harness.records import Checked, Question, Reading, Task

FORMAT = "line"


def words_of(value: str | None) -> list[str]:
    """The words of an answer, in their order, in lower case."""
    return re.findall(r"[a-z]+", (value or "").lower())


def check(task: Task, reading: Reading) -> Checked:
    """Exactly the reference's order."""
    passed = words_of(reading.value) == words_of(str(task.reference))
    return Checked(passed=passed, feedback="In order." if passed else "Not the words in order.")


def visible(question: Question, text: str) -> Checked:
    """Each given word once and none else, which the prompt states; whether the order is right is not said."""
    assert question.given is not None
    given = question.given["words"]
    assert isinstance(given, list)
    found = words_of(read(text, FORMAT).value)
    missing = [word for word in given if word not in found]
    extra = [word for word in found if word not in given]
    if not found:
        return Checked(passed=False, feedback="There is no line of the form `Answer: <words>`.")
    if missing or extra or len(found) != len(given):
        parts = [f"missing: {', '.join(map(str, missing))}"] if missing else []
        parts += [f"not given: {', '.join(extra)}"] if extra else []
        parts += ["a word stands twice"] if not parts else []
        return Checked(passed=False, feedback="; ".join(parts) + ".")
    return Checked(passed=True, feedback="Each given word stands there once.")


def right(task: Task) -> str:
    return f"Answer: {task.reference}"


def wrong(task: Task, rng: random.Random) -> str:
    words = words_of(str(task.reference))
    start = rng.randrange(len(words) - 1)
    words[start], words[start + 1] = words[start + 1], words[start]
    return f"Answer: {', '.join(words)}"
