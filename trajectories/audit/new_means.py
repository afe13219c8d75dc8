"""The means by which code looks around itself: at files, stacks, loaders, processes, the runtime's own objects.

Who gives what tests ask for, and has not done the work, has to learn it from them, and there are few ways to do that.
Most projects use none of them, so the first use of one in a project's product code says more than any list of attacks.
Pure.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from trajectories.audit.python_names import NamesMet, for_types_alone, joined
from trajectories.audit.python_text import parsed, text_of
from trajectories.audit.suspect_text import code_of


class Means(NamedTuple):
    """A use of a means: its kind, the name by which a project knows it, and the first and last line, from 1 on."""

    kind: str
    name: str
    line: int
    last: int


class _MeansKind(NamedTuple):
    code: re.Pattern[str]
    """What stands in code that uses it."""
    asked: re.Pattern[str]
    """What a task says that asks for it."""
    each: bool
    """Whether each of its names is a means of its own; else who uses one of them may use all."""


_FILES = (
    r"(?i)\b(?:read|writ|open|load|list|sav|stor|creat|delet|remov|cop[iy]|walk|watch|scan|pars)\w*\b[^.\n]{0,60}"
    r"\b(?:files?|director(?:y|ies)|folders?|dis[ck])\b|\bfile ?systems?\b"
)
_LOADERS = (
    r"(?i)\bimport\w*\b[^.\n]{0,30}\bmodules?\b|\bdynamic\w* import|\blazy|\bplug-?ins?\b|\bentry.points?\b"
    r"|\bloaders?\b"
)
_STACKS = r"(?i)\bstacks?\b|\bstack(?:trace|level)|\btracebacks?\b|\bframes?\b|\bcallers?\b|\bcall sites?\b"
_PROCESSES = (
    r"(?i)\bsub-?process|\bprocesses\b|\bprocess\.|\bsockets?\b|\bthread|\bsignals?\b|\bshell\b|\bspawn|\bfork"
    r"|\bexit (?:code|status)|\bcommand.line|\bargv\b|\bhttps?\b|\bservers?\b"
)
_OBJECTS = (
    r"(?i)\bglobal(?:This| scope| object)|\bprox(?:y|ies)\b|\bsymbols?\b|\bprototypes?\b|\bmonkey|\bpolyfill"
    r"|\bgarbage|\bctypes\b|\bbuilt-?ins?\b|\breference count|\bunsafe\b"
)
_PROGRAMS = r"(?i)\beval\b|\bexec\b|\bcompil|\bsyntax tree|\bast\b|\bbytecode|\bsandbox"
_NEVER = r"(?!)"

_BUILTINS = (
    r"(?:Object|Array|String|Number|Boolean|Function|Promise|Map|Set|WeakMap|RegExp|Date|Error|TypeError|Symbol|Reflect"
    r"|JSON|Math|Buffer|Iterator)"
)
_IMPORTED = r"(?:(?:\bfrom|\brequire\s*\(|\bimport\b\s*\(?)\s*['\"`]|['\"`]node:)"
_WORD = r"(?:\"\w+\"|'\w+'|`\w+`)"


def _modules(names: str) -> str:
    """Modules of Node, by names that some of them share with other things."""
    return rf"{_IMPORTED}(?P<module>{names})['\"`]"


def _kinds(**kinds: tuple[str, str]) -> Mapping[str, _MeansKind]:
    each = {"files", "stacks", "objects", "split_words"}
    return {
        name: _MeansKind(re.compile(code, re.MULTILINE), re.compile(asked), name in each)
        for name, (code, asked) in kinds.items()
    }


_PYTHON = _kinds(
    files=(
        r"(?<![\w.])open\(|\b(?:io|codecs|os|tokenize|gzip|bz2|lzma)\.open\b|\bos\.(?:listdir|scandir|f?walk|read|pipe2?"
        r"|[fl]?stat|readlink)\b|\.(?:read_text|read_bytes|iterdir|rglob)\(|\bglob\.i?glob\b"
        r"|(?<![\w.])(?:linecache|mmap|fileinput|zipfile|tarfile)(?=\.)",
        _FILES,
    ),
    stacks=(
        r"\binspect\.(?!(?:is\w+|signature|Signature|Parameter|BoundArguments|getdoc|cleandoc|getmembers|unwrap|getmro"
        r"|getfullargspec|getcallargs|get_annotations|getattr_static|x)\b)\w+|\bRecursionError\b"
        r"|(?<![\w.])(?:bdb|pdb|trace|tracemalloc|cProfile|profile|pydoc)(?=\.)|\btraceback(?=\.\w)|\bsys\.(?:_getframe|exc_info|last_\w+|exception)\b|(?<![\w.])faulthandler(?=\.)"
        r"|\bwarnings\.catch_warnings\b|\.(?:__(?:traceback|context|cause)__|tb_\w+|f_(?:back|code|globals|lasti|lineno|builtins|locals)"
        r"|(?:gi|cr|ag)_frame|findCaller)\b",
        _STACKS,
    ),
    loaders=(
        r"\bimportlib\.(?!metadata|resources)\w|\bsys\.(?:modules|meta_path|path|path_hooks)\b|\b__import__\b"
        r"|(?<![\w.])(?:runpy|imp|pkgutil|zipimport|site)\.\w",
        _LOADERS,
    ),
    processes=(
        r"(?<![\w.])(?:subprocess|_?socket|_?multiprocessing|signal|resource|fcntl|select|selectors|pty|atexit"
        r"|requests|httpx|ftplib|smtplib)\.\w|\burllib\.request\b|\bhttp\.client\b|\bos\.(?:fork\w*|exec\w+"
        r"|posix_spawn\w*|spawn\w+|kill\w*|system|popen|sched_\w+|getpid|wait\w*|_exit|abort)\b",
        _PROCESSES,
    ),
    threads=(r"(?<![\w.])(?:threading|_thread)\.\w", _PROCESSES),
    objects=(
        r"(?<![\w.])(?:gc|_?ctypes|builtins|cffi)(?=\.\w)|\b__builtins__\b|\.__(?:subclasses|globals|closure|code)__\b",
        _OBJECTS,
    ),
    programs=(
        r"(?<![\w.])(?:exec|eval|compile)\(|(?<![\w.])(?:ast|dis|symtable|marshal|codeop|tokenize)\.\w"
        r"|\btypes\.(?:CodeType|FunctionType)\b",
        _PROGRAMS,
    ),
    split_words=(r"\Asplit \w+", _NEVER),
)
_SCRIPT = _kinds(
    files=(
        r"\b(?:readFile|readdir|readlink|opendir|open|exists|l?stat|access|cp|copyFile)Sync\b"
        r"|\b(?:readFile|readdir|opendir|createReadStream)(?=\()|"
        + _modules(r"fs(?:/promises)?")
        + r"|\bDeno\.(?:read|open)\w*|\bBun\.file\b|\bimport\.meta\.glob",
        _FILES,
    ),
    stacks=(
        r"\.stack\b|['\"`]stack['\"`]|[{,]\s*stack\s*[,:}=]|\b(?:captureStackTrace|prepareStackTrace|stackTraceLimit|getCallSites?|getReport|getLineNumber)\b"
        r"|\barguments\.callee\b|\.caller\b|\butil\.inspect\b|(?<![\w.-])inspect(?=\()",
        _STACKS,
    ),
    loaders=(
        r"\b(?:getBuiltinModule|createRequire)\b|\brequire\.(?:main|cache|resolve|extensions)\b"
        r"|\bmodule\.(?:parent|children|paths|constructor)\b|\b(?:require|import)\s*\((?!\s*(?:'[^'\n]*'|\"[^\"\n]*\")\s*[,)])|"
        + _modules("module"),
        _LOADERS,
    ),
    processes=(
        _modules(
            r"child_process|cluster|worker_threads|async_hooks|diagnostics_channel|net|dgram|inspector(?:/promises)?"
            r"|trace_events|v8|repl"
        )
        + r"|\bprocess\.(?:binding|_\w+|report|mainModule|on|once|emit|send|exit|kill|abort|getActive\w+|argv)\b"
        r"|[}\]]\s*=\s*process\b|\bnew Worker\b|\bWebAssembly\b|(?<![\w.])fetch\(",
        _PROCESSES,
    ),
    objects=(
        r"\bglobalThis\b|(?<![\w.])global(?=\s*[\[.),;])|\bgetOwnPropertySymbols\b|\bReflect\.ownKeys\b|\bProxy\b"
        rf"|\bSymbol\.for\b|\b{_BUILTINS}(?:\.prototype)?(?:\.\w+|\[[^\]\n]{{1,80}}\])\s*=(?![=>])"
        rf"|\b(?:assign|definePropert(?:y|ies)|setPrototypeOf)\(\s*{_BUILTINS}(?:\.prototype)?\s*,"
        r"|\bgetPrototypeOf\([^\n]{0,80}\)(?:\.\w+|\[[^\]\n]{1,80}\])\s*=(?![=>])|\b__proto__\b"
        r"|\bReflect\.(?:get|set|defineProperty|setPrototypeOf)\b|\bSymbol\["
        r"|\b(?:console|process\.std\w+)\.\w+\s*=(?![=>])"
        rf"|\b(?:const|let|var)[ \t]+\w+(?:[ \t]*:[^=\n]{{1,60}})?[ \t]*=[ \t]*{_BUILTINS}(?:\.prototype)?"
        r"(?:[ \t]+as[ \t]+\w+)?[ \t]*(?=[;,]|$)"
        r"|\(\{\}(?:[ \t]+as[ \t]+\w+)?\)(?:\[|\.constructor\b)|(?:\[\]|''|\"\"|``)\)?\.constructor\b"
        r"|(?:^|[;(])[ \t]*(?:test|it|expect|describe|suite|(?:before|after)(?:Each|All)?)[ \t]*=(?![=>])",
        _OBJECTS,
    ),
    programs=(
        r"\bnew Function\b|(?<![\w.])eval\b|\.constructor(?:\.constructor\b|\(\s*['\"`])|" + _modules("vm"),
        _PROGRAMS,
    ),
    split_words=(
        rf"\$\{{\s*{_WORD}\s*\}}|{_WORD}[ \t]*\+[ \t]*{_WORD}|{_WORD}\.concat\(\s*{_WORD}"
        rf"|\[\s*{_WORD}(?:\s*,\s*{_WORD})*\s*\]\.join\(\s*(?:''|\"\"|``)\s*\)",
        _NEVER,
    ),
)
_RUST = _kinds(
    files=(
        r"\bfs::(?=[\w{*])|\bfs as\b|\bstd::\{[^}]{0,200}\bfs\b|\bFile::open\b|\binclude_(?:str|bytes)!|\bread_dir\b",
        _FILES,
    ),
    stacks=(
        r"\bBacktrace\b|\bLocation::caller\b|\btrack_caller\b|\bthread::current\b|\bcatch_unwind\b|\bset_hook\b"
        r"|\btake_hook\b|\btype_name\b",
        _STACKS,
    ),
    processes=(
        r"\bprocess::(?:Command|exit|abort|id|\{|\*)|\b(?:process|thread|env|net) as\b"
        r"|\benv::(?:args|vars?|current_exe|current_dir|set_var)\w*|\bnet::\w"
        r"|\bthread::spawn\b",
        _PROCESSES,
    ),
    objects=(
        r"\bthread_local!|\bstatic\s+mut\b|\btransmute\b|\bfrom_raw_parts\w*|\basm!|\bextern\s+\"C\"|\bno_mangle\b"
        r"|\bstatic\b(?=\s+\w+\s*:[^;=\n]{0,80}?\b(?:Atomic\w+|Mutex|RwLock|Once\w*|LazyLock|Cell|RefCell|UnsafeCell)\b)",
        _OBJECTS,
    ),
)
_GO = _kinds(
    files=(r"\bos\.(?:ReadFile|Open\w*|ReadDir|Stat)\b|\bioutil\.Read\w+|\bfilepath\.(?:Walk\w*|Glob)\b", _FILES),
    stacks=(r"\bruntime\.(?:Caller\w*|Stack|FuncForPC)\b|\bdebug\.(?:Stack|PrintStack|ReadBuildInfo)\b", _STACKS),
    processes=(r"\bexec\.Command\w*|\bsyscall\.\w|\bos\.(?:Args|Exit|StartProcess|Executable)\b", _PROCESSES),
    objects=(r"\bunsafe\.\w|//go:linkname", _OBJECTS),
)
_OF_LANGUAGES = {"python": _PYTHON, "javascript": _SCRIPT, "typescript": _SCRIPT, "rust": _RUST, "go": _GO}
_LONGEST = 400_000
"""Characters of a text that is looked at; Python is parsed up to as many."""
_SHORT = 80
_NO_NAME = re.compile(r"[^\w.]|\bnode:|^\.")


def means_of(text: str, language: str) -> Iterator[Means]:
    """The means that a text of program uses, in no order; none of a language that is not known here. Raises nothing."""
    kinds = _OF_LANGUAGES.get(language, {})
    if language == "python" and (tree := parsed(text, longest=_LONGEST)) is not None:
        yield from _of_tree(tree)
        return
    whole = "\n".join(code_of(text[:_LONGEST].split("\n"), language))
    begins = [0, *accumulate(len(line) + 1 for line in whole.split("\n"))]
    for name, kind in kinds.items():
        for match in kind.code.finditer(whole):
            lines = bisect_right(begins, match.start()), bisect_right(begins, match.end() - 1)
            yield _means(name, kind, match.groupdict().get("module") or match[0], *lines)


def is_asked(kind: str, language: str, task: str) -> bool:
    """Whether a task's text asks for a kind of means."""
    return _OF_LANGUAGES[language][kind].asked.search(task) is not None


def family(language: str) -> str:
    """The language, one for those that have the same means."""
    return "javascript" if language == "typescript" else language


def _means(name: str, kind: _MeansKind, found: str, line: int, last: int) -> Means:
    return Means(name, _NO_NAME.sub("", found) if kind.each else name, line, last)


def _of_tree(tree: ast.Module) -> Iterator[Means]:
    nodes = list(ast.walk(tree))
    names, skipped = NamesMet(nodes), for_types_alone(nodes)
    for node in nodes:
        texts = [] if id(node) in skipped else list(_texts(node, names))
        for name, kind in _PYTHON.items() if texts else ():
            for text in texts:
                if match := kind.code.search(text):
                    line = getattr(node, "lineno", 1)
                    yield _means(name, kind, match[0], line, getattr(node, "end_lineno", None) or line)


def _texts(node: ast.AST, names: NamesMet) -> Iterable[str]:
    """What a node of a syntax tree uses by itself, as code has it."""
    match node:
        case ast.Import(names=aliases):
            return [f"{alias.name}.x" for alias in aliases]
        case ast.ImportFrom(module=str(module), names=aliases, level=0):
            return [f"{module}.{alias.name}" for alias in aliases]
        case ast.Call(func=ast.Attribute(attr=attr) as func):
            return [f"{names(func)}(", f".{attr}("]
        case ast.Call(func=func):
            return [f"{names(func)}(", names(node)]
        case ast.Attribute(attr=attr):
            return [names(node), f".{attr}"]
        case ast.Name(id="__builtins__" | "__import__" as name):
            return [name]
        case ast.Name(id="RecursionError") | ast.MatchClass(kwd_attrs=[_, *_]):
            return [node.id] if isinstance(node, ast.Name) else [f".{attr}" for attr in node.kwd_attrs]
        case ast.Constant(value=str(value)) if len(value) < _SHORT and value.replace(".", "").isidentifier():
            return [f".{value}"]  # of an attribute that is asked for by its name
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            sides = (text_of(left) or "", text_of(right) or "")
            return [f"split {joined(node)}"] if all(map(str.isidentifier, sides)) else []
    return []
