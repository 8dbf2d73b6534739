"""A model server on loopback that says what a script says, faults included."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self

import msgspec
from aiohttp import web

from agentsim.testing.answers import (
    GOOD,
    Answer,
    Ask,
    Mode,
    completion,
    draw_mode,
    identity_of,
    made_up,
)

Reply = str | Answer
Fault = Mode | Answer | None
Script = Callable[[Ask], "Reply | Fault"] | Sequence["Reply | Fault"]

_ERRORS = {
    Mode.RATE_LIMITED: (429, "Too many requests"),
    Mode.BROKEN: (500, "The server had an error"),
    Mode.OVERLOADED: (503, "The engine is overloaded"),
    Mode.UNAUTHORIZED: (401, "Incorrect API key provided"),
    Mode.CONTEXT: (400, "The request exceeds the available context size"),
}
_HUGE_CHUNKS = 256
_CHUNK = b" " * 2**20


class FakeModelServer:
    """An OpenAI-compatible chat server for tests: `async with FakeModelServer(…) as server:`.

    Args:
        replies: what is said: a function of the request, or a list in order of arrival whose last
            entry repeats. None makes up a number from the request's seed.
        faults: what goes wrong, asked first: the same, but a list that is used up means no more
            faults, and None means no fault for this request.
        structured: whether `response_format` is enforced; `lie` sends JSON of another shape,
            `refuse` answers 400.
        models: names that `/v1/models` lists; a request for another one gets 404. None given: any
            name will do.
        any_model: a name that is not listed will do, too.
        api_key: asked for as a bearer token.
        refused_fields: request fields that get 400, as servers do that do not know them.

    Attributes:
        asked: every chat request, in order of arrival.
        replied: how many good replies were sent whole, by identity.
    """

    def __init__(
        self,
        replies: Script | None = None,
        *,
        faults: Script | None = None,
        structured: bool | Literal["lie", "refuse"] = True,
        models: Iterable[str] = (),
        any_model: bool = False,
        api_key: str | None = None,
        refused_fields: Iterable[str] = (),
    ) -> None:
        self.asked: list[Ask] = []
        self.replied: Counter[str] = Counter()
        self.structured = structured
        self._replies = _player(replies, repeat_last=True)
        self._faults = _player(faults, repeat_last=False)
        self._models = list(models)
        self._any_model = any_model
        self._api_key = api_key
        self._refused_fields = list(refused_fields)
        self._times: Counter[str] = Counter()
        self._port = 0

    async def start(self, port: int = 0) -> Self:
        """Listens on 127.0.0.1; port 0 takes a free one. `async with` does this."""
        self._released = asyncio.Event()
        self._closing = asyncio.Event()
        self._arrival = asyncio.Condition()
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/health", self._health)
        app.router.add_get("/v1/models", self._list)
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        """Stops listening and breaks off what is not answered yet."""
        self._closing.set()
        await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port

    @property
    def base_url(self) -> str:
        """Address up to and including `/v1`."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def repeated(self) -> list[Ask]:
        """Requests that came although an equal one had got a good reply: there should be none."""
        return [ask for ask in self.asked if ask.replied]

    def arm(self, faults: Script | None) -> None:
        """From now on these faults happen; what was left of the old ones is dropped."""
        self._faults = _player(faults, repeat_last=False)

    def release(self) -> None:
        """Lets go the requests in mode `hold`, and those to come."""
        self._released.set()

    async def arrived(self, n: int) -> None:
        """Waits until so many chat requests have come in over the life of the server."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self.asked) >= n)

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _list(self, request: web.Request) -> web.Response:
        if not self._authorized(request):
            return _error(401, "Incorrect API key provided")
        models = [{"id": name, "object": "model"} for name in self._models]
        return web.json_response({"object": "list", "data": models})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        ask = self._note(request, raw)
        async with self._arrival:
            self._arrival.notify_all()
        if not self._authorized(request):
            return _error(401, "Incorrect API key provided")
        name = ask.body.get("model")
        if self._models and name not in self._models and not self._any_model:
            return _error(404, f"The model `{name}` does not exist")
        for field in self._refused_fields:
            if field in ask.body:
                return _error(400, f"Unsupported parameter: '{field}'", param=field)
        if ask.schema is not None and self.structured == "refuse":
            return _error(400, "response_format is not supported")
        answer = _as_answer(self._faults(ask)) or _as_answer(self._replies(ask)) or Answer()
        return await self._answer(request, ask, answer)

    def _note(self, request: web.Request, raw: bytes) -> Ask:
        body = msgspec.json.decode(raw, type=dict[str, Any])
        identity = identity_of(body)
        wanted = body.get("response_format") or {}
        ask = Ask(
            number=len(self.asked),
            identity=identity,
            earlier=self._times[identity],
            replied=self.replied[identity],
            seed=body.get("seed") or 0,
            text="\n".join(str(message.get("content")) for message in body.get("messages", ())),
            schema=wanted.get("json_schema", {}).get("schema"),
            body=body,
            headers={name.lower(): value for name, value in request.headers.items()},
            target=request.path_qs,
        )
        self._times[identity] += 1
        self.asked.append(ask)
        return ask

    def _authorized(self, request: web.Request) -> bool:
        wanted = f"Bearer {self._api_key}"
        return self._api_key is None or request.headers.get("Authorization") == wanted

    async def _answer(self, request: web.Request, ask: Ask, answer: Answer) -> web.StreamResponse:
        mode = draw_mode(ask) if answer.mode is Mode.MIXED else answer.mode
        if answer.delay_s:
            await self._wait(self._closing, answer.delay_s)
        if mode is Mode.HOLD:
            await self._wait(self._released)
        if mode is Mode.NEVER:
            await self._wait(self._closing)
        if mode in (Mode.RESET, Mode.NEVER):
            return _reset(request)
        if mode in _ERRORS:
            return _error(*_ERRORS[mode], retry_after=answer.retry_after)
        text = answer.text
        if text is None:
            text = made_up(ask, structured=self.structured)
        body = completion(ask, mode, text, answer.finish_reason)
        if mode is Mode.HALF:
            return await _half(request, body)
        if mode is Mode.HUGE:
            return await _huge(request)
        if mode in GOOD:
            self.replied[ask.identity] += 1
        kind = "text/html" if mode is Mode.HTML else "application/json"
        return web.Response(body=body, content_type=kind)

    async def _wait(self, event: asyncio.Event, timeout_s: float | None = None) -> None:
        """Until the event, the server's end, or the timeout."""
        waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(self._closing.wait())]
        try:
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _player(script: Script | None, *, repeat_last: bool) -> Callable[[Ask], Reply | Fault]:
    """The script as a function of the request."""
    if script is None:
        return lambda ask: None
    if callable(script):
        return script
    last = script[-1] if script and repeat_last else None
    entries: Iterator[Reply | Fault] = iter(script)
    return lambda ask: next(entries, last)


def _as_answer(said: Reply | Fault) -> Answer | None:
    # A Mode is a str: it is asked for first.
    if said is None or isinstance(said, Answer):
        return said
    return Answer(mode=said) if isinstance(said, Mode) else Answer(text=said)


def _error(
    status: int, message: str, *, param: str | None = None, retry_after: str | None = None
) -> web.Response:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    data = {"error": {"message": message, "type": "error", "param": param, "code": status}}
    return web.json_response(data, status=status, headers=headers)


def _reset(request: web.Request) -> web.Response:
    """Resets the connection; what is returned goes nowhere."""
    transport = request.transport
    if transport is not None:
        connection = transport.get_extra_info("socket")
        if connection is not None:
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
    return web.Response()


async def _half(request: web.Request, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse()
    response.content_type = "application/json"
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


async def _huge(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    response.content_type = "application/json"
    await response.prepare(request)
    for _ in range(_HUGE_CHUNKS):
        await response.write(_CHUNK)
    await response.write_eof()
    return response
