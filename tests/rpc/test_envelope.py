"""Envelopes: what goes in comes out, and nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.rpc.envelope import NODE, Envelope, Kind, WireError, pack, unpack

workers = st.integers(-(2**31), 2**31 - 1)


@given(st.builds(Envelope, st.sampled_from(Kind), workers, workers, st.binary(max_size=200)))
def test_an_envelope_survives_packing(envelope: Envelope) -> None:
    assert unpack(pack(envelope)) == envelope


@given(st.binary(max_size=40))
def test_foreign_bytes_are_refused_or_are_an_envelope(data: bytes) -> None:
    try:
        envelope = unpack(data)
    except WireError:
        return
    assert pack(envelope) == data


def test_an_unknown_kind_is_refused() -> None:
    data = bytearray(pack(Envelope(Kind.ASK, 0, NODE, b"")))
    data[0] = 250
    with pytest.raises(WireError, match="kind 250"):
        unpack(bytes(data))
