"""The context of a chain's stages: texts from the tables, patches and names from git, facts for the leak check.

All stages of a chain are read together, because the query of one stage must not reveal another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from chains.edges.patches import CONTEXT
from chains.needs.stage_needs import stage_needs
from chains.stages.cosmetic import is_cosmetic
from chains.tasks.excerpt import ExcerptLimits, file_texts
from chains.tasks.model import LocatedFinding, SelectedStage, TaskChain
from chains.tasks.texts import IssueText, PullTexts, read_links, read_texts
from prchain.core.code.identifiers import defined_names
from prchain.core.code.lexing import family_of, lex
from prchain.core.code.needs import Need, interface_of, names_of, texts_of
from prchain.core.code.reference import Reference, split
from prchain.core.git import FilePatch, GitRepository
from prchain.core.leaks import Finding, StageFacts, check, stage_facts, telling
from prchain.core.leaks.form import addresses
from sql.store import Store

_OMISSION = "[a passage that shows the solution is left out here]"
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_WORD = re.compile(r"\w+")
_FORGE = re.compile(r"(?i)(?:\w+://)?(?:[\w-]+\.)*(?:github|gitlab|bitbucket|codeberg)\.\w")


@dataclass(frozen=True)
class StageContext:
    """Everything that the query of one stage is written from."""

    stage: SelectedStage
    texts: PullTexts
    reference: Reference
    paths_at_base: frozenset[str]
    needs: tuple[Need, ...]
    """What its hidden tests need and its base does not have."""
    facts: StageFacts
    tests: tuple[FilePatch, ...] = ()
    """The test patch with the whole functions that it changes: a hunk alone may lack what a test looks at."""
    link: str = ""
    """Why it follows the stage before, in words; empty for the first stage."""
    issues: tuple[str, ...] = ()
    """The issues it closes, without passages that leak."""
    issue_findings: tuple[LocatedFinding, ...] = ()
    """Why passages of the issues were left out."""

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the source patch."""
        return tuple(sorted(file.path for file in self.reference.source))

    @property
    def named_files(self) -> tuple[str, ...]:
        """The paths that a query has to name: those of the source patch that exist before the work, with the old path
        of a renamed file; new ones only where there is no other. Program text that changes in more than how it is
        written goes before everything else."""
        worked = [file for file in self.reference.code if not is_cosmetic([file])]
        chosen = [path for file in worked for path in (file.old_path, file.path) if path in self.paths_at_base]
        chosen = chosen or [path for path in self.facts.paths if path in self.paths_at_base]
        return tuple(dict.fromkeys(path for path in chosen if path)) or self.facts.paths

    @property
    def test_files(self) -> tuple[str, ...]:
        """The paths of the test patch."""
        return tuple(sorted(file.path for file in self.reference.test))

    @cached_property
    def source_texts(self) -> dict[str, str]:
        """Path to patch of the source files, scrubbed."""
        return file_texts(self.reference.source)

    @cached_property
    def test_texts(self) -> dict[str, str]:
        """Path to patch of the test files, scrubbed: with whole functions, as far as there is room for them."""
        whole = file_texts(self.tests)
        if whole and sum(map(len, whole.values())) <= ExcerptLimits().tests:
            return whole
        return file_texts(self.reference.test)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names that the source patch defines and that stand nowhere at B_t, sorted, without those only in scrubbed
        passages: parts of keys."""
        visible_words = {word for text in self.source_texts.values() for word in _WORD.findall(text)}
        defined = {name for file in self.reference.source for name in defined_names(file.added, file.path)}
        introduced = (self.facts.introduced - self.facts.told) & defined
        return tuple(sorted(name for name in introduced if visible_words.issuperset(_WORD.findall(name))))


def read_chain(store: Store, repository: GitRepository, chain: TaskChain) -> list[StageContext]:
    """The contexts of a chain's stages, first to last. Raises `GitError` and `StoreError`."""
    with store.reading() as tx:
        texts: list[PullTexts] = []
        for stage in chain.stages:
            known = {sha for earlier in texts for sha in earlier.shas}
            texts.append(read_texts(tx, chain.repository_id, stage.number, stage.landed_sha, known))
        links = read_links(tx, chain)
    pairs = [(stage.base_sha, stage.landed_sha) for stage in chain.stages]
    patches = repository.patches(pairs, context=CONTEXT)
    whole = repository.patches(pairs, functions=True)
    stages = [
        replace(
            _stage(repository, stage, pull_texts, split(patch), links.get(stage.position, "")), tests=split(tests).test
        )
        for stage, pull_texts, patch, tests in zip(chain.stages, texts, patches, whole, strict=True)
    ]
    stages = list(_with_later_needs(repository, stages))
    # An issue may use the names of the interface, which the agent gets anyway; the prose written from it may not.
    facts = [replace(stage.facts, interface=frozenset(names_of(interface_of(stage.needs)))) for stage in stages]
    return [_with_issues(stage, facts) for stage in stages]


def _stage(
    repository: GitRepository, stage: SelectedStage, texts: PullTexts, reference: Reference, link: str
) -> StageContext:
    found = stage_needs(repository, stage.base_sha, stage.landed_sha, reference)
    # The prose never has the names that hidden tests need, so the facts exempt none; they stand below it. Their texts
    # cannot be said by their purpose, so these may stand in both, and so may those that B_t has already.
    facts = stage_facts(
        stage.number,
        (stage.landed_sha, stage.base_sha, *texts.shas),
        reference.source,
        reference.test,
        found.standing,
        [
            *(need for need in interface_of(found.needs) if need.kind == "text"),
            *(Need("text", text) for text in sorted(found.known)),
        ],
    )
    return StageContext(
        stage=stage,
        texts=texts,
        reference=reference,
        paths_at_base=frozenset(repository.paths_at(stage.base_sha)),
        needs=found.needs,
        link=link,
        facts=facts,
    )


def _with_later_needs(repository: GitRepository, stages: Sequence[StageContext]) -> Iterator[StageContext]:
    """Each stage also with what tests of later stages need of its own work: there the names stand at the base, which
    holds the developers' work, and an agent's own work of the earlier stage may have others."""
    for at, stage in enumerate(stages):
        own = {name for file in stage.reference.source for name in defined_names(file.added, file.path)}
        needs = list(stage.needs)
        for later in stages[at + 1 :]:
            both = Reference(source=stage.reference.source, test=later.reference.test)
            told = {need.text for need in needs}
            found = stage_needs(repository, stage.stage.base_sha, later.stage.landed_sha, both).needs
            needs += (need for need in found if need.text in own - told and need.kind != "text")
        yield replace(stage, needs=tuple(sorted(needs, key=lambda need: (need.kind == "text", need.text))))


def _with_issues(context: StageContext, facts: Sequence[StageFacts]) -> StageContext:
    issue_texts: list[str] = []
    found: list[LocatedFinding] = []
    for issue in context.texts.issues:
        text, findings = checked_issue(issue, facts, context)
        issue_texts.append(text)
        found.extend(findings)
    # The texts that tests compare with may be said as they are, names in them included.
    told = telling(
        context.facts,
        (context.texts.title, *context.texts.commits, *issue_texts),
        given=texts_of(interface_of(context.needs)),
        data=_addresses_of_tests(context.reference.test),
    )
    return replace(context, issues=tuple(issue_texts), issue_findings=tuple(found), facts=told)


def _addresses_of_tests(patches: Sequence[FilePatch]) -> Iterator[str]:
    """The addresses that are literals of the tests as a whole: values, unless they are pages of a forge."""
    for patch in patches:
        for value in lex(patch.added, patch.path).strings if family_of(patch.path) else ():
            address = value.strip()
            if address == next(addresses(address), None) and not _FORGE.match(address):
                yield address


def checked_issue(
    issue: IssueText, facts: Sequence[StageFacts], context: StageContext
) -> tuple[str, list[LocatedFinding]]:
    """The text of an issue without the paragraphs that leak, and what was found in these.

    Where the rest as a whole still leaks, all of it is left out.
    """
    found: list[LocatedFinding] = []

    def leaks(text: str) -> list[Finding]:
        findings = check(text, facts, context.stage.position, kind="issue", paths_at_base=context.paths_at_base)
        return [finding for finding in findings if finding.severity == "leak"]

    def clean(paragraphs: Sequence[str]) -> list[str]:
        # Each check looks up every path of the tree, so paragraphs that leak are found by halving, not one by one.
        findings = leaks("\n\n".join(paragraphs))
        if not findings:
            return list(paragraphs)
        if len(paragraphs) > 1:
            middle = len(paragraphs) // 2
            return clean(paragraphs[:middle]) + clean(paragraphs[middle:])
        found.extend(LocatedFinding(f"issue {issue.name}", finding) for finding in findings)
        return [_OMISSION]

    paragraphs = [paragraph.strip() for paragraph in (issue.title, *_PARAGRAPHS.split(issue.body)) if paragraph.strip()]
    if not leaks(text := "\n\n".join(paragraphs)):
        return text, []
    text = _joined(clean(paragraphs))
    if findings := leaks(text):
        return _OMISSION, [*found, *(LocatedFinding(f"issue {issue.name}", finding) for finding in findings)]
    return text, found


def _joined(paragraphs: Sequence[str]) -> str:
    """The paragraphs, with one mark for several in a row that were left out."""
    kept: list[str] = []
    for paragraph in paragraphs:
        if paragraph != _OMISSION or kept[-1:] != [paragraph]:
            kept.append(paragraph)
    return "\n\n".join(kept)
