"""What people said about a stage, in so many words, before anybody wrote its query: its title, commits and issues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from prchain.core.code.identifiers import name_parts
from prchain.core.leaks.code import text_digests
from prchain.core.leaks.facts import StageFacts
from prchain.core.leaks.form import address_mark, addresses
from prchain.core.leaks.names import shown_names
from prchain.core.leaks.reading import TextReading


def telling(facts: StageFacts, texts: Iterable[str], given: Iterable[str] = (), data: Iterable[str] = ()) -> StageFacts:
    """The facts of a stage with what some texts say of it: words of its literals and comments, and public names.

    Who asks for a parameter `ttl` gives nothing away. Private names and those of tests stay hidden: a commit message
    that names them describes how the work was done. `given` are texts that the solver gets word for word: every name
    and the addresses in them may be said, too. `data` are addresses that tests compare with: these may be said.
    """
    given = tuple(given)
    public = {name for name in facts.introduced if not name.startswith(("_", "test", "Test"))}
    told: set[str] = set()
    for text, names in (*((text, public) for text in texts), *((text, facts.introduced) for text in given)):
        reading = TextReading(text, (), ())
        told |= shown_names(reading, names)
        told |= text_digests(reading) & (facts.literals | facts.prose)
    # A text that is a key says the name of the same words: "stale-if-error" that of `stale_if_error`.
    keys = {name_parts(text) for text in given if " " not in text.strip()}
    told |= {name for name in facts.introduced if len(parts := name_parts(name)) > 1 and parts in keys}
    told.update(map(address_mark, data))
    told.update(address_mark(address) for text in given for address in addresses(TextReading(text, (), ()).text))
    return replace(facts, told=facts.told | told)
