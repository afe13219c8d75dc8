"""What a sweep compares: policies, what guides them, and how.

SWE-PRM's table 2 has three policies that guide themselves under eight variants, its table 3 one policy that another
model guides under three of them; each beside the policy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prchain.core.errors import UsageError
from prchain.core.settings import PurposeSettings, Settings
from prchain.core.suggest import meant
from trajectories.agents.guidance.settings import PURPOSE as PRM
from trajectories.agents.guidance.variants import VARIANTS
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT

BASE = "base"
"""In place of a variant: without a process reward model."""

SELF = "self"
"""In place of a guide: the policy's own model."""

_OF_SAMPLING = {"temperature", "top_p", "max_tokens"}


@dataclass(frozen=True, slots=True)
class SweepSetting:
    """A policy under one variant. Policies and guides are purposes of the settings, whose models they have."""

    name: str
    """A different one for each setting of a grid; no more than tells them apart."""
    variant: str
    """One of `VARIANTS`, or `BASE`."""
    policy: str = AGENT
    guide: str = PRM
    """A purpose, or `SELF`; it is of no account without a variant."""

    def settings(self, settings: Settings) -> Settings:
        """The settings under which the policy is the agent, and the guide the process reward model."""
        own = dict(settings.purposes)
        purposes = dict(own)
        if self.policy != AGENT:
            purposes[AGENT] = own.get(self.policy, PurposeSettings())
        if self.guide == SELF:
            # The model of the one, sampled as the other: a policy that explores still judges as it would else.
            model = purposes.get(AGENT, PurposeSettings()).model_dump(exclude=_OF_SAMPLING)
            sampling = own.get(PRM, PurposeSettings()).model_dump(include=_OF_SAMPLING)
            purposes[PRM] = PurposeSettings(**model, **sampling)
        elif self.guide != PRM:
            purposes[PRM] = own.get(self.guide, PurposeSettings())
        return settings.model_copy(update={"purposes": purposes})


def sweep_grid(settings: Settings, variants: str, policies: str = AGENT, guides: str = PRM) -> tuple[SweepSetting, ...]:
    """Each policy without guidance, where `variants` has `BASE`, and under each variant of each guide. All three are
    lists like ``base,S,D``.

    Raises `UsageError` for unknown and repeated names.
    """
    chosen = _names(variants, "--variants", "setting")
    for name in chosen:
        if name != BASE and name not in VARIANTS:
            raise UsageError(f"there is no variant {name!r}; known are {BASE}, {', '.join(VARIANTS)}")
    working = _purposes(settings, policies, "--policies", (AGENT,))
    guiding = _purposes(settings, guides, "--guides", (PRM, SELF))
    found = []
    for policy in working:
        for variant in chosen:
            head = variant if len(working) == 1 else f"{policy}: {variant}"
            if variant == BASE:
                found.append(SweepSetting(head, variant, policy))
                continue
            for guide in guiding:
                name = head if len(guiding) == 1 else f"{head} by {guide}"
                found.append(SweepSetting(name, variant, policy, guide))
    return tuple(found)


def _names(words: str, flag: str, noun: str) -> tuple[str, ...]:
    names = tuple(filter(None, (word.strip() for word in words.split(","))))
    if not names:
        raise UsageError(f"{flag} names no {noun}")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"the {'variant' if noun == 'setting' else noun} {name} is named twice")
    return names


def _purposes(settings: Settings, words: str, flag: str, always: Sequence[str]) -> tuple[str, ...]:
    names = _names(words, flag, "purpose")
    known = [*always, *(name for name in settings.purposes if name not in always)]
    for name in names:
        if name not in known:
            raise UsageError(
                f"{flag}: there is no [purposes.{name}] in prchain.toml; {meant(name, known, 'known are')}"
            )
    return names
