"""The one Ask: the only door from an arm to a model.

A `Door` is what an arm is handed for a trial: it names purposes, fills slots, and answers from finished receipts when a killed
trial is run again. The calls themselves are made by the `Session`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from pydantic import JsonValue

from harness import prompts, reading
from harness.asking import Arm
from harness.canonical import plain, seed_of, sha256
from harness.errors import (
    CapError,
    Cause,
    PromptError,
    TrialError,
)
from harness.models import kind_of
from harness.records import (
    Answer,
    Bucket,
    Checked,
    Context,
    Message,
    Question,
    Reading,
    Reply,
    Task,
    Trial,
    Use,
)
from harness.session import Errand, Session, reply_of, request_for
from tasks import Family


class Labels:
    """The texts that slots may be filled with: named inputs, finished replies, and what an arm derived from them."""

    NAMED = ("question", "facts", "constraints", "position", "format")

    def __init__(self, question: Question) -> None:
        self.texts: dict[str, str] = {
            "question": question.prompt,
            "facts": question.facts or prompts.NONE_SUPPLIED,
            "constraints": question.constraints or prompts.NONE_SUPPLIED,
            "position": question.position or prompts.NONE_SUPPLIED,
            "format": prompts.load(f"format_{question.answer_format}"),
        }

    def fill(self, messages: tuple[Message, ...], sees: tuple[str, ...]) -> tuple[tuple[Message, ...], dict[str, str]]:
        """Messages with their slots filled, and label -> hash of what filled them.

        Raises:
            PromptError: a slot that `sees` does not name, or a label that does not exist.
        """
        for label in sees:
            if label not in self.texts:
                raise PromptError(f"no finished reply or input {label!r}; there are: {', '.join(sorted(self.texts))}")
        shown = {label: self.shown(label) for label in sees}
        filled = tuple(m.model_copy(update={"text": prompts.fill(m.text, shown)}) for m in messages)
        used = {label for m in messages for label in prompts.slots(m.text)}
        return filled, {label: sha256(self.texts[label].encode("utf-8", "surrogatepass")) for label in sorted(used)}

    def shown(self, label: str) -> str:
        """Named inputs word for word, replies quoted."""
        text = self.texts[label]
        return text if label in self.NAMED else prompts.quote(text)


class Door:
    """The Ask that one arm is handed for one trial."""

    def __init__(
        self,
        session: Session,
        trial: Trial,
        arm: Arm,
        arms: dict[str, Arm],
        task: Task,
        family: Family,
        question: Question,
    ) -> None:
        self._session, self._trial, self._arm, self._arms = session, trial, arm, arms
        self._task, self._family, self._question = task, family, question
        self._labels = Labels(question)
        self._prefix, self._seats = "", ""
        self._purposes: set[str] = set()
        self._caps: list[list[int | None]] = [[0, arm.max_calls]]

    async def __call__(
        self,
        purpose: str,
        role: str,
        messages: tuple[Message, ...],
        *,
        schema: dict[str, JsonValue] | None = None,
        tools: tuple[dict[str, JsonValue], ...] | None = None,
        logprobs: int | None = None,
        max_tokens: int | None = None,
        sees: tuple[str, ...] = (),
        bucket: Bucket | None = None,
    ) -> Reply:
        full = self._claim(purpose)
        model = self._model(role)
        filled, saw = self._labels.fill(messages, sees)
        request = request_for(
            self._session.specs[model],
            filled,
            seed_of(self._trial.seed, full),
            max_tokens=max_tokens or self._arm.caps.get(role),
            schema=schema,
            tools=tools,
            logprobs=logprobs,
        )
        errand = Errand(
            self._trial.id,
            full,
            role,
            model,
            request,
            messages,
            saw,
            bucket or "deliberation",
            self._context(purpose, role, full),
        )
        reply = reply_of(await self._session.ask(errand))
        self._labels.texts[purpose] = reply.text
        return reply

    def _claim(self, purpose: str) -> str:
        """Count the call against every cap on the way and refuse a purpose that was used."""
        full = self._prefix + purpose
        if full in self._purposes:
            raise PromptError(f"{self._trial.id}: the purpose {full!r} is used twice in one trial")
        for cap in self._caps:
            if cap[1] is not None and (cap[0] or 0) >= cap[1]:
                raise CapError(f"the arm's limit of {cap[1]} calls is reached before {full!r}")
        for cap in self._caps:
            cap[0] = (cap[0] or 0) + 1
        self._purposes.add(full)
        return full

    def _model(self, role: str) -> str:
        roster, key = self._trial.roster, self._seats + role
        if key not in roster:
            raise PromptError(f"{self._trial.id}: no role {role!r} in the roster ({', '.join(sorted(roster))})")
        return roster[key]

    def _context(self, purpose: str, role: str, full: str) -> Callable[[int], Context]:
        scripted = kind_of(self._session.specs[self._model(role)].name) == "scripted"
        right = wrong = None
        if scripted:
            rng = random.Random(seed_of(self._trial.seed, full, "wrong"))
            right = self._arm.example(purpose, role, self._family.right(self._task))
            wrong = self._arm.example(purpose, role, self._family.wrong(self._task, rng))

        def context(finished: int) -> Context:
            return Context(
                owner=self._trial.id,
                task_id=f"{self._trial.pool}/{self._task.id}",
                role=role,
                purpose=full,
                finished_attempts=finished,
                right=right,
                wrong=wrong,
            )

        return context

    def left(self) -> int | None:
        """Calls left under the tightest cap; None: no cap."""
        rests = [cap[1] - (cap[0] or 0) for cap in self._caps if cap[1] is not None]
        return min(rests) if rests else None

    def rng(self, purpose: str) -> random.Random:
        """Randomness seeded by trial and purpose."""
        return random.Random(seed_of(self._trial.seed, self._prefix + purpose, "rng"))

    def read(self, text: str) -> Reading:
        """The one reader."""
        return reading.read(text, self._question.answer_format)

    def check(self, purpose: str, text: str) -> Checked:
        """The family's visible check; its use leaves a receipt."""
        if not self._arm.needs_check() or self._family.visible is None:
            raise TrialError(
                Cause.bug,
                f"{self._arm.kind} asks for a visible check that it does not declare or {self._trial.pool} lacks",
            )
        visible, question = self._family.visible, self._question
        return self._use(purpose, text, lambda: visible(question, text))

    def verify(self, purpose: str, text: str) -> Checked:
        """The scoring check, for an arm that is labelled as using it."""
        check = self._family.check
        if not self._arm.needs_scoring_check() or check is None:
            raise TrialError(Cause.bug, f"{self._arm.kind} asks for the scoring check, which it does not declare")
        return self._use(purpose, text, lambda: check(self._task, self.read(text)))

    def _use(self, purpose: str, text: str, run: Callable[[], Checked]) -> Checked:
        full = self._prefix + purpose
        past = self._session.uses.get((self._trial.id, full))
        if past is not None and past.input == text:
            checked = Checked.model_validate(past.output)
        else:
            clock = time.monotonic()
            checked = run()
            use = Use(
                id=f"{self._trial.id}#{full}",
                owner=self._trial.id,
                purpose=full,
                seq=len(self._purposes),
                use="check",
                input=text,
                output=plain(checked),
                seconds=round(time.monotonic() - clock, 3),
            )
            self._session.writer.append(use)
            self._session.uses[self._trial.id, full] = use
        self._labels.texts[purpose] = checked.feedback
        return checked

    def derive(self, label: str, text: str, sees: tuple[str, ...]) -> str:
        """Register text that the arm computed from replies."""
        for source in sees:
            if source not in self._labels.texts:
                raise PromptError(f"{label!r} cannot come from {source!r}: no such reply or input")
        if self._labels.texts.get(label, text) != text:
            raise PromptError(f"the label {label!r} is taken by another text")
        self._labels.texts[label] = text
        return label

    def saw(self, label: str) -> str:
        """The text behind a label."""
        if label not in self._labels.texts:
            raise PromptError(f"no finished reply or input {label!r}")
        return self._labels.texts[label]

    def scoped(self, prefix: str) -> Door:
        """The same door, every purpose below `prefix`, with labels of its own."""
        inner = self._copy(self._arm)
        inner._prefix = f"{self._prefix}{prefix}/"
        return inner

    def _copy(self, arm: Arm) -> Door:
        door = Door(self._session, self._trial, arm, self._arms, self._task, self._family, self._question)
        door._prefix, door._seats, door._purposes, door._caps = self._prefix, self._seats, self._purposes, self._caps
        return door

    async def run(self, name: str, question: Question) -> Answer:
        """Another arm of the study inside this one, under both arms' caps."""
        inner = self._copy(self._arms[name])
        inner._seats = f"{name}:"
        inner._caps = [*self._caps, [0, inner._arm.max_calls]]
        inner._labels = Labels(question)
        return await inner._arm(question, inner)

    def seat(self, role: str) -> str:
        """How independent a role's model is from the first role's."""
        mine, first = self._model(role), next(iter(self._trial.roster.values()))
        if mine == first or self._session.specs[mine].name == self._session.specs[first].name:
            return "same-model"
        families = self._session.frozen.families
        if families.get(mine) is None or families.get(first) is None:
            return "unverified"
        return "same-family" if families[mine] == families[first] else "independent"
