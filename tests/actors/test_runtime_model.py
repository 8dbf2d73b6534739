"""Any order of calls, replies, cancels and losses: everything ends, rightly, and nothing stays."""

import asyncio
import gc
import sys
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from example_counts import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

sys.path.insert(0, str(Path(__file__).parent))

import runtime_agents
from runtime_network import Network

from agentsim.actors import CallCancelled, GroupPlaceholder, Placeholder, RemoteFailure
from agentsim.errors import PeerLost

WORKERS = 3
AGENTS = 6  # two on each worker; an agent calls only agents that come after it, or its chain


@dataclass
class Made:
    """A call that the program has made.

    Attributes:
        values: what it must give, one for each agent of a group call.
        fails: whether it raises, by the program.
        workers: on which it depends.
        needs: calls whose results stand in its arguments.
        kept: the placeholder, until the program drops it.
    """

    values: list[Any]
    fails: bool
    workers: set[int]
    needs: list["Made"] = field(default_factory=list)
    kept: Any = None
    cancelled: bool = False

    def may_be_cancelled(self) -> bool:
        return self.cancelled or any(need.may_be_cancelled() for need in self.needs)

    def depends_on(self) -> set[int]:
        return self.workers.union(*(need.depends_on() for need in self.needs))

    def must_fail(self) -> bool:
        return self.fails or any(need.must_fail() for need in self.needs)


class Runtime(RuleBasedStateMachine):
    """The program's steps and the network's, in any order."""

    def __init__(self) -> None:
        super().__init__()
        runtime_agents.forget()
        self.loop = asyncio.new_event_loop()
        self.do(self.build())
        self.made: list[Made] = []
        self.serial = 0

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(work)

    async def build(self) -> None:
        self.net = Network(WORKERS, "runtime_agents")
        names = [(f"a{i}",) for i in range(AGENTS)]
        self.group = self.net.group("Watched", names, dict.fromkeys(range(WORKERS), 2))
        self.place = self.net.group("Place", [("place",)], {0: 1})[0]

    # --- the program

    def call(self, made: Made, make: Any) -> None:
        """Make a call on the loop."""

        async def work() -> None:
            self.serial += 1
            made.kept = make(self.serial)

        self.do(work())
        self.made.append(made)

    def argument(self, choice: int | None) -> tuple[Any, Any, list[Made]]:
        """A value or a placeholder that the program holds: it, what it stands for, and its call."""
        whole = [m for m in self.made if isinstance(m.kept, Placeholder)]
        if choice is None or not whole:
            return 7, 7, []
        made = whole[choice % len(whole)]
        return made.kept, made.values[0], [made]

    @rule(
        agent=st.integers(0, AGENTS - 1),
        method=st.sampled_from(["plain", "fail", "large"]),
        choice=st.none() | st.integers(0, 9),
    )
    def call_plain(self, agent: int, method: str, choice: int | None) -> None:
        value, known, needs = self.argument(choice)
        result = [bytes(runtime_agents.LARGE), known] if method == "large" else ["plain", known]
        made = Made([result], method == "fail", {agent // 2}, needs)
        proxy = self.group[agent]
        self.call(made, lambda serial: getattr(proxy, method)(serial, value))

    @rule(
        agent=st.integers(0, AGENTS - 1),
        method=st.sampled_from(["hold", "stubborn"]),
        gate=st.integers(0, 3),
        choice=st.none() | st.integers(0, 9),
    )
    def call_waiting(self, agent: int, method: str, gate: int, choice: int | None) -> None:
        value, known, needs = self.argument(choice)
        made = Made([[method, known]], False, {agent // 2}, needs)
        proxy = self.group[agent]
        self.call(made, lambda serial: getattr(proxy, method)(serial, gate, value))

    @rule(
        agent=st.integers(0, AGENTS - 2),
        method=st.sampled_from(["relay", "circle", "hand_over", "nested"]),
        data=st.data(),
        choice=st.none() | st.integers(0, 9),
    )
    def call_chain(self, agent: int, method: str, data: Any, choice: int | None) -> None:
        other = data.draw(st.integers(agent + 1, AGENTS - 1))
        value, known, needs = self.argument(choice)
        one, two = self.group[agent], self.group[other]
        result: Any = ["plain", known]
        args: tuple[Any, ...] = (two, value)
        if method == "relay":
            result = ["relay", result]
        if method == "circle":
            result = ["circle", ["back", result]]
            args = (two, one, value)
        made = Made([result], method == "nested", {agent // 2, other // 2}, needs)
        self.call(made, lambda serial: getattr(one, method)(serial, *args))

    @rule(agent=st.integers(0, AGENTS - 3), gate=st.integers(0, 3), data=st.data())
    def call_passing_on(self, agent: int, gate: int, data: Any) -> None:
        later = st.integers(agent + 1, AGENTS - 1)
        a, b = data.draw(st.lists(later, min_size=2, max_size=2, unique=True))
        made = Made([["pass", ["plain", ["hold", 1]]]], False, {agent // 2, a // 2, b // 2})
        one, two, proxy = self.group[a], self.group[b], self.group[agent]
        self.call(made, lambda serial: proxy.pass_on(serial, one, two, gate, 1))

    @rule(agent=st.integers(0, AGENTS - 2), gate=st.integers(0, 3), data=st.data())
    def call_regretting(self, agent: int, gate: int, data: Any) -> None:
        other = self.group[data.draw(st.integers(agent + 1, AGENTS - 1))]
        proxy = self.group[agent]
        made = Made([["regret", 2]], False, {agent // 2})
        self.call(made, lambda serial: proxy.regret(serial, other, gate, 2))

    @rule(members=st.lists(st.integers(0, AGENTS - 1), max_size=4), gate=st.integers(0, 3))
    def call_environment(self, members: list[int], gate: int) -> None:
        proxies = [self.group[i] for i in members]
        result = ["gather", [["plain", 3]] * len(members)]
        made = Made([result], False, {0, *(i // 2 for i in members)})
        self.call(made, lambda serial: self.place.gather(serial, proxies, 3))
        self.call(Made([["hold", 4]], False, {0}), lambda serial: self.place.hold(serial, gate, 4))

    @rule(
        method=st.sampled_from(["plain", "fail", "hold", "large"]),
        gate=st.integers(0, 3),
        choice=st.none() | st.integers(0, 9),
    )
    def call_group(self, method: str, gate: int, choice: int | None) -> None:
        value, known, needs = self.argument(choice)
        result: Any = [method, known]
        if method == "large":
            result = [bytes(runtime_agents.LARGE), known]
        args = (gate, value) if method == "hold" else (value,)
        made = Made([result] * AGENTS, method == "fail", set(range(WORKERS)), needs)
        self.call(made, lambda serial: getattr(self.group, method)(serial, *args))

    @precondition(lambda self: self.made)
    @rule(choice=st.integers(0, 99))
    def cancel(self, choice: int) -> None:
        made = self.made[choice % len(self.made)]
        if made.kept is not None:
            done = made.kept.done
            if done is False or (isinstance(made.kept, GroupPlaceholder) and done < AGENTS):
                made.cancelled = True
            self.do(_do(made.kept.cancel))

    @precondition(lambda self: self.made)
    @rule(choice=st.integers(0, 99))
    def let_go(self, choice: int) -> None:
        made = self.made[choice % len(self.made)]

        async def work() -> None:
            made.kept = None

        self.do(work())

    # --- the network

    @rule(choice=st.integers(0, 99))
    def deliver(self, choice: int) -> None:
        links = self.net.waiting()
        if links:
            self.do(_do(lambda: self.net.deliver(links[choice % len(links)])))

    @rule(times=st.integers(1, 4))
    def breathe(self, times: int) -> None:
        self.do(self.net.breathe(times))

    @rule(gate=st.integers(0, 3))
    def open_gate(self, gate: int) -> None:
        self.do(_do(runtime_agents.GATES[gate].set))

    @rule()
    def settle(self) -> None:
        self.do(self.net.settle())

    @precondition(lambda self: len(self.net.dead) < WORKERS - 1)
    @rule(choice=st.integers(0, WORKERS - 1), arrives=st.integers(0, 2), dies=st.integers(0, 3))
    def lose_worker(self, choice: int, arrives: int, dies: int) -> None:
        if dies == 0 and choice in self.net.workers:
            self.do(self.net.kill(choice, arrives))

    # --- the end

    def teardown(self) -> None:
        try:
            self.do(self.finish())
        finally:
            self.do(_end_tasks())
            self.loop.close()

    async def finish(self) -> None:
        for gate in range(4):
            runtime_agents.GATES[gate].set()
        await self.net.settle()
        assert runtime_agents.WRONG == []
        for agent, serials in runtime_agents.BEGAN.items():
            assert serials == sorted(serials), f"{agent} was called in another order"
        for made in self.made:
            if isinstance(made.kept, Placeholder):
                assert made.kept.done, f"{made} has not ended: {self.net.leftovers()}"
        # A large result comes when it is asked for.
        readers = [asyncio.ensure_future(_read(m.kept)) for m in self.made if m.kept is not None]
        for _ in range(10):
            await self.net.settle()
        assert all(reader.done() for reader in readers), self.net.leftovers()
        results = iter([reader.result() for reader in readers])
        for made in self.made:
            if made.kept is not None:
                self.judge(made, next(results))
                made.kept = None
        del results, readers
        for actors in self.net.workers.values():
            actors.caller.notify()
        gc.collect()
        await self.net.settle()
        gc.collect()
        await self.net.settle()
        assert self.net.leftovers() == {}
        for number in list(self.net.workers):
            self.net.workers[number].host.close()

    def judge(self, made: Made, results: list[Any]) -> None:
        assert len(results) == len(made.values)
        for place, (result, value) in enumerate(zip(results, made.values, strict=True)):
            alone = {place // 2} if len(results) > 1 else made.workers
            on = alone.union(*(need.depends_on() for need in made.needs))
            match result:
                case CallCancelled():
                    assert made.may_be_cancelled(), made
                case PeerLost():
                    assert on & self.net.dead, made
                    assert "died" in str(result)
                case RemoteFailure():
                    assert made.must_fail(), (made, result)
                case Exception():
                    raise result
                case _:
                    assert not made.must_fail(), made
                    assert result == value


async def _end_tasks() -> None:
    """What a failed example leaves."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for _ in range(3):
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)


async def _do(action: Any) -> None:
    action()


async def _read(placeholder: Any) -> list[Any]:
    if isinstance(placeholder, GroupPlaceholder):
        return placeholder.results(0)  # all are there, or this raises
    try:
        return [await placeholder]
    except Exception as error:  # noqa: BLE001
        return [error]


Runtime.TestCase.settings = settings(
    max_examples=examples(60),
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestRuntime = pytest.mark.slow(Runtime.TestCase)
