"""The reference: what is generated is as the code is, every public name is on it with its parts, and pages speak plain
English. If the first test fails, run python docs/_site/generate.py."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import foretest as ft

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_site"))

from generated import markdown, parts, python_names, schemas, settings_tables, with_parts  # noqa: E402
from generated.docstring import field_texts, parts_of  # noqa: E402

PUBLIC = [
    *(f"foretest.{name}" for name in ft.__all__ if name not in python_names.MODULES),
    *(f"foretest.{name}.{one}" for name, module in python_names.MODULES.items() for one in module.__all__),
]
FINISHED = [path for path in PUBLIC if path not in python_names.DATA]


@pytest.fixture(scope="module")
def generated() -> dict[Path, dict[str, str]]:
    return parts()


def test_what_is_generated_is_as_the_code_is(generated: dict[Path, dict[str, str]]) -> None:
    for page, texts in generated.items():
        text = page.read_text(encoding="utf-8")
        assert with_parts(text, texts) == text, f"{page.name}: run python docs/_site/generate.py"


def test_a_change_of_the_code_would_be_seen(generated: dict[Path, dict[str, str]]) -> None:
    page, texts = next(iter(generated.items()))
    other = {name: text.replace("rewards", "reward") for name, text in texts.items()}
    assert with_parts(page.read_text(encoding="utf-8"), other) != page.read_text(encoding="utf-8")
    with pytest.raises(SystemExit, match="not on the page"):
        with_parts("a page without comments", texts)


def test_the_reference_has_every_public_name_and_no_other() -> None:
    index = (DOCS / "reference" / "python" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`(\w+)`\]\((\w+)\.md#", index, re.MULTILINE)
    paths = [f"foretest.{page}.{name}" if page in python_names.MODULES else f"foretest.{name}" for name, page in listed]
    assert sorted(paths) == sorted(PUBLIC)
    for name, page in listed:
        text = (DOCS / "reference" / "python" / f"{page}.md").read_text(encoding="utf-8")
        assert len(re.findall(rf"^## `?{name}`?$", text, re.MULTILINE)) == 1, name


@pytest.mark.parametrize("path", FINISHED)
def test_a_public_name_has_an_example_and_explains_what_it_is_given(path: str) -> None:
    target = python_names.resolve(path)
    said = parts_of(target)
    assert said.prose
    assert said.examples, f"{path} has no example"
    takes = dict(inspect.signature(target).parameters) if not issubclass_of_error(target) else {}
    explained = {*said.parameters, *(name for name, text in fields_of(target).items() if text)}
    lacking = [name for name, p in takes.items() if p.kind is not p.VAR_KEYWORD and name not in explained]
    if path not in ("foretest.Aggregates", "foretest.Estimate", "foretest.OfflineTest"):  # these say it for groups
        assert not lacking, f"{path} does not explain {lacking}"
    if inspect.isfunction(target):
        assert said.returns, f"{path} does not say what it returns"


def issubclass_of_error(target: Any) -> bool:
    return inspect.isclass(target) and issubclass(target, Exception) and "__init__" not in vars(target)


def fields_of(target: Any) -> dict[str, str]:
    has_fields = inspect.isclass(target) and (dataclasses.is_dataclass(target) or hasattr(target, "_fields"))
    return field_texts(target) if has_fields else {}


def test_every_schema_has_its_tables() -> None:
    files = {path.name.removesuffix("-1.json") for path in (Path(ft.__file__).parent / "schema").glob("*.json")}
    assert files - {"settings"} == set(schemas.DOCUMENTS)


def test_every_key_and_option_has_a_meaning(generated: dict[Path, dict[str, str]]) -> None:
    """The last cell of a table of settings, options or fields is never empty."""
    for page, texts in generated.items():
        if page.name in ("settings.md", "command-line.md", "schemas.md"):
            for line in "\n".join(texts.values()).splitlines():
                if line.startswith("| `"):
                    assert re.search(r"[^|\s] \|$", line), f"{page.name}: {line}"


@pytest.mark.parametrize("module", [markdown, settings_tables], ids=lambda module: module.__name__)
def test_the_doctests_of_the_generator(module: Any) -> None:
    failed, attempted = doctest.testmod(module)
    assert (failed, attempted > 0) == (0, True)


# -- plain English ----------------------------------------------------------------------------------------------------

#: what readers stumble over, as regular expressions, and what to write instead
DIALECT = {
    r"could be made\b": "could be run",
    r"could not be made\b": "could not be run",
    r"\bholds? 0\b": "contains 0",
    r"\b(holds?|held) (the (truth|limit|true)|(its|their) limit|what (it|was|the estimator))\b": "contains",
    r"\b(score|row|entry|number|value) an? (eligible|display|resample|shown)\b": "per",
    r"\bearns? a display\b": "per display",
    r"\d a display\b": "per display",
    r"\b(one|two|four) an? (eligible|shown|metric|decade|candidate)\b": "per",
    r"\ba (line|column|row) a (test|metric|display)\b": "per",
    r"\b(ns|µs|MB) a (row|task|display)\b": "per",
    r"\b(displays|rows) a (user|unit)\b": "per",
    r"\b(units|positives) an arm\b": "per arm",
    r"\b(one display|one look|χ²) a (unit|day|slot)\b": "per",
    r"\ba display\]": "per display",
    r"\b(says?|said|tells?|knows?) (nothing|anything|something|little|too little|next to nothing) of\b": "about",
    r"\b[Ff]oretold\b": "predicted",
    r"\bgood to (about |within )?\d": "accurate to",
    r"\bthere where\b": "present if",
    r"\b(is|are) there (twice|whole)\b": "occurs twice; complete",
    r"\bwritten whole\b": "written completely or not at all",
    r"\b(computes?|computed|made|drawn|drawing|folds?|folded|begins?|write it) anew\b": "again",
    r"\bweigh(s|ed)? (rows|rankings|slots|every|whole|each)\b": "weights",
    r"\bprices? (other|another|what)\b": "gives the probability of",
    r"\b(stands?|laid|lays?) beside\b": "next to, compared with",
    r"\bshows itself\b": "is displayed",
    r"\basked back\b": "refused with a question",
    r"\bas ever\b": "as usual",
    r"\bfor certain\b": "certainly",
    r"\bto be of use\b": "to be useful",
    r"\b(dearer|times as dear)\b": "costs more",
    r"\ball gone through\b": "enumerated",
    r"\bno place of their own\b": "as one more draw would",
    r"\bmost moved is\b": "the largest shift is",
    r"\bbefore any result is seen\b": "by fixed rules that do not look at the uplift",
    r"\bno log is long enough for\b": "no realistic log is long enough",
    r"\bis therefore believed\b": "nothing in the log shows it",
    r"\b(Where logs lie|Quick starts|Metrics of metrics|At least so much)\b": "what the page is about",
    r"\b(log|logs) could not carry\b": "could not answer, is not enough for",
}
SPOKEN = [
    ROOT / "README.md",
    *sorted(DOCS.rglob("*.md")),
    *(path for path in sorted((ROOT / "src" / "foretest").rglob("*.py")) if path.parent.name != "kernels"),
    *sorted((ROOT / "src" / "foretest" / "report").rglob("*.html")),
]


def spoken_text(path: Path) -> str:
    """A file without what a study wrote between comments: its tables, and the paper's summary."""
    text = path.read_text(encoding="utf-8")
    if path.is_relative_to(DOCS / "reference"):  # written from docstrings and help texts
        return text
    text = re.sub(r"<!-- ([\w ,-]+): begin -->.*?<!-- \1: end -->", "", text, flags=re.DOTALL)
    return re.sub(r"<!-- run: .*?<!-- end -->", "", text, flags=re.DOTALL)


@pytest.fixture(scope="module")
def spoken() -> dict[Path, str]:
    return {path: spoken_text(path) for path in SPOKEN}


@pytest.mark.parametrize("pattern", DIALECT)
def test_pages_and_messages_speak_plain_english(pattern: str, spoken: dict[Path, str]) -> None:
    for path, text in spoken.items():
        found = re.search(pattern, text)
        assert found is None, f"{path.relative_to(ROOT)}: {found and found[0]!r}; write {DIALECT[pattern]!r}"


def test_dialect_would_be_found() -> None:
    said = """tests that could be made, a test that could not be made, one score an eligible item, it holds 0, earns a
    display, 0.02 a display, [a display], one a metric, a line a test, holds the truth, 48 ns a row, five displays a
    user, 2^21 units an arm, one display a unit, says nothing of it, was foretold, good to 0.3 %, there where it ran, is
    there twice, written whole, folds anew, weighs every row, prices another one, stands beside it, shows itself, asked
    back, as ever, for certain, to be of use, dearer, all gone through, have no place of their own, most moved is,
    before any result is seen, no log is long enough for, is therefore believed, Quick starts, logs could not carry"""
    said = " ".join(said.split())
    assert [pattern for pattern in DIALECT if not re.search(pattern, said)] == []
