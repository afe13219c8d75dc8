"""What git knows of the files in a sandbox that holds a stage's base, the README.md of `stageworld` among them."""

from __future__ import annotations

from environments.sandboxes.sandbox import Sandbox


def check_index_is_current(sandbox: Sandbox) -> None:
    """See that git reads no file to tell that none has changed: it cannot."""
    hidden = sandbox.exec("git ls-files -z | grep -zv '^[.]git' | xargs -0 chmod 0; ! cat README.md")
    assert hidden.exit_code == 0 and "Permission denied" in hidden.text
    assert sandbox.exec("git status --porcelain && git diff-files").text == ""


def check_edits_are_seen(sandbox: Sandbox) -> None:
    """See that git shows a file that is changed at once, and once more in the second that git notes it, its size kept.
    Nothing was written to the sandbox yet."""
    assert sandbox.exec("test $(date +%s) -ge $(stat -c %Y .git/index)").exit_code == 0
    edited = sandbox.exec("echo '# tall' > README.md; git diff --name-only; git add .; echo '# tell' > README.md")
    assert edited.text == "README.md\n"
    assert sandbox.exec("git status --porcelain; wc -c < README.md; git show HEAD:README.md").text == (
        "MM README.md\n7\n# till\n"
    )
