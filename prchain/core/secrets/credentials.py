"""What the credentials of services look like: for each kind its prefix, length and alphabet, and how random it is.

Prefixes, lengths and alphabets are those that the services document, or, where they do not, those of the rules of
gitleaks (``config/gitleaks.toml``, release 8). A word that has the form but was not drawn at random is a name or a
placeholder, and no credential (`prchain.core.secrets.randomness`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from prchain.core.secrets.randomness import entropy, is_placeholder, is_random

_ALONE = r"(?:(?<![A-Za-z0-9_-])|(?<=[^\\]\\[nrt]))"
"""Before a prefix that other words may end with. An escaped line break may stand before it, as in a literal."""

_NO_WORD = r"(?!(?:[A-Z]{1,300}|[a-z]{1,300})(?![A-Za-z0-9]))"
"""Before a body that is so short that a name in letters of one case is told by these alone."""


@dataclass(frozen=True)
class TokenKind:
    """The tokens of one service."""

    name: str
    signs: tuple[str, ...]
    """Every token holds one of these."""
    pattern: re.Pattern[str]
    """Its group ``body`` is the part that is random; ``before``, where it has one, what stays."""
    bits: float = 3.0
    """The least entropy of the body in bits a character."""
    mixed: float = 0.2
    """The least `prchain.core.secrets.randomness.mixing` of the body."""


def _kind(name: str, signs: str, pattern: str, *, bits: float = 3.0, mixed: float = 0.2) -> TokenKind:
    return TokenKind(name, tuple(signs.split()), re.compile(pattern), bits, mixed)


TOKEN_KINDS = (
    # docs.github.com, "GitHub's token formats"; ghs_ with a JWT in it: GitHub's changelog of 2026-05-15.
    _kind("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_(?P<body>[A-Za-z0-9]{36,255})(?![A-Za-z0-9])", mixed=0.3),
    _kind(
        "github",
        "ghs_",
        r"ghs_[0-9]{1,20}_eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,8000}\.(?P<body>[A-Za-z0-9_-]{20,1000})",
        mixed=0.3,
    ),
    _kind("github", "github_pat_", r"github_pat_(?P<body>[A-Za-z0-9_]{36,255})", mixed=0.3),
    # docs.gitlab.com, "Token prefixes"
    _kind(
        "gitlab",
        "glpat- gldt- glrt- glptt- gloas- glcbt- glsoat- glagent- glimt- glft- glwt- glffct-",
        r"gl(?:pat|dt|rt|ptt|oas|cbt|soat|agent|imt|ft|wt|ffct)-(?P<body>[A-Za-z0-9_.-]{19,300}[A-Za-z0-9_-])",
        mixed=0.25,
    ),
    _kind("gitlab", "GR1348941", r"GR1348941(?P<body>[A-Za-z0-9_-]{20,60})(?![A-Za-z0-9_-])", mixed=0.25),
    _kind("anthropic", "sk-ant-", rf"{_ALONE}sk-ant-[a-z]{{2,8}}[0-9]{{2}}-(?P<body>[A-Za-z0-9_-]{{60,200}})", mixed=0.3),
    # OpenAI, and what took over its form: OpenRouter, Langfuse, LiteLLM, and DeepSeek with hexadecimal digits alone. A
    # UUID after sk- is an id that scikit-learn gave to its HTML.
    _kind("openai", "sk-", rf"{_ALONE}sk-(?P<body>[0-9a-f]{{32}})(?![A-Za-z0-9_-])", mixed=0.15),
    _kind(
        "openai",
        "sk-",
        rf"{_ALONE}sk-(?!ant-)(?![0-9a-f]{{8}}-(?:[0-9a-f]{{4}}-){{3}}[0-9a-f]{{12}})"
        r"(?:[A-Za-z]{2,8}-(?:v[0-9]-)?)?(?P<body>[A-Za-z0-9_-]{20,250})",
        mixed=0.25,
    ),
    _kind("groq", "gsk_", rf"{_ALONE}gsk_(?P<body>[A-Za-z0-9]{{52}})(?![A-Za-z0-9])", mixed=0.3),
    _kind("hugging_face", "hf_ api_org_", rf"{_ALONE}(?:hf|api_org)_(?P<body>[A-Za-z0-9]{{34}})(?![A-Za-z0-9_])"),
    # The ids are in base 32; the documented ones end with EXAMPLE.
    _kind(
        "aws",
        "AKIA ASIA ABIA ACCA",
        r"(?<![A-Za-z0-9+/_])(?:AKIA|ASIA|ABIA|ACCA)(?P<body>[A-Z2-7]{16})(?![A-Za-z0-9+/=_])",
        bits=2.8,
        mixed=0.0,
    ),
    _kind(
        "aws",
        "aws_secret awsSecret AWS_SECRET aws.secret",
        r"(?P<before>(?i:aws[._]?secret[._]?(?:access[._]?)?key)[\"']?[ \t]{0,8}[=:][ \t]{0,8}[\"']?)"
        r"(?P<body>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        bits=3.5,
        mixed=0.3,
    ),
    _kind("google", "AIza", r"(?<![A-Za-z0-9+/_-])AIza(?P<body>[A-Za-z0-9_-]{35})(?![A-Za-z0-9_-])", mixed=0.3),
    _kind("google", "GOCSPX-", r"GOCSPX-(?P<body>[A-Za-z0-9_-]{28})(?![A-Za-z0-9_-])"),
    _kind("google", "ya29.", rf"{_ALONE}ya29\.(?P<body>[A-Za-z0-9_-]{{50,500}})", mixed=0.3),
    # api.slack.com, "Token types"
    _kind(
        "slack",
        "xox",
        rf"xox[a-z]-(?:[0-9]{{1,15}}-){{1,4}}{_NO_WORD}(?P<body>[A-Za-z0-9]{{10,300}})(?![A-Za-z0-9-])",
        bits=1.7,
        mixed=0.0,
    ),
    _kind(
        "slack",
        "xox xapp-",
        r"(?:xox[a-z](?:\.xox[bp])?|xapp)-(?:[A-Za-z0-9]{1,15}-){0,4}(?P<body>[A-Za-z0-9]{18,300})(?![A-Za-z0-9-])",
    ),
    _kind(
        "slack",
        "hooks.slack.com/",
        r"(?P<before>hooks\.slack\.com/(?:services|workflows|triggers)/)(?P<body>[A-Za-z0-9/]{40,80})",
    ),
    _kind("npm", "npm_", r"npm_(?P<body>[A-Za-z0-9]{36})(?![A-Za-z0-9])", mixed=0.3),
    # The tokens of PyPI and of its kin are macaroons, which begin so.
    _kind("pypi", "pypi-AgE", r"pypi-AgE(?P<body>[A-Za-z0-9_-]{50,1000})", mixed=0.3),
    _kind("rubygems", "rubygems_", r"rubygems_(?P<body>[0-9a-f]{48})(?![0-9a-f])"),
    _kind("docker_hub", "dckr_pat_ dckr_oat_", r"dckr_[po]at_(?P<body>[A-Za-z0-9_-]{27,40})"),
    _kind("stripe", "k_live_ k_test_", rf"{_ALONE}[sr]k_(?:live|test)_(?P<body>[A-Za-z0-9]{{16,120}})(?![A-Za-z0-9_])"),
    _kind("sendgrid", "SG.", rf"{_ALONE}SG\.(?P<body>[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9_-]{{43}})", mixed=0.3),
    # learn.microsoft.com, "Configure Azure Storage connection strings": keys of 64 and 32 bytes. The one of the storage
    # emulator is public.
    _kind(
        "azure",
        "AccountKey= SharedAccessKey=",
        r"(?P<before>(?:AccountKey|SharedAccessKey)=[\"']?)(?!Eby8vdM02xNO)"
        r"(?P<body>[A-Za-z0-9+/]{86}==|[A-Za-z0-9+/]{43}=)(?![A-Za-z0-9+/=])",
        mixed=0.3,
    ),
    _kind("artifactory", "AKCp", r"(?<![A-Za-z0-9])AKCp(?P<body>[A-Za-z0-9]{69})(?![A-Za-z0-9])", mixed=0.3),
    _kind("telegram", ":AA", r"(?<![0-9])[0-9]{8,10}:AA(?P<body>[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])", mixed=0.3),
    # The number of an account in base 64, a time, and the signature.
    _kind(
        "discord",
        "MT Mj Mz ND NT Nj Nz OD OT",
        r"(?<![A-Za-z0-9_/+-])(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){5,6}[A-Za-z0-9]{0,3}\.[A-Za-z0-9_-]{6}\."
        r"(?P<body>[A-Za-z0-9_-]{27,38})(?![A-Za-z0-9_-])",
        mixed=0.3,
    ),
    _kind("mailchimp", "-us", r"(?<![0-9A-Za-z])(?P<body>[0-9a-f]{32})-us[0-9]{1,2}(?![0-9A-Za-z_-])"),
    _kind(
        "square",
        "sq0",
        r"(?<![0-9A-Za-z])sq0(?:atp|csp)-(?P<body>(?:[A-Za-z0-9_-]{22}|[A-Za-z0-9_-]{43}))(?![A-Za-z0-9_-])",
        mixed=0.3,
    ),
    _kind("grafana", "glsa_", r"glsa_(?P<body>[A-Za-z0-9]{32}_[0-9a-f]{8})(?![A-Za-z0-9])", mixed=0.3),
    _kind("grafana", "glc_", r"glc_(?P<body>eyJ[A-Za-z0-9+/]{40,400}={0,2})", mixed=0.3),
    _kind("digitalocean", "_v1_", rf"{_ALONE}do[opr]_v1_(?P<body>[0-9a-f]{{64}})"),
)
"""A text is searched for one after the other."""

JWT = _kind(
    "jwt",
    "eyJ",
    r"(?<![A-Za-z0-9+/_-])eyJ[A-Za-z0-9_-]{10,2000}\.eyJ(?!zdWIiOiIxMjM0NTY3ODkw)[A-Za-z0-9_-]{10,8000}"
    r"\.(?P<body>[A-Za-z0-9_-]{20,1000})",
)
"""A signed claim of any service (RFC 7519). The payload of the example that all libraries show begins with John Doe's
number."""

_LOGIN_SIGN = "://"
_LOGIN = re.compile(r"://([^/\s@'\"<>]+)@")

URL = "url"
"""The kind of secrets in URLs."""

_SHORTEST_PASSWORD = 8
_TOKEN = re.compile(r"[A-Za-z0-9_-]{20,}")
_HEX_TOKEN = re.compile("[0-9a-f]{20,}")
_UUID = re.compile("[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""The end of one: ids name accounts."""

_MADE_UP = re.compile(
    r"pass|secret|token|user|guest|admin|test|demo|dummy|fake|sample|your|my[-_]|key\b|[$%{(\[*<]|\.\.\.", re.IGNORECASE
)
"""In passwords of documentation and of tests, and in variables that stand for one."""


Replace = Callable[[str, str], str]
"""From the name of a kind, and a secret of it, to what comes into its place."""


_WORDS = re.compile("[!-~]{16,}")
"""Every token ends in such a word, and most are one: no alphabet of a body holds a blank, and the shortest token, which
is Slack's with one number, has 17 characters."""

_DRAWN = re.compile("[A-Z0-9]")
"""The word holds one of these: a body of small letters alone mixes no kinds. Where `TokenKind.mixed` is 0, its alphabet
or the numbers before it see to that."""

_APART = ("ecret", "ECRET")
"""In the signs of the kind whose body a blank may part from them."""


def _grouped() -> tuple[tuple[str, tuple[str, ...]], ...]:
    signs = dict.fromkeys(sign for kind in (*TOKEN_KINDS, JWT) for sign in kind.signs)
    left = [sign for sign in signs if not any(part in sign for part in _APART)]
    groups = []
    for shared in ("_", "gl", ""):
        groups.append((shared, tuple(sign for sign in left if shared in sign)))
        left = [sign for sign in left if shared not in sign]
    return tuple(groups)


_TOGETHER = _grouped()
"""The other signs, in groups with what all of a group hold: a text without that is searched for none of them."""


def may_hold_tokens(text: str) -> bool:
    """Whether a text may hold a token of `TOKEN_KINDS`, or a `JWT`; most texts do not, and this tells them fast."""
    words = " ".join(_WORDS.findall(text))
    if not words or not _DRAWN.search(words):
        return False
    for shared, signs in _TOGETHER:
        if shared in words:
            for sign in signs:
                if sign in words:
                    return True
    return any(sign in text for sign in _APART)


def without_tokens(text: str, replace: Replace, *, jwt: bool = False) -> str:
    """A text in which tokens of services are replaced, and with `jwt` signed claims of any, too."""
    if not may_hold_tokens(text):
        return text
    for kind in (*TOKEN_KINDS, JWT) if jwt else TOKEN_KINDS:
        for sign in kind.signs:
            if sign in text:
                text = kind.pattern.sub(partial(_replaced, kind, replace), text)
                break
    return text


def _replaced(kind: TokenKind, replace: Replace, found: re.Match[str]) -> str:
    if not is_random(found["body"], bits=kind.bits, mixed=kind.mixed):
        return found[0]
    before = found.groupdict().get("before", "")
    return before + replace(kind.name, found[0][len(before) :])


def without_passwords(text: str, replace: Replace) -> str:
    """A text in whose URLs passwords are replaced, and tokens in the place of the user."""
    return _LOGIN.sub(lambda found: _without_password(found, replace), text) if _LOGIN_SIGN in text else text


def _without_password(found: re.Match[str], replace: Replace) -> str:
    user, colon, password = found[1].partition(":")
    if _is_token(user):
        user = replace(URL, user)
    if password != user and _is_password(password):
        password = replace(URL, password)
    return f"{_LOGIN_SIGN}{user}{colon}{password}@"


def _is_token(word: str) -> bool:
    """Whether the name of an account is itself the secret."""
    least = 0.12 if _HEX_TOKEN.fullmatch(word) else 0.3
    return _TOKEN.fullmatch(word) is not None and not _UUID.search(word) and is_random(word, bits=2.7, mixed=least)


def _is_password(word: str) -> bool:
    """Whether a password may be one that somebody uses: long, of two kinds of characters, and none that is made up.

    A person's own word, in small letters alone, cannot be told from a placeholder and is none.
    """
    kinds = (str.islower, str.isupper, str.isdigit)
    letters = [char for char in word if char.isalnum()]
    return (
        len(word) >= _SHORTEST_PASSWORD
        and sum(any(map(kind, letters)) for kind in kinds) >= 2
        and entropy(word) >= 2.5
        and not is_placeholder(word)
        and not _MADE_UP.search(word)
    )


def without_logins(text: str) -> str:
    """A text whose URLs have no user and no password, whatever these look like; ``git@`` alone stays."""
    if _LOGIN_SIGN not in text:
        return text
    return _LOGIN.sub(lambda found: found[0] if found[1] == "git" else _LOGIN_SIGN, text)
