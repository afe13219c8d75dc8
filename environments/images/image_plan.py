"""What a build needs to know of a tree: the plan of an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from environments.sandboxes.sandbox import WORKDIR

if TYPE_CHECKING:  # a page of help needs a backend, and no recipes
    from environments.images.node_project import NodeProject
    from environments.images.recipes import Recipe
    from environments.images.wanted_go import GoChoice
    from environments.images.wanted_python import Choice

BUILD = "/var/tmp/prchain-build"
"""The folder in a build's container that steps know as ``$BUILD``; it is gone before the image is committed."""


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """Everything that a build needs to know of a tree, and a stage of the image. Equal plans build equal images, as far
    as the index gives equal answers."""

    repository: str
    recipe: Recipe
    image: str
    manifests: tuple[str, ...]
    files: Mapping[str, bytes]
    """Files of ``$BUILD``."""
    variables: Mapping[str, str]
    """Variables of the build's steps."""
    environment: Mapping[str, str]
    """Variables of every command in a sandbox of this stage, beside the image's: versions that git cannot tell."""
    runner: str
    """A name of `environments.suites.runners`."""
    test: str
    """A test command in place of the runner's own; mostly empty."""
    python: Choice | None = None
    """The interpreter that was chosen; None where the recipe looks for one by itself."""
    default_python: bool = True
    """Whether that is the base image's own."""
    added: tuple[str, ...] = ()
    """Requirements that the stage's own landing adds (`environments.images.added_requirements`, `added_packages`)."""
    tag: str = ""
    """A tag for the commit of a build, where tools read the version from it; empty where the repository has none."""
    workdir: str = WORKDIR
    """Where the image has the repository."""
    arguments: tuple[str, ...] = ()
    """Options for the runner that our reporter starts, beside its own."""
    of: str = ""
    """The publisher's image that this one is made of; empty where it is built."""
    node: NodeProject | None = None
    """What a project of Node is built with."""
    go: GoChoice | None = None
    """The Go that was chosen; None: Debian's."""
    wished_packages: tuple[str, ...] = ()
    """Packages of Debian that CI installs (`environments.images.debian_wishes`), as far as they can be had."""
    way: str = ""
    """A hash over how images like this one are made, whatever the manifests: the recipe, the base image, the
    interpreter. Empty where nothing is built."""
    go_refused: str = ""
    """Why it is Debian's, though a newer one is asked for."""

    @property
    def refresh(self) -> tuple[str, ...]:
        """Offline scripts to run when a tree has been put in place."""
        return self.recipe.refresh

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages of Debian beyond the base image."""
        if self.go is not None:
            return tuple(it for it in self.recipe.packages if it.partition("=")[0] != "golang")
        return self.recipe.packages if self.node is None else self.node.beside(self.recipe.packages)

    @property
    def chosen(self) -> tuple[str, ...]:
        """For people: what Node, Go, package manager and packages of Debian were chosen, and by what."""
        wished = [f"Debian's {', '.join(self.wished_packages)}, by CI files"] if self.wished_packages else []
        if self.node is not None:
            return (*self.node.notes, *wished)
        refused = f"go of Debian: {self.go_refused}"
        return (*([self.go.note] if self.go else [refused] if self.go_refused else []), *wished)
