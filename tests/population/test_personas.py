"""The personas' file: what is written is what is drawn, whichever slice is read."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsim.config.population import Population
from agentsim.errors import ResultsError, UserError
from agentsim.population import backgrounds, digest, read_personas, sample, write_personas
from agentsim.population import personas as module

OWN = ["session", "agent", "background"]


def attributes(table: pa.Table) -> pa.Table:
    return table.drop_columns(OWN)


@pytest.mark.parametrize(("agents", "sessions"), [(1, 3), (40, 250), (5000, 2)])
def test_each_session_reads_back_as_it_was_drawn(
    adults: Population, tmp_path: Path, agents: int, sessions: int
) -> None:
    path = tmp_path / "personas.parquet"
    write_personas(path, adults, agents=agents, sessions=sessions, seed=7)
    for session in {1, 2, sessions // 2 + 1, sessions}:
        table = read_personas(path, session=session)
        drawn = sample(adults, agents, seed=7, session=session)
        assert attributes(table).cast(drawn.schema).equals(drawn)
        assert table.column("agent").to_pylist() == list(range(agents))
        assert set(table.column("session").to_pylist()) == {session}
        assert table.column("background").to_pylist() == backgrounds(drawn, adults).to_pylist()
    assert list(tmp_path.iterdir()) == [path]


def test_columns_have_the_types_that_were_promised(adults: Population, tmp_path: Path) -> None:
    path = tmp_path / "personas.parquet"
    write_personas(path, adults, agents=10, sessions=1, seed=7)
    table = read_personas(path, session=1)
    named = pa.dictionary(pa.int32(), pa.string())
    assert table.schema.types == [
        pa.int32(),
        pa.int32(),
        named,
        pa.int64(),
        named,
        pa.float64(),
        pa.float64(),
        pa.string(),
    ]
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"


def test_slices_read_only_the_row_groups_they_need(
    adults: Population, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GROUP_ROWS", 100)
    monkeypatch.setattr(module, "_SMALL_GROUP_ROWS", 50)
    path = tmp_path / "personas.parquet"
    write_personas(path, adults, agents=250, sessions=3, seed=7)
    groups = pq.ParquetFile(path)
    sizes = [groups.metadata.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert sizes == [100, 100, 50] * 3
    asked: list[list[int]] = []
    plain = pq.ParquetFile.read_row_groups

    def spy(self: Any, row_groups: list[int], **kwargs: Any) -> pa.Table:
        asked.append(row_groups)
        return plain(self, row_groups, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", spy)
    drawn = sample(adults, 250, seed=7, session=2)
    for first, count, expected in [
        (0, 100, [3]),
        (99, 2, [3, 4]),
        (100, 100, [4]),
        (200, 50, [5]),
        (0, 250, [3, 4, 5]),
        (249, 1, [5]),
        (250, 0, [5]),
        (0, 0, [3]),
    ]:
        table = read_personas(path, session=2, first=first, count=count)
        assert asked.pop() == expected
        assert attributes(table).to_pylist() == drawn.slice(first, count).to_pylist()
        assert table.column("agent").to_pylist() == list(range(first, first + count))


def test_small_sessions_share_row_groups(
    adults: Population, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SMALL_GROUP_ROWS", 50)
    path = tmp_path / "personas.parquet"
    write_personas(path, adults, agents=20, sessions=5, seed=7)
    groups = pq.ParquetFile(path)
    sizes = [groups.metadata.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert sizes == [40, 40, 20]
    for session in range(1, 6):
        table = read_personas(path, session=session, first=3, count=15)
        drawn = sample(adults, 20, seed=7, session=session).slice(3, 15)
        assert attributes(table).to_pylist() == drawn.to_pylist()


def test_single_columns_can_be_read(adults: Population, tmp_path: Path) -> None:
    path = tmp_path / "personas.parquet"
    write_personas(path, adults, agents=10, sessions=1, seed=7)
    table = read_personas(path, session=1, columns=["background"])
    assert table.column_names == ["background"]
    assert len(table) == 10


def test_odd_characters_make_the_round_trip(build: Any, tmp_path: Path) -> None:
    names = ['say "yes"', "two\nlines", "it's", "日本", "", "🌾"]
    population = build(**{'odd "name"\n': {"categories": dict.fromkeys(names, 1 / 6)}})
    path = tmp_path / "personas.parquet"
    write_personas(path, population, agents=60, sessions=2, seed=1)
    table = read_personas(path, session=2)
    drawn = sample(population, 60, seed=1, session=2)
    assert attributes(table).to_pylist() == drawn.to_pylist()


def test_other_programs_read_the_file(adults: Population, tmp_path: Path) -> None:
    path = tmp_path / "personas.parquet"
    write_personas(path, adults, agents=40, sessions=2, seed=7)
    rows = duckdb.sql(
        f"select education, count(*) from '{path}' where session = 2 group by 1"
    ).fetchall()
    assert dict(rows) == {"primary": 4, "secondary": 16, "bachelor": 12, "master": 6, "phd": 2}


def test_the_metadata_say_what_was_drawn(adults: Population, tmp_path: Path) -> None:
    path = tmp_path / "personas.parquet"
    write_personas(path, adults, agents=10, sessions=3, seed=7)
    metadata = pq.read_schema(path).metadata
    assert metadata[b"agentsim.population"].decode() == digest(adults)
    assert metadata[b"agentsim.seed"] == b"7"
    assert metadata[b"agentsim.agents"] == b"10"
    assert metadata[b"agentsim.sessions"] == b"3"


def test_the_digest_changes_with_the_population(adults: Population) -> None:
    other = adults.model_copy(update={"allocation": "random"})
    assert digest(other) != digest(adults)
    assert digest(adults) == digest(adults.model_copy(deep=True))


def test_the_same_run_writes_the_same_bytes(adults: Population, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_personas(tmp_path / name, adults, agents=100, sessions=2, seed=7)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_reader_of_the_old_file_is_not_disturbed(adults: Population, tmp_path: Path) -> None:
    path = tmp_path / "personas.parquet"
    path.write_bytes(b"what was there before")
    with path.open("rb") as file:
        write_personas(path, adults, agents=10, sessions=1, seed=7)
        assert file.read() == b"what was there before"
    assert len(read_personas(path, session=1)) == 10


def test_nothing_is_left_when_the_disk_is_full(adults: Population, tmp_path: Path) -> None:
    path = tmp_path / "personas.parquet"
    path.write_bytes(b"what was there before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(ResultsError, match=r"cannot write the personas: File too large"):
            write_personas(path, adults, agents=20_000, sessions=1, seed=7)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"what was there before"


def test_nothing_is_written_for_a_population_that_cannot_be_kept(
    build: Any, tmp_path: Path
) -> None:
    population = build(agent={"categories": {"a": 1}})
    with pytest.raises(UserError, match="reserved"):
        write_personas(tmp_path / "personas.parquet", population, agents=1, sessions=1, seed=1)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_a_results_error(adults: Population, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="cannot write the personas"):
        write_personas(tmp_path / "no" / "p.parquet", adults, agents=1, sessions=1, seed=1)


def test_what_is_no_file_of_personas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="cannot read the personas"):
        read_personas(tmp_path / "missing.parquet", session=1)
    (tmp_path / "text.parquet").write_text("not Parquet at all")
    with pytest.raises(ResultsError, match="cannot read the personas"):
        read_personas(tmp_path / "text.parquet", session=1)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ResultsError, match="not a file of personas"):
        read_personas(tmp_path / "other.parquet", session=1)


@pytest.mark.parametrize(
    ("session", "first", "count"), [(0, 0, 1), (3, 0, 1), (1, 0, 11), (1, 5, 6), (1, -1, 2)]
)
def test_agents_that_do_not_exist_are_refused(
    adults: Population, tmp_path: Path, session: int, first: int, count: int
) -> None:
    path = tmp_path / "personas.parquet"
    write_personas(path, adults, agents=10, sessions=2, seed=7)
    with pytest.raises(ResultsError, match="agents 0 to 9"):
        read_personas(path, session=session, first=first, count=count)
