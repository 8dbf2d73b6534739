"""The replies of a run that was recorded, to be given again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from agentsim.errors import ResultsError
from agentsim.results.directory import RunDirectory
from agentsim.results.framing import Kind, frames
from agentsim.results.persona_stage import PERSONA_ROUND
from agentsim.rpc.codec import decode
from agentsim.rpc.messages import Attempt, Completion

_REPLIES = 4096
_CHARACTERS = 1024 * 1024


def recorded_replies(path: Path) -> Iterator[list[Completion]]:
    """What came of every request of a run's players, prompts left out.

    Args:
        path: the run's directory.

    Returns:
        Pieces of at most some thousand replies and about a mebibyte of text, or of one reply.

    Raises:
        ResultsError: the journal cannot be read.
    """
    piece: list[Completion] = []
    characters = 0
    for attempt in _attempts(RunDirectory.open(path).journal):
        reply = _reply(attempt)
        if piece and (len(piece) == _REPLIES or characters + len(reply.text) > _CHARACTERS):
            yield piece
            piece, characters = [], 0
        piece.append(reply)
        characters += len(reply.text)
    if piece:
        yield piece


def _attempts(journal: Path) -> Iterator[Attempt]:
    for frame in frames(journal):
        if frame.kind is not Kind.ATTEMPTS:
            continue
        try:
            attempts = decode(frame.body, list[Attempt])
        except msgspec.DecodeError as error:
            raise ResultsError(
                f"{journal}: the record at byte {frame.offset} does not make sense: {error}"
            ) from error
        yield from (attempt for attempt in attempts if attempt.round != PERSONA_ROUND)


def _reply(attempt: Attempt) -> Completion:
    return Completion(
        session=attempt.session,
        round=attempt.round,
        agent=attempt.agent,
        step=attempt.step,
        attempt=attempt.attempt,
        text=attempt.text,
        finish_reason=attempt.finish_reason,
        error=attempt.error,
        prompt_tokens=attempt.prompt_tokens,
        completion_tokens=attempt.completion_tokens,
        latency_s=attempt.latency_s,
        tries=attempt.tries,
        endpoint=attempt.endpoint,
        request_id=attempt.request_id,
        choice=attempt.choice,
    )
