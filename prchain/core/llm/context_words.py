"""How endpoints say that a prompt does not fit the model: their codes, and their words by what they mean.

Each provider has words of its own and changes them. So `WORDINGS` are patterns of concepts: what is too long, and that
it is. Each names the providers from whose words it was made, and where those words stand: a provider's documentation, a
server's code, a report of what it answered, or the lists that LiteLLM (``exception_mapping_utils.py``) and pi
(``overflow.ts``) keep. A limit of a rate, of money, of a reply's length or of an image is told in similar words and is
something else. Patterns are matched against words as `plain` writes them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

CODES = {
    "context_length_exceeded": "OpenAI, Azure, Groq, Cerebras, DeepSeek: their guides on errors",
    "context_window_exceeded": "gateways: reports",
    "model_context_window_exceeded": "Z.ai, Anthropic: a reason to stop, which gateways give as a code",
    "exceed_context_size_error": "llama.cpp: its server's code",
    "model_max_prompt_tokens_exceeded": "GitHub Copilot: reports",
    "max_prompt_tokens_exceeded": "GitHub Copilot: reports",
    "tokens_limit_reached": "GitHub Models: reports",
    "outof_context_error": "Volcengine Ark: its page of error codes",
    "tokens_too_long": "Baidu Qianfan, Modelverse: their pages of error codes",
    "prompt_too_long": "gateways before Anthropic: reports",
    "input_too_long": "gateways: reports",
    "context_window_exceeded_error": "LiteLLM: its exceptions, which its proxy names as a type",
    "336007": "Baidu Qianfan: its page on lengths of inputs (characters)",
    "336103": "Baidu Qianfan: the same page (tokens)",
    "1261": "Zhipu: its page of error codes",
}
"""Codes and types that say it, and whose they are."""


class Cause(Enum):
    """Why an endpoint refuses, as far as it says so."""

    CONTEXT = "context"
    """The prompt does not fit the model."""
    OTHER = "other"
    """Something else that we know."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Wording:
    """A way to say that the prompt does not fit."""

    pattern: re.Pattern[str]
    said_by: str
    """Providers and servers, and where their words stand."""
    plain_enough: bool = False
    """Whether it is believed beside a status of a key, of money, of a path or of a rate."""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_PROMPT = r"(?:prompts?|inputs?|messages?|conversations?|history|quer(?:y|ies)|questions?|transcript|instructions)"
_ASKED = rf"(?:{_PROMPT}|contexts?|requests?|requested|texts?|contents?|sequence|body|total|your?)"
_LENGTH = r"(?:tokens?|length|len|size|characters?|chars|context|window)"
_CONTEXT = r"context (?:length|window|size|limit|budget|capacity|len)"
_BEYOND = (
    r"(?:exceed\w*|surpass\w*|overflow\w*|too (?:long|large|big|many)|(?:longer|larger|greater|bigger|more|higher) than"
    r"|(?:less|smaller|shorter|fewer) than|at most|no more than|up to|beyond|over the|limit\w*|max(?:imum)?"
    r"|not fit|not enough|above the|(?:is|are) over #|> ?#|<=? ?#|should be \[)"
)
_GAP = r"[^;!?]{0,80}?"

WORDINGS = (
    Wording(
        _any(
            rf"\b{_CONTEXT}s?\b.{{0,120}}?(?:{_BEYOND}|reduce|only|too small)",
            rf"(?:{_BEYOND}|requested|out of).{{0,120}}?\b{_CONTEXT}\b",
            rf"\b{_CONTEXT} (?:is|of) #",
            r"\bmax(?:imum)? (?:model )?context\b",
            r"\bexceed\w*.{0,40}\bcontext\b",
            r"\bcontext (?:is )?(?:overflow|full\b|too long)",
            r"(?:>=?|exceed\w*|larger than).{0,20}\bn ctx\b|\bn ctx\b.{0,20}(?:exceed|too small)",
        ),
        "OpenAI, Azure, DeepSeek, Mistral, OpenRouter, vLLM, SGLang (maximum context length), llama.cpp (available "
        "context size), LM Studio, Ollama (the context length), MiniMax (context window exceeds limit), Anthropic "
        "(exceed context limit), Fireworks, Together, Cloudflare Workers AI: documentation, servers' code, both lists",
        plain_enough=True,
    ),
    Wording(
        _any(
            rf"\b(?:{_PROMPT}|contexts?|requests?|texts?|contents?|sequence|body)(?: tokens?| length| text| size)?"
            r"(?: \(?#(?: tokens?)?\)?)?(?: (?:is|are|was|were|has become|tokens?))?(?: much| far)? too "
            r"(?:long|large|big)\b"
        ),
        "Anthropic, Fireworks (prompt is too long), Bedrock (Input is too long for requested model), Ollama, Baidu, "
        "Ascend MindIE (prompt tokens too long): both lists, Baidu's page of error codes",
        plain_enough=True,
    ),
    Wording(
        _any(
            rf"\b{_ASKED}\b{_GAP}\b{_LENGTH}\b{_GAP}{_BEYOND}",
            rf"\b{_LENGTH}\b{_GAP}\b{_ASKED}\b{_GAP}{_BEYOND}",
            rf"{_BEYOND}{_GAP}\b{_ASKED}\b{_GAP}\b{_LENGTH}\b",
            rf"{_BEYOND}{_GAP}\b{_LENGTH}\b{_GAP}\b{_ASKED}\b",
            rf"\b{_ASKED}\b{_GAP}{_BEYOND}{_GAP}\b{_LENGTH}\b",
        ),
        "Gemini, Vertex AI (input token count exceeds), xAI (maximum prompt length), Moonshot (exceeded model token "
        "limit), DashScope (Range of input length should be), GitHub Copilot, Cohere, SiliconFlow, Amazon Nova, "
        "Volcengine Ark, TGI, TensorRT-LLM, MLC LLM: documentation, servers' code, reports",
    ),
    Wording(
        _any(
            r"\btoo many (?:\w+ )?tokens\b",
            r"\btokens?(?: count)? limit (?:has been |was |is )?(?:exceed|reach|surpass)",
            r"\btokens? (?:counts? )?(?:exceeds?|(?:is|are) (?:over|above|beyond)) (?:the|its) (?:\w+ ){0,2}limit",
            r"\b(?:exceed|reach|surpass)\w*.{0,30}\btokens? limit",
            r"\b(?:exceed\w*|over|above|(?:larg|mor)er? than).{0,40}\bmax(?:imum)? (?:allowed |number of )*tokens",
            r"\brequested #k? tokens.{0,60}(?:max|limit|only|at most)",
            rf"\b(?:{_PROMPT}|request|payload)\b{_GAP}#k? tokens\b{_GAP}"
            r"\b(?:accepts?|(?:can )?takes?|holds?|allow(?:s|ed)|supports?|room for) (?:\w+ ){0,3}#",
            rf"\b{_PROMPT} (?:is|are) (?:longer|larger|bigger) than (?:the|this) model",
            r"# tokens? (?:>|exceeds?|is (?:more|greater|larger) than) (?:\w+ ){0,4}#",
            r"\btokens? (?:length|size)(?: (?:of|is))?(?: #)? (?:exceeds?|is (?:more|greater|larger|longer) than)\b",
        ),
        "Bedrock, AI21, gateways (too many tokens, token limit exceeded), Spark (token count exceeds the limit), both "
        "counts beside each other: pi's list, reports",
    ),
    Wording(
        _any(
            r"\b(?:reduce|shorten|decrease|truncate|trim)\b(?: the| your)?(?: (?:length|size|number) of)*(?: the| your"
            rf"| either| any)*(?: of)?(?: the)? (?:input |prompt )*(?:{_PROMPT}|context|token count|tokens|one\b)",
            r"\b(?:use|try|provide|send)(?: using)? a (?:shorter|smaller) (?:prompt|input|message|context)",
        ),
        "OpenAI, Groq, Cerebras (reduce the length of the messages), OpenRouter (of either one), SGLang, Cohere, LM "
        "Studio (a shorter input): both lists, servers' code",
    ),
    Wording(
        _any(
            r"\bcurrent length is # while limit is #",
            r"\bexpected max ?length: ?#, actual: ?#",
            r"\bsequence length is longer than",
            r"\bmax tokens must be at least #, got -#|\bmax tokens \(-#\)",
            r"\b(?:run|ran) out of (?:tokens|context|room in)\b",
            r"\b(?:prompt|input|request content|message content)s? exceed\w* (?:\w+ ){0,3}limit",
        ),
        "Cerebras, Bedrock (LiteLLM's list), transformers, vLLM, TensorRT-LLM (nothing is left for the reply), "
        "LMDeploy (run out of tokens), Codex, Modelverse (exceeds the internal limit): libraries' code, reports, a "
        "page of error codes",
    ),
    Wording(
        _any(
            r"(?:输入|上下文|提示词?|prompt|tokens?|对话|消息|请求内容|文本|内容|问题)[^。;]{0,24}"
            r"(?:超长|过长|太长|超出|超过|超限|过大|大于|达到上限)",
            r"(?:超出|超过|大于)[^。;]{0,24}(?:上下文|长度|tokens?|输入|窗口)",
            r"长度(?:超限|超长|过长)",
            r"(?:入力|トークン|コンテキスト|プロンプト)[^。]{0,24}(?:超え|超過|長すぎ)",
            r"(?:토큰|입력|컨텍스트|프롬프트)[^.]{0,24}(?:초과|너무 길)",
            r"(?:превыш|слишком (?:длин|больш|много))[^.]{0,40}(?:токен|контекст|запрос|длин)",
            r"(?:токен|контекст|запрос|длин)[^.]{0,40}(?:превыш|слишком (?:длин|больш|много))",
        ),
        "Zhipu (Prompt 超长), Baidu, gateways of Chinese providers: pages of error codes, reports; the same words in "
        "Japanese, Korean and Russian, whose providers' own are not known to us",
    ),
)
"""What says that a prompt does not fit, and whose words those are."""

_RATE = _any(
    r"rate ?limit|too many requests|throttl|quota|concurren|usage limit|please wait",
    r"\bper (?:min(?:ute)?|sec(?:ond)?|hour|day|week|month)\b|\b(?:daily|weekly|monthly)\b|\b[trqc]p[mdsh]\b",
    r"\b(?:try|retry)(?: again| your request)* (?:in|later|after)\b",
    r"频率|限流|每分钟|每秒|每天|每日|并发|次数|用量|额度|配额|套餐|稍后|毎分|분당|в минуту|в день|частот",
)
"""A limit of calls or tokens in a time: Bedrock says ``Too many tokens, please wait before trying again``."""

_MONEY = _any(
    r"billing|\bcredits?\b|balance|(?<!context )\bbudget|payment|\bafford|\bspend(?:ing)?\b|in arrears|arrearage",
    r"余额|欠费|充值",
)

_MEDIA = _any(
    r"\b(?:images?|pictures?|photos?|pixels?|audio|videos?|files?|attachments?|uploads?|pdfs?|frames)\b", r"图片|图像"
)

_TOKENS = _any(r"\btokens?\b|\bcontext\b|\bprompts?\b")

_BYTES = _any(r"\bbytes?\b|# ?[kmg]i?b\b|payload|entity too large")
"""A limit of the server in front, not of the model."""

_OF_THE_REPLY = _any(
    r"\bmax(?:imum)? (?:number of )?(?:completion |output |new |total )?tokens\b",
    r"\bcompletion|\boutputs?\b|\bgenerated\b|\bresponse\b",
)

_OF_THE_PROMPT = _any(
    rf"\b{_PROMPT}\b|\byour request (?:has|contains|exceed)|\btokens in (?:the |your )?request|\bgot -#",
    r"输入|上下文|提示|消息",
)

_OF_A_NAME = _any(
    r"\b(?:names?|descriptions?|metadata|titles?|urls?|uris?|ids?|identifiers?|headers?|enums?|labels?|tags?)\b",
    r"\b(?:invalid user|stop(?: sequences?)?|schemas?|arrays?|items|tools|functions?|timeout|timed out|deadline)\b",
    r"\bqueues?\b",
)
"""What is short or a list by nature: ``string too long. Expected a string with maximum length 64``."""

_COUNTED = _any(
    r"\b(?:too many|(?:at most|max(?:imum)?(?: number)?(?: of)?|limit of|up to|(?:no )?more than)(?: #)?) (?:\w+ )?"
    r"(?:tools|functions|images|files|sequences|blocks|items|documents|choices|logprobs|attachments|tool calls)\b"
)
"""Things that are counted: what they are too many for is no matter of length."""

_REPLY_TOO_SHORT = _any(
    r"\b(?:higher|larger|greater|more|increas(?:e|ing)|rais(?:e|ing))(?: the| your)? "
    r"max(?: completion| output)? tokens\b"
)
"""OpenAI's reasoning models say with a 400 that a reply had no room, which a shorter prompt does not give."""

_NO_LENGTH = _any(
    r"unsupported|not supported|unrecognized|not permitted|extra (?:inputs|fields)|temperature|top p\b",
    r"(?:unknown|unexpected) (?:parameter|keyword|argument|field)",
    r"must be an? (?:integer|number|positive|boolean|string|object)",
    r"api key|authentic|unauthor|permission|does not exist|not found|no such model",
    r"content (?:policy|management|filter)|safety|inappropriate|moderation",
    r"不支持|不存在|参数有误|敏感",
)
"""Other causes of a 400 or 422: where one is named, nobody guesses."""

_KEY_OR_PATH = _any(
    r"api key|authentic|unauthor|permission|no such model",
    r"\b(?:model|deployment|engine|endpoint)\b.{0,120}not (?:exist|found)",
)
"""The cause of a 401, 403 or 404, beside which the key or the model may be quoted, whatever its name is made of."""

_MEANINGLESS = _any(
    r"\binputs? (?:should|validation error|error)\b|\binvalid inputs?\b|用户输入错误",
    r"\berror messages?\b|\bmessage:|\bprompt cache key\b",
    r"\bcontext (?:deadline exceeded|cancell?ed)\b|\bdeadline exceeded\b",
)
"""Words of validators that say ``input`` of whatever they validate; names that have ``prompt`` in them; what programs
in Go, as gateways are, say of a time that is over (its package ``context``)."""

_LEAST = re.compile(
    r"\b(?:must|should|has to|needs? to) (?:be|have)(?: [a-z]+){0,2} (?:greater|larger|longer|higher|more) than"
    r"(?: or equal to)? (?:zero|one|[01])\b(?![.,]?\d)",
    re.I,
)
"""A least length, which no prompt is too long for."""

_QUOTES = "`'\"*\\_\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}“”"

_MOST_READ = 2_000
"""Characters of an error's words that are read: what comes after them is mostly a prompt that it quotes."""


def cause_of(words: str, codes: Collection[str] = (), status: int | None = None) -> Cause:
    """Why an endpoint refuses, by its words, its codes (as of `ErrorBody`), and its status where it has one.

    A status of a key, of money, of a path or of a rate is doubted only where the words leave no doubt. A body that is
    too large for a server is no full context, but where its status says no more than that something is too large (413):
    what we send is all text.
    """
    if status in {401, 403, 404} and _KEY_OR_PATH.search(plain(words)):
        return Cause.OTHER
    quoted = words[:_MOST_READ].casefold().replace("_", "")
    if any(code in codes or (not code.isdecimal() and code.replace("_", "") in quoted) for code in CODES):
        return Cause.CONTEXT
    cause = _cause_in(words, status)
    if cause is Cause.UNKNOWN and any(_cause_in(code, status) is Cause.CONTEXT for code in codes):
        return Cause.CONTEXT
    return cause


def _cause_in(words: str, status: int | None) -> Cause:
    text = _MEANINGLESS.sub(" ", plain(_LEAST.sub(" ", words[:_MOST_READ])))
    if _REPLY_TOO_SHORT.search(text):
        return Cause.OTHER
    if _RATE.search(text) or _MONEY.search(text) or _COUNTED.search(text):
        return Cause.OTHER
    if not _TOKENS.search(text):
        if _MEDIA.search(text) or (_OF_A_NAME.search(text) and status != 413):
            return Cause.OTHER
        if _BYTES.search(text):
            return Cause.UNKNOWN if status == 413 else Cause.OTHER
    if _OF_THE_REPLY.search(text) and not _OF_THE_PROMPT.search(text):
        return Cause.UNKNOWN if re.search(r"context|tokens (?:of # )?exceeded", text) else Cause.OTHER
    doubted = status in {401, 402, 403, 404, 429}
    if any(it.pattern.search(text) for it in WORDINGS if it.plain_enough or not doubted):
        return Cause.CONTEXT
    return Cause.OTHER if _NO_LENGTH.search(text) else Cause.UNKNOWN


def plain(words: str) -> str:
    """Words as patterns want them: small letters, names apart, no quotes and underscores, ``#`` for each number."""
    text = unicodedata.normalize("NFKC", words[:_MOST_READ])
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).casefold()
    text = re.sub(r"\d[\d,._']*(?<=\d)", "#", text)
    text = re.sub(r"(?<=\w)['\N{RIGHT SINGLE QUOTATION MARK}](?=s\b)", "", text)
    return " ".join(re.sub(rf"[{re.escape(_QUOTES)}]|(?<=\w)-(?=\w)", " ", text).split())
