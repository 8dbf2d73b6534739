"""The draws are Threefry-2x64-20, uniform, and depend on their arguments alone."""

from __future__ import annotations

import numpy as np
import pytest

from agentsim.draws import Stream, integers, threefry, uniforms

ONES = 2**64 - 1
# Known answers that the authors of the cipher publish with it (Random123).
VECTORS = [
    ((0, 0), (0, 0), (0xC2B6E3A8C2C69865, 0x6F81ED42F350084D)),
    ((ONES, ONES), (ONES, ONES), (0xE02CB7C4D95D277A, 0xD06633D0893B8B68)),
    (
        (0x243F6A8885A308D3, 0x13198A2E03707344),
        (0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x263C7D30BB0F0AF1, 0x56BE8361D3311526),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_known_answers(
    counter: tuple[int, int], key: tuple[int, int], expected: tuple[int, int]
) -> None:
    first, second = threefry(counter, key)
    assert (int(first), int(second)) == expected


def test_known_answer_in_every_place_of_a_column() -> None:
    counter, key, expected = VECTORS[2]
    first, second = threefry((counter[0], np.full(40_000, counter[1], dtype=np.uint64)), key)
    assert set(first.tolist()) == {expected[0]}
    assert set(second.tolist()) == {expected[1]}


def test_arguments_are_left_as_they_are() -> None:
    words = np.arange(10, dtype=np.uint64)
    threefry((words, words), (1, 2))
    assert words.tolist() == list(range(10))


def test_a_draw_does_not_depend_on_its_neighbours() -> None:
    agents = np.arange(50_000, dtype=np.uint32)
    whole = integers(Stream.GUESS, agents, seed=3, session=2, round=4)
    order = np.random.default_rng(0).permutation(agents.size)
    shuffled = integers(Stream.GUESS, agents[order], seed=3, session=2, round=4)
    assert np.array_equal(shuffled, whole[order])
    one = integers(Stream.GUESS, [17], seed=3, session=2, round=4)
    assert one.tolist() == [whole[17]]


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 8},
        {"session": 2},
        {"round": 2},
        {"step": 1},
        {"attempt": 1},
        {"session": 2, "round": 0},
    ],
)
def test_every_argument_matters(change: dict[str, int]) -> None:
    base = {"seed": 7, "session": 1, "round": 1, "step": 0, "attempt": 0}
    agents = np.arange(1000)
    before = integers(Stream.GUESS, agents, **base)
    after = integers(Stream.GUESS, agents, **{**base, **change})
    assert not np.any(before == after)


def test_streams_differ() -> None:
    columns = [integers(stream, [5], seed=1, session=1).item() for stream in Stream]
    assert len(set(columns)) == len(Stream)


def test_uniforms_are_uniform() -> None:
    draws = uniforms(Stream.GUESS, np.arange(200_000), seed=1, session=1)
    assert draws.min() >= 0
    assert draws.max() < 1
    counts, _ = np.histogram(draws, bins=20, range=(0, 1))
    chi_square = float(np.sum((counts - 10_000) ** 2) / 10_000)
    assert chi_square < 43.8  # the 99.9th percentile for 19 degrees of freedom
