"""Random draws as a pure function of what they are for.

A draw depends on (seed, stream, session, round, agent, step, attempt) and on nothing else: not on
which worker draws it, in which order, or how many were drawn before. It is computed by columns,
with Threefry-2x64-20 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
SC 2011), which needs only additions, rotations and exclusive ors.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

_ROTATIONS = (16, 42, 12, 31, 16, 32, 24, 21)
_PARITY = np.uint64(0x1BD11BDAA9FC1A22)
_ROUNDS = 20
_BLOCK = 16_384


class Stream(IntEnum):
    """What a draw is for. Numbers are part of the file format: append, never renumber."""

    POPULATION = 1
    LEVEL = 2
    LEVEL_ZERO = 3
    GUESS = 4
    THINKING = 5
    TIE = 6
    MODEL_SEED = 7
    NAME = 8
    GROUP = 9


def threefry(
    counter: tuple[ArrayLike, ArrayLike], key: tuple[int, int]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Threefry-2x64 with 20 rounds.

    Args:
        counter: two words, broadcast against each other, as unsigned 64-bit integers.
        key: two words.

    Returns:
        Two arrays of uint64 of the broadcast shape.
    """
    words = np.broadcast_arrays(
        np.asarray(counter[0], dtype=np.uint64), np.asarray(counter[1], dtype=np.uint64)
    )
    shape = words[0].shape
    x0, x1 = (np.array(word, dtype=np.uint64).reshape(-1) for word in words)
    keys = (np.uint64(key[0]), np.uint64(key[1]))
    schedule = (*keys, _PARITY ^ keys[0] ^ keys[1])
    spare = np.empty(min(x0.size, _BLOCK), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for start in range(0, x0.size, _BLOCK):
            stop = min(start + _BLOCK, x0.size)
            _scramble(x0[start:stop], x1[start:stop], spare[: stop - start], schedule)
    return x0.reshape(shape), x1.reshape(shape)


def _scramble(
    x0: NDArray[np.uint64],
    x1: NDArray[np.uint64],
    spare: NDArray[np.uint64],
    schedule: tuple[np.uint64, np.uint64, np.uint64],
) -> None:
    """The cipher in place, on a block that fits in the processor's cache."""
    np.add(x0, schedule[0], out=x0)
    np.add(x1, schedule[1], out=x1)
    for i in range(_ROUNDS):
        bits = _ROTATIONS[i % 8]
        np.add(x0, x1, out=x0)
        np.right_shift(x1, np.uint64(64 - bits), out=spare)
        np.left_shift(x1, np.uint64(bits), out=x1)
        np.bitwise_or(x1, spare, out=x1)
        np.bitwise_xor(x1, x0, out=x1)
        if i % 4 == 3:
            block = i // 4 + 1
            np.add(x0, schedule[block % 3], out=x0)
            np.add(x1, schedule[(block + 1) % 3] + np.uint64(block), out=x1)


def integers(
    stream: Stream,
    agents: ArrayLike,
    *,
    seed: int,
    session: int,
    round: int = 0,
    step: int = 0,
    attempt: int = 0,
) -> NDArray[np.uint64]:
    """One random 64-bit word for each agent.

    Args:
        stream: what the draw is for.
        agents: `(n,)` agent numbers, from 0.
        seed: the scenario's seed, taken modulo 2**64.
        session: from 1, below 2**32.
        round: from 1, or 0 for what is drawn once a session; below 2**32.
        step: tells several draws for one agent and round apart, below 2**32.
        attempt: from 0, below 2**16.

    Returns:
        `(n,)` uint64, uniform over all values.
    """
    high = (session << 32) | round
    key = (seed % 2**64, (int(stream) << 48) | (attempt << 32) | step)
    return threefry((high, agents), key)[0]


def uniforms(
    stream: Stream,
    agents: ArrayLike,
    *,
    seed: int,
    session: int,
    round: int = 0,
    step: int = 0,
    attempt: int = 0,
) -> NDArray[np.float64]:
    """One uniform number in [0, 1) for each agent, with 53 random bits. See `integers`."""
    words = integers(
        stream, agents, seed=seed, session=session, round=round, step=step, attempt=attempt
    )
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
