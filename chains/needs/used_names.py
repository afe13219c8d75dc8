"""Names that hidden tests use and that the patch of the source defines, by pattern, for every language.

Those that the source at B_t defines already are among them (`chains.needs.base_names`); what Python's files say more
exactly is in `chains.needs.python_uses`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from prchain.core.code.identifiers import code_identifiers, definitions, identifiers, is_code_name
from prchain.core.code.kinds import language_of
from prchain.core.code.lexing import family_of, lex
from prchain.core.git.patches import FilePatch

SHORTEST = 2

_NAME = r"([^\W\d]\w*)"
_QUALIFIED = (
    re.compile(rf"(?:\.|::|->){_NAME}"),
    re.compile(rf"[(,]\s*{_NAME}=(?![=>])"),
    re.compile(rf"(?m)^[ \t]+{_NAME}=(?![=>])"),
)
_OF_ITSELF = re.compile(rf"\b(?:self|cls|this)\.{_NAME}")
_KEYS = re.compile(rf"(?:[{{,]|^)[ \t]*{_NAME}[ \t]*:(?![:=])", re.M)
_GO_FIELD = re.compile(
    r"(?m)^[ \t]+(?!(?:case|defer|go|goto|return|select|var|const|type|import|else)\b)([a-z]\w*)[ \t]+[\w*\[]"
)
_IMPORTS = re.compile(r"(?m)^[ \t]*(?:from[ \t].*|(?:pub[ \t]+)?use[ \t].*|import\b.*|export\b.*from\b.*)$")
_PYTHON_IMPORT = re.compile(r"\bimport[ \t]*\(([^()]{0,4000})\)")
_JS_IMPORT = re.compile(r"\b(?:import|export)(?:[ \t]+type)?[^{}\n;]{0,200}\{([^{}]{0,4000})\}[ \t]*from\b")
_REQUIRE = re.compile(r"\{([^{}\n]{0,1000})\}[ \t]*=[ \t]*(?:await[ \t]+)?(?:require|import)\b")
_RUST_USE = re.compile(r"\buse[ \t][^;{}]{0,300}\{([^;]{0,4000});")


def used_names(source_patch: Sequence[FilePatch], test_patch: Sequence[FilePatch]) -> frozenset[str]:
    """The names that the test patch uses and the source patch defines; those that B_t's source defines are among them.

    A name that the tests define themselves does not count, unless they import it or use it qualified (`x.name`,
    `call(name=...)`). A name that is only a field, key or local variable of the source patch must be used qualified,
    too. A string that is nothing but such a name counts: keys of configurations, fields looked up by name; and so does
    a key of a configuration in a file beside the tests, or in a text in them, also written with hyphens.
    """
    strong: set[str] = set()
    weak: set[str] = set()
    for patch in source_patch:
        defined = definitions(patch.added, patch.path)
        strong |= defined.strong
        weak |= defined.weak
        if family_of(patch.path) == "go":
            # Without the capital a field is seen in its package only, where tests stand; gofmt aligns old ones anew.
            weak |= set(_GO_FIELD.findall("\n".join(patch.added))) - set(_GO_FIELD.findall("\n".join(patch.removed)))
    used: set[str] = set()
    qualified: set[str] = set()
    own: set[str] = set()
    for patch in test_patch:
        if language_of(patch.path) is None:
            qualified |= _text_keys("\n".join(patch.added))
        if family_of(patch.path) is None:
            continue
        lexed = lex(patch.added, patch.path)
        used |= code_identifiers(patch.added, patch.path)
        mine = definitions(patch.added, patch.path).strong | _assigned(lexed.code, patch.path)
        qualified |= _qualified(_without_own(lexed.code, mine), patch.path)
        qualified |= {value for value in lexed.strings if value.isidentifier() and is_code_name(value)}
        if family_of(patch.path) in ("rust", "go", "javascript"):
            qualified |= _text_keys("\n".join(lexed.strings))
        own |= mine
    needed = (strong & used - own) | ((strong | weak) & qualified)
    return frozenset(name for name in needed if len(name) >= SHORTEST)


_ASSIGNED = re.compile(rf"(?m)^[ \t]*{_NAME}[ \t]*(?::[^=\n]+)?=(?!=)")
_DECLARED = re.compile(rf"(?m)^[ \t]*(?:(?:const|let|var|val|auto|mut)[ \t]+)+{_NAME}[ \t]*(?::[^=\n]+)?=(?!=)")
_DECLARED_IN_GO = re.compile(rf"(?m)^[ \t]*{_NAME}[ \t]*:=")
_LOOPED = re.compile(rf"\b(?:for|as)[ \t]+{_NAME}\b")


def _assigned(code: str, path: str) -> set[str]:
    """Variables of the tests. `name=value` without blanks, on its own line, is a keyword argument. Where variables are
    declared, a mere assignment gives one that is there another value."""
    keywords = set(_QUALIFIED[2].findall(code))
    found = {*_DECLARED.findall(code), *_LOOPED.findall(code)}
    family = family_of(path)
    if family in ("python", "hash"):
        found.update(_ASSIGNED.findall(code))
    elif family == "go":
        found.update(_DECLARED_IN_GO.findall(code))
    return found - keywords


_TEXT_KEY = re.compile(r"(?:^|[\s{,\[.])[\"']?([^\W\d][\w-]*)[\"']?[ \t]*(?:=(?![=>])|:(?!:))", re.M)
_RUST_ASSIGNED = re.compile(rf"(?m)^[ \t]*{_NAME}[ \t]*=(?![=>])")


def _text_keys(text: str) -> set[str]:
    """The keys in a text of TOML, YAML, JSON or the like, as names in code."""
    return {key.replace("-", "_") for key in _TEXT_KEY.findall(text)}


_JS_GLOBAL = re.compile(
    r"\b(?:process|console|Math|JSON|Object|Array|Promise|Symbol|Number|String|Buffer|Reflect|globalThis|import\.meta)"
    r"(?:\.[^\W\d]\w*)+"
)
"""Members of what every program in JavaScript has; no source of a repository defines them."""


def _without_own(code: str, names: Collection[str]) -> str:
    """The code without the members that a class uses of itself, where the tests define them."""
    return _OF_ITSELF.sub(lambda found: " " if found[1] in names else found[0], code)


def _qualified(code: str, path: str) -> set[str]:
    if family_of(path) == "javascript":
        code = _JS_GLOBAL.sub("", code)
    found = {name for pattern in _QUALIFIED for name in pattern.findall(code)}
    imported: Iterable[str] = _IMPORTS.findall(code)
    family = family_of(path)
    if family == "python":
        imported = [*imported, *_PYTHON_IMPORT.findall(code)]
    elif family == "javascript":
        imported = [*imported, *_JS_IMPORT.findall(code), *_REQUIRE.findall(code)]
        found.update(_KEYS.findall(code))
    elif family == "rust":
        imported = [*imported, *_RUST_USE.findall(code)]
        found.update(_KEYS.findall(code))
        # A key of a configuration in a macro, as in `toml! { key = 1 }`, unless it is a variable.
        found.update(set(_RUST_ASSIGNED.findall(code)) - set(_DECLARED.findall(code)))
    elif family == "go":
        found.update(_KEYS.findall(code))
    return found | {name for line in imported for name in identifiers(line)}
