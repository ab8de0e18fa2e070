"""`best_of_k`: k samples of the same prompt, then a selector. The control for every arm that spends several calls.

Selectors: `plurality` of the read answers (ties: earliest), `first_valid`, `verifier` (the scoring check: labelled), `judge`
(one more call).
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from harness import prompts
from harness.asking import Arm, Arms, ask_schema, closed, said, size, task_labels, task_text, together, user
from harness.errors import AskError
from harness.records import Answer, Ask, Candidate, Question, Step


class BestOfK(Arm):
    """k samples and a selector."""

    PURPOSE: ClassVar[str] = "k samples of one prompt, and a selector"
    ROLES: ClassVar[tuple[str, ...]] = ("solver", "selector")

    kind: Literal["best_of_k"] = "best_of_k"
    k: int = Field(3, ge=1, le=64)
    """Samples."""
    selector: Literal["plurality", "first_valid", "verifier", "judge"] = "plurality"
    inner: str | None = None
    """An arm of the study whose answers are the samples; None: a plain prompt."""

    async def __call__(self, question: Question, ask: Ask) -> Answer:
        results = await together(self._sample(question, ask, number) for number in range(1, self.k + 1))
        held = [(number, answer) for number, answer in enumerate(results, 1) if isinstance(answer, Answer)]
        lost: list[JsonValue] = [str(result) for result in results if isinstance(result, AskError)]
        if not held:
            raise next(result for result in results if isinstance(result, AskError))
        candidates = tuple(
            Candidate(text=answer.text, purpose=f"sample/{number}", reading=ask.read(answer.text))
            for number, answer in held
        )
        chosen, candidates = await self._select(question, ask, candidates)
        detail: dict[str, JsonValue] = {"selector": self.selector, "chosen": candidates[chosen].purpose, "lost": lost}
        return Answer(text=candidates[chosen].text, finish=held[chosen][1].finish, candidates=candidates, detail=detail)

    async def _sample(self, question: Question, ask: Ask, number: int) -> Answer | AskError:
        """One sample; a call that failed for good is a lost candidate, recorded as such."""
        try:
            if self.inner is not None:
                return await ask.scoped(f"sample/{number}").run(self.inner, question)
            text = prompts.render(prompts.load("single"), task=task_text(question))
            reply = await ask(f"sample/{number}", "solver", user(text), sees=(*task_labels(question), "format"))
            return Answer(text=reply.text, finish=reply.finish)
        except AskError as error:
            return error

    async def _select(
        self, question: Question, ask: Ask, candidates: tuple[Candidate, ...]
    ) -> tuple[int, tuple[Candidate, ...]]:
        valid = [
            i for i, candidate in enumerate(candidates) if candidate.reading and candidate.reading.value is not None
        ]
        if not valid:
            return 0, candidates
        if self.selector == "first_valid":
            return valid[0], candidates
        if self.selector == "verifier":
            return _verified(ask, candidates, valid)
        if self.selector == "judge" and len(valid) > 1:
            return await self._judged(question, ask, candidates, valid), candidates
        return _plurality(candidates, valid), candidates

    async def _judged(self, question: Question, ask: Ask, candidates: tuple[Candidate, ...], valid: list[int]) -> int:
        labels = [
            ask.derive(f"candidate/{i + 1}", candidates[i].text, _origin(self.inner, candidates[i])) for i in valid
        ]
        shown = "\n\n".join(f"Candidate {i + 1}:\n{{{{{label}}}}}" for i, label in zip(valid, labels, strict=True))
        text = prompts.render(prompts.load("select"), task=task_text(question), candidates=shown)
        names: list[JsonValue] = [str(i + 1) for i in valid]
        schema = closed({"best": {"type": "string", "enum": names}})
        told = await ask_schema(
            ask,
            "select",
            "selector",
            user(text),
            schema,
            lambda data: None if said(data, "best") in names else "unknown_candidate",
            sees=(*task_labels(question), *labels),
        )
        return int(said(told.data, "best")) - 1

    def steps(self, arms: Arms) -> tuple[Step, ...]:
        judged = (Step(role="selector", low=0, high=1, sees=self.k),) if self.selector == "judge" else ()
        if self.inner is None:
            return (Step(role="solver", low=self.k, high=self.k, prompt_chars=size("single")), *judged)
        inner = arms[self.inner].steps(arms)
        return (
            *(
                step.model_copy(
                    update={"role": f"{self.inner}:{step.role}", "low": self.k * step.low, "high": self.k * step.high}
                )
                for step in inner
            ),
            *judged,
        )

    def inner_arms(self) -> tuple[str, ...]:
        return () if self.inner is None else (self.inner,)

    def models_of_roles(self) -> dict[str, str]:
        needed = {"solver": self.inner is None, "selector": self.selector == "judge"}
        return {role: model for role, model in super().models_of_roles().items() if needed[role]}

    def missing_roles(self) -> list[str]:
        needed = (["solver"] if self.inner is None else []) + (["selector"] if self.selector == "judge" else [])
        return [role for role in needed if role not in self.models_of_roles()]

    def needs_scoring_check(self) -> bool:
        return self.selector == "verifier"

    def prompt_names(self) -> tuple[str, ...]:
        return ("single", *(("select", "repair_turn") if self.selector == "judge" else ()))

    def example(self, purpose: str, role: str, answer: str) -> str:
        return '{"best": "1"}' if role == "selector" else answer


def _origin(inner: str | None, candidate: Candidate) -> tuple[str, ...]:
    return () if inner else (candidate.purpose,)


def _plurality(candidates: tuple[Candidate, ...], valid: list[int]) -> int:
    """The earliest candidate whose read answer is the most frequent."""
    values = [candidates[i].reading.value for i in valid]  # type: ignore[union-attr]
    counts = Counter(values)
    most = max(counts.values())
    return next(i for i, value in zip(valid, values, strict=True) if counts[value] == most)


def _verified(ask: Ask, candidates: tuple[Candidate, ...], valid: list[int]) -> tuple[int, tuple[Candidate, ...]]:
    """The first candidate that passes the scoring check, else the first valid one."""
    checked = {i: ask.verify(f"verify/{i + 1}", candidates[i].text).passed for i in valid}
    marked = tuple(c.model_copy(update={"passed": checked.get(i)}) for i, c in enumerate(candidates))
    return next((i for i in valid if checked[i]), valid[0]), marked
