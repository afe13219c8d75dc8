"""Observations of commands in mini-swe-agent's form, so that data of both scaffolds can be mixed.

A return code, then the output; a long one is cut to its head and its tail, with the number of characters between them.
Between the two, where a pipeline hid the failure of a command, the codes of all its commands: mini-swe-agent has no
such line.
"""

from __future__ import annotations

from typing import Any

from environments.sandboxes.sandbox import OUT_OF_MEMORY, OUTPUT_LIMIT, PROCESS_LIMIT, ExecResult

SUBMISSION = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""mini-swe-agent's word: the first line of a command's output, with exit code 0, that ends the work."""

ADVICE = (
    "The output was too long to be shown whole. Narrow the command down (head, tail, sed -n, a stricter pattern), or "
    "write the output to a file and search that."
)
"""Stands before the head and the tail of an output that was cut."""

GOES_ON = "goes_on"
"""Key of `Entry.details` of a command that runs on, of looks at it and of its interrupt: none of these failed."""

SHOWN_LINES = "shown_lines"
"""Key of `Entry.details` of an output without marks: its lines; of one that was cut, those of its head."""

_LIMITS = {
    OUT_OF_MEMORY: "A process of the command was killed, because it used more memory than there is.",
    OUTPUT_LIMIT: "The command was ended, because it printed without end.",
    PROCESS_LIMIT: "Processes that earlier commands had left running were killed, because there were too many of them.",
}

SIGPIPE = 128 + 13
"""The code of a command whose reader had enough (``yes | head``)."""

_BYTES_A_CHARACTER = 4
"""The most that UTF-8 takes."""


def bytes_for(characters: int) -> int:
    """The bytes of output to ask a sandbox for, so that head and tail of `characters` can be cut from them."""
    return max(characters, 1) * _BYTES_A_CHARACTER * 2


def is_submission(result: ExecResult) -> bool:
    """Whether a command's result says that the work is done."""
    first = result.output.lstrip()[: len(SUBMISSION) + 64].split(b"\n", 1)[0].strip()
    return result.exit_code == 0 and first == SUBMISSION.encode()


def command_observation(result: ExecResult, *, most: int, timeout: float) -> tuple[str, int]:
    """The observation of a command, and how many characters of its output were left out (bytes that the sandbox itself
    left out count as characters). `most` is in characters, `timeout` in seconds."""
    output, omitted = _output_text(result, most)
    code = -1 if result.exit_code is None else result.exit_code
    words = exception_words(result, timeout)
    exception = f"<exception>{words}</exception>\n" if words else ""
    codes = hidden_failure(result)
    pipestatus = f"<pipestatus>{' '.join(map(str, codes))}</pipestatus>\n" if codes else ""
    return f"{exception}<returncode>{code}</returncode>\n{pipestatus}{output}", omitted


def hidden_failure(result: ExecResult) -> tuple[int, ...]:
    """The codes of a pipeline of which a command before the last one failed, so that the return code does not tell it;
    empty where there is no such pipeline. A command that was ended because nobody read on has not failed."""
    return result.pipestatus if any(code not in {0, SIGPIPE} for code in result.pipestatus[:-1]) else ()


def exception_words(result: ExecResult, timeout: float) -> str:
    """Words on why a command was ended; empty where it ended by itself. `timeout` is in seconds."""
    if result.timed_out:
        return (
            f"The command ran for more than {timeout:g} seconds and was ended, with all that it had started. Nobody "
            "answers prompts here; let what takes long run in the background."
        )
    if result.limit is not None:
        return _LIMITS.get(result.limit, f"The command ran into a limit: {result.limit}.")
    return "The command was ended from outside." if result.exit_code is None else ""


def command_details(result: ExecResult, omitted: int) -> dict[str, Any]:
    """What `Entry.details` keeps of a command; `omitted` is how many characters the agent was not shown."""
    return {
        "exit_code": result.exit_code,
        **({"pipestatus": list(codes)} if (codes := hidden_failure(result)) else {}),
        **({"timed_out": True} if result.timed_out else {}),
        **({"omitted": omitted} if omitted else {}),
        **({"limit": result.limit} if result.limit else {}),
    }


def command_error(result: ExecResult) -> str | None:
    """`Entry.error` of a command: why we ended it; None where it ended by itself, with any exit code."""
    if result.timed_out:
        return "timed_out"
    return (result.limit or "ended") if result.exit_code is None else None


def _output_text(result: ExecResult, most: int) -> tuple[str, int]:
    if result.omitted:
        head = result.output[: result.head].decode("utf-8", "replace")
        tail = result.output[result.head :].decode("utf-8", "replace")
    else:
        text = result.output.decode("utf-8", "replace")
        if len(text) <= most:
            return f"<output>\n{text}</output>", 0
        head = tail = text
    first, last = head[: most - most // 2], tail[len(tail) - most // 2 :]
    whole = len(head) + len(tail) + result.omitted if result.omitted else len(head)
    omitted = whole - len(first) - len(last)
    return (
        f"<warning>\n{ADVICE}\n</warning>\n"
        f"<output_head>\n{first}\n</output_head>\n"
        f"<elided_chars>\n{omitted} characters elided\n</elided_chars>\n"
        f"<output_tail>\n{last}\n</output_tail>"
    ), omitted


def cut(text: str, most: int) -> str:
    """A text of at most about `most` characters: head and tail, and between them how many are missing."""
    if len(text) <= most:
        return text
    first, last = text[: most - most // 2], text[len(text) - most // 2 :]
    return f"{first}\n[... {len(text) - most} characters left out ...]\n{last}"
