"""The reporters on Node, driven as jest, vitest and mocha drive them; Python's run in the tests of test runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from environments.suites.testlogs import read_events
from environments.suites.testruns import reporters

KEY = b"\x00\xff"
NODE = shutil.which("node")
DRIVERS = {
    "nodetest": """
const reporter = require('./node_reporter.cjs')
const file = (name) => process.cwd() + name
const one = (type, name, nesting, more) => ({ type, data: { name, nesting, file: file('/t/a.js'), ...more } })
const failed = (type, failureType) => ({ details: { type, error: { failureType } } })
const whole = (type, name, more) => ({ type, data: { name: file(name), nesting: 0, file: file(name), ...more } })
async function * events () {
  yield one('test:start', 'cart é', 0)
  for (const name of ['adds', 'fails', 'later']) {
    yield one('test:start', name, 1)
    if (name === 'adds') yield one('test:pass', name, 1)
    if (name === 'fails') yield one('test:fail', name, 1, failed(undefined, 'testCodeFailure'))
    if (name === 'later') yield one('test:fail', name, 1, { todo: true, ...failed(undefined, 'testCodeFailure') })
  }
  yield one('test:start', 'over', 1)
  yield one('test:fail', 'over', 1, failed(undefined, 'cancelledByParent'))
  yield one('test:fail', 'cart é', 0, failed('suite', 'subtestsFailed'))
  yield whole('test:fail', '/t/b.js', failed(undefined, 'testCodeFailure'))
  yield whole('test:pass', '/t/c.js')
}
async function drive () { for await (const one of reporter(events())) process.exit(one) }
drive()
""",
    "mocha": """
const { EventEmitter } = require('events')
const runner = new EventEmitter()
runner.stats = { failures: 2 }
new (require('./mocha_reporter.cjs'))(runner)
if (process.argv.length !== 2) throw process.argv
const test = (title) => ({ file: process.cwd() + '/t/a.js', titlePath: () => ['cart é', title], type: 'test' })
runner.emit('test', test('adds')); runner.emit('pass', test('adds'))
runner.emit('test', test('fails')); runner.emit('fail', test('fails'))
runner.emit('pending', test('later'))
runner.emit('test', test('never')); runner.emit('fail', { ...test('hook'), type: 'hook' })
runner.emit('end')
""",
    "jest": """
const Reporter = require('./jest_reporter.cjs')
const one = new Reporter()
if (process.argv.length !== 2) throw process.argv // a test in this process would read ours for its own
const file = (path) => ({ path: process.cwd() + path })
const made = (title, status) => ({ ancestorTitles: ['cart é'], title, status })
one.onTestFileStart(file('/t/a.js'))
const all = [made('adds', 'passed'), made('fails', 'failed'), made('later', 'todo')]
one.onTestResult(file('/t/a.js'), { testResults: all })
one.onTestFileStart(file('/t/b.js'))
one.onTestResult(file('/t/b.js'), { testResults: [], testExecError: {} })
one.onTestFileStart(file('/t/c.js'))
one.onRunComplete({}, { success: false })
""",
    "vitest": """
import('./vitest_reporter.mjs').then((module) => {
  const one = new module.default()
  one.onInit()
  const test = (name, state, mode = 'run') => ({ type: 'test', name, mode, result: state && { state } })
  const tests = [test('adds', 'pass'), test('fails', 'fail'), test('later', undefined, 'skip'), test('never')]
  const a = { filepath: process.cwd() + '/t/a.js', tasks: [{ type: 'suite', name: 'cart é', tasks: tests }] }
  const b = { filepath: process.cwd() + '/t/b.js', tasks: [], result: { state: 'fail', errors: [{}] } }
  one.onTestRunEnd([{ task: a }, { task: b }], [])
  one.onFinished([a, b], [])
})
""",
}
MORE = {
    "nodetest": {"t/a.js > cart é > over": "error", "t/b.js": "error", "t/c.js": "passed"},
    "mocha": {"t/a.js > cart é > never": "error", "t/a.js > cart é > hook": "error"},
    "jest": {"t/b.js": "error", "t/c.js": "error"},
    "vitest": {"t/b.js": "error", "t/a.js > cart é > never": "collected"},
}


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("runner", DRIVERS)
def test_reporters_on_node_sign_what_their_runner_tells_them(tmp_path: Path, runner: str) -> None:
    for file in resources.files("environments.suites.reporters").iterdir():
        if file.name.endswith("js"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "drive.cjs").write_text(DRIVERS[runner], encoding="utf-8")
    order = json.dumps({"key": KEY.hex(), "report": str(tmp_path / "report")})
    subprocess.run([str(NODE), "drive.cjs", "--ci"], cwd=tmp_path, input=order.encode(), check=True, timeout=60)
    read = read_events((tmp_path / "report").read_bytes(), KEY)
    assert read.statuses == {
        "t/a.js > cart é > adds": "passed",
        "t/a.js > cart é > fails": "failed",
        "t/a.js > cart é > later": "skipped",
        **MORE[runner],
    }
    assert (read.started, read.exit_code, read.foreign, read.gap) == (True, 1, 0, False)


_MOCHA = """
const { EventEmitter } = require('events')
const assert = require('assert')
const Runnable = require('./node_modules/mocha/lib/runnable.js')
const Mocha = require('./node_modules/mocha/lib/mocha.js')
const runner = new EventEmitter()
const Reporter = require('./mocha_reporter.cjs')
const mocha = new Mocha(['/t/a.js', '/t/b.js'])
ATTACK
mocha.loadFiles()
new Reporter(runner)
runner.emit('start')
LATE
runner.emit('test', { file: process.cwd() + '/t/a.js', titlePath: () => ['adds'], type: 'test' })
runner.emit('end')
"""
_REPLACED = {
    "": ([], []),
    "load = () => { globalThis.it = () => {} }": ([], ["global.it"]),
    "load = () => { globalThis.it.skip = () => {} }": ([], ["it.skip"]),
    "load = () => { assert.strict.equal = () => {} }": ([], ["assert.strict.equal"]),
    "load = () => { globalThis.mine = () => {}; assert.mine = () => {} }": ([], []),
    "Runnable.prototype.run = () => {}": (["late"], ["mocha.runnable.run"]),
    "Object.defineProperty(Object, 'is', { value: () => true })": (["late"], ["Object.is"]),
}


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("attack", _REPLACED)
def test_functions_of_mocha_and_its_assertions_are_watched_from_the_first_file_on(tmp_path: Path, attack: str) -> None:
    """Also those that mocha makes anew for each file; what nobody replaced, or only added, is told of nowhere."""
    for file in resources.files("environments.suites.reporters").iterdir():
        if file.name.endswith("js"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    library = tmp_path / "node_modules/mocha/lib"
    library.mkdir(parents=True)
    (library / "runnable.js").write_text("module.exports = class { run () {} }")
    (library / "mocha.js").write_text("""
const { EventEmitter } = require('events')
module.exports = class {
  constructor (files) { this.files = files; this.suite = new EventEmitter() }
  loadFiles () {
    globalThis.it = () => {}
    globalThis.it.skip = () => {}
    this.suite.emit('pre-require', globalThis, this.files[0])
    if (this.files[0].endsWith('b.js')) globalThis.load()
  }
}
""")
    late, told = _REPLACED[attack]
    text = _MOCHA.replace("ATTACK", "globalThis.load = () => {}" if late else attack or "globalThis.load = () => {}")
    (tmp_path / "drive.cjs").write_text(text.replace("LATE", attack if late else ""), encoding="utf-8")
    order = json.dumps({"key": KEY.hex(), "report": str(tmp_path / "report")})
    subprocess.run([str(NODE), "drive.cjs"], cwd=tmp_path, input=order.encode(), check=True, timeout=60)
    read = read_events((tmp_path / "report").read_bytes(), KEY)
    assert (read.watched, sorted(read.tampered), read.foreign) == (True, told, 0)


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_reporter_of_an_old_vitest_finds_its_other_half(tmp_path: Path) -> None:
    tools, tree = tmp_path / "tools", tmp_path / "tree"
    for folder in (tools, tree):
        folder.mkdir()
    for name, content in reporters("{tools}/vitest_reporter.mjs").items():
        told = f"'file://{tree}{tools}/{name}'".encode()
        (tools / name).write_bytes(content.replace(b"import.meta.url", told))
    (tools / "drive.cjs").write_text(DRIVERS["vitest"], encoding="utf-8")
    order = json.dumps({"key": KEY.hex(), "report": str(tmp_path / "report")})
    subprocess.run([str(NODE), str(tools / "drive.cjs")], cwd=tree, input=order.encode(), check=True, timeout=60)
    assert read_events((tmp_path / "report").read_bytes(), KEY).exit_code == 1


def test_a_command_gets_the_reporter_that_it_names_with_what_that_loads_and_else_all() -> None:
    everything = reporters("own-runner --report {report}")
    assert len(everything) == len(reporters("run {tools} FILES")) == 9
    for name, content in everything.items():
        imported = re.findall(r"^ *from (\w+) import|require\S*\('\./(\S+)'\)|\('\./(\S+)'\)", content.decode(), re.M)
        words = {word for words in imported for word in words}
        loaded = {other for other in everything if {other, other.removesuffix(".py")} & words}
        assert reporters(f"run {{tools}}/{name} FILES") == {it: everything[it] for it in (name, *loaded)}
