"""The page `docs/prompts.md`: every prompt with its role, its variables and the form of its reply.

`python -m research.prompts_page > docs/prompts.md` writes it anew; a test compares it with what stands there.
"""

from __future__ import annotations

from importlib import import_module

from pydantic import BaseModel

from prchain.core.llm.own_prompts import form_of, group_of
from prchain.core.llm.prompts import prompt_source
from prchain.prompts import PROMPTS, KnownPrompt

_HEAD = """\
# Prompts

What `python -m research.prompts_page` prints of the prompts; change the words in `prchain/prompts.py`.

Your own prompts, in any language, take the place of ours: the setting `prompts_dir` names a folder, in which
`verdicts/judge.j2` stands for the prompt `verdicts/judge` below. It is a Jinja template with the blocks of ours and
the same variables. Start from a copy of ours, and read how it uses them: texts of repositories, people and models
belong between the marks of `fence` and `nonce`, where they cannot pass for yours.

All files of the folder are checked before anything is asked. A file of another name, a variable that there is not, one
that is missing, other blocks, and a template that takes in another file are refused. What a prompt leaves out on
purpose it says in a comment:

```jinja
{# without: results, sees_tests #}
```

A prompt's hash is that of its file, so other words are another task, rollout or graph
([identity](identity.md)): `tasks build` and `rollouts run` say which stored ones were made with other prompts.

The form of a reply is checked whatever the prompt says, so a prompt has to ask for it: JSON with these keys, where
keys are named. Prompts that ask for nothing stand beside another one, or tell an agent something. mini-swe-agent's own
prompts are its package's.
"""

_COLUMNS = ("prompt", "blocks", "who is asked, for what", "variables", "reply")


def page() -> str:
    """The whole page."""
    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *map(_row, PROMPTS)]
    return _HEAD + "\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(prompt: KnownPrompt) -> tuple[str, ...]:
    form = form_of(prompt.name, prompt_source(prompt.package, prompt.name))
    variables = ", ".join(sorted(form.variables)) or "none"
    blocks = ", ".join(sorted(form.blocks))
    return f"{group_of(prompt.package)}/{prompt.name}", blocks, prompt.role, variables, _reply(prompt.reply)


def _reply(told: str | None) -> str:
    if told is None:
        return "-"
    module, colon, name = told.partition(":")
    if not colon:
        return told
    shape = getattr(import_module(module), name)
    assert issubclass(shape, BaseModel)
    return f"JSON: {', '.join(shape.model_fields)}"


if __name__ == "__main__":
    print(page(), end="")
