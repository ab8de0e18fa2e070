"""`scripted/...`: deterministic models that ship with the package, for trying a study out, for tests and for simulations.

`scripted/skill` answers rightly with a set probability; `scripted/file` answers from rules in a file. What they say and which
fault they show depends on the request's seed, the names of task, role and purpose, and the number of finished attempts; never
on arrival or on a clock.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from functools import cache
from pathlib import Path

from harness.canonical import seed_of
from harness.errors import Symptom
from harness.records import Context, Fault, FaultPlan, ModelSpec, RawReply, Request, Script, TokenLogprobs

VERSION = "scripted/1"
KINDS = ("skill", "file")
PLAIN = "scripted reply"
HANG_SECONDS = 3600.0


async def complete(spec: ModelSpec, request: Request, context: Context, folder: Path) -> RawReply:
    """One attempt."""
    script = spec.script or Script()
    if script.latency:
        await asyncio.sleep(script.latency)
    fault = faulty(script.faults, request, context)
    if fault == "hang":
        await asyncio.sleep(HANG_SECONDS)
    reply = _said(spec, script, request, context, folder)
    return reply if fault is None or reply.fault is not None else _shown(fault, script.faults, reply)


def _said(spec: ModelSpec, script: Script, request: Request, context: Context, folder: Path) -> RawReply:
    if spec.name == "scripted/file":
        text = _by_rule(folder / str(script.replies), request, context)
        if text is None:
            return RawReply(
                fault=Fault(symptom=Symptom.bad_request, message=f"no rule of {script.replies} fits {context.purpose}")
            )
    else:
        text = _by_skill(spec, script, request, context)
    return RawReply(
        text=text,
        finish="stop",
        model_served=spec.name,
        tokens_in=sum(tokens(message.text) for message in request.messages),
        tokens_out=min(tokens(text), request.max_tokens),
        usage_complete=True,
        logprobs=_letters(text, context) if request.logprobs else None,
    )


def tokens(text: str) -> int:
    """A deterministic count: one for four characters."""
    return len(text) // 4 + 1


# --- skill -----------------------------------------------------------------------------------------------------------


def _by_skill(spec: ModelSpec, script: Script, request: Request, context: Context) -> str:
    rng = random.Random(seed_of(spec.name, request.seed or 0, context.role, context.task_id))
    if context.options:
        draw = rng.random()
        if draw < script.abstain:
            return context.options["abstain"]
        if rng.random() < script.first_bias:
            return context.options["first"]
    right = rng.random() < probability(script, context.role, context.task_id)
    return (context.right if right else context.wrong) or PLAIN


def probability(script: Script, role: str, task: str) -> float:
    """The probability of a right answer: the role's skill, moved by what is drawn for the task, the same for every arm."""
    skill = script.skill
    base = skill if isinstance(skill, float) else skill.get(role, skill.get("*", 0.5))
    move = (2 * random.Random(seed_of("difficulty", task)).random() - 1) * script.spread
    return min(1.0, max(0.0, base + move))


def _letters(text: str, context: Context) -> tuple[TokenLogprobs, ...] | None:
    """Token probabilities of the letters that fit the choice in `text`: .9 for the one that is meant, even for a tie."""
    if not context.options:
        return None
    first = {"first": 0.9, "second": 0.1}.get(json.loads(text)["choice"], 0.5)
    return (TokenLogprobs(top={"A": math.log(first), "B": math.log(1 - first)}),)


# --- rules from a file -----------------------------------------------------------------------------------------------


@cache
def rules(path: Path) -> tuple[dict[str, str], ...]:
    """The rules of a replies file: keys role, purpose, contains, and text."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return tuple(json.loads(line) for line in lines if line.strip())


def _by_rule(path: Path, request: Request, context: Context) -> str | None:
    prompt = "\n".join(message.text for message in request.messages)
    for rule in rules(path):
        if rule.get("role", context.role) != context.role or rule.get("purpose", context.purpose) != context.purpose:
            continue
        if rule.get("contains", "") in prompt:
            return rule["text"]
    return None


# --- faults ----------------------------------------------------------------------------------------------------------


def faulty(plan: FaultPlan, request: Request, context: Context) -> str | None:
    """The fault that this attempt shows; None: none. A retry of a faulty call heals, unless the plan says that it persists."""
    if not plan.kinds or plan.share == 0:
        return None
    rng = random.Random(seed_of("fault", request.seed or 0, context.owner, context.purpose))
    if rng.random() >= plan.share:
        return None
    if not plan.persistent and context.finished_attempts >= plan.heals_after:
        return None
    return rng.choice(plan.kinds)


_SYMPTOMS: dict[str, tuple[Symptom, str]] = {
    "rate_limited": (Symptom.rate_limited, "429: too many requests"),
    "server_error": (Symptom.server_error, "500: internal error"),
    "no_choices": (Symptom.no_choices, "an empty list of choices"),
    "malformed": (Symptom.malformed_body, "the body is not JSON"),
    "refusal": (Symptom.refusal, "the model refused"),
    "content_filter": (Symptom.content_filter, "ended by the content filter"),
    "overflow": (Symptom.overflow, "the prompt is longer than the context window"),
    "connection": (Symptom.connection, "connection refused"),
    "no_content": (Symptom.no_content, "a reply without content"),
}


def _shown(kind: str, plan: FaultPlan, reply: RawReply) -> RawReply:
    if kind == "cut":
        text = (reply.text or "")[: max(1, len(reply.text or "") // 3)]
        return reply.model_copy(update={"text": text, "finish": "length"})
    if kind == "null_usage":
        return reply.model_copy(update={"tokens_in": None, "tokens_out": None, "usage_complete": False})
    if kind == "wrong_model":
        return reply.model_copy(update={"model_served": "scripted/another"})
    symptom, message = _SYMPTOMS[kind]
    retry_after = plan.retry_after if kind == "rate_limited" else None
    billed = kind in ("no_choices", "refusal", "content_filter", "no_content")
    return RawReply(
        model_served=reply.model_served if billed else None,
        tokens_in=reply.tokens_in if billed else None,
        tokens_out=reply.tokens_out if billed else None,
        usage_complete=billed,
        finish="content_filter" if kind == "content_filter" else None,
        fault=Fault(symptom=symptom, message=message, retry_after=retry_after),
    )
