"""foretest check --vectors: lines of JSON from another team's sampler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foretest.serving.vectors import PUBLISHED_VECTORS
from tests.commands import exit_code_of

LINES = PUBLISHED_VECTORS.read_text(encoding="utf-8").splitlines()


def wrong_lines(folder: Path, count: int = 1) -> Path:
    """A file whose first line is right, and as many that are not."""
    path = folder / "wrong.jsonl"
    wrong = json.dumps({**json.loads(LINES[0]), "log_prob": -50.0})
    path.write_text("\n".join([LINES[0], *[wrong] * count]), encoding="utf-8")
    return path


def test_the_published_vectors_pass(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(monkeypatch, "check", "--vectors", str(PUBLISHED_VECTORS)) == 0
    assert capsys.readouterr().out == f"{PUBLISHED_VECTORS}: {len(LINES)} vectors, each as foretest.serving draws it.\n"


def test_lines_that_differ(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = wrong_lines(tmp_path)
    assert exit_code_of(monkeypatch, "check", "--vectors", str(path)) == 3
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("line 2: log_prob -50.0, expected ")
    assert last == f"{path}: 1 of 2 vectors differ."
    assert exit_code_of(monkeypatch, "check", "--vectors", str(path), "--json") == 3
    [found] = json.loads(capsys.readouterr().out)["differences"]
    assert found["line"] == 2
    assert exit_code_of(monkeypatch, "check", "--vectors", str(wrong_lines(tmp_path, 25))) == 3
    assert "… and 5 more" in capsys.readouterr().out


def test_text_may_have_ends_of_lines_that_json_has_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """JSON allows them within text, and samplers in JavaScript write them so."""
    vector = {**json.loads(LINES[0]), "candidates": ["a\u2028b"], "ranking": ["a\u2028b"]}
    assert len(vector["scores"]) == 1
    path = tmp_path / "lines.jsonl"
    path.write_bytes(f"{json.dumps(vector, ensure_ascii=False)}\r\n{LINES[0]}\r\n".encode())
    assert exit_code_of(monkeypatch, "check", "--vectors", str(path)) == 0
    assert "2 vectors" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["log.parquet"], "leave LOG out"),
        (["-c", "test.toml"], "leave --config out"),
        (["--threads", "2"], "leave --threads out"),
        (["--cap", "5"], "leave --cap out"),
    ],
)
def test_what_is_for_a_log_is_refused(
    options: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(monkeypatch, "check", *options, "--vectors", str(PUBLISHED_VECTORS)) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert exit_code_of(monkeypatch, "check", "--vectors", str(tmp_path / "none.jsonl")) == 2
    broken = tmp_path / "broken.jsonl"
    broken.write_text(LINES[0] + "\n{", encoding="utf-8")
    assert exit_code_of(monkeypatch, "check", "--vectors", str(broken)) == 2
    assert f"{broken}: line 2: not valid JSON" in capsys.readouterr().err


def test_without_vectors_the_settings_are_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(monkeypatch, "check", "log.parquet") == 2
    assert "check needs --config or -c: The settings file (TOML)." in capsys.readouterr().err
