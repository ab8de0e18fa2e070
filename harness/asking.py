"""What arms share: their base record, a schema ask with one repair turn, and a contract ask with one fresh conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import Field, JsonValue

from harness import prompts
from harness.canonical import seed_of
from harness.errors import AskError, ContractError, StoppedError, Symptom
from harness.records import Answer, Ask, Format, Message, Question, Record, Reply, Step

FORMAT_CHARACTERS = 60
"""Of a format instruction, about."""

Rule = Callable[[dict[str, JsonValue]], str | None]
"""Reads a reply's object; returns the name of the rule that it breaks, or None."""
Arms = Mapping[str, "Arm"]
T = TypeVar("T")


class Arm(Record):
    """One way to answer a question: frozen parameters and one coroutine. It sees the question and what `ask` brings."""

    PURPOSE: ClassVar[str] = ""
    """What it does, in one line."""
    ROLES: ClassVar[tuple[str, ...]] = ("solver",)
    """The keys that `roles` may have."""
    FALLBACK: ClassVar[str] = "solver"
    """A role that is not named gets the model of this one."""

    kind: str
    roles: dict[str, str] = Field({})
    """Role -> model of the study."""
    max_calls: int | None = Field(None, ge=1)
    """The arm's own cap on model calls, retries apart."""
    caps: dict[str, int] = Field({})
    """Role -> cap on the tokens of one reply; absent: the model's."""
    pools: tuple[str, ...] | None = None
    """Pools that it runs on; None: all."""

    async def __call__(self, question: Question, ask: Ask) -> Answer:
        """Answer one question."""
        raise TypeError(
            f"the arm kind {self.kind!r} does not say how it answers: define `async def __call__(self, question, ask)`"
        )

    def steps(self, arms: Arms) -> tuple[Step, ...]:
        """Its stages for the forecast; `arms` are all of the study, for one that runs others."""
        return (Step(role=self.ROLES[0], low=1, high=1),)

    def calls(self, arms: Arms) -> tuple[int, int]:
        """Model calls of one trial, at least and at most, retries apart."""
        steps = self.steps(arms)
        low, high = sum(step.low for step in steps), sum(step.high for step in steps)
        return (low, high) if self.max_calls is None else (min(low, self.max_calls), min(high, self.max_calls))

    def models_of_roles(self) -> dict[str, str]:
        """Role -> model of the study, every role filled."""
        fallback = self.roles.get(self.FALLBACK)
        return {role: self.roles.get(role) or fallback or "" for role in self.ROLES if role in self.roles or fallback}

    def seats(self, seed: int, task: str, repeat: int) -> dict[str, str]:
        """The roster of one trial, drawn at plan time where the arm draws it."""
        return self.models_of_roles()

    def missing_roles(self) -> list[str]:
        """Roles that no model plays."""
        return [role for role in self.ROLES if role not in self.models_of_roles()]

    def inner_arms(self) -> tuple[str, ...]:
        """Arms of the study that it runs inside itself."""
        return ()

    def needs_check(self) -> bool:
        """Does it use the family's visible check?"""
        return False

    def needs_scoring_check(self) -> bool:
        """Does it use the check that scores it? It is labelled so everywhere."""
        return False

    def labels(self, families: Mapping[str, str | None]) -> tuple[str, ...]:
        """What must stand beside it everywhere. `families`: model of the study -> family, None unknown."""
        return ("uses the scoring check",) if self.needs_scoring_check() else ()

    def refusal(self, families: Mapping[str, str | None]) -> str | None:
        """Why a study may not freeze with this arm as it is; None: it may."""
        return None

    def prompt_names(self) -> tuple[str, ...]:
        """The templates that it uses, by name; they freeze with it."""
        return ()

    def sources(self) -> tuple[str, ...]:
        """Further files of harness/arms/ whose content is part of it."""
        return ()

    def example(self, purpose: str, role: str, answer: str) -> str:
        """A reply that keeps its contracts and carries `answer`: what a scripted model says in this role."""
        return answer


async def together(steps: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run steps that do not depend on each other at once, each to its end; results in the order given.

    None is cancelled because another failed: what was paid for is kept, and two equal runs make the same calls.

    Raises:
        StoppedError: the run is stopping. Else the first failure in the order given.
    """
    failures: dict[int, Exception] = {}

    async def to_its_end(place: int, step: Coroutine[Any, Any, T]) -> T | None:
        try:
            return await step
        except Exception as error:  # raised again below, when the others have ended too
            failures[place] = error
            return None

    results = await asyncio.gather(*(to_its_end(place, step) for place, step in enumerate(steps)))
    if failures:
        raise min(failures.items(), key=lambda one: (not isinstance(one[1], StoppedError), one[0]))[1]
    return results  # type: ignore[return-value]  # without a failure each step gave its result


def user(text: str) -> tuple[Message, ...]:
    """One user message."""
    return (Message(role="user", text=text),)


def task_text(question: Question) -> str:
    """How every answering prompt states the task: question, facts and constraints where there are any, and the format."""
    parts = ["{{question}}"]
    if question.facts is not None:
        parts.append("Facts:\n{{facts}}")
    if question.constraints is not None:
        parts.append("Constraints:\n{{constraints}}")
    return "\n\n".join(parts)


def size(*names: str) -> int:
    """Characters of a prompt made of these templates, the task's own text apart: for forecasts."""
    return sum(len(prompts.load(name)) for name in names) + FORMAT_CHARACTERS


def task_labels(question: Question) -> tuple[str, ...]:
    """The named inputs that `task_text` uses."""
    facts = ("facts",) if question.facts is not None else ()
    constraints = ("constraints",) if question.constraints is not None else ()
    return ("question", *facts, *constraints)


def seat_seed(seed: int, task: str, repeat: int) -> int:
    """The 32 bits that draw the seats of one trial, from study seed, task and repeat."""
    return seed_of(seed, task, repeat) >> 31


# --- structured replies ----------------------------------------------------------------------------------------------


class Told(NamedTuple):
    """A structured reply that kept its rules."""

    data: dict[str, JsonValue]
    degraded: bool
    """It took the repair turn."""
    label: str
    """The purpose of the reply that holds it."""


def closed(properties: dict[str, JsonValue], required: list[str] | None = None) -> dict[str, JsonValue]:
    """A closed JSON schema of an object; every property is required unless `required` says otherwise."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required if required is not None else properties),
        "additionalProperties": False,
    }


def text_field(most: int) -> dict[str, JsonValue]:
    """A string of 1 to `most` characters."""
    return {"type": "string", "minLength": 1, "maxLength": most}


def answer_field(format: Format) -> dict[str, JsonValue]:
    """The schema of an answer inside a structured reply: an object for JSON, else a text."""
    return {"type": "object"} if format == "json" else text_field({"code": 2000, "text": 700}.get(format, 200))


def answer_of(ask: Ask, format: Format, data: dict[str, JsonValue]) -> str:
    """The `answer` of a structured reply as the text that the one reader reads. The key is the label that a line would carry."""
    value = data.get("answer")
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    text = str(value or "")
    if format in ("line", "choice") and text and ask.read(text).value is None:
        return f"Answer: {text}"
    return text


def example_answer(answer: str) -> JsonValue:
    """A scripted answer as the `answer` of a structured reply: an object where it is JSON."""
    try:
        value = json.loads(answer)
    except ValueError:
        return answer
    return value if isinstance(value, dict) else answer


def object_of(reply: Reply) -> dict[str, JsonValue] | None:
    """The object that a reply holds; None: it holds none."""
    data = reply.data
    if data is None:
        try:
            data = json.loads(reply.text)
        except (ValueError, RecursionError):
            return None
    return data if isinstance(data, dict) else None


def broken_rule(reply: Reply, rule: Rule) -> str | None:
    """Which rule a structured reply breaks. A reply cut by its length breaks the first."""
    if reply.finish == "length":
        return "cut"
    data = object_of(reply)
    return "not_json" if data is None else rule(data)


Second = Callable[[str], tuple[tuple[Message, ...], tuple[str, ...]]]
"""The broken rule -> messages and labels of the second ask."""


async def ask_schema(
    ask: Ask,
    purpose: str,
    role: str,
    messages: tuple[Message, ...],
    schema: dict[str, JsonValue],
    rule: Rule,
    *,
    sees: tuple[str, ...],
) -> Told:
    """Ask for an object; one that breaks a rule gets one repair turn, which quotes it and asks to restate it.

    Raises:
        ContractError: the repaired reply breaks a rule too. AskError: a call failed, or the repaired reply was cut.
    """

    def restated(broken: str) -> tuple[tuple[Message, ...], tuple[str, ...]]:
        text = prompts.render(prompts.load("repair_turn"), rule=broken.replace("_", " "), label="{{" + purpose + "}}")
        return user(text), (purpose,)

    return await _twice(ask, purpose, f"{purpose}/repair", role, (messages, sees), restated, schema, rule)


async def ask_contract(
    ask: Ask,
    purpose: str,
    role: str,
    messages: tuple[Message, ...],
    schema: dict[str, JsonValue],
    rule: Rule,
    *,
    sees: tuple[str, ...],
) -> Told:
    """Ask for an object; one that breaks a rule gets one fresh conversation that names the rule and does not show the reply.

    Raises:
        ContractError: the second reply breaks a rule too. AskError: a call failed, or the second reply was cut.
    """

    def fresh(broken: str) -> tuple[tuple[Message, ...], tuple[str, ...]]:
        reminder = prompts.render(prompts.load("again"), rule=broken.replace("_", " "))
        last = messages[-1]
        return (*messages[:-1], last.model_copy(update={"text": f"{last.text}\n\n{reminder}"})), sees

    return await _twice(ask, purpose, f"{purpose}/again", role, (messages, sees), fresh, schema, rule)


async def _twice(
    ask: Ask,
    purpose: str,
    again: str,
    role: str,
    first: tuple[tuple[Message, ...], tuple[str, ...]],
    second: Second,
    schema: dict[str, JsonValue],
    rule: Rule,
) -> Told:
    """Ask, and once more where the reply breaks a rule; the second ask is paid from the retries."""
    reply = await ask(purpose, role, first[0], schema=schema, sees=first[1])
    broken = broken_rule(reply, rule)
    if broken is None:
        return Told(object_of(reply) or {}, False, purpose)
    messages, sees = second(broken)
    reply = await ask(again, role, messages, schema=schema, sees=sees, bucket="retry")
    broken = broken_rule(reply, rule)
    if broken is None:
        return Told(object_of(reply) or {}, True, again)
    raise _failure(again, role, broken)


def _failure(purpose: str, role: str, broken: str) -> Exception:
    if broken == "cut":
        return AskError(Symptom.cut, f"{purpose}: the {role}'s reply was cut by its length twice")
    return ContractError(broken, f"the {role} broke it twice ({purpose})", {"role": role, "purpose": purpose})


def said(data: dict[str, JsonValue], key: str) -> str:
    """A text of a structured reply; "" where it is none."""
    value = data.get(key)
    return value.strip() if isinstance(value, str) else ""


def texts(data: dict[str, JsonValue], key: str) -> list[str]:
    """A list of non-empty texts of a structured reply."""
    value = data.get(key)
    return [item.strip() for item in value if isinstance(item, str) and item.strip()] if isinstance(value, list) else []
