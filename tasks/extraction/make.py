"""Make tasks/extraction/tasks.jsonl: `python -m tasks.extraction.make`."""

from __future__ import annotations

import random
from typing import Literal

from harness.records import Task
from tasks.making import write

SEED = 20261203
EACH = 48
NAMES = "Amara Benno Chiara Dmitri Elif Farid Greta Hugo Ines Jonas Kaito Lena Marek Nadia Olga Pavel Rosa Samir Tilda Yusuf".split()
PLACES = "Aarhus Bergen Cork Dresden Evora Faro Ghent Haarlem Izmir Jena Krakow Lugano Malmo Nantes Oulu Porto Riga Siena Tartu Utrecht".split()
GOODS = "chairs lamps kettles blankets ladders baskets mirrors bicycles".split()
MONTHS = "January February March April May June July August September October November December".split()
FIELDS: dict[str, str] = {
    "buyer": "a text",
    "place": "a text",
    "date": "a date YYYY-MM-DD",
    "quantity": "a whole number",
    "price": "a whole number",
}
TEMPLATES = (
    "Note of {day} {month} {year}: {buyer} from {place} takes {quantity} {goods} at {price} euros each, not {other} as first agreed.",
    "{buyer} ({place}) first wanted {other} {goods}, then settled on {quantity}. Each costs {price} euros. Agreed on {month} {day}, {year}.",
    "On {month} {day}, {year} we ship {quantity} {goods} to {buyer} in {place}; the price is {price} euros a piece. Old order: {other}.",
    "To {place}, for {buyer}: {quantity} {goods}, {price} euros each, due {day}.{number}.{year}. The {other} on the old slip no longer count.",
)


def make() -> list[Task]:
    """All tasks of both splits; those made from one template share a cluster."""
    rng, made = random.Random(SEED), []
    splits: tuple[Literal["dev", "heldout"], ...] = ("dev", "heldout")
    listed = "; ".join(f'"{key}": {kind}' for key, kind in FIELDS.items())
    for split in splits:
        for count in range(1, EACH + 1):
            template = rng.randrange(len(TEMPLATES))
            month, day, year = rng.randint(1, 12), rng.randint(1, 28), rng.randint(2021, 2026)
            quantity, price = rng.randint(2, 9), rng.randint(3, 12)
            buyer, place = rng.choice(NAMES), rng.choice(PLACES)
            notice = TEMPLATES[template].format(
                day=day,
                month=MONTHS[month - 1],
                number=month,
                year=year,
                buyer=buyer,
                place=place,
                quantity=quantity,
                other=quantity + rng.randint(1, 5),
                price=price,
                goods=rng.choice(GOODS),
            )
            made.append(
                Task(
                    id=f"{split}-{count:02d}",
                    family="extraction",
                    split=split,
                    cluster=f"template-{template}",
                    prompt=f"Read the notice and give one JSON object with exactly these keys: {listed}. "
                    f"The price is that of one piece.\n\n{notice}",
                    answer_format="json",
                    given={"fields": dict(FIELDS)},
                    reference={
                        "buyer": buyer,
                        "place": place,
                        "date": f"{year}-{month:02d}-{day:02d}",
                        "quantity": quantity,
                        "price": price,
                    },
                    ground_truth="exact",
                )
            )
    return made


if __name__ == "__main__":
    write(__file__, "tasks.jsonl", make())
