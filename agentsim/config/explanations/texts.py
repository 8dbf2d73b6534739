"""Pages about texts that cannot be read as these files."""

from __future__ import annotations

from agentsim.config.explanations.page import SCENARIO, Example, Page

PAGES: dict[str, Page] = {
    "duplicate-key": Page(
        means="YAML readers commonly keep the last one in silence, and the first is what an "
        "author sees; here neither is taken. Both places are shown.",
        wrong=Example(
            "name: two-thirds\nagents: 100\nrounds: 3\nagents: 500\n"
            "game: {type: guess_average}\nmodel: {backend: random}\n"
        ),
        right=Example(SCENARIO),
        mend="Keep one of the two.",
    ),
    "too-large": Page(
        means="A file is larger than 4 MiB, is nested more than 50 deep, or holds more than "
        "200,000 values once its aliases (`*name`) are written out. No experiment needs that; a "
        "few lines of aliases of aliases can ask for more memory than there is. Reading stops "
        "there.",
        wrong=Example(
            "ten: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
            "hundred: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
            "thousand: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
            "myriad: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
            "many: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n"
            "more: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n"
            "name: two-thirds\n"
        ),
        right=Example(SCENARIO),
        mend="Write out what the experiment needs. A distribution with very many values belongs "
        "into bins: see `histogram` in the reference of population files.",
    ),
    "unreadable-file": Page(
        means="A file does not exist, is a directory, may not be read, or is not text in UTF-8. "
        "The path of a population or a hostfile is relative to the file that names it, not to "
        "the directory you are in.",
        wrong=Example(SCENARIO + "population: populations/adult.yaml\n"),
        right=Example(
            "attributes:\n  gender: {categories: {female: 0.5, male: 0.5}}\n", "population.yaml"
        ),
        mend="Correct the path, or save the file as UTF-8. Where a name in the same directory is "
        "close, it is suggested.",
    ),
    "yaml-syntax": Page(
        means="The text is not YAML, or uses a part of YAML that these files do not: tags such as "
        "`!!python/object`, several documents in one file, keys that are lists. Nothing behind "
        "the place can be relied on, so this is often the only finding of its file.",
        wrong=Example(SCENARIO + "description: Nagel's game: two thirds\n"),
        right=Example(SCENARIO + 'description: "Nagel\'s game: two thirds"\n'),
        mend="Spaces indent, never tabs; keys of one map start in one column; text that holds "
        "`: ` or ` #`, or starts with a sign of YAML, stands in quotes.",
    ),
}
