"""`single`: one prompt, one call. The strong control: the same task text and format instruction as every arm."""

from __future__ import annotations

from typing import ClassVar, Literal

from harness import prompts
from harness.asking import Arm, Arms, size, task_labels, task_text, user
from harness.records import Answer, Ask, Question, Step


class Single(Arm):
    """One call."""

    PURPOSE: ClassVar[str] = "one prompt, one call: the control"

    kind: Literal["single"] = "single"

    async def __call__(self, question: Question, ask: Ask) -> Answer:
        text = prompts.render(prompts.load("single"), task=task_text(question))
        reply = await ask("answer", "solver", user(text), sees=(*task_labels(question), "format"))
        return Answer(text=reply.text, finish=reply.finish)

    def steps(self, arms: Arms) -> tuple[Step, ...]:
        return (Step(role="solver", low=1, high=1, prompt_chars=size("single")),)

    def prompt_names(self) -> tuple[str, ...]:
        return ("single",)
