"""Rows of each publisher's form as instances; image names as the publishers' own code gives them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from errno import EIO
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import IO, Any

import pytest

from chains.imports.forms import FORMS, multi_swe_bench, swe_bench, swe_gym, swe_rebench, swe_smith
from chains.imports.instance import DataSet, Instance
from chains.imports.marks import is_benchmark
from chains.imports.reading import provenance, read_instances
from chains.imports.rows import RestUnread, rows_of
from chains.stages.benchmarks import Benchmarks
from prchain.core.errors import BadInstance, NoQuery, UsageError
from tests.chains import import_rows
from tests.chains.import_rows import BASE, F2P, P2P, PATCH, QUERY, ROWS, TEST_PATCH

HERE = DataSet("lab/set", "abc", "train")


def read(name: str, where: DataSet = HERE, **changes: Any) -> Instance:
    form, make = ROWS[name]
    return FORMS[form].read(make(**changes), where)


@pytest.mark.parametrize("name", ROWS)
def test_columns_tell_one_form(name: str) -> None:
    form, make = ROWS[name]
    assert [found for found, reader in FORMS.items() if reader.fits(make().keys())] == [form]


@pytest.mark.parametrize("name", ROWS)
def test_what_all_forms_tell_is_read_word_for_word(name: str) -> None:
    found = read(name)
    assert found.repository.lower() == "shop/till" and found.patch == PATCH
    assert found.f2p == tuple(F2P) and found.p2p == tuple(P2P)
    assert found.test_patch == ("" if found.breaks else TEST_PATCH)
    assert found.base_commit == (BASE[:8] if found.breaks else BASE)
    if name != "multi_swe_bench":
        assert found.query == QUERY and found.created_at in {"2024-05-01T12:30:00Z", None}
    assert found.image and found.workdir and len(found.chain_id) == 16


def test_what_a_form_alone_tells() -> None:
    assert read("verified").difficulty == "15 min - 1 hour"
    ours = read("harness_5")
    assert ours.test_command == ("pytest -rA tests/test_cart.py",) and ours.log_parser == "parse_log_pytest"
    assert ours.image == "registry.example:5000/sweb/till@sha256:" + "a" * 64 and ours.image_by == "column"
    first = read("swe_rebench")
    assert (first.licence, first.difficulty, first.test_command) == ("MIT License", "1", ("pytest -rA",))
    second = read("swe_rebench_v2")
    assert second.test_command == ("rm -rf .pytest_cache", "pytest -rA") and second.workdir == "/till"
    assert (second.difficulty, second.language, second.licence) == ("easy", "python", "MIT")
    many = read("multi_swe_bench")
    assert (many.instance_id, many.query) == ("Shop__Till-12", "Empty carts have no total.\ntill.total([])")
    assert read("swe_smith").breaks
    inside = read("nemo_gym")
    assert (inside.source, inside.split, inside.image) == ("SWE-Gym/SWE-Gym", "train", read("swe_gym").image)
    assert read("nemo_skills").image == "swebench/sweb.eval.x86_64.shop_1776_till-12"


@pytest.mark.parametrize(
    ("name", "source", "split", "marked"),
    [
        ("verified", "SWE-bench/SWE-bench_Verified", "test", True),
        ("verified", "SWE-bench/SWE-bench_Verified", "train", True),
        ("verified", "mine", "train", True),
        ("swe_bench", "SWE-bench/SWE-bench", "dev", True),
        ("swe_bench", "SWE-bench/SWE-bench", "train", False),
        ("swe_bench", "nebius/SWE-bench-extra", "test", False),
        ("swe_gym", "SWE-Gym/SWE-Gym", "train", False),
        ("swe_rebench", "nebius/SWE-rebench", "test", False),
        ("swe_rebench", "nebius/SWE-rebench-leaderboard", "test", True),
        ("multi_swe_bench", "ByteDance-Seed/Multi-SWE-bench", None, True),
        ("multi_swe_bench", "ByteDance-Seed/Multi-SWE-RL", None, False),
        ("swe_gym", "SWE-bench/SWE-bench_Multilingual", "test", True),
        ("swe_gym", "mine", "train", True),
        ("swe_rebench", "nebius/SWE-rebench", "2025_08", True),
        ("swe_rebench_v2", "nebius/SWE-rebench-V2", None, False),
        ("swe_smith", "mine", None, False),
        ("multi_swe_bench", "mine", None, True),
        ("nemo_skills", "blend", None, True),
        ("nemo_skills", "nvidia/Nemotron-Blend", "train", True),
        ("nemo_gym", "blend", None, True),
        ("nemo_gym", "nvidia/Nemotron-Blend", None, False),
    ],
)
def test_what_is_not_known_to_be_for_training_is_marked(
    name: str, source: str, split: str | None, marked: bool
) -> None:
    where = DataSet(source, None, split)
    assert is_benchmark(read(name, where), where, Benchmarks.load()) is marked


def test_a_repository_of_a_benchmark_marks_its_rows_and_no_column_frees_them() -> None:
    gym = DataSet("SWE-Gym/SWE-Gym", None, "train")
    known = Benchmarks.load()
    assert is_benchmark(read("swe_gym", gym, repo="Django/django"), gym, known)
    mine = DataSet("mine")
    for changes in ({"split": "train"}, {"chain_id": "5f0c"}, {"chain_id": "5f0c", "chain_benchmark": True}):
        assert is_benchmark(read("verified", mine, **changes), mine, known)
    assert is_benchmark(read("nemo_skills", mine, split="train", dataset_name="SWE-Gym/SWE-Gym"), mine, known)


def test_a_stage_of_ours_that_comes_back_is_what_it_was() -> None:
    mine = DataSet("mine")
    for marked in (True, False):
        found = read("harness_5", mine, chain_id="5f0c", chain_benchmark=marked)
        assert is_benchmark(found, mine, Benchmarks.load()) is marked


@pytest.mark.parametrize("source", [None, "mine"])
def test_names_of_files_and_folders_mark_whatever_the_source_is_said_to_be(tmp_path: Path, source: str | None) -> None:
    lone = write_lines(tmp_path / "2025_08-00000-of-00001.jsonl", import_rows.swe_gym())
    cached = tmp_path / "datasets--nebius--SWE-rebench-leaderboard" / "snapshots" / "a" / "data"
    write_lines(cached / "test-00000-of-00001.jsonl", import_rows.swe_gym())
    for path in (lone, cached):
        (row,) = read_instances(path, source=source)
        assert row.instance is not None and row.instance.benchmark


def test_each_row_is_of_the_form_of_its_own_columns(tmp_path: Path) -> None:
    odd = {"note": "header"}
    file = write_lines(
        tmp_path / "x.jsonl", odd, import_rows.swe_gym(), import_rows.verified(), import_rows.swe_smith()
    )
    first, *others = read_instances(file)
    assert str(first).endswith("row 1: it is of no form that is read (columns note)")
    assert [it.instance and it.instance.form for it in others] == ["swe-gym", "swe-bench", "swe-smith"]


# The left sides are published instances. The right sides are what `swebench.task.checks.expected_image` of swebench
# 5.0.2 gives for them, and lines of scripts/images_verified.txt of Multi-SWE-bench.
@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("django__django-11099", "swebench/sweb.eval.x86_64.django_1776_django-11099:latest"),
        ("pytest-dev__pytest-7168", "swebench/sweb.eval.x86_64.pytest-dev_1776_pytest-7168:latest"),
        ("chartjs__Chart.js-8650", "swebench/sweb.eval.x86_64.chartjs_1776_chart.js-8650:latest"),
    ],
)
def test_images_of_swe_bench_have_its_names(name: str, image: str) -> None:
    assert swe_bench.expected_image(name) == image
    # Its fork for SWE-rebench has the same rule below another namespace.
    assert swe_rebench.expected_image(name) == image.replace("swebench/", "swerebench/")


def test_images_of_others_have_their_names() -> None:
    assert multi_swe_bench.expected_image("catchorg", "Catch2", 1422) == "mswebench/catchorg_m_catch2:pr-1422"
    assert multi_swe_bench.expected_image("alibaba", "fastjson2", 1245) == "mswebench/alibaba_m_fastjson2:pr-1245"
    assert swe_gym.expected_image("getmoto__moto-6469") == "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-6469:latest"
    of_smith = swe_smith.expected_image("python-openxml", "python-docx", "0cf6d71f")
    assert of_smith == "swebench/swesmith.x86_64.python-openxml_1776_python-docx.0cf6d71f"


# ---- identity


def test_the_id_is_of_source_name_and_content() -> None:
    found = read("swe_gym")
    same = replace(found, f2p=("other",), image="else", split="test", revision="def", benchmark=True)
    assert same.chain_id == found.chain_id
    others = [
        replace(found, source="b"),
        replace(found, instance_id="b"),
        replace(found, query="b"),
        replace(found, patch="b"),
        replace(found, test_patch="b"),
    ]
    assert len({found.chain_id, *(other.chain_id for other in others)}) == 6


# ---- what is wrong with a row


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("swe_gym", {"problem_statement": None}, "problem_statement is missing"),
        ("swe_gym", {"problem_statement": " \n"}, "problem_statement is blank"),
        ("swe_gym", {"problem_statement": "a\0b"}, "problem_statement holds U+0000"),
        ("swe_gym", {"instance_id": "../../etc"}, "instance_id is '../../etc'"),
        ("swe_gym", {"instance_id": "a b"}, "instance_id is 'a b'"),
        ("swe_gym", {"repo": "till"}, "repo is 'till'"),
        ("swe_gym", {"repo": "a/.."}, "repo is 'a/..'"),
        ("swe_gym", {"repo": "../till"}, "repo is '../till'"),
        ("swe_gym", {"repo": "shop/-till"}, "repo is 'shop/-till'"),
        ("swe_smith", {"repo": "..__...4f5e6d7c"}, "repo is '../..'"),
        ("swe_smith", {"repo": f"a__{'b' * 300}.4f5e6d7c"}, "repo is 'a/bbb"),
        ("swe_gym", {"base_commit": "main"}, "base_commit is 'main'"),
        ("swe_gym", {"patch": "Change the limit."}, "patch is no patch"),
        (
            "swe_gym",
            {"patch": "--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n"},
            "patch is no patch: none of its lines names a file",
        ),
        ("swe_gym", {"FAIL_TO_PASS": []}, "FAIL_TO_PASS names no test"),
        ("swe_gym", {"FAIL_TO_PASS": "['a']"}, "FAIL_TO_PASS is a text that is no JSON"),
        ("swe_gym", {"FAIL_TO_PASS": [1]}, "FAIL_TO_PASS is a list"),
        ("swe_gym", {"PASS_TO_PASS": "[" * 100_000}, "PASS_TO_PASS is a text that is no JSON"),
        ("harness_5", {"image": "a b; rm -rf /"}, "image is 'a b; rm"),
        ("swe_rebench", {"install_config": "[]"}, "install_config is a list"),
        (
            "swe_smith",
            {"instance_id": "shop__till.0a1b2c3d.func"},
            "instance_id is 'shop__till.0a1b2c3d.func', and repo",
        ),
        ("swe_smith", {"repo": "shop/till"}, "repo is 'shop/till', which is no copy"),
        ("multi_swe_bench", {"number": "12"}, "number is no number"),
        ("multi_swe_bench", {"resolved_issues": "[]"}, "resolved_issues is no list of issues"),
        ("multi_swe_bench", {"base": None}, "sha is missing"),
        ("nemo_gym", {"responses_create_params": {"metadata": {"instance_dict": '{"a": 1}'}}}, "of no form"),
    ],
)
def test_a_row_that_is_wrong_is_told_by_its_column(name: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInstance) as caught:
        read(name, **changes)
    assert words in str(caught.value) and "\n" not in str(caught.value)


_BROKEN: tuple[Any, ...] = (None, True, 7, 1e400, "", "\0", "\ud800", "{", "[1]", [], [None], ["\0"], {}, {"a": [7]})
"""Values that no column of a text holds, or that a list of tests holds."""


@pytest.mark.parametrize("name", import_rows.ROWS)
def test_whatever_a_column_of_a_form_holds_its_row_is_an_instance_or_one_line_that_names_it(
    tmp_path: Path, name: str
) -> None:
    form, make = import_rows.ROWS[name]
    good = {column: json.loads(json.dumps(value, default=str)) for column, value in make().items()}
    broken = [good | {column: value} for column in good for value in _BROKEN]
    inner = good.get("responses_create_params", {}).get("metadata", {}).get("instance_dict")
    for column, value in json.loads(inner).items() if inner else ():
        for odd in _BROKEN:
            text = json.dumps(json.loads(inner) | {column: odd if odd != value else 7})
            broken.append(good | {"responses_create_params": {"metadata": {"instance_dict": text}}})
    text = json.dumps(good)
    lines = [*map(json.dumps, broken), text[:-9], "[" + text, text + "]", "7", "null", "[" * 100_000, "1" * 5_000]
    file = write_lines(tmp_path / "train.jsonl", *lines)
    with file.open("ab") as stream:
        stream.write(text.encode().replace(b"till", b"t\xffll") + b"\n")
    found = list(read_instances(file, source="lab/set", form=form))
    assert [it.row for it in found] == list(range(1, len(lines) + 2))
    bad = [it for it in found if it.instance is None]
    assert len(bad) >= 30 and not {*range(len(broken) + 1, len(lines) + 2)} - {it.row for it in bad}
    for it in bad:
        line = str(it)
        assert line.startswith(f"{file}, row {it.row}: ") and line.isprintable() and len(line) < 400, line
    (whole,) = read_instances(write_lines(tmp_path / "good.jsonl", good), source="lab/set", form=form)
    assert whole.instance is not None


# ---- files


def write_lines(file: Path, *rows: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def test_lines_that_cannot_be_read_are_named_and_the_others_are_read(tmp_path: Path) -> None:
    good = import_rows.swe_gym()
    bad = "[1]", "{", '"text"', {**good, "repo": 1}
    file = write_lines(tmp_path / "train.jsonl", good, *bad, "", good)
    with file.open("ab") as stream:
        stream.write(b'{"repo": "\xff"}\n')
    found = list(read_instances(file, source="lab/set"))
    assert [it.instance is not None for it in found] == [True, False, False, False, False, True, False]
    lines = [str(it) for it in found if it.instance is None]
    assert [line.partition(": ")[0] for line in lines] == [f"{file}, row {n}" for n in (2, 3, 4, 5, 8)]
    assert lines[0].endswith("it is no object with columns") and lines[-1].endswith("byte 11 is no UTF-8")
    assert found[0].instance == found[5].instance and found[0].instance is not None
    assert found[0].instance.split == "train"


def test_a_list_is_read_item_by_item(tmp_path: Path) -> None:
    rows = [
        import_rows.swe_smith(instance_id=f"shop__till.4f5e6d7c.x__{n}", created_at="é" * 300_000) for n in range(9)
    ]
    file = tmp_path / "task_insts.json"
    file.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
    found = [it.instance.instance_id for it in read_instances(file) if it.instance]
    assert found == [row["instance_id"] for row in rows]
    file.write_text(json.dumps(rows)[:-200], encoding="utf-8")
    *_, last = read_instances(file)
    assert str(last) == f"{file}, row 9: the list ends here, or its next item is no JSON"


def test_a_long_list_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text("\n [" + ",".join(["{}"] * 300_000) + "]")
    started = process_time()
    assert sum(1 for _ in rows_of(file)) == 300_000
    assert process_time() - started < 10  # a copy of the rest for each item took minutes


def test_a_time_that_is_none_is_told_by_its_row(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = arrow.array([2**62, 0], arrow.timestamp("us"))
    parquet.write_table(arrow.table({"repo": ["a/b", "a/c"], "created_at": times}), tmp_path / "x.parquet")
    (_, bad), (_, good) = rows_of(tmp_path / "x.parquet")
    assert isinstance(bad, BadInstance) and isinstance(good, dict) and good["repo"] == "a/c"


def test_small_letters_and_selected_tests_of_a_blend_are_read() -> None:
    found = FORMS["nemotron"].read(import_rows.nemo_small(container_formatter=None), HERE)
    assert (found.repository, found.base_commit, found.query) == ("shop/till", BASE, QUERY)
    assert (found.patch, found.test_patch) == (PATCH, TEST_PATCH)
    assert (found.f2p, found.p2p) == (tuple(F2P), tuple(P2P))
    assert (found.image, found.workdir, found.test_command) == (None, "/app", ())
    named = FORMS["nemotron"].read(import_rows.nemo_small(), HERE)
    assert (named.image, named.image_by) == ("lab/shop_1776_till-12:1", "column")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *(
            (name, {"problem_statement": blank})
            for name in ("swe_smith", "swe_bench", "swe_gym")
            for blank in (None, " ")
        ),
        ("multi_swe_bench", {"resolved_issues": []}),
        ("multi_swe_bench", {"resolved_issues": None}),
    ],
)
def test_a_row_that_asks_nothing_is_told_apart_from_one_that_is_wrong(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(NoQuery):
        read(name, **changes)
    with pytest.raises(BadInstance) as caught:
        read(name, problem_statement=7, resolved_issues=7)
    assert not isinstance(caught.value, NoQuery)


@pytest.mark.parametrize(
    ("subset", "marked"), [("verified", True), ("multilingual", True), ("gym", False), ([7], False)]
)
def test_a_subset_of_a_benchmark_marks_a_row_of_a_blend(subset: Any, marked: bool) -> None:
    where = DataSet("nvidia/Nemotron-Blend")
    found = FORMS["nemotron"].read({**import_rows.swe_gym(), "responses_create_params": {}, "subset": subset}, where)
    assert is_benchmark(found, where, Benchmarks.load()) is marked


def test_the_query_of_multi_swe_bench_is_its_first_issue_word_for_word() -> None:
    issues = [{"title": "No total", "body": "till.total([])\r\n"}, {"title": "Another", "body": None}]
    assert read("multi_swe_bench", resolved_issues=issues).query == "No total\ntill.total([])\r\n"
    assert read("multi_swe_bench", resolved_issues=issues[1:]).query == "Another"


def test_a_name_of_megabytes_is_refused_at_once() -> None:
    started = process_time()
    with pytest.raises(BadInstance, match="no copy of SWE-smith"):
        read("swe_smith", repo="a__" * (1 << 20))  # took hours
    assert process_time() - started < 5


def test_tests_of_other_rows_are_none_of_a_row() -> None:
    found = read("multi_swe_bench", f2p_tests={"a": {"run": "FAIL"}, "of another row": None})
    assert "a" in found.f2p and "of another row" not in found.f2p


def test_parquet_gives_the_rows_of_lines(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "datasets--nebius--SWE-rebench" / "snapshots" / "0123abc" / "data"
    folder.mkdir(parents=True)
    rows = [import_rows.swe_rebench(instance_id=f"shop__till-{n}") for n in range(20)]
    parquet.write_table(arrow.Table.from_pylist(rows), folder / "filtered-00000-of-00001.parquet")
    (tmp_path / "datasets--nebius--SWE-rebench" / "snapshots" / "0123abc" / "README.md").write_text("A set.")
    found = list(read_instances(folder.parent))
    where = DataSet("nebius/SWE-rebench", "0123abc", "filtered")
    assert [it.instance for it in found] == [FORMS["swe-rebench"].read(row, where) for row in rows]


def test_a_file_of_a_folder_that_cannot_be_read_is_no_end_of_the_others(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    good = import_rows.swe_gym()
    (tmp_path / "a.parquet").write_bytes(b"PAR1nothing")
    (tmp_path / "b.json").write_bytes(b'[{}, {"repo": "\xff"}]')
    (tmp_path / "c.jsonl").mkdir()  # no file
    (tmp_path / "d.json").write_text(json.dumps([good])[:-9])
    write_lines(tmp_path / "e.jsonl", good)
    *bad, last = read_instances(tmp_path)
    assert last.instance is not None
    assert [(it.file.name, type(it.error)) for it in bad] == [
        (name, RestUnread) for name in ("a.parquet", "b.json", "d.json")
    ]
    lines = [str(it).removeprefix(f"{tmp_path}/") for it in bad]
    assert lines[0].startswith("a.parquet, row 1: the file cannot be read: as Parquet: ")
    assert lines[1] == "b.json, row 1: the file cannot be read: it is no UTF-8 text"
    assert all(line.isprintable() for line in lines)


def test_a_disk_that_fails_in_a_file_is_told_by_the_row_that_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(stream: IO[bytes]) -> Iterator[tuple[int, Any]]:
        yield 1, import_rows.swe_gym()
        raise OSError(EIO, "Input/output error")

    monkeypatch.setattr("chains.imports.rows._lines", failing)
    write_lines(tmp_path / "a.jsonl", {})
    first, bad = read_instances(tmp_path / "a.jsonl")
    assert first.instance is not None and isinstance(bad.error, RestUnread)
    assert str(bad).endswith("a.jsonl, row 2: the file cannot be read further: Input/output error")


def test_the_path_tells_the_data_set_and_the_split(tmp_path: Path) -> None:
    folder = tmp_path / "SWE-Gym"
    folder.mkdir()
    assert provenance(folder, folder / "data" / "train-00000-of-00002.parquet") == DataSet("SWE-Gym", None, "train")
    assert provenance(folder / "mine.jsonl", folder / "mine.jsonl") == DataSet("mine")
    assert provenance(folder, folder / "rust" / "tokio__dataset.jsonl", "a/b") == DataSet("a/b")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "x", "is of no kind that is read"),
        ("a.jsonl", '{"question": 1}', "is of no form that is read (columns question); say which with --form"),
        ("b.jsonl", '{"a\\nb": 1}', "(columns a?b)"),
        ("none.jsonl", None, "there is no file or folder"),
    ],
)
def test_a_file_of_no_known_kind_is_told(tmp_path: Path, name: str, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UsageError) as caught:
        list(read_instances(tmp_path / name))
    assert words in str(caught.value)


def test_a_folder_without_a_file_of_a_data_set_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no file that ends in"):
        list(read_instances(tmp_path))


def _parquet(*rows: dict[str, Any]) -> bytes:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(rows), buffer := BytesIO())
    return buffer.getvalue()


_GOOD = json.dumps(import_rows.swe_gym()).encode()


def _with(**changes: Any) -> bytes:
    return json.dumps(import_rows.swe_gym(**changes)).encode()


@pytest.mark.parametrize(
    ("name", "content", "row", "words"),
    [
        ("cut.jsonl", _GOOD + b"\n" + _GOOD[:-9], 2, "ends what can be read as JSON"),
        ("bytes.jsonl", _GOOD + b"\n\xff\xfe" + _GOOD, 2, "byte 1 is no UTF-8"),
        ("nul.jsonl", _with(problem_statement="a\0b"), 1, "problem_statement holds U+0000"),
        ("half.jsonl", b"\n" + _with(test_patch=TEST_PATCH + "\ud800"), 2, "test_patch holds U+D800"),
        ("deep.jsonl", _GOOD + b"\n" + b"[" * 100_000, 2, "nested too deep"),
        ("digits.jsonl", b'{"number": ' + b"1" * 5_000 + b"}", 1, "a number that is too long"),
        ("lists.jsonl", _GOOD + b"\n[" + _GOOD + b"]", 2, "it is no object with columns"),
        ("quotes.jsonl", _with(FAIL_TO_PASS="['a']"), 1, "FAIL_TO_PASS is a text that is no JSON"),
        ("patch.jsonl", _with(patch="--- \n+++ \n"), 1, "none of its lines names a file"),
        ("names.jsonl", b'{"a\\nb\\u001b[2J": 1}\n' + _GOOD, 1, "it is of no form that is read (columns a?b?[2J)"),
        ("long.jsonl", _GOOD + b"\n{" + b" " * (33 << 20) + b"}\n" + _GOOD, 2, "the line is longer than 32 MB"),
        ("cut.json", b"[" + _GOOD + b"," + _GOOD[:-9], 2, "the list ends here"),
        ("bytes.json", b"[" + _GOOD + b', "\xff"]', 1, "the file cannot be read: it is no UTF-8 text"),
        ("number.parquet", lambda: _parquet(import_rows.swe_gym(patch=7)), 1, "patch is a number"),
        ("cut.parquet", lambda: _parquet(import_rows.swe_gym())[:-9], 1, "the file cannot be read: as Parquet: "),
        ("none.parquet", b"PAR1" + b"\0" * 99 + b"PAR1", 1, "the file cannot be read: "),
    ],
)
@pytest.mark.parametrize("in_folder", [False, True])
def test_a_malformed_file_is_one_line_that_names_the_row_and_the_other_files_are_read(
    tmp_path: Path, name: str, content: Any, row: int, words: str, in_folder: bool
) -> None:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content())
    (tmp_path / "whole.jsonl").write_bytes(_GOOD)
    found = list(read_instances(tmp_path if in_folder else file))
    (bad,) = [it for it in found if it.instance is None]
    line = str(bad)
    assert line.startswith(f"{file}, row {row}: ") and words in line and line.isprintable() and len(line) < 400, line
    assert not in_folder or found[-1].instance is not None


@pytest.mark.parametrize(
    "wrap",
    [
        lambda row: {**row, "responses_create_params": {"input": []}, "agent_ref": {"type": "a"}},
        lambda row: {**row, "responses_create_params": {"input": []}, "subset": "verified", "split": "test"},
        lambda row: {
            "responses_create_params": {
                "input": [],
                "metadata": {
                    "dataset_name": "SWE-Gym/SWE-Gym",
                    "golden_patch": PATCH,
                    "instance_dict": json.dumps({**row, "dataset_name": "x", "split": "train", "golden_patch": PATCH}),
                },
            }
        },
    ],
    ids=["columns beside", "a subset", "all of it inside"],
)
@pytest.mark.parametrize("make", [import_rows.verified, import_rows.swe_gym])
def test_a_row_in_a_wrapping_is_read_wherever_its_columns_stand(tmp_path: Path, make: Any, wrap: Any) -> None:
    (found,) = read_instances(write_lines(tmp_path / "rows.jsonl", wrap(make())))
    assert found.instance is not None, found.error
    assert (found.instance.form, found.instance.instance_id, found.instance.f2p) == (
        "nemotron",
        "shop__till-12",
        tuple(F2P),
    )


def test_rows_of_a_leaderboard_with_an_interface_and_an_image_are_those_of_the_first_swe_rebench(
    tmp_path: Path,
) -> None:
    row = import_rows.swe_rebench(
        interface="def total(): ...", docker_image="swerebench/x:latest", created_at="2024-05-01"
    )
    (found,) = read_instances(write_lines(tmp_path / "rows.jsonl", row))
    assert found.instance is not None and (found.instance.form, found.instance.workdir) == ("swe-rebench", "/testbed")


def test_the_name_of_the_data_set_tells_whose_image_a_row_without_an_environment_has(tmp_path: Path) -> None:
    (own,) = read_instances(write_lines(tmp_path / "SWE-Gym.jsonl", import_rows.swe_gym()))
    (other,) = read_instances(write_lines(tmp_path / "SWE-bench_Multilingual.jsonl", import_rows.swe_gym()))
    assert own.instance is not None and str(own.instance.image).startswith("xingyaoww/")
    assert other.instance is not None and str(other.instance.image).startswith("swebench/")
