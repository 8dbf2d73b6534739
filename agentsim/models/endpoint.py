"""One model server over HTTP: a connection pool, a gate, and one try of one request."""

from __future__ import annotations

import asyncio
import io
import ipaddress
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
from yarl import URL

from agentsim.config.models import LanguageModel
from agentsim.errors import ModelError
from agentsim.models import client
from agentsim.models.client import BadReplyError, Dialect, Reply, ServerError
from agentsim.models.endpoint_gate import Gate
from agentsim.models.limits import EndpointHealth, RetryPolicy, Verdict, retry_after_s
from agentsim.rpc.messages import Message

# llama.cpp and uvicorn close idle connections after 5 s; being earlier avoids the race.
_KEEPALIVE_S = 4.0
_ERROR_BYTES = 65_536
_REPLY_BYTES = 2**20
_BYTES_A_TOKEN = 256
# aiohttp warns where a larger body is given as bytes.
_INLINE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one HTTP request ended.

    Attributes:
        verdict: what it says about the endpoint.
        reply: what came back, None unless it was a good reply.
        error: one line without secrets; empty with a reply.
        again: whether trying again may help.
        pause_s: what the server asked for before the next try.
        status: HTTP status, 0 when there was none.
        said: what the server said beside an error status.
    """

    verdict: Verdict
    reply: Reply | None = None
    error: str = ""
    again: bool = True
    pause_s: float | None = None
    status: int = 0
    said: ServerError | None = None


class Endpoint:
    """One base URL. Give it to nobody but `EndpointPool`.

    Args:
        spec: which model is asked and how long a request may take.
        base_url: address up to and including `/v1`.
        api_key: sent as a bearer token, and nowhere else.
        concurrency: most requests in flight.
        policy: pauses and bounds.

    Raises:
        ModelError: the address or the key cannot be used as given.
    """

    def __init__(
        self,
        spec: LanguageModel,
        base_url: str,
        *,
        api_key: str | None,
        concurrency: int,
        policy: RetryPolicy,
    ) -> None:
        self.spec = spec
        self._base = _parse(base_url)
        self.url = str(self._base.with_query(None)).rstrip("/")
        self._chat = (self._base / "chat" / "completions").with_query(self._base.query)
        self._api_key = _checked_key(api_key, self.url)
        self._policy = policy
        self._concurrency = concurrency
        self._max_bytes = _REPLY_BYTES + _BYTES_A_TOKEN * spec.max_tokens
        self.dialect = client.dialect_of(spec)
        self.listed: dict[str, str | float] = {}
        """What the server lists of the model; known after `models`."""
        self.answers = self.fingerprint = ""
        """Under which names the server answered when it was tried."""

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    def open(self) -> None:
        """Makes the connection pool; needs a running loop."""
        loop = asyncio.get_running_loop()
        self.gate = Gate(EndpointHealth(self._concurrency, self._policy), loop.time)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S),
            timeout=aiohttp.ClientTimeout(
                total=self.spec.timeout_s, sock_connect=self._policy.connect_timeout_s
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
        )
        self._proxy = _proxy_of(self._base)

    async def close(self) -> None:
        """Sends away who waits and breaks off what is in flight."""
        self.gate.close()
        await self._session.close()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: dict[str, Any] | None,
        seed: int,
        max_tokens: int | None = None,
    ) -> tuple[Outcome, int]:
        """One try of one request, in the dialect that the server takes.

        A field that the server refuses is given up, once for all requests, when it answers
        without it.

        Returns:
            The outcome, and how many HTTP requests it took.
        """
        tried: list[Dialect] = []
        outcomes: list[Outcome] = []
        dialect = self.dialect
        while dialect not in tried:  # each turn gives up one of a few fields
            try:
                body = client.encode(
                    self.spec, dialect, messages, schema=schema, seed=seed, max_tokens=max_tokens
                )
            except UnicodeError:
                error = "the prompt holds a character that cannot be sent (a lone surrogate)"
                return Outcome(Verdict.OK, error=error, again=False), 0
            outcome = await self.ask(body)
            tried.append(dialect)
            outcomes.append(outcome)
            if outcome.reply is not None:
                self.dialect = dialect
            other = relearn(dialect, outcome)
            if other is None:
                return outcome, len(tried)
            dialect = other
        return outcomes[0], len(tried)

    async def ask(self, body: bytes) -> Outcome:
        """One POST of a chat completion. Never raises for what the server or the network does."""
        if self._session.closed:
            return Outcome(Verdict.FAILED, error="the connections to the model are closed")
        data = body if len(body) <= _INLINE_BYTES else io.BytesIO(body)
        try:
            async with self._session.post(
                self._chat, data=data, proxy=self._proxy, allow_redirects=False
            ) as response:
                ok = response.status == 200
                content = await _read(response, self._max_bytes if ok else _ERROR_BYTES)
                if not ok:
                    return self._refused(response, content or b"")
                if content is None:
                    return self._broken(f"a reply of more than {self._max_bytes} bytes")
                kind = response.headers.get("Content-Type", "")
                return Outcome(Verdict.OK, client.decode(content, content_type=kind), status=200)
        except BadReplyError as error:
            return self._broken(str(error))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return Outcome(Verdict.FAILED, error=self.clean(self._describe(error)))

    async def models(self) -> tuple[int, list[str]]:
        """Status of `/models` (0: no answer) and the names it lists, which may be none."""
        url = (self._base / "models").with_query(self._base.query)
        try:
            async with self._session.get(url, proxy=self._proxy, allow_redirects=False) as response:
                content = await _read(response, self._max_bytes) or b""
                facts = client.model_facts(content, self.spec.name)
                self.listed = {
                    key: self.clean(value) if isinstance(value, str) else value
                    for key, value in facts.items()
                }
                return response.status, client.model_names(content)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return 0, []

    def clean(self, text: str) -> str:
        """The text on one line, short, and without the key should a server have echoed it."""
        if self._api_key:
            text = text.replace(self._api_key, "[key]")
        return client.one_line(text)

    def _broken(self, error: str) -> Outcome:
        return Outcome(Verdict.FAILED, error=self.clean(error), status=200)

    def _refused(self, response: aiohttp.ClientResponse, body: bytes) -> Outcome:
        status = response.status
        said = client.server_error(body)
        error = self.clean(f"HTTP {status}: {said.message}" if said.message else f"HTTP {status}")
        pause_s = retry_after_s(response.headers.get("Retry-After"), time.time())
        verdict, again = judge(status, said.code)
        return Outcome(verdict, None, error, again, pause_s, status, said)

    def _describe(self, error: Exception) -> str:
        # Only words of our own: an exception's text may hold a proxy's password.
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return "the server's TLS certificate is not trusted"
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return f"the proxy refused with HTTP {error.status}"
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return f"cannot connect (the name {self._base.host} is not known)"
        if isinstance(error, aiohttp.ClientConnectorError):
            number = error.os_error.errno
            return f"cannot connect ({os.strerror(number) if number else 'no further reason'})"
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return f"cannot connect within {self._policy.connect_timeout_s:g} s"
        if isinstance(error, TimeoutError):
            return f"no reply within {self.spec.timeout_s:g} s"
        if isinstance(error, aiohttp.ClientPayloadError):
            return "the connection was closed in the middle of a reply"
        if isinstance(error, aiohttp.ClientConnectionError | ConnectionError):
            return "the connection was closed before a reply"
        return f"the reply is not HTTP ({type(error).__name__})"


def judge(status: int, code: str) -> tuple[Verdict, bool]:
    """What an error status says about the endpoint, and whether to try again."""
    if code == "insufficient_quota" or status in (401, 403, 404):
        return Verdict.FAILED, False
    if status in (429, 503):
        return Verdict.OVERLOADED, True
    if status >= 500 or status == 408:
        return Verdict.FAILED, True
    return Verdict.OK, status == 409


def relearn(dialect: Dialect, outcome: Outcome) -> Dialect | None:
    """The dialect to try when the server refused an optional field, else None."""
    if outcome.status not in (400, 422) or outcome.said is None:
        return None
    return client.fall_back(dialect, outcome.said)


async def _read(response: aiohttp.ClientResponse, most_bytes: int) -> bytes | None:
    """The body; None when it is larger than that."""
    parts = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most_bytes:
            response.close()
            return None
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _parse(base_url: str) -> URL:
    try:
        url = URL(base_url)
    except ValueError:
        raise ModelError("a model endpoint's base_url is not a URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ModelError(f"base_url {client.one_line(base_url)} is not an http(s) address")
    if url.user is not None or url.password is not None:
        raise ModelError(
            f"base_url of {url.host} holds a user or password; give the key by api_key_env"
        )
    return url.with_fragment(None)


def _checked_key(api_key: str | None, url: str) -> str | None:
    if api_key is None:
        return None
    if not api_key or not all("!" <= c <= "~" for c in api_key):
        raise ModelError(
            f"the key for {url} is empty or has characters that no key has (a line break, a "
            "blank); look at the variable that api_key_env names"
        )
    return api_key


def is_loopback(host: str) -> bool:
    """Whether the host is this machine by name or address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _proxy_of(url: URL) -> str | None:
    """The environment's proxy for this address; none for loopback.

    Read once: aiohttp's `trust_env` reads environment and `.netrc` again for every request, and a
    cluster's http_proxy would swallow calls to this machine.
    """
    host = url.host or ""
    proxies = getproxies_environment()
    if is_loopback(host) or proxy_bypass(f"{host}:{url.port}"):
        return None
    proxy = proxies.get(url.scheme, "")
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    return proxy if proxy.startswith(("http://", "https://")) else None
