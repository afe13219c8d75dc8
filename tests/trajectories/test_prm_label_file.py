"""People's labels in CSV: every wrong line is told in one line, and nothing is guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prchain.core.errors import UsageError
from trajectories.agents.guidance.taxonomy import load_taxonomy
from trajectories.studies.guidance.agreement import ReadWindow
from trajectories.studies.guidance.label_file import WindowLabel, check_windows, read_labels, settled

HEAD = "trajectory,position,attempt,last_step,category,label"
WINDOW = ReadWindow("aa", 1, 2, 10)


def read(folder: Path, text: str | bytes) -> list[WindowLabel]:
    file = folder / "labels.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_labels(file, load_taxonomy())


def test_labels_are_read_as_they_stand(tmp_path: Path) -> None:
    lines = ['aa,1,2,10,step_repetition,yes,ann,"a, b"', "", " aa ,1,2,10,hallucination,No,,", ""]
    text = "\r\n".join([f"\ufeff{HEAD},reader,note", *lines])
    assert read(tmp_path, text) == [
        WindowLabel(WINDOW, "step_repetition", True, "ann", 2),
        WindowLabel(WINDOW, "hallucination", False, "", 4),
    ]


def test_columns_stand_in_any_order_and_a_reader_is_not_needed(tmp_path: Path) -> None:
    text = "label,category,last_step,attempt,position,trajectory\nno,hallucination,10,2,1,aa\n"
    assert read(tmp_path, text) == [WindowLabel(WINDOW, "hallucination", False, "", 2)]
    assert read(tmp_path, f"{HEAD}\n") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "are empty; their first line has the columns trajectory, position"),
        ("trajectory,position\n", "have no column attempt; needed are"),
        (f"{HEAD},label\n", "have the column label twice"),
        (f"{HEAD}\naa,1,1,5,hallucination\n", "line 2: 5 cells stand under 6 columns"),
        (f"{HEAD}\naa,1,1,5,hallucination,yes,\n", "line 2: 7 cells stand under 6 columns"),
        (f"{HEAD}\n,1,1,5,hallucination,yes\n", "line 2: it names no trajectory"),
        (f"{HEAD}\naa,1,1,5,hallucination,yes\naa,one,1,5,hallucination,yes\n", "line 3: position is no number: 'one'"),
        (f"{HEAD}\naa,1,-1,5,hallucination,yes\n", "attempt is no number: '-1'"),
        (f"{HEAD}\naa,1,1,{'9' * 5000},hallucination,yes\n", "last_step is no number: '9999"),
        (f"{HEAD}\naa,1,1,\u0665,hallucination,yes\n", "last_step is no number"),
        (f"{HEAD}\naa,1,1,5,lazy,yes\n", "there is no category 'lazy'; the taxonomy has task_specification_violation"),
        (f"{HEAD}\naa,1,1,5,hallucination,maybe\n", "label is neither yes nor no: 'maybe'"),
        (f'{HEAD}\naa,1,1,5,hallucination,"yes\nno"\n', "label is neither yes nor no: 'yes no'"),
        (f"{HEAD}\naa,1,1,5,hallucination,yes\naa,1,1,5,hallucination,no\n", "line 3: line 2 has a label for the same"),
        (f'{HEAD}\naa,1,1,5,hallucination,"yes', "are no CSV"),
        (f"{HEAD}\n{'a' * 200_000},1,1,5,hallucination,yes\n", "are no CSV: field larger"),
        (b"\xff\xfe", "are no UTF-8"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_in_one_short_line(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    told = str(caught.value).replace(str(tmp_path), "")
    assert words in told and "\n" not in told and len(told) < 600


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"labels\.csv cannot be read: No such file"):
        read_labels(tmp_path / "labels.csv", load_taxonomy())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.text()
    | st.lists(st.lists(st.text(alphabet='a1",\n\x00', max_size=4))).map(
        lambda it: f"{HEAD}\n" + "\n".join(map(",".join, it))
    )
)
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    try:
        assert read(tmp_path, text.encode("utf-8", "surrogatepass")) is not None
    except UsageError as error:
        assert "\n" not in str(error)


def test_readers_who_differ_settle_nothing(tmp_path: Path) -> None:
    labels = [
        WindowLabel(WINDOW, "hallucination", True, "ann", 2),
        WindowLabel(WINDOW, "hallucination", False, "ben", 3),
        WindowLabel(WINDOW, "step_repetition", True, "ann", 4),
        WindowLabel(WINDOW, "step_repetition", True, "ben", 5),
        WindowLabel(WINDOW._replace(last_step=15), "hallucination", False, "ann", 6),
    ]
    found = settled(labels)
    assert found.disputed == 1
    assert found.labels == {
        (WINDOW, "step_repetition"): True,
        (WINDOW._replace(last_step=15), "hallucination"): False,
    }


def test_labels_of_windows_that_nobody_has_read_are_refused() -> None:
    steps = [10, 15, 15, 20]
    labels = [
        WindowLabel(WINDOW._replace(last_step=it), "hallucination", True, "", line) for line, it in enumerate(steps, 2)
    ]
    check_windows(labels, {label.window for label in labels})
    with pytest.raises(UsageError, match=r"line 3: .* 'aa', stage 1, attempt 2 that ends with step 15; .* 2 windows"):
        check_windows(labels, {WINDOW})
    with pytest.raises(UsageError) as caught:
        check_windows(labels[:1], set())
    assert "in all" not in str(caught.value)
