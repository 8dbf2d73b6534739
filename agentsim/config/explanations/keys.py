"""Pages about keys and words."""

from __future__ import annotations

from agentsim.config.explanations.page import SCENARIO, Example, Page

PAGES: dict[str, Page] = {
    "missing-key": Page(
        means="A key that must be there is not, or a file is empty. The finding points at what "
        "lacks the key and shows the smallest text that would do.",
        wrong=Example(
            "name: two-thirds\nagents: 100\ngame: {type: guess_average}\nmodel: {backend: random}\n"
        ),
        right=Example(SCENARIO),
        mend="Add the key. Only what has no sensible default must be written: name, agents, "
        "rounds, game and model of a scenario.",
    ),
    "not-served": Page(
        means="A key or word that agentsim's files are meant to have and that this version cannot "
        "carry out. It is refused rather than passed over, because a run that ignores a part of "
        "its description gives a result of another experiment.",
        wrong=Example(SCENARIO + "limits: {cost_usd: 5}\n"),
        right=Example(SCENARIO + "limits: {tokens: 1000000}\n"),
        mend="Leave it out, or take what is served instead: the finding says what, where there is "
        "something.",
    ),
    "unknown-key": Page(
        means="It is refused because the value behind it would have no "
        "effect: a slip in `populaton` would give a run without people in it. If the key is "
        "close to one that is absent, that one is suggested, and its value is checked as well.",
        wrong=Example(SCENARIO + "sesions: 20\n"),
        right=Example(SCENARIO + "sessions: 20\n"),
        mend="Correct the spelling, or move the key to the map where it belongs.",
    ),
    "unknown-value": Page(
        means="A field takes one of a few words, and this is none of them.",
        wrong=Example(SCENARIO + "prompt: step-by-step\n"),
        right=Example(SCENARIO + "prompt: step_by_step\n"),
        mend="Take one of the words that the finding lists.",
    ),
    "secret-in-file": Page(
        means="A user or a password stands in an address. Files are copied into the run's "
        "directory and into papers, so secrets are named in them and never written. What is "
        "found is not printed either. Such a key should be taken as known to others.",
        wrong=Example(
            SCENARIO.replace(
                "{backend: random}",
                "\n  backend: openai\n  name: gpt-4o-mini\n  base_url: https://me:pass@llm.example/v1",
            ).replace("model: \n", "model:\n")
        ),
        right=Example(
            SCENARIO.replace(
                "{backend: random}",
                "\n  backend: openai\n  name: gpt-4o-mini\n  base_url: https://llm.example/v1\n"
                "  api_key_env: LLM_KEY",
            ).replace("model: \n", "model:\n")
        ),
        mend="Put the secret into an environment variable and name that variable: "
        "`api_key_env: LLM_KEY`. Then replace the secret at its provider.",
    ),
    "bad-override": Page(
        means="`--set` takes a dotted key, `=` and a value in YAML. This one has no `=`, an empty "
        "name in the key, or a position that its list does not have.",
        wrong=Example("", args=("--set", "rounds")),
        right=Example("", args=("--set", "rounds=5")),
        mend="Write KEY=VALUE. Dots lead into maps (`model.temperature=0.5`) and numbers into "
        "lists, counted from 0 (`game.range.1=50`). Quote what the shell would change.",
    ),
}
