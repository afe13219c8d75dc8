"""``unshown-name``: the agent relies on a file, or states a name, that nothing in the conversation holds.

Two cases, each chosen to be precise rather than complete:

- A call reads or runs a file that nothing had named before, and the answer is that there is none. Where the file is
  there, the guess was right. To ask whether there is one (``ls``, ``find``, ``test``) relies on nothing.
- A sentence states that a name or a file is in the repository (`trajectories.agents.guidance.claims`), and neither what
was said
  and shown before it, nor its own turn's calls, nor their results hold it.

Both are P2T's referential check (section 4.2 and appendix H) on words that are not rewritten. What was said once is not
found again. The words of all entries count, those of earlier stages and of guidance, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from prchain.core.llm.model import ToolCall
from trajectories.agents.guidance.claims import NameClaim, claims, is_own_file
from trajectories.agents.guidance.detector import Detector, DetectorFinding, WatchedWork, call_words, one_line
from trajectories.agents.guidance.shown_words import ShownWords
from trajectories.agents.shell.programs import bash_command
from trajectories.agents.steps.conversation import arguments_of, said
from trajectories.agents.steps.entities import normalized_path
from trajectories.agents.tools.edits import EDITOR
from trajectories.agents.tools.think import Think
from trajectories.model import Entry, EntryKind

_NAME, _CATEGORY = "unshown-name", "hallucination"
_RECOVERY = "Search the repository for it, and go by what is found there."

_MOST_NAMES = 3
_MOST_MISSING = 20
"""Lines of one output that are looked at."""
_MISSING = "missing"
"""`Entry.error` of the editor where there is no file."""
_NO_FILE = re.compile(
    r"(?m)^(?:cat|head|tail|sed|nl|less|more|awk|python[0-9.]*): "
    r"(?:can['\u2019]t (?:read|open(?: file)?) |cannot open )?"
    r"['\"\u2018]?([^\s'\"\u2018\u2019:]{1,300})['\"\u2019]?(?: for reading)?: (?:\[Errno 2\] )?"
    r"No such file or directory"
    r"|^(?:collecting \.\.\. )?ERROR: file or directory not found: ([^\s:]{1,300})"
)
"""What programs print that read or run a file which is not there."""


def find(work: WatchedWork) -> list[DetectorFinding]:
    """See `Detector.find`."""
    return list(_ClaimReader(work.workdir, work.first_step).read(work.entries))


@dataclass(slots=True)
class _ClaimReader:
    """Reads a conversation entry by entry."""

    workdir: str
    first_step: int
    """What is said and missed before it is only heard."""
    _shown: ShownWords = field(default_factory=ShownWords)
    _turn: Entry | None = None
    """The turn whose observations are being read."""
    _calls: Mapping[str, ToolCall] = field(default_factory=dict)
    _claims: Sequence[NameClaim] = ()
    """Those of the turn's that nothing before it holds."""

    def read(self, entries: Sequence[Entry]) -> Iterator[DetectorFinding]:
        for entry in entries:
            if entry.kind is EntryKind.OBSERVATION:
                yield from self._missed(entry)
                self._shown.add(entry.content)
                continue
            yield from self._settle()
            if entry.kind is EntryKind.TURN:
                self._take(entry)
            else:
                self._shown.add(entry.content)
        yield from self._settle()

    def _take(self, turn: Entry) -> None:
        self._turn = turn
        self._calls = {call.id: call for call in turn.tool_calls}
        said_before = turn.step < self.first_step
        found = {} if said_before else {claim.text: claim for claim in claims(self._said(), self.workdir)}
        self._claims = [claim for claim in found.values() if not _held(claim, self._shown)]

    def _said(self) -> str:
        """What the turn says, its thoughts included."""
        assert self._turn is not None
        thoughts = [arguments_of(call).get("thought") for call in self._calls.values() if call.name == Think.name]
        return "\n".join([said(self._turn), *(thought for thought in thoughts if isinstance(thought, str))])

    def _missed(self, observation: Entry) -> Iterator[DetectorFinding]:
        """A file that a call relied on, which is not there and which nothing had named."""
        call = self._calls.get(observation.tool_call_id or "")
        if call is None or observation.step < self.first_step:
            return
        arguments = arguments_of(call)
        for name in _missing_files(call, arguments, observation):
            path = normalized_path(name, (self.workdir,))
            if is_own_file(path) and not self._shown.holds_file(path):
                words = f"there is no {name}, and nothing had named it before: {call_words(call, arguments)}"
                yield DetectorFinding(_NAME, _CATEGORY, observation.step, one_line(words), _RECOVERY)
                return

    def _settle(self) -> Iterator[DetectorFinding]:
        """The claims of the turn that its calls and their results do not hold either."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        own = ShownWords()
        for call in turn.tool_calls if self._claims else ():
            if call.name != Think.name:
                own.add(call.arguments)
        absent = [claim for claim in self._claims if not _held(claim, self._shown) and not _held(claim, own)]
        if absent:
            names = ", ".join(dict.fromkeys(claim.text for claim in absent[:_MOST_NAMES]))
            words = f"nothing has shown {names}: {absent[0].sentence.strip()}"
            yield DetectorFinding(_NAME, _CATEGORY, turn.step, one_line(words), _RECOVERY)
        self._shown.add(said(turn))
        for call in turn.tool_calls:
            self._shown.add(call.arguments)


def _held(claim: NameClaim, shown: ShownWords) -> bool:
    return shown.holds_file(claim.text) if claim.is_file else shown.holds_name(claim.text)


def _missing_files(call: ToolCall, arguments: Mapping[str, Any], observation: Entry) -> Iterator[str]:
    """The files that a call relied on and that its result says are not there."""
    path = arguments.get("path")
    if call.name == EDITOR and observation.error == _MISSING and isinstance(path, str):
        yield path
    command = bash_command(call, arguments, observation)
    if command is not None and ("No such file" in observation.content or "file or dir" in observation.content):
        for match in islice(_NO_FILE.finditer(observation.content), _MOST_MISSING):
            name = match[1] or match[2]
            if name in command:
                yield name


DETECTOR = Detector(_NAME, "a file or a name is relied on that nothing in the conversation holds", _CATEGORY, find)
