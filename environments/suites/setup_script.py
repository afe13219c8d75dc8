"""``setup.py``: whether two differ in more than what they declare. It is code that runs when a tree is made ready."""

from __future__ import annotations

import ast

from prchain.core.code.syntax_trees import syntax_tree

_DECLARED = frozenset(
    {"name", "version", "description", "long_description", "long_description_content_type", "url", "project_urls"}
    | {"author", "author_email", "maintainer", "maintainer_email", "license", "classifiers", "keywords", "platforms"}
    | {"packages", "package_data", "include_package_data", "py_modules"}
    | {"install_requires", "extras_require", "tests_require", "setup_requires", "python_requires", "zip_safe"}
    | {"entry_points", "namespace_packages", "download_url", "provides", "obsoletes", "requires"}
)
"""Arguments of ``setup`` that only declare; with literals, nothing of them runs."""

_RUNNERS = (
    "pytest",
    "unittest",
    "pluggy",
    "sitecustomize",
    "usercustomize",
    ".pth",
    "site-packages",
    "python =",
    "python=",
)
"""Words of runners and of Python's own start: what names one is not only declared."""


_REQUIREMENTS = frozenset({"install_requires", "extras_require", "tests_require", "setup_requires"})


def same_but_declared(one: bytes, other: bytes) -> bool:
    """Whether they are the same code but for literal arguments of ``setup``, none of which names a runner's plugins.

    Texts that do not parse differ.
    """
    try:
        return _code(one) == _code(other)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _code(text: bytes) -> str:
    tree = syntax_tree(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) == "setup":
            node.keywords = [it for it in node.keywords if not _declares(it)]
    return ast.dump(tree)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _declares(keyword: ast.keyword) -> bool:
    if keyword.arg not in _DECLARED:
        return False
    try:
        value = ast.literal_eval(keyword.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    words = repr(value).lower()
    return keyword.arg in _REQUIREMENTS or not any(word in words for word in _RUNNERS)
