"""Requests of the user's own thread, and nodes that are lost while they are under way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agentsim.errors import PeerLost
from agentsim.rpc.messages import Completion, Message, Request
from agentsim.workflow.asker import Asker


class Nodes:
    """Three nodes that note what they are asked."""

    def __init__(self) -> None:
        self.living = [0, 1, 2]
        self.asked: list[tuple[int, int]] = []

    def alive(self) -> list[int]:
        return self.living

    async def ask(self, node: int, requests: Sequence[Request]) -> None:
        if node not in self.living:
            raise PeerLost("gone")
        self.asked += [(node, request.step) for request in requests]


def request(step: int) -> Request:
    return Request(1, 1, 0, step, 0, [Message("user", "hello")], None, seed=3)


def completion(step: int) -> Completion:
    return Completion(1, 1, 0, step, 0, text="yes", finish_reason="stop")


async def breath() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_what_a_lost_node_has_not_answered_is_asked_of_another() -> None:
    nodes = Nodes()
    asker = Asker(nodes)
    for step in range(4):
        asker.ask([request(step)])
    await breath()
    assert nodes.asked == [(0, 0), (1, 1), (2, 2), (0, 3)]
    asker.answered([completion(0)])
    nodes.living = [1, 2]
    asker.lost()
    await breath()
    assert nodes.asked[4:] == [(1, 3)], "the answered one and those of others are not asked again"
    asker.lost()
    await breath()
    assert len(nodes.asked) == 5


async def test_a_node_that_goes_while_it_is_asked_is_no_error() -> None:
    nodes = Nodes()
    asker = Asker(nodes)
    asker.ask([request(0)])
    nodes.living = [1, 2]
    await breath()
    asker.lost()
    await breath()
    assert nodes.asked == [(2, 0)]
    nodes.living = []
    asker.lost()
    asker.ask([request(1)])
    await breath()
    assert len(nodes.asked) == 1
