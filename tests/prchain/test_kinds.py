"""What the name of a file says it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.code.kinds import LANGUAGES, FileKind, endings, is_text, kind_of, language_of
from tests.growth import assert_linear

KINDS = {
    FileKind.SOURCE: [
        # words inside words are no convention
        "src/latest.py",
        "contest.py",
        "attestation/verify.go",
        "pkg/protest.rb",
        "lib/backtest.ts",
        "greatest.rs",
        "src/manifest.js",
        "inspect/spectest.c",
        "sympy/ntheory/primetest.py",
        # test runners, and helpers that ship to users
        "src/_pytest/python.py",
        "src/_pytest/doctest.py",
        "src/pytest/__init__.py",
        "numpy/testing/_private/utils.py",
        "sympy/testing/runtests.py",
        "sympy/utilities/runtests.py",
        "py-polars/polars/testing/asserts/frame.py",
        "pandas/_testing/asserters.py",
        "django/test/client.py",
        "werkzeug/test.py",
        "flask/testing.py",
        "spring-boot-test/src/main/java/org/x/SpringBootTest.java",
        "Documents.java",
        "AUDIT.java",
        "scripts/run-tests.js",
        "crates/polars-testing/src/lib.rs",
        "packages/test-utils/src/index.ts",
        # parts of a program that are named like something else
        "src/minisweagent/run/benchmarks/swebench.py",
        "src/pkg/docs/render.py",
        "src/changes/parser.py",
        "sympy/external/gmpy.py",
        "crates/x/src/doc/mod.rs",
        "bin/isympy",
        "lib/vendoring.rb",
        "src/dist/loader.ts",
        "src/readme_renderer.py",
        "src/license.rs",
        "src/build.rs",
        "tools/locking.py",
        "grammar/LaTeX.g4",
    ],
    FileKind.TEST: [
        "tests/test_a.py",
        "pkg/tests/helper.py",
        "pkg/a_test.py",
        "pkg/tests.py",
        "conftest.py",
        "src/x/conftest.py",
        "testing/test_mark.py",
        "testing/code/test_source.py",
        "numpy/testing/tests/test_utils.py",
        "tests/data/README.md",
        "tests/vendor/lib.js",
        "tests/format/js/__snapshots__/format.test.js.snap",
        "src/a.test.ts",
        "src/a.spec.tsx",
        "src/Foo-test.js",
        "mod_test.ts",
        "test.js",
        "src/__tests__/a.js",
        "src/__mocks__/fs.js",
        "src/__snapshots__/a.js.snap",
        "cypress/login.cy.ts",
        "e2e/run.js",
        "types.test-d.ts",
        "tests_integration/runPrettier.js",
        "tests_config/run_spec.js",
        "crates/x/tests/it/main.rs",
        "src/tests.rs",
        "src/windows/test.rs",
        "src/parser_test.rs",
        "benches/groupby.rs",
        "py-polars/tests/unit/a.parquet",
        "pkg/a_test.go",
        "pkg/testdata/in.json",
        "core/src/test/java/org/x/Helper.java",
        "x/FooTest.java",
        "x/FooTests.kt",
        "x/LoginIT.java",
        "x/ParserSpec.scala",
        "app/src/androidTest/java/A.java",
        "base/string_test.cc",
        "base/test_string.cpp",
        "base/string_unittest.cc",
        "test/a.c",
        "FooTest.cpp",
        "spec/models/user_spec.rb",
        "spec/fixtures/a.rb",
        "test/test_a.rb",
        "tests/FooTest.php",
        "run.phpt",
        "src/App.Tests/FooTests.cs",
        "App.UnitTests/Helper.cs",
        "Tests/AppTests/FooTests.swift",
        "test/a_test.dart",
        "sympy/core/benchmarks/bench_expr.py",
        "bench/bench.py",
        "asv_bench/benchmarks/io.py",
        "unit_tests/a.py",
    ],
    FileKind.DOCS: [
        "README",
        "readme.md",
        "LICENSE",
        "COPYING.LESSER",
        "docs/conf.py",
        "doc/en/example/test_a.py",
        "pkg/docs/a.rst",
        "CHANGELOG.md",
        "changelog/123.bugfix.rst",
        "changelog_unreleased/js/1.md",
        "newsfragments/12.feature",
        "doc/release/upcoming_changes/1.new_feature.rst",
        ".changeset/brave-cats.md",
        "examples/demo.py",
        ".mailmap",
        "website/src/app.jsx",
        "notebooks/a.ipynb",
        "src/lib/README.md",
        "mkdocs.yml",
        "notes.txt",
        "CITATION.cff",
    ],
    FileKind.LOCK: [
        "Cargo.lock",
        "package-lock.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "poetry.lock",
        "uv.lock",
        "go.sum",
        "a/Gemfile.lock",
        "gradle.lockfile",
        "Package.resolved",
        "packages.lock.json",
        ".terraform.lock.hcl",
    ],
    FileKind.GENERATED: [
        "api/a.pb.go",
        "a_pb2.py",
        "a_pb2_grpc.py",
        "static/app.min.js",
        "dist/index.js",
        "src/a.generated.ts",
        "sympy/assumptions/ask_generated.py",
        "sympy/parsing/latex/_antlr/latexlexer.py",
        "src/__generated__/q.ts",
        "zz_generated.deepcopy.go",
        "a.js.map",
        "lib/a.g.dart",
        "dsl-schema.sha256",
    ],
    FileKind.VENDORED: [
        "vendor/github.com/x/y.go",
        "third_party/zlib/zlib.c",
        "pip/_vendor/rich/text.py",
        "node_modules/a/index.js",
        "astropy/extern/ply/lex.py",
        "vendor/x/tests/a_test.go",
        ".yarn/releases/yarn.cjs",
    ],
    FileKind.CI: [
        ".github/workflows/ci.yml",
        ".github/scripts/test_a.py",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
        ".travis.yml",
        "azure-pipelines.yml",
        ".pre-commit-config.yaml",
        "codecov.yml",
        ".readthedocs.yaml",
        "CODEOWNERS",
        "renovate.json",
    ],
    FileKind.CONFIG: [
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "package.json",
        "crates/a/Cargo.toml",
        "go.mod",
        "tox.ini",
        "Makefile",
        "CMakeLists.txt",
        "Dockerfile",
        "requirements-dev.txt",
        ".gitignore",
        "tsconfig.build.json",
        "jest.config.js",
        ".eslintrc.cjs",
        "pom.xml",
        "App.csproj",
        "x.gemspec",
        ".vscode/settings.json",
        "MANIFEST.in",
    ],
    FileKind.DATA: ["src/pkg/default.yaml", "data/a.csv", "locale/de.po", "src/pkg/words.txt", "src/schema.json"],
    FileKind.BINARY: ["imgs/a.png", "a.zip", "font.woff2", "locale/de.mo", "logo.svg", "data/a.parquet"],
}


@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind, paths in KINDS.items() for path in paths])
def test_each_file_has_the_kind_that_its_projects_tools_give_it(kind: FileKind, path: str) -> None:
    assert kind_of(path) is kind


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "python"),
        ("a.pyi", "python"),
        ("a.pyx", "cython"),
        ("a.rs", "rust"),
        ("a.ts", "typescript"),
        ("a.mts", "typescript"),
        ("a.tsx", "typescript"),
        ("a.mjs", "javascript"),
        ("a.jsx", "javascript"),
        ("a.go", "go"),
        ("a.java", "java"),
        ("a.kt", "kotlin"),
        ("a.h", "c++"),
        ("a.c", "c"),
        ("a.cc", "c++"),
        ("a.rb", "ruby"),
        ("a.php", "php"),
        ("a.cs", "c#"),
        ("a.scala", "scala"),
        ("a.swift", "swift"),
        ("a.sh", "shell"),
        ("README.md", None),
        ("a.json", None),
        ("a", None),
        ("", None),
        ("py", None),
        ("a.py/b", None),
    ],
)
def test_the_language_is_told_by_the_ending(path: str, language: str | None) -> None:
    assert language_of(path) == language


@given(
    st.text(max_size=60) | st.lists(st.sampled_from(["src", "tests", "docs", ".", "a.py", "é", "", "\n"])).map("/".join)
)
def test_every_text_has_one_kind_and_at_most_one_known_language(path: str) -> None:
    assert kind_of(path) in FileKind
    assert language_of(path) in {None, *LANGUAGES}


@given(st.sampled_from([path for paths in KINDS.values() for path in paths]))
def test_whatever_lies_below_a_test_folder_is_test(path: str) -> None:
    assert kind_of(f"tests/{path}") is FileKind.TEST or "django/test" in path


@given(st.sampled_from(KINDS[FileKind.TEST]), st.sampled_from(["Tests", "TESTS", "tests"]))
def test_the_case_of_a_folder_does_not_matter(path: str, folder: str) -> None:
    assert kind_of(f"{folder}/a/{path}") is FileKind.TEST


def test_the_endings_are_those_of_files_in_a_language() -> None:
    assert {"py", "pyx", "rs", "go", "java", "rb", "ts", "g4", "kt"} <= endings()
    assert endings().isdisjoint({"png", "json", "md", "lock", ""})


@given(st.sampled_from(sorted(endings())))
def test_a_file_with_an_ending_of_a_language_has_one(ending: str) -> None:
    assert language_of(f"name.{ending}") is not None


@pytest.mark.drawn(6)
@pytest.mark.parametrize("unit", ["test_", "tests/", "a.", "-", "docs.", "requirements-", "__", "A1Test", "é"])
def test_the_time_to_read_hostile_paths_grows_as_they_do(unit: str) -> None:
    def work(path: str) -> None:
        for ending in ("", ".py", ".js", ".cc", "!"):
            kind_of(path + ending)

    assert_linear(lambda size: unit * (size // len(unit)), work, 5000)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/a.py", True),
        ("tests/data/a.json", True),
        ("docs/x.md", True),
        ("Makefile", True),
        ("bin/run", True),
        ("tests/data/a.png", False),
        ("docs/logo.svg", True),
        ("src/lib.so", False),
        ("a.pyc", False),
        ("src/run", None),
        ("data/x.unknown", None),
    ],
)
def test_whether_a_name_is_that_of_a_text(path: str, text: bool | None) -> None:
    assert is_text(path) is text
