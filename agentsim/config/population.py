"""The population file: who takes part, as distributions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentsim.config.base import FileModel

Share = Annotated[float, Field(ge=0)]


class Uniform(FileModel):
    """Every value between two bounds is equally likely."""

    low: float
    """Smallest value, included."""
    high: float
    """Largest value; included for integers."""


class Normal(FileModel):
    """A normal distribution, truncated to [low, high] (not clipped)."""

    mean: float
    """Mean of the normal distribution before truncation."""
    sd: Annotated[float, Field(gt=0)]
    """Standard deviation before truncation."""
    low: float
    """Smallest value, included."""
    high: float
    """Largest value, included."""


class Histogram(FileModel):
    """Bins with shares; inside a bin every value is equally likely."""

    edges: Annotated[list[float], Field(min_length=2)]
    """Ascending bin edges, one more than there are shares. A bin holds its lower edge and not its
    upper one, except the last, which holds both."""
    shares: Annotated[list[Share], Field(min_length=1)]
    """Share of each bin; they sum to 1."""


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


Distribution = UniformOf | NormalOf | HistogramOf


class Categories(FileModel):
    """An attribute with named values."""

    categories: Annotated[dict[str, Share], Field(min_length=1)]
    """Share of each value; they sum to 1 (within 1e-6)."""


class Integer(FileModel):
    """An attribute that is a whole number."""

    integer: Distribution
    """Its distribution."""


class Real(FileModel):
    """An attribute that is a real number."""

    real: Distribution
    """Its distribution."""


Attribute = Categories | Integer | Real


class TemplateWriter(FileModel):
    """How personas are written from drawn attributes."""

    writer: Literal["template"] = "template"
    """`template`: a sentence from the attributes, no model needed."""


class Population(FileModel):
    """Who takes part."""

    attributes: Annotated[dict[str, Attribute], Field(min_length=1)]
    """Attributes by name; drawn independently of each other."""
    allocation: Literal["quota", "random"] = "quota"
    """`quota`: every attribute's marginal is exact for any number of agents, by largest
    remainder; `random`: every agent draws for itself."""
    persona: TemplateWriter = TemplateWriter()
    """How the background text is written."""
