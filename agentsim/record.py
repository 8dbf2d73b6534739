"""The record of one run: its directory, from the first line of the manifest to the summary."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from agentsim import logs
from agentsim.config import Loaded, LoadedWorkflow, recorded_run
from agentsim.config.models import LlamaCpp, OpenAI, Replay
from agentsim.errors import AgentsimError, DiskFull, UserError
from agentsim.games.guess_average import PEOPLE, GuessAverageSpec, equilibrium
from agentsim.orchestrator.ledger import Ledger
from agentsim.plan import RunPlan
from agentsim.results import (
    Event,
    Journal,
    Kind,
    RunDirectory,
    RunEnd,
    RunFacts,
    RunStart,
    compact,
    make_manifest,
    read_manifest,
    to_json,
    update_manifest,
    write_manifest,
    write_summary,
    write_workflow_tables,
)
from agentsim.results.parts import finish_replacing
from agentsim.version import __version__

_log = logging.getLogger(__name__)


class Record:
    """Opens a run's directory and journal; at the end says how the run ended and sums it up.

    Args:
        loaded: what is run.
        plan: who sits where.
        path: the run's directory; must not exist, but to go on with.
        command: what the user asked for.
        notice: is told when the disk is full.
        resume: whether a run that was begun before goes on.

    Attributes:
        directory: the run's.
        journal: the run's.
        ledger: appends to the journal, and waits while the disk is full.
    """

    directory: RunDirectory
    journal: Journal
    ledger: Ledger

    def __init__(
        self,
        loaded: Loaded | LoadedWorkflow,
        plan: RunPlan,
        path: Path,
        command: str = "",
        *,
        notice: Callable[[str], None] = lambda text: None,
        resume: bool = False,
    ) -> None:
        self._notice = notice
        self._command = command
        self._resume = resume
        self._loaded = loaded
        self._plan = plan
        self._path = path
        self._began_s = time.monotonic()
        self._cpu_s = 0.0

    @property
    def model(self) -> str:
        """What the tables call the model."""
        model = self._loaded.scenario.model
        if model is None:
            return ""
        if isinstance(model, Replay):
            return recorded_run(model).model
        return model.name if isinstance(model, LlamaCpp | OpenAI) else model.backend

    @property
    def _rounds(self) -> int:
        """Rounds that are settled in each session: none of a user's program."""
        return self._loaded.scenario.rounds if isinstance(self._loaded, Loaded) else 0

    async def note(self, **facts: Any) -> None:
        """Add facts to the manifest that were not known at the start.

        Raises:
            ResultsError: it could not be written.
        """
        await self.ledger.written(lambda: update_manifest(self.directory, **facts))

    async def __aenter__(self) -> Record:
        run_id = self._go_on() if self._resume else self._begin()
        self._cpu_s = _cpu_s()
        self._began_s = time.monotonic()
        self._log = logs.begin(
            logs.own_settings(self.directory.logs / "orchestrator.log", run_id),
            "orchestrator",
            logger="agentsim",
        )
        _log.info("agentsim %s: %s", __version__, self._command)
        if self.journal.took_over:
            self._notice(self.journal.took_over)
        self.ledger = Ledger(self.journal, self._notice)
        scenario = self._loaded.scenario
        start = RunStart(
            run_id, scenario.agents, scenario.sessions, self._rounds, self.model, _now()
        )
        self.journal.append(Kind.RUN, to_json(start))
        if self._resume:
            cut = f"; {self.journal.cut_bytes} bytes of a torn record were cut"
            text = "the run goes on" + (cut if self.journal.cut_bytes else "")
            self.journal.append(Kind.EVENT, to_json(Event("resumed", text, at=_now())))
        return self

    def _begin(self) -> str:
        """Make the directory of a new run; its id."""
        run_id = secrets.token_hex(8)
        self.directory = RunDirectory.create(self._path)
        facts = replace(_facts(self._loaded, self._plan, run_id), command=self._command)
        write_manifest(self.directory, make_manifest(facts))
        self.journal = Journal.create(self.directory.journal)
        return run_id

    def _go_on(self) -> str:
        """Open the directory of a run that was begun before; its id."""
        self.directory = RunDirectory.open(self._path)
        exists = self.directory.journal.exists()
        self.journal = (Journal.open if exists else Journal.create)(self.directory.journal)
        try:
            finish_replacing(self.directory)
            manifest = read_manifest(self._path)
            start = {
                "at": _now(),
                "command": self._command,
                "agentsim": __version__,
                "hosts": self._loaded.hostfile.model_dump(mode="json"),
                "plan": self._plan.to_dict(),
                "limits": self._loaded.scenario.limits.model_dump(mode="json"),
            }
            update_manifest(self.directory, resumes=[*manifest.get("resumes", []), start])
            # What it says is true no more.
            self.directory.summary.unlink(missing_ok=True)
        except BaseException:
            self.journal.close()
            raise
        return str(manifest["run_id"])

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        end = RunEnd(
            state="finished"
            if error is None
            else "interrupted"
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
            else "failed",
            reason="" if error is None else str(error).partition("\n")[0],
            wall_s=time.monotonic() - self._began_s,
            cpu_s=_cpu_s() - self._cpu_s,
            ended=_now(),
        )
        self._log_end(end, error)
        if error is not None:
            self.ledger.give_up()
        try:
            await self.ledger.append(Kind.END, to_json(end))
            self.journal.close()
            await self.ledger.written(self._write_tables)
            await self.ledger.written(lambda: write_summary(self.directory))
        except AgentsimError:
            # What ended the run is the news; a disk that is full says so once.
            if error is None:
                raise
        finally:
            self._log.close()

    def _write_tables(self) -> None:
        if isinstance(self._loaded, LoadedWorkflow):
            write_workflow_tables(self.directory)
        try:
            compact(self.directory)
        except DiskFull as full:
            # Small files hold the same rows as large ones.
            _log.warning("the tables stay in many files: %s", full)
            finish_replacing(self.directory)

    def _log_end(self, end: RunEnd, error: BaseException | None) -> None:
        """Log how the run ended; a bug of ours with where it happened."""
        if end.state == "finished":
            _log.info("the run has finished after %.1f s", end.wall_s)
            return
        bug = end.state == "failed" and not isinstance(error, AgentsimError)
        text = "the run was interrupted" if end.state == "interrupted" else "the run failed"
        _log.error("%s after %.1f s: %s", text, end.wall_s, error, exc_info=error if bug else None)


def refuse_existing(path: Path) -> None:
    """Say early that a run's directory is there.

    Raises:
        UserError: it is.
    """
    if path.exists():
        raise UserError(f"{path}: exists already; a run's directory is never overwritten")


def _facts(loaded: Loaded | LoadedWorkflow, plan: RunPlan, run_id: str) -> RunFacts:
    if isinstance(loaded, Loaded):
        return _facts_of_game(loaded, plan, run_id)
    return RunFacts(
        run_id=run_id,
        scenario=loaded.scenario.model_dump(mode="json"),
        files=loaded.files,
        overrides=loaded.overrides,
        population=None if loaded.population is None else loaded.population.model_dump(mode="json"),
        hosts=loaded.hostfile.model_dump(mode="json"),
        plan=plan.to_dict(),
    )


def _facts_of_game(loaded: Loaded, plan: RunPlan, run_id: str) -> RunFacts:
    scenario, game = loaded.scenario, loaded.game
    assert isinstance(game, GuessAverageSpec)  # the only game there is
    rule = game.rule
    people = PEOPLE[scenario.compare] if scenario.compare else None
    return RunFacts(
        run_id=run_id,
        scenario=scenario.model_copy(update={"game": game}).model_dump(mode="json"),
        files=loaded.files,
        overrides=loaded.overrides,
        rule={
            "low": rule.low,
            "high": rule.high,
            "slope": rule.slope,
            "intercept": rule.intercept,
        },
        population=None if loaded.population is None else loaded.population.model_dump(mode="json"),
        hosts=loaded.hostfile.model_dump(mode="json"),
        plan=plan.to_dict(),
        equilibrium=asdict(equilibrium(game, scenario.agents)),
        people=None if people is None else asdict(people),
        made=None if loaded.made is None else str(loaded.made.path.absolute()),
    )


def _cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    own = os.times()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.user + own.system + children.ru_utime + children.ru_stime


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
