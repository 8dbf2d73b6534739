"""How many examples Hypothesis makes where a test wants another number than usual."""

from hypothesis import settings


def examples(count: int) -> int:
    """The number in this tier: `count` where the usual number is Hypothesis's own, 100."""
    return max(1, count * settings.default.max_examples // 100)
