"""The population file: who takes part, as distributions."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from agentsim.config.base import FileModel
from agentsim.config.models import LanguageModel
from agentsim.config.rules import (
    above,
    ascending,
    has_mass,
    holds_whole_numbers,
    same_number,
    sums_to_one,
    tag_by_key,
)

_EMBEDDED = {"backend": "llama_cpp", "max_tokens": 256}
Share = Annotated[float, Field(ge=0)]


class Uniform(FileModel):
    """Every value between two bounds is equally likely."""

    low: Annotated[float, Field(examples=[18])]
    """Smallest value, included; in the unit of the attribute."""
    high: Annotated[float, Field(examples=[90])]
    """Largest value, in the unit of the attribute; included for integers."""

    @field_validator("high")
    @classmethod
    def _check_high(cls, high: float, info: ValidationInfo) -> float:
        return above(high, info.data.get("low"))


class Normal(FileModel):
    """A normal distribution, truncated to [low, high] (not clipped)."""

    mean: Annotated[float, Field(examples=[41])]
    """Mean of the normal distribution before truncation, in the unit of the attribute."""
    sd: Annotated[float, Field(gt=0, examples=[15])]
    """Standard deviation before truncation, in the unit of the attribute."""
    low: Annotated[float, Field(examples=[18])]
    """Smallest value, included; in the unit of the attribute."""
    high: Annotated[float, Field(examples=[90])]
    """Largest value, included; in the unit of the attribute."""

    @field_validator("high")
    @classmethod
    def _check_high(cls, high: float, info: ValidationInfo) -> float:
        return above(high, info.data.get("low"))

    @model_validator(mode="after")
    def _check_mass(self) -> Self:
        has_mass(self.mean, self.sd, self.low, self.high)
        return self


class Histogram(FileModel):
    """Bins with shares; inside a bin every value is equally likely."""

    edges: Annotated[
        list[float], Field(min_length=2, examples=[[18, 30, 60]]), AfterValidator(ascending)
    ]
    """Ascending bin edges, one more than there are shares. A bin holds its lower edge and not its
    upper one, except the last, which holds both."""
    shares: Annotated[
        list[Share], Field(min_length=1, examples=[[0.4, 0.6]]), AfterValidator(sums_to_one)
    ]
    """Share of each bin; they sum to 1 (within 1e-6)."""

    @field_validator("shares")
    @classmethod
    def _check_number(cls, shares: list[float], info: ValidationInfo) -> list[float]:
        return same_number(shares, info.data.get("edges"))


class UniformOf(FileModel):
    """A uniform distribution."""

    uniform: Uniform
    """Bounds."""


class NormalOf(FileModel):
    """A truncated normal distribution."""

    normal: Normal
    """Parameters."""


class HistogramOf(FileModel):
    """A histogram."""

    histogram: Histogram
    """Bins."""


_DISTRIBUTIONS = ("uniform", "normal", "histogram")
_ATTRIBUTES = ("categories", "integer", "real")
Distribution = Annotated[
    Annotated[UniformOf, Tag("<uniform>")]
    | Annotated[NormalOf, Tag("<normal>")]
    | Annotated[HistogramOf, Tag("<histogram>")],
    tag_by_key(*_DISTRIBUTIONS),
]


class Categories(FileModel):
    """An attribute with named values."""

    categories: Annotated[
        dict[str, Share],
        Field(min_length=1, examples=[{"left": 0.5, "right": 0.5}]),
        AfterValidator(sums_to_one),
    ]
    """Share of each value; they sum to 1 (within 1e-6)."""


def _intervals(distribution: Distribution) -> list[tuple[float, float]]:
    """The closed intervals of a distribution that hold something."""
    if isinstance(distribution, UniformOf):
        return [(distribution.uniform.low, distribution.uniform.high)]
    if isinstance(distribution, NormalOf):
        return [(distribution.normal.low, distribution.normal.high)]
    edges, shares = distribution.histogram.edges, distribution.histogram.shares
    # An upper edge belongs to the next bin; only the last bin holds both.
    highs = [math.nextafter(edge, -math.inf) for edge in edges[1:-1]] + edges[-1:]
    bins = zip(edges[:-1], highs, shares, strict=True)
    return [(low, high) for low, high, share in bins if share > 0]


class Integer(FileModel):
    """An attribute that is a whole number."""

    integer: Distribution
    """Its distribution, between -2^53 and 2^53."""

    @field_validator("integer")
    @classmethod
    def _check_integer(cls, integer: Distribution) -> Distribution:
        for low, high in _intervals(integer):
            holds_whole_numbers(low, high)
        return integer


class Real(FileModel):
    """An attribute that is a real number."""

    real: Distribution
    """Its distribution."""


Attribute = Annotated[
    Annotated[Categories, Tag("<categories>")]
    | Annotated[Integer, Tag("<integer>")]
    | Annotated[Real, Tag("<real>")],
    tag_by_key(*_ATTRIBUTES),
]


class TemplateWriter(FileModel):
    """Personas are sentences made of the attributes; no model is needed."""

    writer: Literal["template"]
    """Says who writes."""


class ModelWriter(FileModel):
    """A language model writes a background with name, age, gender, job and a paragraph of
    character. It is told the attributes and nothing of the game."""

    writer: Literal["model"]
    """Says who writes."""
    model: Annotated[LanguageModel, Field(discriminator="backend", examples=[_EMBEDDED])]
    """The language model; it need not be the one that plays."""
    language: Annotated[str, Field(pattern=r"^\w[\w ()'-]{0,59}$", examples=["English"])] = (
        "English"
    )
    """Language of the paragraph, as the model is told it: `English`, `Brazilian Portuguese`."""
    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    """How often a persona is asked for, the first time included; after that the template writes
    it, and it is counted."""


Writer = Annotated[TemplateWriter | ModelWriter, Field(discriminator="writer")]


class Population(FileModel):
    """Who takes part."""

    attributes: Annotated[
        dict[str, Attribute],
        Field(min_length=1, examples=[{"gender": {"categories": {"female": 0.5, "male": 0.5}}}]),
    ]
    """Attributes by name; drawn independently of each other."""
    allocation: Literal["quota", "random"] = "quota"
    """`quota`: every attribute's marginal is exact for any number of agents, by largest
    remainder; `random`: every agent draws for itself."""
    persona: Annotated[Writer, Field(examples=[{"writer": "template"}])] = TemplateWriter(
        writer="template"
    )
    """Who writes the background text."""
