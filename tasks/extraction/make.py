"""Make tasks.jsonl: `python -m tasks.extraction.make`. Seeded; the same file comes out every time.

Five kinds of notice with four wordings each; two wordings of a kind belong to dev, two to heldout. The tasks of one wording
share a cluster. A notice holds values that were changed, dates and times in other forms than asked for, and numbers that
nobody asked for.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from typing import Literal, NamedTuple

from pydantic import JsonValue

from harness.canonical import seed_of
from harness.records import Task
from tasks.extraction.check import words
from tasks.making import write

SEED = 20261203
PER_WORDING = 4

MONTHS = "January February March April May June July August September October November December".split()
FIRST = "Amara Bruno Chloe Dmitri Elena Farid Greta Hugo Ines Jonas Kavya Leila Marco Nadia Oskar Priya".split()
LAST = "Adler Brandt Castillo Duarte Eriksen Fischer Grant Hansen Ibrahim Jensen Keller Lopez Moreau Novak".split()
SUPPLIERS = ("Northwind Paper", "Blue Harbor Foods", "Atlas Tools", "Meadow Print", "Quarry Stone", "Lumen Electric")
TITLES = ("budget review", "safety briefing", "design workshop", "team retrospective", "launch planning")
ROOMS = "Birch Cedar Maple Willow Aspen Rowan".split()
THINGS = "umbrella backpack scarf wallet camera notebook jacket".split()
COLOURS = "black blue green grey red yellow".split()
PLACES = ("the library", "the canteen", "the bus stop", "the swimming pool", "the reading room", "the gym")
DEVICES = "printer projector scanner router heater elevator".split()


class Drawn(NamedTuple):
    """One notice: its text and the right values."""

    notice: str
    values: dict[str, JsonValue]


class Kind(NamedTuple):
    """One kind of notice: form and meaning of its fields, and how one is drawn in a wording (0 to 3)."""

    name: str
    fields: dict[str, tuple[str, str]]
    draw: Callable[[random.Random, int], Drawn]


def _day(rng: random.Random) -> date:
    return date(2027, 1, 4) + timedelta(days=rng.randrange(340))


def _spoken(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _american(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def _name(rng: random.Random) -> str:
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def _two_numbers(rng: random.Random, low: int, high: int) -> list[int]:
    return rng.sample(range(low, high), 2)


def _clock(hour: int, minute: int) -> str:
    return f"{(hour - 1) % 12 + 1}:{minute:02d} {'am' if hour < 12 else 'pm'}"


def delivery(rng: random.Random, wording: int) -> Drawn:
    """Parcels for a customer."""
    who, day, paid = _name(rng), _day(rng), rng.random() < 0.5
    (parcels, before), order = _two_numbers(rng, 2, 12), rng.randrange(1000, 9999)
    notice = (
        f"Order {order} for {who}: {parcels} parcels, to arrive on {_spoken(day)}. "
        f"{'Paid in advance.' if paid else 'To be paid at the door.'}",
        f"Hi, {who} here. I said {before} parcels, but make it {parcels} please. {_american(day)} is fine. "
        f"{'The money was sent last week.' if paid else 'I will pay when they are here.'}",
        f"Please bring {parcels} parcels to {who} (order {order}) on {_american(day)}; "
        f"{'the bill is settled.' if paid else 'the bill is still open.'}",
        f"Change to order {order}: not {before} but {parcels} parcels for {who}. New day: {_spoken(day)}. "
        f"{'Payment received.' if paid else 'Payment is due on arrival.'}",
    )[wording]
    return Drawn(notice, {"customer": who, "parcels": parcels, "date": day.isoformat(), "paid": paid})


def meeting(rng: random.Random, wording: int) -> Drawn:
    """A meeting that may have moved."""
    title, day, people = rng.choice(TITLES), _day(rng), rng.randrange(4, 30)
    room, old_room = rng.sample(ROOMS, 2)
    hour, old_hour = rng.sample(range(8, 18), 2)
    minute = rng.choice((0, 15, 30, 45))
    notice = (
        f"The {title} on {_spoken(day)} starts at {_clock(hour, minute)} in room {room}. {people} people have signed up.",
        f"Room {old_room} is taken, so the {title} ({people} guests) moves to room {room}: {_american(day)}, "
        f"{hour:02d}:{minute:02d}.",
        f"Reminder: {title}, room {room}, {_american(day)}, {hour:02d}:{minute:02d}. We expect {people} people.",
        f"The {title} of {_spoken(day)} was set for {_clock(old_hour, 0)}; it now begins at {_clock(hour, minute)}. "
        f"Room {room}, {people} chairs.",
    )[wording]
    return Drawn(notice, {"date": day.isoformat(), "start": f"{hour:02d}:{minute:02d}", "room": room, "people": people})


def invoice(rng: random.Random, wording: int) -> Drawn:
    """A bill with parts or a discount."""
    supplier, day, number = rng.choice(SUPPLIERS), _day(rng), f"R-{rng.randrange(100, 999)}"
    goods, shipping = rng.randrange(40, 400), rng.randrange(5, 30)
    total = goods + shipping
    notice = (
        f"Invoice {number} from {supplier}. Amount due: {total} euros, by {_spoken(day)}.",
        f"{supplier} sends bill {number}: {total} euros in total (goods {goods} euros, shipping {shipping} euros). "
        f"Please pay by {_american(day)}.",
        f"Bill {number}, {supplier}: please transfer {total} euros no later than {_american(day)}. "
        f"Our last bill of {goods} euros was paid, thank you.",
        f"{supplier}, invoice {number}. Of {total} euros, {shipping} are for shipping. Due on {_spoken(day)}.",
    )[wording]
    return Drawn(notice, {"supplier": supplier, "invoice": number, "total": total, "due": day.isoformat()})


def lost(rng: random.Random, wording: int) -> Drawn:
    """Something lost or found."""
    thing, place = rng.choice(THINGS), rng.choice(PLACES)
    colour, other = rng.sample(COLOURS, 2)
    verb, phone = rng.choice(("lost", "found")), f"{rng.randrange(200, 999)}-{rng.randrange(1000, 9999)}"
    notice = (
        f"{verb.capitalize()} at {place}: a {thing}, {colour}. Call {phone}.",
        f"On Tuesday I {verb} a {thing} at {place}. It is {colour}, not {other} as I wrote before. My number: {phone}.",
        f"Has anybody asked? A {thing} in {colour} was {verb} at {place}. Ring {phone} after six.",
        f"To all: my friend in the {other} coat {verb} a {thing} at {place}; it is {colour}. The phone number is {phone}.",
    )[wording]
    return Drawn(notice, {"thing": thing, "colour": colour, "place": place, "phone": phone})


def repair(rng: random.Random, wording: int) -> Drawn:
    """A device that needs repair."""
    device, who = rng.choice(DEVICES), _name(rng)
    (floor, other), urgency = _two_numbers(rng, 1, 9), rng.choice(("low", "medium", "high"))
    spoken = {"low": "no hurry", "medium": "this week would be good", "high": "very urgent"}[urgency]
    notice = (
        f"{who}: the {device} on floor {floor} is broken. Urgency: {urgency}.",
        f"The {device} on floor {other} works again, but the one on floor {floor} does not. Urgency {urgency}. {who}",
        f"Ticket by {who}. Device: {device}, floor {floor} (not floor {other}). Urgency is {urgency}.",
        f"Hello, {who} speaking, from floor {other}. Please look at the {device} on floor {floor}; "
        f"I would call the urgency {urgency} ({spoken}).",
    )[wording]
    return Drawn(notice, {"reporter": who, "device": device, "floor": floor, "urgency": urgency})


KINDS = (
    Kind(
        "delivery",
        {
            "customer": ("text", "full name"),
            "parcels": ("integer", "how many parcels"),
            "date": ("date", "day of delivery"),
            "paid": ("boolean", "already paid?"),
        },
        delivery,
    ),
    Kind(
        "meeting",
        {
            "date": ("date", "day of the meeting"),
            "start": ("time", "when it begins"),
            "room": ("text", "name of the room, without the word room"),
            "people": ("integer", "how many people"),
        },
        meeting,
    ),
    Kind(
        "invoice",
        {
            "supplier": ("text", "who sends the bill"),
            "invoice": ("text", "number of the bill"),
            "total": ("number", "euros to pay"),
            "due": ("date", "last day to pay"),
        },
        invoice,
    ),
    Kind(
        "lost",
        {
            "thing": ("text", "one word"),
            "colour": ("text", "colour of the thing"),
            "place": ("text", "where it was"),
            "phone": ("text", "phone number, as written"),
        },
        lost,
    ),
    Kind(
        "repair",
        {
            "reporter": ("text", "full name"),
            "device": ("text", "one word"),
            "floor": ("integer", "floor of the broken device"),
            "urgency": ("low|medium|high", "how urgent it is"),
        },
        repair,
    ),
)
SPLITS: dict[Literal["dev", "heldout"], tuple[int, ...]] = {"dev": (0, 1), "heldout": (2, 3)}
"""Split -> the wordings that belong to it."""


def prompt(kind: Kind, notice: str) -> str:
    """The task as it is put: the notice, then the fields."""
    fields = "\n".join(f"- {key}: {words(form)}; {meaning}" for key, (form, meaning) in kind.fields.items())
    return f"Fill in the fields from this notice.\n\nNotice: {notice}\n\nFields:\n{fields}"


def make() -> list[Task]:
    """Both splits; no two notices are the same."""
    made: list[Task] = []
    seen: set[str] = set()
    for split, wordings in SPLITS.items():
        for kind in KINDS:
            for wording in wordings:
                rng = random.Random(seed_of(SEED, kind.name, wording))
                number = 0
                while number < PER_WORDING:
                    drawn = kind.draw(rng, wording)
                    if drawn.notice in seen:
                        continue
                    seen.add(drawn.notice)
                    number += 1
                    made.append(
                        Task(
                            id=f"{split}-{kind.name}-{wording}-{number:02d}",
                            family="extraction",
                            split=split,
                            cluster=f"{kind.name}-{wording}",
                            prompt=prompt(kind, drawn.notice),
                            answer_format="json",
                            given={"fields": {key: form for key, (form, _) in kind.fields.items()}},
                            reference=drawn.values,
                            ground_truth="exact",
                        )
                    )
    return made


if __name__ == "__main__":
    write(__file__, "tasks.jsonl", make())
