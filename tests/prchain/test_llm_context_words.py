"""What says that a prompt does not fit a model, in the words of many endpoints, and what says something else."""

from __future__ import annotations

from time import perf_counter

import pytest

from prchain.core.llm.context_words import CODES, WORDINGS, Cause, cause_of, plain

FULL = {
    "openai": "This model's maximum context length is 5000 tokens. However, your messages resulted in 9000 "
    "tokens. Please reduce the length of the messages.",
    "openai, configured": "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
    "290011.",
    "openai, newer": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "openai, one message": "Invalid 'messages[1].content': string too long. Expected a string with maximum length "
    "1048576",
    "azure": "This model's maximum context length is 8192 tokens, however you requested 9021 tokens (8009 in your "
    "prompt; 1012 for the completion). Please reduce your prompt; or completion length.",
    "anthropic": "prompt is too long: 213462 tokens > 200000 maximum",
    "anthropic, sum": "input length and `max_tokens` exceed context limit: 198000 + 21333 > 200000, decrease "
    "input length or `max_tokens` and try again",
    "gemini": "The input token count (9000) exceeds the maximum number of tokens allowed (5000).",
    "vertex": "Unable to submit request because the input token count is 1100000 but model only supports up to "
    "1048576. Reduce the input token count and try again.",
    "mistral": "Prompt contains 9000 tokens and 0 draft tokens, too large for model with 5000 maximum context length",
    "bedrock": "Input is too long for requested model.",
    "bedrock, nova": "Number of input tokens exceeds maximum length",
    "bedrock, schema": "Malformed input request: expected maxLength: 9000, actual: 10000, please reformat your input",
    "bedrock, counted": "Too many input tokens. Max input tokens: 8192, request input token count: 9000",
    "cohere": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try "
    "using a shorter prompt, or enable prompt truncating.",
    "groq": "Please reduce the length of the messages or completion.",
    "cerebras": "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
    "together": "The input (9000 tokens) is longer than the model's context length (5000 tokens).",
    "fireworks": "The prompt is too long: 9000, model maximum context length: 4095",
    "deepseek": "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens.",
    "dashscope": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 5000]",
    "zhipu": "Prompt 超长",
    "a length of tokens": "token length 40000 exceeds the maximum allowed 32768",
    "moonshot": "Invalid request: Your request exceeded model token limit: 5000",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "openrouter": "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 "
    "tokens (131000 of text input, 9000 in the output). Please reduce the length of either one.",
    "poolside": "Input length 9000 exceeds the maximum allowed input length of 5000 tokens.",
    "minimax": "invalid params, context window exceeds limit (2013)",
    "volcengine": "Total tokens of image and text exceed max message tokens. Request id: 021786",
    "baidu": "Prompt tokens too long",
    "baidu, characters": "the max length of current question is 8000",
    "siliconflow": "length of prompt_tokens (4097) must be less than max_seq_len (4096).",
    "siliconflow, newer": "number of input tokens (83121) have exceeded max_prompt_tokens (65536) limit.",
    "copilot": "prompt token count of 9000 exceeds the limit of 5000",
    "github models": "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    "cloudflare": "5021: The estimated number of input and maximum output tokens (155740) exceeded this model "
    "context window limit (128000).",
    "vllm": "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is "
    "5000 tokens and your request has 4904 input tokens (4096 > 5000 - 4904).",
    "vllm, engine": "The decoder prompt (length 9000) is longer than the maximum model length of 5000. Make sure "
    "that `max_model_len` is no smaller than the number of text tokens.",
    "vllm, nothing left": "max_tokens must be at least 1, got -3904.",
    "sglang": "Input length (9000 tokens) exceeds the maximum allowed length (5000 tokens). Use a shorter input "
    "or enable --allow-auto-truncate.",
    "sglang, sum": "Requested token count exceeds the model's maximum context length of 5000 tokens. You "
    "requested a total of 9100 tokens: 9000 tokens from the input messages and 100 tokens for the completion.",
    "tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 8000 `inputs` "
    "tokens and 20 `max_new_tokens`",
    "tgi, inputs": "Input validation error: `inputs` must have less than 1024 tokens. Given: 3000",
    "llama.cpp": "request (9000 tokens) exceeds the available context size (5000 tokens), try increasing it",
    "llama.cpp, later": "Context size has been exceeded.",
    "ollama": "the input length exceeds the context length",
    "ollama, cloud": "prompt too long; exceeded max context length by 4000 tokens",
    "lm studio": "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded "
    "with context length of only 4096 tokens, which is not enough.",
    "tensorrt-llm": "The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens (69632)",
    "mlc": "Request prompt has 9000 tokens in total, larger than the model input length limit 5000.",
    "transformers": "Token indices sequence length is longer than the specified maximum sequence length for this "
    "model (9000 > 4096)",
    "litellm": "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - no",
    "fastapi": "body messages 0 content: String should have at most 4096 characters",
    "watsonx": "the number of input tokens 9000 cannot exceed the total tokens limit 4096 for this model",
    "yandex": "number of input tokens must be no more than 8192, got 9001",
    "ray": "Input too long. Received 9000 tokens, but the maximum input length is 8192 tokens.",
    "tabbyapi": "Prompt length 9000 is greater than max_seq_len 4096",
    "sambanova": "Requested generation length 1 is not possible! The provided prompt is 4309 tokens long, so "
    "generating 1 tokens requires a sequence length of 4310, but the maximum supported sequence length is just "
    "4096!",
    "nim": "in ensemble 'm', Input length 1024 exceeds maximum allowed token size 512",
    "lmdeploy": "run out of tokens. session_id=1",
    "modelverse": "[User Input Error] The request content exceeds the internal limit of the large model",
    "llama.cpp, cache": "Input prompt is too big compared to KV size. Please try increasing KV size.",
    "koboldcpp": "prompt does not fit into context (9000 > 4096)",
    "a gateway in japanese": "入力トークン数がモデルの上限を超えています",
    "a gateway in russian": "Превышено максимальное количество токенов в запросе: 40000 > 32768",
    "both counts": "This request needs 140000 tokens, but model m only has room for 131072",
    "a gateway": "tokens in request more than max tokens allowed",
    "a gateway, two": "Token limit exceeded",
    "spark": "token count exceeds the limit",
    "hunyuan": "Total tokens of the prompt is over 9000, please reduce the length",
    "tensorrt-llm, nothing left": "`default_max_tokens` (-812) should be greater than 0, `default_max_tokens` "
    "(-812) = max_seq_len (8192) - `splited_prompt_len` (9004) - `query_token_len` (0)",
    "a chinese gateway": "输入长度超过模型上限, 请压缩会话后重试",
    "a chinese gateway, two": "请求的 tokens 超过了模型最大上下文长度",
}

OTHER = {
    "openai, minute": "Rate limit reached for gpt-4 on tokens per min (TPM): Limit 10000, Used 9000, Requested "
    "5000. Please try again in 6s.",
    "openai, too large a minute": "Request too large for gpt-4 on tokens per min (TPM): Limit 10000, Requested "
    "12000. The input or output tokens must be reduced in order to run successfully.",
    "groq, minute": "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000, "
    "please reduce your message size and try again.",
    "bedrock, throttled": "Too many tokens, please wait before trying again.",
    "bedrock, day": "Too many tokens per day, please wait before trying again.",
    "anthropic, minute": "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
    "openai, reply": "max_tokens is too large: 5000. This model supports at most 4096 completion tokens, whereas "
    "you provided 5000.",
    "anthropic, reply": "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for m",
    "dashscope, reply": "Range of max_tokens should be [1, 8192]",
    "deepseek, reply": "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    "groq, reply": "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less "
    "than the `context_window` for this model",
    "tgi, reply": "Input validation error: `max_new_tokens` must be <= 4096. Given: 9000",
    "fastapi, reply": "body max_tokens: Input should be less than or equal to 8192",
    "openrouter, money": "This request requires more credits, or fewer max_tokens. You requested up to 8192 "
    "tokens, but can only afford 2000.",
    "litellm, budget": "Budget has been exceeded! Current cost: 12.3, Max budget: 10",
    "quota": "You exceeded your current quota, please check your plan and billing details.",
    "day": "Your daily token limit exceeded",
    "zhipu, money": "您的账户余额不足",
    "a chinese rate": "请求过于频繁, 每分钟 tokens 超过限制",
    "anthropic, image": "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > "
    "5242880 bytes",
    "gemini, payload": "Request payload size exceeds the limit: 10485760 bytes.",
    "a chinese image": "图片大小超过限制",
    "images": "This model supports at most 20 images per prompt",
    "openai, a name": "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64",
    "openai, a user": "Invalid 'user': string too long. Expected a string with maximum length 64, but got length 90.",
    "openai, a cache key": "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64",
    "openai, a list": "Invalid 'messages': array too long. Expected an array with maximum length 2048",
    "a description": "tool description exceeds maximum length of 1024 characters",
    "go": 'Post "https://h/v1": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
    "go, over rpc": "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    "go, cancelled": "request timeout exceeded: context canceled",
    "a least length": "Prompt length must be larger than 0",
    "a least length in words": "input length must be greater than zero",
    "bedrock, a least length": "Value at 'messages.1.member.content' failed to satisfy constraint: Member must have "
    "length greater than or equal to 1",
    "openai, no room to reply": "Could not finish the message because max_tokens or model output limit was reached. "
    "Please try again with higher max_tokens.",
    "attempts": "request failed over 3 times: content length mismatch",
    "a queue": "no free KV cache slots; request queue length 128 exceeds limit 100",
    "bedrock, tool results": "The number of toolResult blocks at messages.2.content exceeds the number of toolUse "
    "blocks of previous turn.",
    "bedrock, reply": "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum "
    "tokens value that is lower than 4096.",
    "vllm, logprobs": "Requested prompt logprobs of 50, which is greater than max allowed: 20",
    "ollama, memory": "model requires more system memory (5.6 GiB) than is available (3.1 GiB)",
    "parameter": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.",
    "parameter, two": "Unknown parameter: 'context_length'",
    "temperature": "temperature must be between 0 and 2",
    "model": "The model `m` does not exist",
    "overloaded": "The engine is currently overloaded, please try again later",
    "moonshot, day": "request reached organization TPD rate limit, current: 1506556, limit: 1500000",
    "anthropic, thoughts": "`max_tokens` must be greater than `thinking.budget_tokens`.",
    "gemini, cache": "Cached content is too small. total_token_count=500, min_total_token_count=1024",
    "tools": "Too many tools: 200, and at most 128 tools are allowed with a prompt of any length",
    "tool results": "tool_use ids were found without tool_result blocks in the next message",
    "late": "Response took too long; the request exceeded the time limit of 60 seconds",
    "a token that is a key": "Access token exceeds maximum length",
    "stop": "stop sequences must have at most 100 characters",
    "nesting": "JSON body exceeds the maximum nesting depth of 100",
    "headers": "Request header fields too large",
    "parallel": "Maximum number of concurrent requests exceeded",
}

UNKNOWN = ["", "Bad Request", "Request contains an invalid argument.", "Unprocessable Entity", "upstream refused", "no"]


@pytest.mark.parametrize("said_by", FULL)
def test_a_full_context_is_understood_in_the_words_of(said_by: str) -> None:
    assert cause_of(FULL[said_by]) is Cause.CONTEXT
    assert cause_of(f"Error code: 400 - {{'message': \"{FULL[said_by]}\"}}", status=500) is Cause.CONTEXT


@pytest.mark.parametrize("said_by", OTHER)
def test_another_cause_is_not_taken_for_a_full_context(said_by: str) -> None:
    assert cause_of(OTHER[said_by]) is not Cause.CONTEXT
    assert cause_of(OTHER[said_by], {"invalid_request_error"}, 400) is not Cause.CONTEXT


@pytest.mark.parametrize("words", UNKNOWN)
def test_words_that_say_no_cause_say_none(words: str) -> None:
    assert cause_of(words, {"invalid_request_error"}, 400) is Cause.UNKNOWN


def test_other_numbers_quotes_and_capitals_change_nothing() -> None:
    for words in FULL.values():
        assert cause_of(words.upper().replace("9000", "1,234,567").replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")) is (
            Cause.CONTEXT
        ), words


def test_every_wording_of_the_table_is_somebodys() -> None:
    texts = [plain(words) for words in FULL.values()]
    for wording in WORDINGS:
        assert any(wording.pattern.search(text) for text in texts), wording.said_by
        assert ":" in wording.said_by, "whose words they are, and where they stand"


@pytest.mark.parametrize(
    "code", [*CODES, "max_input_tokens_exceeded", "prompt_tokens_too_long", "context_limit_exceeded"]
)
def test_a_code_says_it_whatever_the_words_are(code: str) -> None:
    assert cause_of("no", {code}) is Cause.CONTEXT


@pytest.mark.parametrize("status", [401, 402, 403, 404, 429])
def test_statuses_that_mean_something_else_are_believed_unless_the_context_is_named(status: int) -> None:
    assert cause_of("Token limit exceeded", status=status) is not Cause.CONTEXT
    assert cause_of(FULL["openai"], status=status) is Cause.CONTEXT


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("Incorrect API key provided: prompt_too_long", 401),
        ("The model `long-context-length-exceeded` does not exist", 404),
        ("model 'max-context-length-exceeded' not found, try pulling it first", 404),
        ("The deployment context_length_exceeded was not found", 404),
    ],
)
def test_a_key_or_a_model_that_is_quoted_is_no_context_whatever_its_name(words: str, status: int) -> None:
    assert cause_of(words, status=status) is Cause.OTHER


def test_a_body_that_is_too_large_for_a_server_is_a_long_prompt_only_where_the_status_says_so() -> None:
    assert cause_of("Request Entity Too Large", status=413) is Cause.UNKNOWN
    assert cause_of("Request payload size exceeds the limit: 10485760 bytes.", status=400) is Cause.OTHER


@pytest.mark.parametrize("piece", ["input length ", "context ", "length input exceeds ", "# > ", "超过输入"])
def test_hostile_words_are_read_in_time(piece: str) -> None:
    began = perf_counter()
    cause_of(piece * 20_000)
    assert perf_counter() - began < 2
