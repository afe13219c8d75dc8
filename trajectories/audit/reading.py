"""Reading a conversation as acts: what each call ran and changed, from its text and its observation."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from environments.sandboxes.sandbox import WORKDIR
from prchain.core.code.kinds import FileKind, kind_of, language_of
from trajectories.agents.shell.commands import ShownLines, absolute, read_command
from trajectories.agents.shell.programs import bash_command, read_run, unwrapped
from trajectories.agents.shell.words import TO_FILE, here_documents, is_operator, shell_words, simple_commands
from trajectories.agents.steps.conversation import Step, steps_of
from trajectories.agents.tools.edits import EDITOR, UNDO
from trajectories.audit.acts import Act, AgentCommand, AuditedWork, FileEdit, FileRestored
from trajectories.audit.scripts import python_text, runs_python, script_edits
from trajectories.audit.unfounded import unfounded_claims
from trajectories.model import Entry, EntryKind

_FILE_WORD = re.compile(r"[\w./+-]{3,300}")
_NUMBERED = re.compile(r"(?m)^ *[0-9]{1,7}[\t:|]")
_PACKAGE_FILE = re.compile(r"(?:src/|lib/|python/)?([A-Za-z_]\w{1,60})/(?:[\w./-]{1,200})\.(?:py|pyi|pyx|js|ts|go|rs)")
_NO_PACKAGES = frozenset(
    [
        "test",
        "tests",
        "testing",
        "docs",
        "doc",
        "examples",
        "example",
        "scripts",
        "script",
        "tools",
        "tool",
        "bench",
        "benchmarks",
        "benchmark",
        "build",
        "dist",
        "src",
        "lib",
        "tmp",
        "usr",
        "opt",
        "home",
        "root",
        "env",
        "venv",
        "node_modules",
        "var",
        "etc",
        "vendor",
        "ci",
    ]
)
_SED_S = re.compile(r"s([/|#,@!~%])((?:\\.|(?!\1).){0,2000})\1((?:\\.|(?!\1).){0,2000})\1")
_SED_D = re.compile(r"(?:^|;|[0-9$/,])\s*d\s*(?:;|\Z)")
_EMPTIES: tuple[list[str], ...] = ([], [":"], ["true"], ["cat", "/dev/null"])
"""Commands of which nothing goes into a file."""
_LONGEST_SEARCHED = 50_000
_LONGEST_LINE = 500


def read_work(entries: Iterable[Entry], project: str | None = None) -> AuditedWork:
    """What an agent did. `project` is the repository's name, ``owner/name``. Raises nothing."""
    given = list(entries)
    asked: dict[int, list[str]] = {}
    workdir = WORKDIR
    for entry in given:
        if entry.kind in {EntryKind.QUERY, EntryKind.COMMENT, EntryKind.GUIDANCE}:
            asked.setdefault(entry.position, []).append(entry.content)
        told = entry.details.get("workdir")
        if entry.kind is EntryKind.QUERY and isinstance(told, str) and told.startswith("/"):
            workdir = told.rstrip("/") or WORKDIR
    reader = _ActReader(workdir, project)
    for texts in asked.values():
        reader.mention("\n".join(texts))
    for step in steps_of(given):
        reader.take(step)
    words = {position: "\n".join(texts) for position, texts in asked.items()}
    return AuditedWork(tuple(reader.acts), words, workdir, tuple(unfounded_claims(given)), frozenset(reader.packages))


@dataclass
class _ActReader:
    """Takes the steps of a conversation in order."""

    workdir: str
    project: str | None
    acts: list[Act] = field(default_factory=list)
    packages: set[str] = field(default_factory=set)
    _cwd: str = ""
    _made: set[str] = field(default_factory=set)
    """Files that the agent made."""
    _mentioned: set[str] = field(default_factory=set)
    """Paths of test files that the conversation named before the agent wrote them. A name alone, as in a listing, is a
    path of the root."""
    _test_folders: set[str] = field(default_factory=set)
    """Folders of such files."""
    _texts: dict[str, list[str]] = field(default_factory=dict)
    """Test file to what was shown of it."""

    def __post_init__(self) -> None:
        self._cwd = self.workdir
        if self.project:
            name = self.project.rpartition("/")[2].lower().replace("-", "_")
            self.packages |= {name, name.removeprefix("python_").removeprefix("py_")}

    def mention(self, text: str) -> None:
        """Take note of the test files that a text names."""
        for word in _FILE_WORD.findall(text):
            if "est" in word or "spec" in word:
                path = self._inside(absolute(posixpath.join(self.workdir, word.strip(".-+") or "x")))
                self._mentioned.add(path)
                folder = posixpath.dirname(path)
                if folder and folder not in self._test_folders and language_of(path) and kind_of(path) is FileKind.TEST:
                    self._test_folders.add(folder)

    def take(self, step: Step) -> None:
        """Take a step."""
        position = step.turn.position
        for call, arguments, observation in step.calls:
            if call.name == EDITOR:
                self._edited(position, step.number, arguments, observation)
            elif (command := bash_command(call, arguments, observation)) is not None and observation is not None:
                self._ran(position, step.number, command, observation)
            if observation is not None:
                self.mention(observation.content)
                self._cwd = observation.cwd or self._cwd

    def _inside(self, path: str) -> str:
        return path.removeprefix(f"{self.workdir}/")

    def _path(self, word: str, cwd: str) -> str:
        return self._inside(absolute(posixpath.join(cwd, word)))

    # ---- the editor

    def _edited(self, position: int, step: int, arguments: Mapping[str, Any], observation: Entry | None) -> None:
        path, command = arguments.get("path"), arguments.get("command")
        if observation is None or observation.error is not None or not isinstance(path, str):
            return
        path = self._path(path, self.workdir)
        old, new, whole = (_text(arguments.get(name)) for name in ("old_str", "new_str", "file_text"))
        match command:
            case "view":
                self._look(position, step, f"view {path}", (path,), observation.content)
            case "create":
                existed = observation.details.get("before") is not None or "before" not in observation.details
                self._write(FileEdit(position, step, path, "", whole, whole=True, existed=existed))
            case "str_replace":
                self._write(FileEdit(position, step, path, old, new))
            case "insert":
                self._write(FileEdit(position, step, path, "", new))
            case str() if command == UNDO:
                self.acts.append(FileRestored(position, step, path))

    def _look(self, position: int, step: int, command: str, reads: tuple[str, ...], shown: str) -> None:
        self.acts.append(AgentCommand(position, step, command, (), (), reads, shown, runs_tests=False))
        self._remember(reads, shown)

    def _remember(self, reads: Sequence[str], shown: str) -> None:
        for path in reads[:8]:
            if (match := _PACKAGE_FILE.fullmatch(path)) and match[1].lower() not in _NO_PACKAGES:
                self.packages.add(match[1].lower())
            if kind_of(path) is FileKind.TEST:
                self._texts.setdefault(path, []).append(_NUMBERED.sub("", shown))

    def _is_known(self, path: str) -> bool:
        """Whether a file was there before the agent wrote it. Agents make files of their own at the root, where a name
        of another folder's listing says nothing: there one must have been read."""
        if "/" not in path:
            return path in self._texts
        return path in self._mentioned or posixpath.basename(path) in self._mentioned

    def _write(self, edit: FileEdit) -> None:
        existed = edit.existed and edit.path not in self._made
        if edit.whole and not edit.removed and edit.kind is FileKind.TEST:
            existed = existed and self._is_known(edit.path)
        edit = replace(edit, existed=existed)
        if edit.whole and not edit.removed:
            if not existed:
                self._made.add(edit.path)
            elif edit.kind is FileKind.TEST:
                shown = "\n".join(self._texts.get(edit.path, ()))
                edit = replace(edit, before=shown, known=bool(shown))
        elif existed and not edit.removed and edit.known and "\n" not in edit.before + edit.after:
            edit = self._in_line(edit)
        if edit.whole and edit.kind is FileKind.TEST:
            self._texts[edit.path] = [edit.after]
        elif edit.after and edit.path in self._texts:
            self._texts[edit.path].append(edit.after)
        if (match := _PACKAGE_FILE.fullmatch(edit.path)) and existed and match[1].lower() not in _NO_PACKAGES:
            self.packages.add(match[1].lower())
        self.acts.append(edit)

    def _in_line(self, edit: FileEdit) -> FileEdit:
        """An edit of some words, as one of the line of the test in which they stood; as it is where nobody saw it."""
        for text in reversed(self._texts.get(edit.path, ())[-4:]) if edit.before else ():
            place = text.find(edit.before, 0, _LONGEST_SEARCHED)
            if place >= 0:
                first = text.rfind("\n", 0, place) + 1
                last = text.find("\n", place)
                line = text[first : last if last >= 0 else len(text)]
                if len(line) <= _LONGEST_LINE:
                    after = line.replace(edit.before, edit.after, 1)
                    return replace(edit, before=line.strip(), after=after.strip())
        return edit

    # ---- commands

    def _ran(self, position: int, step: int, command: str, observation: Entry) -> None:
        cwd = self._cwd
        parts = simple_commands(command) or ()
        programs = tuple(unwrapped(part.words) for part in parts)
        documents = here_documents(command)
        scripts = [document.text for document in documents if runs_python(document.line)]
        scripts += [text for part in parts if (text := python_text(part.words)) is not None]
        shown = observation.content
        acts = read_command(command, cwd, observation.cwd).acts
        reads = tuple(dict.fromkeys(self._inside(act.path) for act in acts if isinstance(act, ShownLines)))
        runs_tests = read_run(command).tests
        self.acts.append(
            AgentCommand(position, step, command, programs, tuple(scripts), reads, shown, runs_tests=runs_tests)
        )
        if observation.error is None and observation.details.get("exit_code", 0) == 0:
            self._remember(reads, shown)
        folder = cwd
        for part in parts:
            folder = _moved(part.words, folder)
            self._changed_by(position, step, part.words, folder)
        for document in documents:
            for edit in self._written(position, step, document.line, document.text, cwd):
                self._write(edit)
        self._echoed(position, step, command, cwd)
        for script in scripts:
            for edit in script_edits(script):
                self._write(replace(edit, position=position, step=step, path=self._path(edit.path, folder)))

    def _changed_by(self, position: int, step: int, words: tuple[str, ...], cwd: str) -> None:
        program, rest = posixpath.basename(words[0]), words[1:]
        names = [word for word in rest if not word.startswith("-")]
        if program == "git" and names:
            verb, paths = names[0], names[1:]
            if verb in {"checkout", "restore"} and "--staged" not in rest:
                for path in paths:
                    if path == ".":
                        self.acts.append(FileRestored(position, step, None))
                    elif "." in path or "/" in path:
                        self.acts.append(FileRestored(position, step, self._path(path, cwd)))
            elif verb == "reset" and "--hard" in rest:
                self.acts.append(FileRestored(position, step, None))
            elif verb in {"rm", "mv"}:
                self._gone(position, step, verb, paths, cwd)
        elif program in {"rm", "unlink", "mv"}:
            self._gone(position, step, program, names, cwd)
        elif program == "sed" and any(re.match(r"-[nErsuz]*i|--in-place", word) for word in rest):
            self._sed(position, step, rest, cwd)

    def _gone(self, position: int, step: int, program: str, paths: Sequence[str], cwd: str) -> None:
        for word in paths[:-1] if program == "mv" else paths:
            path = self._path(word, cwd)
            if path in self._made:
                self._made.discard(path)
                if program == "mv":
                    self._made.add(self._path(paths[-1], cwd))
                else:
                    self.acts.append(FileRestored(position, step, path))
            elif kind_of(path) is FileKind.TEST or path in self._test_folders:
                existed = self._is_known(path) or path in self._test_folders
                self._write(FileEdit(position, step, path, removed=True, existed=existed))

    def _sed(self, position: int, step: int, words: Sequence[str], cwd: str) -> None:
        scripts, files, takes = list[str](), list[str](), False
        for word in words:
            if takes or (not scripts and not word.startswith("-") and "-e" not in words):
                scripts.append(word)
                takes = False
            elif word in {"-e", "--expression"}:
                takes = True
            elif not word.startswith("-"):
                files.append(word)
        for word in files[:50]:
            path = self._path(word, cwd)
            for script in scripts[:50]:
                pairs = [(match[2], match[3]) for match in _SED_S.finditer(script[:10_000])]
                for before, after in pairs:
                    self._write(FileEdit(position, step, path, _plain(before), _plain(after)))
                if not pairs and _SED_D.search(script[:10_000]):
                    self._write(FileEdit(position, step, path, script, known=False))
                elif not pairs and re.match(r"[0-9$/]{0,9}[^\n]{0,200}?[aic]\\", script[:300]):
                    self._write(FileEdit(position, step, path, "", script.partition("\\")[2].lstrip("\n")))

    def _written(self, position: int, step: int, line: str, text: str, cwd: str) -> Iterator[FileEdit]:
        words = shell_words(line) or ()
        folder, appends, part = cwd, False, list[str]()
        target: str | None = None
        for place, word in enumerate(words):
            if is_operator(word):
                if any(operator in word for operator in TO_FILE) and place + 1 < len(words):
                    target, appends = words[place + 1], ">>" in word
                folder = _moved(tuple(part), folder) if part else folder
                if not any(operator in word for operator in TO_FILE):
                    part = []
            else:
                part.append(word)
        if target is None and part[:1] == ["tee"]:
            names = [word for word in part[1:] if not word.startswith("-")]
            target, appends = (names[0] if names else None), "-a" in part
        if any(word in {"patch", "apply", "am"} for word in words):
            yield from self._patched(position, step, text, folder)
        elif target is not None and not target.startswith(("$", "/dev/")):
            path = self._path(target, folder)
            yield FileEdit(position, step, path, "", text, whole=not appends, appended=appends)

    def _patched(self, position: int, step: int, text: str, cwd: str) -> Iterator[FileEdit]:
        path, old, new = None, list[str](), list[str]()
        for line in [*text.split("\n"), "--- end"]:
            if line.startswith("--- "):
                if path is not None:
                    yield FileEdit(position, step, self._path(path, cwd), "\n".join(old), "\n".join(new))
                path, old, new = None, [], []
            elif line.startswith("+++ "):
                name = line[4:].split("\t")[0].strip()
                path = name.removeprefix("b/") if name != "/dev/null" else None
            elif path is not None and line.startswith("-"):
                old.append(line[1:])
            elif path is not None and line.startswith("+"):
                new.append(line[1:])
            elif path is not None and line.startswith(" "):
                old.append(line[1:])
                new.append(line[1:])

    def _echoed(self, position: int, step: int, command: str, cwd: str) -> None:
        words = shell_words(command) or ()
        folder, part, appends, takes = cwd, list[str](), False, False
        for word in words:
            if is_operator(word):
                takes = any(operator in word for operator in TO_FILE) and word not in {"2>", "&>"}
                appends = ">>" in word
                if not takes:
                    folder = _moved(tuple(part), folder) if part else folder
                    part = []
            elif takes:
                takes = False
                if part[:1] in (["echo"], ["printf"]) and not word.startswith(("$", "/dev/")):
                    path = self._path(word, folder)
                    text = "\n".join(part[1:]).replace("\\n", "\n")
                    self._write(FileEdit(position, step, path, "", text, whole=not appends, appended=appends))
                elif part in _EMPTIES and not appends and not word.startswith(("$", "/dev/")):
                    path = self._path(word, folder)
                    self._write(FileEdit(position, step, path, removed=True, existed=self._is_known(path)))
            else:
                part.append(word)


def _plain(pattern: str) -> str:
    """The text that a pattern of sed stands for, where it stands for one."""
    return re.sub(r"\\([^\w\s])", r"\1", pattern.removeprefix("^").removesuffix("$")).replace("\\n", "\n")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _moved(words: tuple[str, ...], cwd: str) -> str:
    """The folder after a simple command."""
    if words[:1] == ("cd",) and len(words) == 2 and not words[1].startswith(("-", "$", "~")):
        return absolute(posixpath.join(cwd, words[1]))
    return cwd
