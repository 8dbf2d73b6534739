"""Reading a persona out of a reply: JSON or labelled lines, whole or not at all."""

from __future__ import annotations

import json
import time

import pytest

from agentsim.population.drafts import Draft, read_draft

PARAGRAPH = "You are a calm person who likes tea. You decide slowly."
WHOLE = {
    "name": "Ada Berg",
    "age": 41,
    "gender": "female",
    "job": "farmer",
    "description": PARAGRAPH,
}
DRAFT = Draft("Ada Berg", 41, "female", "farmer", PARAGRAPH)
LINES = f"Name: Ada Berg\nAge: 41\nGender: female\nJob: farmer\nDescription: {PARAGRAPH}"

READABLE = {
    "json": json.dumps(WHOLE),
    "json in a fence": f"```json\n{json.dumps(WHOLE, indent=2)}\n```",
    "json after talk": f"Here you are:\n{json.dumps(WHOLE)}\nI hope it helps!",
    "json with more": json.dumps(WHOLE | {"hobby": "chess"}),
    "json, keys in capitals": json.dumps({key.upper(): value for key, value in WHOLE.items()}),
    "json, age as text": json.dumps(WHOLE | {"age": "41 years"}),
    "json, age as a float": json.dumps(WHOLE | {"age": 41.0}),
    "lines": LINES,
    "lines in bold": LINES.replace("Name:", "**Name:**").replace("Age:", "**Age**:"),
    "lines with bullets": "\n".join(f"- {line}" for line in LINES.splitlines()),
    "lines after talk": f"Sure!\n\n{LINES}",
    "a paragraph over two lines": LINES.replace("tea. ", "tea.\n"),
    "full-width colons": LINES.replace(": ", "："),
    "digits of another script": LINES.replace("41", "٤١"),
}


@pytest.mark.parametrize("case", READABLE)
def test_a_whole_person_is_read(case: str) -> None:
    assert read_draft(READABLE[case]) == DRAFT


UNREADABLE = {
    "": "no name, age, gender, job, description",
    "Once upon a time there was a farmer.": "no name, age, gender, job, description",
    json.dumps({key: WHOLE[key] for key in ("name", "age")}): "no gender, job, description",
    json.dumps(WHOLE | {"age": "unknown"}): "age is not a whole number of years",
    json.dumps(WHOLE | {"age": 41.5}): "age is not a whole number of years",
    json.dumps(WHOLE | {"age": True}): "age is not a whole number of years",
    json.dumps(WHOLE | {"age": 141}): "age is not a whole number of years",
    json.dumps(WHOLE | {"age": "30 or 40"}): "age is not a whole number of years",
    json.dumps(WHOLE | {"age": None}): "age is not a whole number of years",
    json.dumps(WHOLE | {"name": "…"}): "no name",
    json.dumps(WHOLE | {"job": ["farmer"]}): "no job",
    json.dumps(WHOLE | {"gender": {}}): "no gender",
    json.dumps(WHOLE | {"job": "farmer " * 30}): "job is not a word but a text",
    json.dumps(WHOLE | {"description": "Calm."}): "description is not a paragraph",
    json.dumps(WHOLE | {"description": "a " * 4000}): "description is longer than 4,000 characters",
    json.dumps(WHOLE)[:-20]: "no name, age, gender, job, description",
    json.dumps([WHOLE])[1:-1].replace("{", "{{"): "no name, age, gender, job, description",
    LINES.replace("Job:", "Trade:"): "no job",
}


@pytest.mark.parametrize(("text", "reason"), UNREADABLE.items())
def test_what_is_not_whole_is_not_read(text: str, reason: str) -> None:
    assert read_draft(text) == reason


def test_the_background_is_a_line_of_data_and_the_paragraph() -> None:
    assert DRAFT.background == f"Ada Berg, 41, female, farmer.\n{PARAGRAPH}"


def test_what_cannot_be_seen_is_no_part_of_a_text() -> None:
    draft = read_draft(json.dumps(WHOLE | {"name": "Ada\x1b[31m\n Berg", "job": ' "farmer". '}))
    assert isinstance(draft, Draft)
    assert draft.name == "Ada [31m Berg"
    assert draft.job == "farmer"


@pytest.mark.parametrize(
    "text",
    [
        "{" * 200_000,
        "[" * 10 + "{" + "[" * 200_000,
        "Name:" * 60_000,
        "Name:\n" * 60_000,
        '{"a":' * 50_000,
    ],
    ids=["braces", "brackets", "labels", "lines", "nested"],
)
def test_hostile_replies_take_no_time(text: str) -> None:
    began = time.process_time()
    assert isinstance(read_draft(text), str)
    assert time.process_time() - began < 2
