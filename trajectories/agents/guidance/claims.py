"""What an agent's words claim to be there: names and files of the repository, in sentences that state and do not ask.

Precise rather than complete. A sentence counts if it says what something is or does, and neither plans, nor asks, nor
doubts, nor denies; a name counts if it is quoted as code and the sentence says where in the repository it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from prchain.core.code.identifiers import is_code_name
from trajectories.agents.steps.entities import EntityKind, entities
from trajectories.agents.steps.world import is_known_file, is_made_up, is_worldly, standard_names

_LONGEST_SENTENCE = 600
_LONGEST_NAME = 100
_SHORTEST_NAME = 4

_END_OF_SENTENCE = re.compile(r"(?<=[.!?;])[ \t]+|\n")
_STATES = re.compile(
    r"\b(?:is|are|was|has|have|had|holds?|contains?|defines?|defined|calls?|returns?|takes?|raises?|handles?|uses|used|"
    r"lives?|stands?|exists?|reads|parses|builds|sets|does|accepts?|passes|stores?|implements|imports|inherits|"
    r"registers|resolves|computes|already)\b"
)
_LEAVES_OPEN = re.compile(
    r"\?|\bn[o']t?\b|n['\u2019]t\b|['\u2019](?:ll|d)\b|"
    r"\b(?:not|never|none|nothing|nowhere|neither|nor|without|missing|absent|lacks?|cannot|gone|deleted|removed?|"
    r"will|would|could|should|shall|might|may|must|maybe|perhaps|probably|presumably|possibly|likely|apparently|seems?|"
    r"appears|if|whether|unless|once|suppose|assum\w+|guess\w*|expect\w*|hypothe\w+|imagine|instead|"
    r"let|let's|going to|want|need\w*|plan\w*|propose\w*|consider\w*|idea|try|trying|check\w*|verify|see|look\w*|find|"
    r"search\w*|grep|confirm|add\w*|creat\w+|new|introduc\w+|implement(?:ed|ing)?|writ\w+|wrote|make|made|making|put|"
    r"define|defining|renam\w+|name[ds]?|call(?:ed)? it|extract\w*|mov\w+|replac\w+|chang\w+|split\w*|turn\w*|"
    r"generat\w+|use|using|e\.g|for example|for instance|such as|like|similar|typical\w*|usual\w*|other|upstream|task|"
    r"issue|spec\w*|asks?|wants?|requires?|required)\b",
    re.IGNORECASE,
)
"""Words by which a sentence plans, asks, doubts, denies, tells of own work or of what is asked for."""
_PLACE = re.compile(
    r"\b(?:in|of|from|by|throughout) (?:the|this|that|its|our) (?:\w{1,30} ){0,2}"
    r"(?:repo|repository|codebase|code base|project|package|module|class|file|source)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`\n]*`")
_QUOTED = re.compile(r"`([A-Za-z_][\w.]{0,99})(?:\(\))?`")


class NameClaim(NamedTuple):
    """Something that a sentence claims to be there."""

    text: str
    is_file: bool
    sentence: str


def claims(text: str, workdir: str) -> Iterator[NameClaim]:
    """The claims in what an assistant says, without its code blocks. `workdir` is the folder of the repository."""
    for sentence in _END_OF_SENTENCE.split(_prose(text)):
        if len(sentence) > _LONGEST_SENTENCE or ("." not in sentence and "`" not in sentence):
            continue
        words = _CODE.sub("``", sentence)
        if not _STATES.search(words) or _LEAVES_OPEN.search(words):
            continue
        files = [entity.text for entity in entities(sentence, roots=(workdir,), kinds=frozenset({EntityKind.PATH}))]
        yield from (NameClaim(path, True, sentence) for path in sorted(files) if is_own_file(path))
        if files or _PLACE.search(sentence):
            for name in _QUOTED.findall(sentence):
                yield from (NameClaim(part, False, sentence) for part in _own_parts(name) if name not in files)


def is_own_file(path: str) -> bool:
    """Whether a path, relative to the repository, can be one of its own: not one that every project has, nor one made
    up for the moment, nor one that lies elsewhere."""
    if not path or path.startswith("/") or is_known_file(path):
        return False
    return not any(
        is_made_up(part.partition(".")[0]) or part in {"path", "to", "x.py", "y.py"} for part in path.split("/")
    )


def _prose(text: str) -> str:
    if "```" not in text:
        return text
    return "\n".join(text.split("```")[::2])


def _own_parts(name: str) -> Iterator[str]:
    """The names in a dotted one that have the shape of code and are not Python's."""
    parts = name.strip(".").split(".")
    if parts[0] in standard_names():
        return
    for part in parts:
        known = is_worldly(part) or is_made_up(part)
        if not known and _SHORTEST_NAME <= len(part) <= _LONGEST_NAME and is_code_name(part):
            yield part
