"""Advice: short open questions. There is no exact check; the answers are judged."""

from __future__ import annotations

import random

from harness.records import Task

FORMAT = "text"
check = None


def right(task: Task) -> str:
    """The sensible point, and what to do with it."""
    return f"{task.reference} Start small, look at what happened, and adjust."


def wrong(task: Task, rng: random.Random) -> str:
    """A text that helps nobody."""
    return rng.choice(["It depends.", "There is nothing that one can do about it.", "Ask somebody else."])
