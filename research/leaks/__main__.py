"""Make the facts of the leak check's table from git mirrors, and score the check on the table.

    python -m research.leaks facts --mirrors FOLDER  # FOLDER/github.com/owner/name.git, with the landed commits
    python -m research.leaks review --db FILE --made TEXT  # asks the model of the settings, purpose `review`
    python -m research.leaks score [--findings]

`tuned.toml`, `seen.toml` and `held_out.toml` hold texts written for the purpose, `disguised_tuned.toml`,
`disguised_held_out.toml` and `reviewed.toml` such as are written to break the check or to be blamed by it;
`chains.toml` names the landed pull requests that they are about. What the reviewer (`prchain tasks build --review`)
found in those of `reviewed.toml` is in `reviews.json`. `facts.json` holds names, paths, numbers, shas and digests of
those patches, and no code.
Texts and labels were written before the check was run on them. What was changed in the check because of them is at the
top of each file; the first score on `held_out.toml` and `disguised_held_out.toml` is the measure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from prchain.core.leaks.finding import REVIEWED
from research.leaks.reviews import SPLIT, read_reviews, score_reviews
from research.leaks.table import (
    FACTS,
    SPLITS,
    ChainFacts,
    Score,
    judge,
    read_facts,
    read_texts,
    read_toml,
    score,
    share,
)


@click.group()
def main() -> None:
    """Precision and recall of the leak check."""


@main.command()
@click.option(
    "--mirrors",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Where `prchain mine` keeps its mirrors: data/mirrors.",
)
@click.option("--chain", "only", multiple=True, metavar="NAME", help="Only this chain; the others' facts stay.")
def facts(mirrors: Path, only: tuple[str, ...]) -> None:
    """Write facts.json anew. Needed when the facts' definition, the chains or the paths in the texts change."""
    from chains.needs.stage_needs import stage_needs
    from prchain.core.code.needs import interface_of
    from prchain.core.code.reference import split
    from prchain.core.git import GitRepository, mirror_path
    from prchain.core.leaks import stage_facts, telling

    texts = [text for name in SPLITS for text in read_texts(name)]
    facts_by_chain = json.loads(FACTS.read_text(encoding="utf-8")) if only else {}
    for chain in read_toml("chains")["chains"]:
        if only and chain["name"] not in only:
            continue
        chain_text = "\n".join(text.text for text in texts if text.chain == chain["name"])
        repository = GitRepository.open(mirror_path(mirrors, "github.com", chain["repository"]))
        stages, paths = [], []
        for stage in chain["stages"]:
            [patch] = repository.patches([(stage["base"], stage["landed"])])
            reference = split(patch)
            at_base = repository.paths_at(stage["base"])
            found = stage_needs(repository, stage["base"], stage["landed"], reference)
            told, shas = interface_of(found.needs), [stage["landed"]]
            if chain.get("as_query"):  # the prose of a query may hold the texts that are told, and none of the names
                told = tuple(need for need in told if need.kind == "text")
            computed = stage_facts(stage["number"], shas, reference.source, reference.test, found.standing, told)
            if chain.get("as_query"):
                computed = telling(computed, [repository.run("show", "-s", "--format=%B", stage["landed"])])
            stages.append(json.loads(computed.to_json()))
            paths.append(sorted(path for path in at_base if _is_mentioned(path, chain_text)))
            interface = [need.text for need in told]
            click.echo(f"{chain['name']} #{stage['number']}: {len(computed.introduced)} names, interface {interface}")
        facts_by_chain[chain["name"]] = {"stages": stages, "paths": paths}
    FACTS.write_text(json.dumps(facts_by_chain, separators=(",", ":")).replace('{"number"', '\n{"number"') + "\n")


def _is_mentioned(path: str, text: str) -> bool:
    """Whether a text may mean the path: it has the file's name, or that name without its ending as part of a name."""
    name = path.rpartition("/")[2]
    return name in text or f".{name.partition('.')[0]}" in text


@main.command()
@click.option("--db", help="A database with the chains of `reviewed.toml`.")
@click.option("--made", required=True, metavar="TEXT", help="Which model answers, or how; kept beside the findings.")
def review(db: str | None, made: str) -> None:
    """Ask the reviewer for its findings in reviewed.toml, and write reviews.json."""
    from prchain.core.settings import Settings
    from research.leaks.reviews import review_texts, write_reviews

    write_reviews(review_texts(Settings.load(db=db)), made)


@main.command(name="score")
@click.option("--findings", is_flag=True, help="Also print every finding of every text.")
def score_(findings: bool) -> None:
    """Print precision and recall with 95 % Wilson intervals, and what was misjudged."""
    known = read_facts()
    for name in SPLITS:
        texts = read_texts(name)
        chains = {(text.chain, stage.number) for text in texts for stage in known[text.chain].stages}
        click.echo(f"{name}: {len(texts)} texts over {len(chains)} pull requests")
        _print(score(texts, known))
        for text in texts if findings else ():
            for finding in judge(text, known):
                click.echo(f"    {text.id} {finding.severity} {finding.kind} stage {finding.stage}: {finding.evidence}")
    _print_reviews(known)


def _print(result: Score) -> None:
    click.echo(f"  precision {share(*result.precision)}")
    click.echo(f"  recall    {share(*result.recall)}")
    found, lost = ([t for t in texts if REVIEWED.isdisjoint(t.leaks)] for texts in (result.caught, result.missed))
    if len(found) + len(lost) < result.recall[1]:
        seen = share(len(found), len(found) + len(lost))
        click.echo(f"  recall of what code can see {seen}; the rest is for the reviewer")
    caught = [text for text in result.caught if text.hard]
    hidden = [text for text in (*result.caught, *result.missed) if text.hard]
    innocent = [text for text in result.cleared if text.hard]
    looks_guilty = [*innocent, *(text for text, _ in result.blamed if text.hard)]
    click.echo(f"  hard ones: leaks caught {share(len(caught), len(hidden))}")
    click.echo(f"             clean cleared {share(len(innocent), len(looks_guilty))}")
    for kind, hits in sorted(result.kinds.items()):
        click.echo(f"  {kind:<20} named in {share(sum(hits), len(hits))}")
    for text in result.missed:
        click.echo(f"  missed: {text.id} {', '.join(text.leaks)}")
    for text, leaks in result.blamed:
        click.echo(f"  blamed: {text.id} {'; '.join(f'{finding.kind} {finding.evidence!r}' for finding in leaks)}")


def _print_reviews(known: Mapping[str, ChainFacts]) -> None:
    texts, (made, reviews) = read_texts(SPLIT), read_reviews()
    result, refused = score_reviews(texts, reviews), {review.id for review in reviews if review.leaking}
    checked = score(texts, known)
    both = refused | {text.id for text in (*checked.caught, *(text for text, _ in checked.blamed))}
    labelled = {text.id for text in texts if text.leaks}
    click.echo(f"{SPLIT}, by the reviewer: {made}")
    click.echo(f"  precision {share(*result.precision)}")
    click.echo(f"  recall of what is its part {share(*result.recall)}")
    click.echo(f"  clean ones let pass {share(*result.cleared)}, {result.warned} of them with a warning")
    click.echo(f"{SPLIT}, by check and reviewer together")
    click.echo(f"  precision {share(len(both & labelled), len(both))}")
    click.echo(f"  recall    {share(len(both & labelled), len(labelled))}")
    for text in texts:
        if bool(text.leaks) != (text.id in both):
            click.echo(f"  {'missed' if text.leaks else 'blamed'}: {text.id} {', '.join(text.leaks)}")


if __name__ == "__main__":
    main()
