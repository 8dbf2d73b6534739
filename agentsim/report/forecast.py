"""What the terminal shows of a run that has not begun."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentsim.plan.forecast import Forecast, ModelForecast
from agentsim.report.words import count, duration, printable, size

_MOST_WORKERS = 12
UNKNOWN = "unknown"


def forecast_text(coming: Forecast) -> str:
    """Who sits where, what is asked of whom, and what it takes."""
    return "\n".join([*_who(coming), *_models(coming), *_cost(coming)]) + "\n"


def _who(coming: Forecast) -> Iterator[str]:
    rounds = "" if coming.rounds is None else f" x {_many(coming.rounds, 'round')}"
    yield (
        f"{coming.name}: {_many(coming.agents, 'agent')}{rounds} x "
        f"{_many(coming.sessions, 'session')}"
        + ("" if coming.actions is None else f", {_many(coming.actions, 'action')}")
    )
    if coming.sessions > 1:
        yield f"  {_many(coming.sessions_at_once, 'session')} at a time"
    yield ""
    known = coming.launcher == "cluster"
    yield "hosts of a cluster that stays" if known else f"hosts, by the {coming.launcher} launcher"
    for host in coming.hosts:
        line = f"  {printable(host.address)}: {_many(host.workers, 'worker')}"
        if coming.seats:
            line += f", {_many(host.agents, 'agent')} of each session"
        yield line
        facts = [f"node at {printable(host.listens)}"]
        if coming.launcher == "ssh":
            facts.append(f"Python: {printable(host.python)}")
        if host.gpus is not None:
            facts.append(_many(host.gpus, "GPU"))
        yield f"    {', '.join(facts)}"
    if coming.seats:
        yield "workers"
    for seat in coming.seats[:_MOST_WORKERS]:
        who = f"agents {count(seat.first)} to {count(seat.last)}"
        yield f"  {seat.worker} on {printable(seat.host)}: {who}"
    if len(coming.seats) > _MOST_WORKERS:
        yield f"  ... and {_many(len(coming.seats) - _MOST_WORKERS, 'worker')} more"


def _models(coming: Forecast) -> Iterator[str]:
    yield "who answers"
    if coming.players:
        yield f"  {printable(coming.players)}, on the workers"
    for model in coming.models:
        yield f"  {model.use}: {model.backend} {printable(model.name)}".rstrip()
        yield f"    {printable(model.where)}"
        if model.weights_bytes is not None:
            yield f"    weights of {size(model.weights_bytes)} in its server's memory"
        if model.at_once is not None:
            yield f"    at most {_many(model.at_once, 'request')} at once"
        yield from (f"    {line}" for line in _requests(model))


def _requests(model: ModelForecast) -> Iterator[str]:
    if model.requests_least is None or model.requests_most is None:
        yield "requests: unknown, as the program asks"
        return
    text = f"requests: {count(model.requests_least)}"
    if model.requests_most > model.requests_least:
        text += f" to {count(model.requests_most)}: what cannot be read is asked again"
    yield text
    if model.tokens_most is not None:
        yield f"replies: at most {count(model.tokens_most)} tokens"


def _cost(coming: Forecast) -> Iterator[str]:
    yield "what it takes"
    yield f"  time: {_time(coming)}"
    yield from _memory(coming)
    if coming.disk_bytes is not None:
        yield f"  disk: about {size(coming.disk_bytes)}"
    else:
        most = coming.disk_most_bytes
        replies = "" if most is None else f" (replies: at most {size(most)})"
        yield f"  disk: {UNKNOWN}; every prompt and reply is kept{replies}"
    if coming.models:
        yield f"  tokens of prompts: {UNKNOWN}"
    limits = []
    if coming.limit_tokens is not None:
        limits.append(f"{count(coming.limit_tokens)} tokens")
    if coming.limit_wall_s is not None:
        limits.append(duration(coming.limit_wall_s))
    yield f"  limits that end it: {', '.join(limits) or 'none of tokens or time'}"


def _time(coming: Forecast) -> str:
    if coming.thinking_s is not None:
        return f"about {duration(coming.thinking_s)} of thinking, and starting up"
    if coming.models:
        return f"{UNKNOWN}; it depends on the model's server"
    if coming.actions is None:
        return f"{UNKNOWN}; it depends on the program"
    return f"{UNKNOWN}; theory players take seconds for a million actions"


def _memory(coming: Forecast) -> Iterator[str]:
    known = coming.memory
    if known is None:
        yield f"  memory: {UNKNOWN}"
        return
    servers = ""
    if any(model.backend == "llama_cpp" for model in coming.models):
        servers = ", and what the model's server takes"
    yield f"  memory: about {size(known['total'])} in all{servers}"
    parts = [f"agentsim run {size(known['orchestrator'])}", f"each node {size(known['node'])}"]
    if known["workers"]:
        parts.append(f"each worker {size(max(known['workers']))}")
    yield f"    {', '.join(parts)}"


def listed(title: str, lines: Sequence[str]) -> str:
    """A list below a title; empty without any."""
    return "\n".join([title, *(f"  {printable(line)}" for line in lines)]) + "\n" if lines else ""


def _many(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"
