"""`repair`: answer, check by the family's visible check, answer again with the whole failure history in view.

The check knows only what the prompt itself states; the reference is out of its reach. With `oracle = true` the scoring check
takes its place, and the arm is labelled so everywhere.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from harness import prompts
from harness.asking import Arm, Arms, size, task_labels, task_text, user
from harness.records import Answer, Ask, Candidate, Checked, Question, Reply, Step


class Repair(Arm):
    """Up to `max_attempts` answers; stops at the first that passes."""

    PURPOSE: ClassVar[str] = "answer, check what the prompt states, repair with the failures in view"
    ROLES: ClassVar[tuple[str, ...]] = ("solver", "second", "third")

    kind: Literal["repair"] = "repair"
    max_attempts: int = Field(3, ge=1, le=20)
    oracle: bool = False
    """Check by the scoring check: labelled everywhere."""

    async def __call__(self, question: Question, ask: Ask) -> Answer:
        rotation = [role for role in self.ROLES if role in self.roles] or ["solver"]
        attempts: list[Candidate] = []
        checks: list[Checked] = []
        replies: list[Reply] = []
        for number in range(1, self.max_attempts + 1):
            role = rotation[(number - 1) % len(rotation)]
            reply = await self._attempt(question, ask, role, number)
            look = ask.verify if self.oracle else ask.check
            checked = look(f"check/{number}", reply.text)
            replies.append(reply)
            checks.append(checked)
            attempts.append(
                Candidate(
                    text=reply.text, purpose=f"attempt/{number}", reading=ask.read(reply.text), passed=checked.passed
                )
            )
            if checked.passed:
                break
        best = _best(checks)
        return Answer(
            text=attempts[best].text,
            finish=replies[best].finish,
            candidates=tuple(attempts),
            detail={"attempts": len(attempts), "passed": checks[best].passed, "chosen": attempts[best].purpose},
        )

    async def _attempt(self, question: Question, ask: Ask, role: str, number: int) -> Reply:
        sees = (*task_labels(question), "format")
        if number == 1:
            text = prompts.render(prompts.load("single"), task=task_text(question))
            return await ask("attempt/1", role, user(text), sees=sees)
        earlier = [(f"attempt/{i}", f"check/{i}") for i in range(1, number)]
        history = "\n\n".join(
            f"Attempt {i}:\n{{{{{attempt}}}}}\nThe check says:\n{{{{{check}}}}}"
            for i, (attempt, check) in enumerate(earlier, 1)
        )
        text = prompts.render(prompts.load("repair"), task=task_text(question), history=history)
        labels = tuple(label for both in earlier for label in both)
        return await ask(f"attempt/{number}", role, user(text), sees=(*sees, *labels), bucket="deliberation")

    def steps(self, arms: Arms) -> tuple[Step, ...]:
        first = Step(role="solver", low=1, high=1, prompt_chars=size("single"))
        later = [
            Step(role="solver", low=0, high=1, prompt_chars=size("repair"), sees=number - 1)
            for number in range(2, self.max_attempts + 1)
        ]
        return (first, *later)

    def models_of_roles(self) -> dict[str, str]:
        return {role: model for role, model in self.roles.items() if role in self.ROLES}

    def missing_roles(self) -> list[str]:
        return [] if "solver" in self.roles else ["solver"]

    def needs_check(self) -> bool:
        return not self.oracle

    def needs_scoring_check(self) -> bool:
        return self.oracle

    def prompt_names(self) -> tuple[str, ...]:
        return ("single", "repair")


def _best(checks: list[Checked]) -> int:
    """The passing attempt, else the best scored one (later on a tie), else the last."""
    last = len(checks) - 1
    if checks[last].passed or all(check.score is None for check in checks):
        return last
    return max(range(len(checks)), key=lambda i: (checks[i].score or 0.0, i))
