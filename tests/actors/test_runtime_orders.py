"""Orders of messages that are rare: what overtakes, what is let go meanwhile, who is gone."""

import gc
import sys
from collections import deque
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import runtime_agents
from runtime_network import Network

from agentsim.actors import CallCancelled, RemoteFailure
from agentsim.actors.messages import CENTRE
from agentsim.errors import PeerLost


@pytest.fixture
async def net():
    runtime_agents.forget()
    net = Network(3, "runtime_agents")
    net.agents = list(net.group("Watched", [("a",), ("b",), ("c",)], {0: 1, 1: 1, 2: 1}))
    await net.settle()
    yield net
    await net.settle()
    gc.collect()
    await net.settle()
    assert runtime_agents.WRONG == []
    assert net.leftovers() == {}


async def deliver(net: Network, *links: tuple[int, int]) -> None:
    """Deliver all that is on these links, one after the other."""
    await net.rest()
    for link in links:
        assert net.links[link], f"nothing is on {link}"
        while net.links[link]:
            net.deliver(link)
        await net.rest()


async def test_a_question_may_come_before_the_call_it_is_about(net) -> None:
    a, b, _ = net.agents
    first = a.plain(None, 1)
    second = b.plain(None, first)
    await deliver(net, (CENTRE, 1), (1, 0))
    assert net.workers[0].host._outcomes._asked
    await net.settle()
    assert await second == ["plain", ["plain", 1]]


@pytest.mark.parametrize("ending", ["cancel", "error"])
async def test_a_question_that_comes_after_the_release_is_answered(net, ending) -> None:
    a, b, c = net.agents
    first, failing = a.plain(None, 1), c.fail(None, 2)
    second = b.plain(None, [first, failing])
    await deliver(net, (CENTRE, 0), (CENTRE, 2), (CENTRE, 1))
    # Now the second worker's question to the first one is on its way, and stays there.
    if ending == "cancel":
        second.cancel()
        del failing
        await deliver(net, (CENTRE, 1), (1, CENTRE), (0, CENTRE))
    else:
        await deliver(net, (1, 2), (2, 1), (1, CENTRE), (0, CENTRE))
        with pytest.raises(RemoteFailure, match="failed with 2"):
            await second
    del first
    await deliver(net, (CENTRE, 0))
    assert net.workers[0].host.kept == 0
    await deliver(net, (1, 0))
    await net.settle()
    assert not net.workers[1].host._fetches._waiting


async def test_calls_wait_for_an_agent_that_is_still_being_made(net) -> None:
    a, _, _ = net.agents
    late = net.group("Watched", [("late",)], {1: 1})[0]
    relayed = a.relay(None, late, 5)
    await deliver(net, (CENTRE, 0), (0, 1))
    assert net.workers[1].host._early
    await net.settle()
    assert await relayed == ["relay", ["plain", 5]]


@pytest.mark.parametrize("end", ["cancel", "drop"])
async def test_calls_of_an_agent_that_is_never_made_end(net, end) -> None:
    a, _, _ = net.agents
    group = net.group("Watched", [("late",)], {1: 1})
    relayed = a.relay(None, group[0], 5)
    await deliver(net, (CENTRE, 0), (0, 1))
    assert net.workers[1].host._early
    net.links[CENTRE, 1].clear()
    if end == "cancel":
        relayed.cancel()
        await net.settle()
        with pytest.raises(CallCancelled):
            await relayed
    else:
        net.drop(group)
        await net.settle()
        with pytest.raises(RemoteFailure, match="was released"):
            await relayed


async def test_a_cancel_reaches_the_calls_that_a_call_has_made(net) -> None:
    """Else `b` would wait to be let in to `a`, and a new call of `a` would wait for `b`."""
    a, b, _ = net.agents
    circle = a.circle(None, b, a, 1)
    await deliver(net, (CENTRE, 0))
    circle.cancel()
    after = a.relay(None, b, 2)
    await net.settle()
    with pytest.raises(CallCancelled):
        await circle
    assert after.done
    assert await after == ["relay", ["plain", 2]]


async def test_what_a_cancelled_call_has_dropped_goes_on(net) -> None:
    a, b, _ = net.agents
    call = a.tell_and_wait(None, b, 0)
    await deliver(net, (CENTRE, 0))
    call.cancel()
    await net.settle()
    assert runtime_agents.BEGAN["b"] == [77]
    runtime_agents.GATES[0].set()


async def test_results_for_a_caller_that_is_gone_are_not_kept(net) -> None:
    a, b, c = net.agents
    call = a.pass_on(None, b, c, 0, 1)
    await deliver(net, (CENTRE, 0), (0, 1), (0, 2), (2, 1))
    assert net.workers[1].host._outcomes._asked
    await net.kill(0, arrives=0)
    await net.settle()
    with pytest.raises(PeerLost, match="worker 0 died"):
        await call
    assert not runtime_agents.GATES[0].is_set()
    assert net.leftovers() == {}


async def test_who_asks_for_what_a_lost_caller_never_sent_is_told(net) -> None:
    a, b, c = net.agents
    call = a.pass_on(None, b, c, 0, 1)
    await deliver(net, (CENTRE, 0), (0, 2), (2, 1))
    # The call of `b` was lost with the worker that made it; `c` has asked for its result.
    await net.kill(0, arrives=0)
    await deliver(net, (CENTRE, 1))
    await net.settle()
    with pytest.raises(PeerLost):
        await call


async def test_calls_that_arrive_after_their_caller_was_lost_leave_nothing(net) -> None:
    a, b, _ = net.agents
    call = a.relay(None, b, 1)
    await deliver(net, (CENTRE, 0))
    late = list(net.links[0, 1])
    await net.kill(0, arrives=0)
    await deliver(net, (CENTRE, 1))
    net.links[0, 1].extend(late)
    await net.settle()
    with pytest.raises(PeerLost):
        await call


async def test_a_lost_worker_fails_its_part_of_a_group_and_no_other(net) -> None:
    group = net.group("Watched", [(f"g{i}",) for i in range(6)], {0: 2, 1: 2, 2: 2})
    await net.settle()
    call = group.hold(None, 0, 1)
    await deliver(net, (CENTRE, 0), (CENTRE, 1), (CENTRE, 2))
    await net.kill(1, arrives=0)
    with pytest.raises(PeerLost, match="worker 1 died"):
        await call
    runtime_agents.GATES[0].set()
    await net.settle()
    results = call.results(0)
    assert [isinstance(r, PeerLost) for r in results] == [False, False, True, True, False, False]


async def test_a_call_to_a_lost_worker_fails_at_once(net) -> None:
    _, b, _ = net.agents
    large = b.large(None, 1)
    await net.settle()
    await net.kill(1, arrives=0)
    for placeholder in (b.plain(None, 1), large):
        with pytest.raises(PeerLost, match="worker 1 died"):
            await placeholder
    inside = net.agents[0].relay(None, b, 1)
    await net.settle()
    with pytest.raises(PeerLost, match="worker 1 died"):
        await inside


class Watched(deque):
    """Calls a function when it is looked at for the first time."""

    look = None

    def __bool__(self) -> bool:
        look, self.look = self.look, None
        if look is not None:
            look()
        return len(self) > 0


async def test_a_call_may_be_made_and_let_go_while_messages_are_sent(net) -> None:
    """As another thread may do, just when the loop's thread looks for what was let go."""
    net.centre._released = Watched()
    net.centre._released.look = lambda: net.agents[0].plain(None, 1)
    net.centre.flush()
    await net.settle()
    assert net.workers[0].host.kept == 0
