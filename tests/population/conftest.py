"""Populations as their file would say them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentsim.config.population import Population

Build = Callable[..., Population]


@pytest.fixture(scope="session")
def build() -> Build:
    """`build(allocation="quota", **attributes)`; categories may be given as a plain dict."""

    def population(allocation: str = "quota", **attributes: dict[str, Any]) -> Population:
        text = json.dumps({"attributes": attributes, "allocation": allocation})
        return Population.model_validate_json(text, strict=True)

    return population


@pytest.fixture(scope="session")
def adults(build: Build) -> Population:
    return build(
        education={
            "categories": {
                "primary": 0.1,
                "secondary": 0.4,
                "bachelor": 0.3,
                "master": 0.15,
                "phd": 0.05,
            }
        },
        age={"integer": {"normal": {"mean": 41, "sd": 15, "low": 18, "high": 90}}},
        gender={"categories": {"female": 0.5, "male": 0.5}},
        income={
            "real": {"histogram": {"edges": [0, 20e3, 50e3, 200e3], "shares": [0.3, 0.5, 0.2]}}
        },
        risk_tolerance={"real": {"uniform": {"low": 0, "high": 1}}},
    )
