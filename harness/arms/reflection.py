"""`reflection`: gather findings in parallel, one an angle; frame their tension; critique each; synthesise."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from harness import prompts
from harness.asking import Arm, Arms, size, task_labels, task_text, together, user
from harness.errors import AskError, Cause, TrialError
from harness.records import Answer, Ask, Question, Step

ANGLES = (
    "What exactly does the question ask, and in which form?",
    "Which mistake is easy to make here?",
    "What would a careful expert do first?",
)


class Reflection(Arm):
    """2A + 2 calls for A angles."""

    PURPOSE: ClassVar[str] = "findings from several angles, their tension, a critique of each, a synthesis"
    ROLES: ClassVar[tuple[str, ...]] = ("solver", "gather", "frame", "critique", "synthesise")

    kind: Literal["reflection"] = "reflection"
    angles: tuple[str, ...] = Field(ANGLES, min_length=1, max_length=12)
    """One question to look at the task from, a finding each."""
    min_findings: int = Field(1, ge=1)
    """With fewer findings the arm fails; a lost one above that is recorded."""

    async def __call__(self, question: Question, ask: Ask) -> Answer:
        findings, lost = await self._gather(question, ask)
        if len(findings) < self.min_findings:
            raise TrialError(
                Cause.provider,
                f"{len(findings)} findings of at least {self.min_findings}",
                {"lost": list(lost.values())},
            )
        shown = "\n\n".join(f"{{{{{label}}}}}" for label in findings)
        frame = prompts.render(prompts.load("reflection_frame"), findings=shown)
        await ask("frame", "frame", user(frame), sees=("question", *findings))
        critiques = await self._criticise(ask, findings)
        notes = "\n\n".join(
            f"Finding:\n{{{{{finding}}}}}\nCritique:\n{{{{{critique}}}}}"
            for finding, critique in zip(findings, critiques, strict=True)
        )
        text = prompts.render(prompts.load("reflection_synthesise"), task=task_text(question), notes=notes)
        sees = (*task_labels(question), "format", *findings, *critiques)
        reply = await ask("synthesis", "synthesise", user(text), sees=sees)
        detail: dict[str, JsonValue] = {"findings": list(findings), "lost": dict(lost)}
        return Answer(text=reply.text, finish=reply.finish, detail=detail)

    async def _gather(self, question: Question, ask: Ask) -> tuple[list[str], dict[str, JsonValue]]:
        """The purposes of the findings that came, and why the others were lost. Only a call that failed for good is a loss."""

        async def one(number: int, angle: str) -> str | AskError:
            text = prompts.render(prompts.load("reflection_gather"), task=task_text(question), angle=angle)
            try:
                await ask(f"gather/{number}", "gather", user(text), sees=task_labels(question))
            except AskError as error:
                return error
            return f"gather/{number}"

        results = await together(one(number, angle) for number, angle in enumerate(self.angles, 1))
        lost: dict[str, JsonValue] = {
            f"gather/{i}": str(result) for i, result in enumerate(results, 1) if isinstance(result, AskError)
        }
        return [result for result in results if isinstance(result, str)], lost

    async def _criticise(self, ask: Ask, findings: list[str]) -> list[str]:
        async def one(finding: str) -> str:
            purpose = f"critique/{finding.removeprefix('gather/')}"
            text = prompts.render(prompts.load("reflection_critique"), finding="{{" + finding + "}}")
            await ask(purpose, "critique", user(text), sees=("question", "frame", finding))
            return purpose

        return await together(one(finding) for finding in findings)

    def steps(self, arms: Arms) -> tuple[Step, ...]:
        many, fewest = len(self.angles), min(self.min_findings, len(self.angles))
        return (
            Step(role="gather", low=many, high=many, prompt_chars=size("reflection_gather")),
            Step(role="frame", low=1, high=1, prompt_chars=size("reflection_frame"), sees=many),
            Step(role="critique", low=fewest, high=many, prompt_chars=size("reflection_critique"), sees=2),
            Step(role="synthesise", low=1, high=1, prompt_chars=size("reflection_synthesise"), sees=2 * many),
        )

    def models_of_roles(self) -> dict[str, str]:
        found = super().models_of_roles()
        return {role: found[role] for role in self.ROLES[1:] if role in found}

    def missing_roles(self) -> list[str]:
        return [role for role in self.ROLES[1:] if role not in self.models_of_roles()]

    def prompt_names(self) -> tuple[str, ...]:
        return ("reflection_gather", "reflection_frame", "reflection_critique", "reflection_synthesise")
