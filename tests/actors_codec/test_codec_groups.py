"""Groups in values: they travel as what they are, and lies about them are refused."""

import msgspec
import pytest

from agentsim.actors.codec import BadValue, Codec
from agentsim.actors.reading import read_reference
from agentsim.actors.refs import AgentRef, GroupRef, ResultRef

PARTS = ((0, 0, 3), (1, 3, 2))
GROUP = GroupRef(7, "town:Trader", PARTS)


def test_a_group_arrives_as_it_was_sent() -> None:
    codec = Codec()
    met = []
    value = {"children": GROUP, "parent": AgentRef(1, 2, 0, "town:Market")}
    assert codec.decode(codec.encode(value), lambda ref: met.append(ref) or ref) == value
    assert met == [GROUP, AgentRef(1, 2, 0, "town:Market")]
    assert codec.find_refs(codec.encode(value)) == met


def test_a_group_is_no_result_to_wait_for() -> None:
    body, needs = Codec().encode_with_refs([GROUP, ResultRef(0, 5)])
    assert needs == [ResultRef(0, 5)]
    assert body


@pytest.mark.parametrize(
    "parts",
    [
        [[0, 1, 3]],
        [[0, 0, 3], [1, 4, 2]],
        [[0, 0, 3], [1, 2, 2]],
        [[0, 0, 0]],
        [[0, 0, -1]],
        [[-1, 0, 1]],
        [[0, 0, 10**18]],
        [[0, 0]],
        "all",
        [[0, 0, 1.5]],
    ],
    ids=str,
)
def test_parts_that_lie_are_refused(parts: object) -> None:
    with pytest.raises(BadValue):
        read_reference([7, "town:Trader", parts])


def test_the_reference_of_a_group_is_told_from_the_others_by_its_length() -> None:
    for reference in (GROUP, ResultRef(0, 1), AgentRef(0, 1, 2, "a:B")):
        assert read_reference(msgspec.to_builtins(reference)) == reference
