"""A folder with prompts of the user's own: what takes the place of ours, and what is refused before any call."""

from __future__ import annotations

from pathlib import Path

import pytest

from prchain.core.errors import SettingsError
from prchain.core.llm.own_prompts import PromptFolder, form_of
from prchain.core.llm.prompts import laid_in, load_prompt, prompt_source, shipped_prompt
from prchain.prompts import KNOWN, PROMPTS
from research.prompts_page import page
from trajectories.agents.scaffolds.kinds import SCAFFOLDS
from trajectories.model import EntryKind
from trajectories.options import RolloutOptions

ROOT = Path(__file__).parents[2]

VERDICTS = "trajectories.verdicts"
COMMENT_AGAIN = (
    "{% block system %}Marken: {{ nonce }}{% endblock %}"
    "{% block user %}Schreibe ohne Verrat: {{ comment }} {{ findings }} {{ query }} für Ärger{% endblock %}"
)


def folder_with(folder: Path, name: str, text: str | bytes) -> PromptFolder:
    path = folder / f"{name}.j2"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return PromptFolder(folder, KNOWN)


def test_every_prompt_that_ships_can_be_replaced_and_is_told() -> None:
    packages = {path.parent.parent for path in ROOT.glob("*/**/prompts/*.j2") if ".venv" not in path.parts}
    shipped = {
        (".".join(folder.relative_to(ROOT).parts), path.stem)
        for folder in packages
        for path in (folder / "prompts").iterdir()
        if path.suffix == ".j2"
    }
    assert shipped == set(KNOWN) and len(KNOWN) == len(set(KNOWN))
    assert len({f"{one.package.rpartition('.')[2]}/{one.name}" for one in PROMPTS}) == len(PROMPTS)


def test_the_page_of_prompts_is_what_the_templates_tell() -> None:
    text = (ROOT / "docs" / "prompts.md").read_text(encoding="utf-8")
    assert page() == text, "run: python -m research.prompts_page > docs/prompts.md"


@pytest.mark.parametrize("known", KNOWN, ids="/".join)
def test_a_copy_of_ours_is_taken_as_it_is(known: tuple[str, str], tmp_path: Path) -> None:
    package, name = known
    own = folder_with(tmp_path, f"{package.rpartition('.')[2]}/{name}", prompt_source(package, name))
    found = own(package, name)
    assert found is not None and found.hash == shipped_prompt(package, name).hash


def test_a_prompt_in_another_language_takes_the_place_of_ours_and_has_another_hash(tmp_path: Path) -> None:
    with laid_in(folder_with(tmp_path, "verdicts/comment_again", COMMENT_AGAIN)):
        prompt, judge = load_prompt(VERDICTS, "comment_again"), load_prompt(VERDICTS, "judge")
    system, user = prompt.render(nonce="n", comment="c", findings="f", query="q")
    assert (system.content, user.content) == ("Marken: n", "Schreibe ohne Verrat: c f q für Ärger")
    assert prompt.hash != shipped_prompt(VERDICTS, "comment_again").hash
    assert judge is shipped_prompt(VERDICTS, "judge")
    assert load_prompt(VERDICTS, "comment_again") is shipped_prompt(VERDICTS, "comment_again")


def test_a_scaffold_works_with_the_laid_in_prompt_and_tells_its_hash(tmp_path: Path) -> None:
    def prompts() -> dict[str, str]:
        return dict(SCAFFOLDS["react"].make(RolloutOptions()).prompts)

    ours = prompts()
    with laid_in(
        folder_with(tmp_path, "scaffolds/comment", "{% block user %}Noch einmal: {{ comment }}{% endblock %}")
    ):
        own = prompts()
        words = SCAFFOLDS["react"].make(RolloutOptions()).opening(EntryKind.COMMENT, {"comment": "zu kurz"})
    changed = {name for name in ours if own[name] != ours[name]}
    assert changed == {"comment"} and words == "Noch einmal: zu kurz"


@pytest.mark.parametrize(("name", "text", "words"), [
    ("verdicts/comment_again", COMMENT_AGAIN.replace("{{ query }}", ""),
     "verdicts/comment_again.j2 lacks query; what is left out on purpose is told: {# without: query #}"),
    ("verdicts/comment_again", COMMENT_AGAIN + "{{ colour }}", "it has no variable colour; known are"),
    ("verdicts/comment_again", COMMENT_AGAIN.replace("{{ query", "{{ qurey"),
     "it has no variable qurey; did you mean query"),
    ("verdicts/comment_again", COMMENT_AGAIN + "{# without: qurey #}", "no variable qurey"),
    ("verdicts/comment_again", COMMENT_AGAIN + "{# without: query #}", "names query as left out, and has it"),
    ("verdicts/comment_agian", COMMENT_AGAIN, "is no prompt; did you mean verdicts/comment_again"),
    ("comment_again", COMMENT_AGAIN, "comment_again.j2 is no prompt"),
    ("verdicts/comment_again", COMMENT_AGAIN.replace("system", "sytem"), "must have the blocks system, user"),
    ("scaffolds/comment", "{% block system %}x{% endblock %}{% block user %}{{ comment }}{% endblock %}",
     "must have the blocks user, and no other"),
    ("verdicts/comment_again", COMMENT_AGAIN + "{% include 'verdicts/judge.j2' %}", "takes in another file"),
    ("verdicts/comment_again", "{% block user %}{{ comment", "is no template"),
    ("verdicts/comment_again", b"{% block user %}\xff{% endblock %}", "is no template"),
], ids=range(12))  # fmt: skip
def test_what_cannot_stand_for_ours_is_refused_whichever_prompt_is_wanted(
    name: str, text: str | bytes, words: str, tmp_path: Path
) -> None:
    with laid_in(folder_with(tmp_path, name, text)), pytest.raises(SettingsError) as refused:
        load_prompt("chains.tasks", "plan")
    assert str(refused.value).startswith("prompts_dir: ") and words in str(refused.value)


def test_a_variable_that_is_left_out_on_purpose_is_no_oversight(tmp_path: Path) -> None:
    text = "{# without: query, findings #}" + COMMENT_AGAIN.replace("{{ query }}", "").replace("{{ findings }}", "")
    assert folder_with(tmp_path, "verdicts/comment_again", text)(VERDICTS, "comment_again") is not None


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with laid_in(PromptFolder(tmp_path / "none", KNOWN)), pytest.raises(SettingsError, match="none is no folder"):
        load_prompt(VERDICTS, "judge")


def test_what_a_template_sets_itself_is_no_variable_of_it() -> None:
    text = (
        b"{% block user %}{% if a %}{% set b = a %}{{ b }}{% endif %}{% for c in a %}{{ c }}{% endfor %}{% endblock %}"
    )
    assert form_of("x", text).variables == {"a"}
