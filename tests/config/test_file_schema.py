"""The JSON schema agrees with what is loaded."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import GAMES

from agentsim.config import KINDS, Hostfile, Population, Scenario, json_schema


def objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, dict):
        inner = [item for value in schema.values() for item in objects(value)]
        return [schema, *inner] if "properties" in schema else inner
    return [item for value in schema for item in objects(value)] if isinstance(schema, list) else []


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_described_and_others_are_refused(kind: str) -> None:
    schema = json_schema(kind, GAMES)
    assert schema["$schema"].endswith("2020-12/schema")
    for item in objects(schema):
        assert item["additionalProperties"] is False
        assert all(field.get("description") for field in item["properties"].values()), item


@pytest.mark.parametrize(
    ("kind", "model"), [("scenario", Scenario), ("population", Population), ("hostfile", Hostfile)]
)
def test_keys_are_those_of_the_models(kind: str, model: Any) -> None:
    schema = json_schema(kind, GAMES)
    assert set(schema["properties"]) == set(model.model_fields)
    assert set(schema.get("required", [])) == {
        name for name, field in model.model_fields.items() if field.is_required()
    }


def test_the_game_is_merged_in() -> None:
    schema = json_schema("scenario", GAMES)
    assert schema["$defs"]["Coin"]["properties"]["bias"]["maximum"] == 1
    assert "Coin" in str(schema["properties"]["game"])
    assert "Coin" not in str(json_schema("scenario", {}))


def test_several_games_are_told_apart_by_type() -> None:
    class Dice(GAMES["coin"]):  # type: ignore[name-defined,misc]
        type: Any = "dice"

    from typing import Literal

    class Cards(Dice):
        type: Literal["cards"]
        """Fixed."""

    schema = json_schema("scenario", {**GAMES, "cards": Cards})
    assert set(schema["properties"]["game"]["discriminator"]["mapping"]) == {"coin", "cards"}


def test_there_are_three_kinds() -> None:
    with pytest.raises(KeyError):
        json_schema("model", GAMES)
