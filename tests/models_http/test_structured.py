"""What a probe's reply says about a server."""

from __future__ import annotations

import pytest

from agentsim.models.structured import PROBES, Sign, conclude

PROBE = PROBES[0]


@pytest.mark.parametrize(
    ("text", "finish_reason", "sign"),
    [
        ('{"qvx":"zukrobam"}', "stop", Sign.ENFORCED),
        ('{\n  "qvx" : "zukrobam"\n}\n', "stop", Sign.ENFORCED),
        ('{"qvx":"zukrobam"}', "length", Sign.ENFORCED),
        ('{ "qvx": "zukr', "length", Sign.ENFORCED),
        ('{ "qvx": "z', "length", Sign.UNCLEAR),
        ("{", "length", Sign.UNCLEAR),
        ("", "length", Sign.UNCLEAR),
        ("   \n\n\n", "length", Sign.UNCLEAR),
        ("", "stop", Sign.IGNORED),
        ("{", "stop", Sign.IGNORED),
        ("Paris", "stop", Sign.IGNORED),
        ("The capital of France is", "length", Sign.IGNORED),
        ('{"qvx":"Paris"}', "stop", Sign.IGNORED),
        ('{"city":"zukrobam"}', "stop", Sign.IGNORED),
        ('```json\n{"qvx":"zukrobam"}\n```', "stop", Sign.IGNORED),
    ],
)
def test_only_the_odd_word_shows_enforcement(text, finish_reason, sign):
    assert PROBE.judge(text, finish_reason) is sign


def test_prompts_do_not_hold_the_words():
    for probe in PROBES:
        assert probe.word not in probe.messages[0].content
        assert probe.key not in probe.messages[0].content


@pytest.mark.parametrize(
    ("signs", "conclusion"),
    [
        ([], None),
        ([Sign.ENFORCED], None),
        ([Sign.UNCLEAR, Sign.ENFORCED], None),
        ([Sign.ENFORCED, Sign.UNCLEAR, Sign.ENFORCED], True),
        ([Sign.ENFORCED, Sign.IGNORED], False),
        ([Sign.IGNORED], False),
        ([Sign.UNCLEAR] * 4, None),
    ],
)
def test_two_enforced_replies_or_one_ignored_conclude(signs, conclusion):
    assert conclude(signs) is conclusion
