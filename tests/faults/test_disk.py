"""A run directory that cannot be written."""

import resource

import pytest


def test_the_directory_exists(program, scenario) -> None:
    (program.folder / "R").mkdir()
    _, err = program.run("run", scenario(), "--out", "R", code=2)
    assert "R: exists already" in err
    assert not list((program.folder / "R").iterdir())


def test_a_parent_is_a_file(program, scenario) -> None:
    (program.folder / "file").write_text("")
    _, err = program.run("run", scenario(), "--out", "file/R", code=1)
    assert "cannot make the run's directory" in err


@pytest.mark.parametrize("limit_bytes", [20_000, 400_000])
def test_the_disk_is_full(program, scenario, limit_bytes) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

    file = scenario(agents=50_000, rounds=3)
    _, err = program.run("run", file, "--out", "R", code=1, preexec_fn=limited)
    assert "Traceback" not in err
    assert "R" in err
    assert "File too large" in err or "full" in err
