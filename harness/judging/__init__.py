"""Blind pairwise verdicts: a judge gets a question and two texts, in both orders, and nothing that names their makers.

A reading says what was formed. States of pairs, panels and gates are computed from the records by the analysis,
so that rules can be replayed; nothing here decides a claim.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

from pydantic import JsonValue

from harness import prompts
from harness.canonical import seed_of, sha256
from harness.errors import AskError, Cause
from harness.records import Choice, Context, JudgeSpec, Message, Pair, Reply, Verdict
from harness.session import Errand, Session, reply_of, request_for

CHOICES: tuple[str, ...] = get_args(Choice)
REASON_CHARACTERS = 160
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "choice": {"type": "string", "enum": list(CHOICES)},
        "reason": {"type": "string", "maxLength": REASON_CHARACTERS},
    },
    "required": ["choice", "reason"],
    "additionalProperties": False,
}
ANCHORED = re.compile(r"^[ \t*_>#-]*verdict[ \t*_]*:[ \t*_]*\"?([a-z]+)\"?[ \t*_.]*$", re.IGNORECASE | re.MULTILINE)
LETTERS = {"A": "first", "B": "second"}
MASS = 0.5
"""Least total probability on the two letters for a reading to be formed."""


class Texts(NamedTuple):
    """A pair as a judge is shown it in one order."""

    question: str
    first: str
    second: str


class Formed(NamedTuple):
    """What one reply says: a choice, or why there is none."""

    choice: Choice | None
    reason: str | None
    broken: str | None


def verdict_of(reply: Reply) -> Formed:
    """The verdict of a reply: the closed schema, else one anchored verdict line. Two that differ form none."""
    if reply.finish == "length":
        return Formed(None, None, "the reply was cut by its length")
    data = reply.data if reply.data is not None else _whole_json(reply.text)
    if isinstance(data, dict):
        return _from_schema(data)
    found = {match.lower() for match in ANCHORED.findall(reply.text)}
    if len(found) != 1:
        return Formed(None, None, "two different verdicts" if found else "no verdict")
    word = found.pop()
    return Formed(_choice(word), None, None if word in CHOICES else f"an unknown label: {word}")


def _whole_json(text: str) -> JsonValue:
    try:
        data: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data


def _from_schema(data: dict[str, JsonValue]) -> Formed:
    word, reason = data.get("choice"), data.get("reason")
    if not isinstance(word, str) or word not in CHOICES:
        return Formed(None, None, f"no choice among {', '.join(CHOICES)}")
    if not isinstance(reason, str):
        return Formed(None, None, "no reason")
    return Formed(_choice(word), reason, None)


def _choice(word: str) -> Choice | None:
    return next((choice for choice in get_args(Choice) if choice == word), None)


class Judge:
    """One judge model over pairs of a study."""

    def __init__(self, session: Session, name: str, model: str) -> None:
        self.session, self.name, self.model = session, name, model
        self.spec: JudgeSpec = session.frozen.study.judges[name]

    async def read(self, pair: Pair, order: str, question: str, left: str, right: str) -> Verdict:
        """One reading of a pair in one order. A failed call forms no verdict and names its cause."""
        first, second = (left, right) if order == "left_first" else (right, left)
        texts = Texts(question, first, second)
        base: dict[str, Any] = {
            "subject": pair.id,
            "judge": self.name,
            "model": self.model,
            "order": order,
            "method": self.spec.method,
        }
        calls: list[str] = []
        try:
            if self.spec.method == "logprobs":
                return await self._by_logprobs(pair, order, texts, base, calls)
            return await self._by_letters(pair, order, texts, base, calls)
        except AskError as error:
            return Verdict(**base, formed=False, calls=tuple(calls), cause=error.cause, reason=str(error))

    async def _by_letters(
        self, pair: Pair, order: str, texts: Texts, base: dict[str, Any], calls: list[str]
    ) -> Verdict:
        template = (Message(role="user", text=prompts.load("judge_letters")),)
        reply = await self._ask(pair, order, "", template, texts, {}, calls)
        formed = verdict_of(reply)
        degraded = False
        if formed.choice is None:
            repair = (Message(role="user", text=prompts.load("judge_repair")),)
            reply = await self._ask(pair, order, "/repair", repair, texts, {"reply": reply.text}, calls)
            formed, degraded = verdict_of(reply), True
        made = formed.choice is not None
        return Verdict(
            **base,
            formed=made,
            degraded=made and degraded,
            choice=formed.choice,
            calls=tuple(calls),
            cause=None if made else Cause.unreadable,
            reason=formed.reason or formed.broken,
        )

    async def _by_logprobs(
        self, pair: Pair, order: str, texts: Texts, base: dict[str, Any], calls: list[str]
    ) -> Verdict:
        template = (Message(role="user", text=prompts.load("judge_logprobs")),)
        reply = await self._ask(pair, order, "", template, texts, {}, calls, logprobs=10)
        mass = letter_mass(reply)
        if mass is None or sum(mass) < MASS:
            why = "the model gave no probabilities" if mass is None else f"{sum(mass):.3f} of the mass on the labels"
            return Verdict(**base, formed=False, calls=tuple(calls), cause=Cause.unreadable, reason=why)
        p_first = mass[0] / sum(mass)
        return Verdict(**base, formed=True, p_first=round(p_first, 9), calls=tuple(calls))

    async def _ask(
        self,
        pair: Pair,
        order: str,
        suffix: str,
        template: tuple[Message, ...],
        texts: Texts,
        more: dict[str, str],
        calls: list[str],
        logprobs: int | None = None,
    ) -> Reply:
        shown = texts._asdict() | more
        quoted = {label: prompts.quote(text) for label, text in shown.items()}
        used = {label: quoted[label] for message in template for label in prompts.slots(message.text)}
        filled = tuple(m.model_copy(update={"text": prompts.fill(m.text, used)}) for m in template)
        purpose = f"{self.model}/{order}{suffix}"
        request = request_for(
            self.session.specs[self.model],
            filled,
            seed_of(self.session.frozen.study.seed, pair.id, purpose),
            max_tokens=4 if logprobs else self.spec.max_tokens,
            schema=None if logprobs else SCHEMA,
            logprobs=logprobs,
        )
        saw = {label: sha256(shown[label].encode("utf-8", "surrogatepass")) for label in sorted(used)}
        errand = Errand(
            pair.id,
            purpose,
            "judge",
            self.model,
            request,
            template,
            saw,
            "calibration" if pair.source == "calibration" else "judging",
            self._context(pair, order, purpose),
        )
        call = await self.session.ask(errand)
        calls.append(call.id)
        return reply_of(call)

    def _context(self, pair: Pair, order: str, purpose: str) -> Callable[[int], Context]:
        """For scripted judges: the label where there is one, else a winner drawn for the pair, the same in both orders."""
        rng = random.Random(seed_of(self.session.frozen.study.seed, pair.id, "truth"))
        truth: str = pair.label or rng.choice(["left", "right", "tie"])
        right = _as_shown(truth, order)
        wrong = {"first": "second", "second": "first", "tie": "first"}[right]
        options = {choice: json.dumps({"choice": choice, "reason": "scripted"}) for choice in CHOICES}

        def context(finished: int) -> Context:
            return Context(
                owner=pair.id,
                task_id=f"{pair.pool}/{pair.task}",
                role="judge",
                purpose=purpose,
                finished_attempts=finished,
                right=options[right],
                wrong=options[wrong],
                options=options,
            )

        return context


def _as_shown(side: str, order: str) -> str:
    if side == "tie":
        return "tie"
    return "first" if (side == "left") == (order == "left_first") else "second"


def letter_mass(reply: Reply) -> tuple[float, float] | None:
    """Probability of the labels A and B at the first position that holds one of them; None: no probabilities given."""
    for position in reply.logprobs or ():
        mass = {"A": 0.0, "B": 0.0}
        for token, logprob in position.top.items():
            letter = token.strip(" \t\n*\"'(").upper()
            if letter in mass:
                mass[letter] += math.exp(logprob)
        if sum(mass.values()) > 0:
            return mass["A"], mass["B"]
    return None if not reply.logprobs else (0.0, 0.0)
