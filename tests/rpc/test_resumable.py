"""Links that go on over one connection after another: nothing is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from example_counts import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.links import MAX_MESSAGE_BYTES, Link, memory_pair
from agentsim.rpc.resumable import Resumable


def message(number: int, size: int = 0) -> Envelope:
    return Envelope(Kind.ANSWERS, ORCHESTRATOR, number, bytes(size))


class Frail:
    """An end of a memory link that can be cut: what is on its way then is lost."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._cut: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def cut(self) -> None:
        if not self._cut.done():
            self._cut.set_result(None)

    async def send(self, envelope: Envelope) -> None:
        if self._cut.done():
            raise WireError("cut")
        await self._link.send(envelope)

    async def receive(self) -> Envelope | None:
        if self._cut.done():
            raise WireError("cut")
        receiving = asyncio.ensure_future(self._link.receive())
        await asyncio.wait({receiving, self._cut}, return_when=asyncio.FIRST_COMPLETED)
        if self._cut.done():
            receiving.cancel()
            raise WireError("cut")
        return receiving.result()

    async def close(self) -> None:
        self.cut()


class Pair:
    """Two resumable ends, and at most one connection between them."""

    def __init__(self, **options: float) -> None:
        self.ends = [Resumable(**options), Resumable(**options)]
        self.links: list[Frail] = []
        self.running: list[asyncio.Task[str]] = []

    async def join(self) -> None:
        """Connect, or connect anew; both leave the last connection first, as Join makes them."""
        for end in self.ends:
            await end.detach()
        await asyncio.gather(*self.running, return_exceptions=True)
        received = [end.received for end in self.ends]
        self.links = [Frail(link) for link in memory_pair()]
        self.running = [
            asyncio.ensure_future(self.ends[i].run(self.links[i], received[1 - i])) for i in (0, 1)
        ]

    def cut(self, *sides: int) -> None:
        for side in sides:
            if self.links:
                self.links[side].cut()

    async def close(self) -> None:
        for end in self.ends:
            await end.close()
        await asyncio.gather(*self.running, return_exceptions=True)


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(50):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.005)


async def take(end: Resumable, count: int) -> list[int]:
    return [(await asyncio.wait_for(end.receive(), 10)).sender for _ in range(count)]


async def test_a_cut_loses_nothing_either_way() -> None:
    pair = Pair()
    left, right = pair.ends
    await pair.join()
    for number in range(10):
        await left.send(message(number))
        await right.send(message(100 + number))
        if number == 4:
            await settle()
            pair.cut(0)
        if number == 7:
            await pair.join()
    assert await take(right, 10) == list(range(10))
    assert await take(left, 10) == list(range(100, 110))
    await pair.close()


async def test_what_is_sent_before_the_first_connection_waits_for_it() -> None:
    pair = Pair()
    await pair.ends[0].send(message(7))
    await pair.join()
    assert await take(pair.ends[1], 1) == [7]
    await pair.close()


async def test_what_is_taken_is_acknowledged_and_forgotten() -> None:
    pair = Pair(acknowledge_s=0.01)
    left, right = pair.ends
    await pair.join()
    for number in range(5):
        await left.send(message(number, 1000))
    await settle()
    assert left.kept_bytes > 5000, "nothing was taken yet"
    await take(right, 5)
    await until(lambda: left.kept_bytes == 0)
    await pair.close()


async def test_a_sender_waits_while_too_much_is_not_taken() -> None:
    pair = Pair(bound_bytes=10_000)
    left, right = pair.ends
    await pair.join()
    for number in range(4):
        await left.send(message(number, 2000))
    waiting = asyncio.ensure_future(left.send(message(4, 2000)))
    behind = asyncio.ensure_future(left.send(message(5, 10)))
    await settle()
    assert not waiting.done()
    assert not behind.done(), "it must not overtake the one that waits"
    await left.send(message(99), urgent=True)
    assert await take(right, 5) == [0, 1, 2, 3, 99]
    await asyncio.wait_for(waiting, 10)
    assert await take(right, 2) == [4, 5]
    await pair.close()


async def test_the_bound_holds_over_any_number_of_connections() -> None:
    pair = Pair(bound_bytes=10_000)
    left, right = pair.ends
    sending = asyncio.ensure_future(_send_all(left, 30, size=2000))
    for _ in range(8):
        await pair.join()
        await settle()
    assert right.received <= 4
    assert await take(right, 30) == list(range(30))
    await sending
    await pair.close()


async def test_two_sides_that_both_send_more_than_the_bound_do_not_block_each_other() -> None:
    pair = Pair(bound_bytes=5_000)
    await pair.join()
    sending = [asyncio.ensure_future(_send_all(end, 50, size=1000)) for end in pair.ends]
    await settle()
    got = await asyncio.gather(*(take(end, 50) for end in pair.ends))
    assert got == [list(range(50))] * 2
    await asyncio.gather(*sending)
    await pair.close()


async def test_one_message_may_be_larger_than_the_bound() -> None:
    pair = Pair(bound_bytes=1000)
    await pair.join()
    await pair.ends[0].send(message(1, 50_000))
    assert await take(pair.ends[1], 1) == [1]
    await pair.close()


async def test_a_message_that_no_connection_carries_is_refused_at_once() -> None:
    pair = Pair()
    with pytest.raises(WireError, match="is over"):
        await pair.ends[0].send(message(1, MAX_MESSAGE_BYTES))
    await pair.join()
    await pair.ends[0].send(message(2))
    assert await take(pair.ends[1], 1) == [2]
    await pair.close()


async def test_who_gives_up_wakes_who_waits() -> None:
    link = Resumable(bound_bytes=500)
    await link.send(message(1, 400))
    waiting: list[Awaitable[object]] = [
        asyncio.ensure_future(link.send(message(2, 400))),
        asyncio.ensure_future(link.receive()),
    ]
    await settle()
    link.end("the host burnt down")
    for wait in waiting:
        with pytest.raises(WireError, match="burnt down"):
            await wait
    with pytest.raises(WireError, match="burnt down"):
        await link.run(memory_pair()[0], 0)


async def test_what_has_arrived_is_given_before_the_end() -> None:
    pair = Pair()
    await pair.join()
    await pair.ends[0].send(message(1))
    await settle()
    pair.ends[1].end("over")
    assert await take(pair.ends[1], 1) == [1]
    with pytest.raises(WireError, match="over"):
        await pair.ends[1].receive()
    await pair.close()


async def test_a_side_that_has_what_was_never_sent_is_refused() -> None:
    link = Resumable()
    with pytest.raises(WireError, match="has 3 messages"):
        await link.run(memory_pair()[0], 3)


async def test_acknowledgements_that_cannot_be_read_end_the_link() -> None:
    link, (ours, theirs) = Resumable(), memory_pair()
    running = asyncio.ensure_future(link.run(ours, 0))
    await theirs.send(Envelope(Kind.ACK, NODE, NODE, b"?"))
    with pytest.raises(WireError, match="cannot be read"):
        await asyncio.wait_for(link.receive(), 10)
    await running


async def _send_all(end: Resumable, count: int, size: int) -> None:
    for number in range(count):
        await end.send(message(number, size))


class Wire(RuleBasedStateMachine):
    """Sends, takes, cuts and joins in any order; what is taken is what was sent, from the first."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.sent = [0, 0]
        self.taken = [0, 0]

    def does(self, work: Awaitable[None]) -> None:
        async def done() -> None:
            await work
            await asyncio.sleep(0)

        self.runner.run(done())

    @initialize(bound=st.sampled_from([500, 1500, 100_000]))
    def begin(self, bound: int) -> None:
        async def make() -> None:
            self.pair = Pair(bound_bytes=bound, acknowledge_s=0.0)

        self.does(make())
        self.bound = bound

    @rule(side=st.sampled_from([0, 1]), size=st.sampled_from([0, 100, 2000]))
    def send(self, side: int, size: int) -> None:
        async def send() -> None:
            sending = asyncio.ensure_future(
                self.pair.ends[side].send(message(self.sent[side], size))
            )
            for _ in range(5):
                await asyncio.sleep(0)
            if sending.done():
                sending.result()
                self.sent[side] += 1
            else:
                sending.cancel()  # it waited for room, and was not sent

        self.does(send())

    @rule(side=st.sampled_from([0, 1]), count=st.integers(1, 4))
    def take(self, side: int, count: int) -> None:
        async def take() -> None:
            for _ in range(count):
                receiving = asyncio.ensure_future(self.pair.ends[side].receive())
                for _ in range(5):
                    await asyncio.sleep(0)
                if not receiving.done():
                    receiving.cancel()
                    return
                assert receiving.result().sender == self.taken[side]
                self.taken[side] += 1

        self.does(take())

    @rule(sides=st.sampled_from([(0,), (1,), (0, 1)]))
    def cut(self, sides: tuple[int, ...]) -> None:
        async def cut() -> None:
            self.pair.cut(*sides)

        self.does(cut())

    @rule()
    def join(self) -> None:
        self.does(self.pair.join())

    @rule(breaths=st.integers(1, 20))
    def breathe(self, breaths: int) -> None:
        async def breathe() -> None:
            for _ in range(breaths):
                await asyncio.sleep(0)

        self.does(breathe())

    @invariant()
    def nothing_grows_without_bound(self) -> None:
        if hasattr(self, "pair"):
            for end in self.pair.ends:
                assert end.kept_bytes <= max(self.bound, 2200)

    def teardown(self) -> None:
        async def finish() -> None:
            await self.pair.join()
            for side in (0, 1):
                rest = self.sent[1 - side] - self.taken[side]
                got = await take(self.pair.ends[side], rest)
                assert got == list(range(self.taken[side], self.sent[1 - side]))
            await settle()
            for end in self.pair.ends:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(end.receive(), 0.001)
            await self.pair.close()

        if hasattr(self, "pair"):
            self.does(finish())
        self.runner.close()


TestWire = Wire.TestCase
TestWire.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


class Slow:
    """A link that broke, and whose end takes its time."""

    def __init__(self) -> None:
        self.ending = asyncio.Event()
        self.closed = False

    async def send(self, envelope: Envelope) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            self.ending.set()
            await asyncio.sleep(3600)

    async def receive(self) -> Envelope | None:
        raise WireError("it broke")

    async def close(self) -> None:
        self.closed = True


async def test_a_connection_that_is_cancelled_as_it_ends_holds_up_nobody() -> None:
    end, link = Resumable(), Slow()
    running = asyncio.ensure_future(end.run(link, 0))
    await asyncio.wait_for(link.ending.wait(), 5)
    running.cancel()
    await asyncio.wait_for(end.close(), 5)
    assert running.cancelled()
    assert link.closed
