"""The functions of masks in a file of JavaScript (`environments.suites.canaries.jsmasks`). Pure."""

from __future__ import annotations

import json

_RECORDER = r"""
;var NAME_own;
function NAME_kept() {
  // Properties of an object's own: those of a function or a prototype are anybody's to take.
  return NAME_own = NAME_own || {calls: null, last: undefined, seen: 0, isProxy: null, isBlind: false};
}
function NAME(number, kind) {
  return {
    $$typeof: Symbol.for('jest.asymmetricMatch'), NAME: true, number: number, kind: kind || '=',
    asymmetricMatch: function (value) { NAME_tell(this, value); return true; },
    toString: function () { return 'mask'; },
    getExpectedType: function () { return 'any'; },
    toAsymmetricMatcher: function () { return 'mask'; }
  };
}
function NAME_named(number, name) {
  var it = NAME(number);
  function said() { return name; }
  it.toString = it.inspect = said;
  it[Symbol.for('nodejs.util.inspect.custom')] = it[Symbol.for('chai/inspect')] = said;
  return it;
}
function NAME_regexp(number, kind) {
  var it = new RegExp(''), mask = NAME(number, kind);
  it.test = function (value) {
    // A header that is given several times.
    return mask.asymmetricMatch(Array.isArray(value) ? String(value) : value);
  };
  it.NAME = true;
  it.number = number;
  it.kind = mask.kind;
  return it;
}
function NAME_near(wanted, rule) {
  return NAME_is_mask(wanted) ? NAME(wanted.number, '@' + rule + ' ') : wanted;
}
function NAME_is_mask(it) {
  return it !== null && typeof it === 'object' && it.NAME === true;
}
function NAME_quoted(text) {
  // As JSON has it, by syntax alone: the tested code may have put other functions in the place of any that there are.
  var controls = 'CONTROLS', short = '\b\t\n\f\r"\\', words = 'btnfr"\\', hex = '0123456789abcdef', made = '"';
  for (var at = 0; at < text.length; at += 1) {
    var it = text[at], next = text[at + 1], place = 0, code = 0xfffd;
    while (place < short.length && short[place] !== it) place += 1;
    if (place < short.length) {
      made += '\\' + words[place];
    } else if (it >= '\ud800' && it <= '\udbff' && next >= '\udc00' && next <= '\udfff') {
      made += it + next;
      at += 1;
    } else {
      place = 0;
      if (it < ' ' || it >= '\x7f') while (place < controls.length && controls[place] !== it) place += 1;
      else place = controls.length;
      if (place < controls.length) code = place < 32 ? place : place < 65 ? place + 95 : place + 8167;
      if (place === controls.length && !(it >= '\ud800' && it <= '\udfff')) made += it;
      else made += '\\u' + hex[code >> 12] + hex[code >> 8 & 15] + hex[code >> 4 & 15] + hex[code & 15];
    }
  }
  return made + '"';
}
function NAME_whole(value, depth) {
  // The parts of plain lists and objects; others have no text of their own.
  if (typeof value === 'string') return NAME_quoted(value);
  var kept = NAME_kept();
  kept.seen = depth ? kept.seen + 1 : 0;
  if (typeof value === 'function' || typeof value === 'symbol' || depth > 40 || kept.seen > 20000) throw value;
  if (value === null || typeof value !== 'object') return String(value);
  if (Array.isArray(value)) {
    return '[' + value.map(function (it) { return NAME_whole(it, depth + 1); }).join() + ']';
  }
  if (Object.prototype.toString.call(value) !== '[object Object]') throw value;
  // A part that is not there is one that is undefined.
  return '{' + Object.keys(value).filter(function (key) {
    return value[key] !== undefined;
  }).sort().map(function (key) {
    return NAME_quoted(key) + ':' + NAME_whole(value[key], depth + 1);
  }).join() + '}';
}
function NAME_text(value, kind) {
  if (kind[0] === '@') return typeof value === 'number' ? '' + value : 'null';
  if (kind !== '=' && value !== null && typeof value === 'object') {
    if (Array.isArray(value)) {
      var listed = '';
      for (var at = 0; at < value.length && at < 1000; at += 1) {
        var part = value[at];
        if (typeof part === 'string') listed += (listed && ',') + NAME_quoted(part);
        if (typeof part === 'number') listed += (listed && ',') + (part - part === 0 ? part : 'null');
      }
      return '[' + listed + ']';
    }
    // Expressions are looked for in the text of an error, texts in its message.
    if (kind === '%') value = '' + value;
    else if (typeof value.message === 'string') value = value.message;
  }
  if (typeof value === 'string') return NAME_quoted(value);
  if (typeof value === 'bigint') return value + 'n';
  if (value !== null && (typeof value === 'object' || typeof value === 'function')) {
    try { return NAME_whole(value, 0); } catch (error) { return '[object]'; }
  }
  // Equality that is not strict takes both.
  return value === undefined ? 'null' : typeof value === 'symbol' ? '[symbol]' : '' + value;
}
function NAME_builtin(name) {
  if (typeof process !== 'undefined' && process.getBuiltinModule) return process.getBuiltinModule(name);
  if (typeof require === 'function') return require(name);
  var found = name === 'fs' ? IMPORTED : null;
  return found || process.mainModule.require(name);
}
function NAME_is_plain(value) {
  // A proxy says what it is asked for, whatever it holds.
  var kept = NAME_kept();
  if (kept.isBlind || value === null || typeof value !== 'object') return true;
  try {
    kept.isProxy = kept.isProxy || NAME_builtin('util').types.isProxy;
  } catch (error) {
    kept.isBlind = true;
    return true;
  }
  return !kept.isProxy(value);
}
function NAME_tell(mask, value) {
  var text = NAME_text(value, mask.kind);
  var kept = NAME_kept(), calls = kept.calls;
  try {
    if (!calls) {
      var fs = NAME_builtin('fs');
      if (!fs.openSync) fs = fs.default;
      calls = kept.calls = [fs.openSync, fs.writeSync, fs.closeSync];
    }
    var file = calls[0](REPORT, 'a');
    calls[1](file, mask.number + ' ' + mask.kind + text + '\n');
    calls[2](file);
  } catch (error) {
    // What is not told is missed outside.
  }
}
function NAME_put(wanted, value, depth) {
  if (NAME_is_mask(wanted)) {
    // What cannot hold a part is told nothing of: the test fails, and is tried without this mask.
    if (wanted.kind === '~' && typeof value !== 'string' && !Array.isArray(value)) return wanted;
    NAME_tell(wanted, value);
    if (wanted instanceof RegExp) return wanted;
    return wanted.kind === '~' && Array.isArray(value) ? value[0] : value;
  }
  depth = depth || 0;
  if (wanted === null || typeof wanted !== 'object' || wanted.$$typeof || depth > 40) return wanted;
  if (!Array.isArray(wanted) && Object.prototype.toString.call(wanted) !== '[object Object]') return wanted;
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return wanted;
  if (!NAME_is_plain(value)) return wanted;
  Object.keys(wanted).forEach(function (key) {
    var part = wanted[key];
    if (part === null || typeof part !== 'object' || !(key in value)) return;
    var put = NAME_put(part, value[key], depth + 1);
    if (put !== part) wanted[key] = put;
  });
  return wanted;
}
function NAME_args(args, swapped) {
  if (swapped) args[0] = NAME_put(args[0], args[1]);
  else args[1] = NAME_put(args[1], args[0]);
  return args;
}
function NAME_see(value) {
  NAME_kept().last = value;
  return value;
}
function NAME_part(path) {
  return path.reduce(function (it, key) {
    return it === null || it === undefined ? undefined : it[key];
  }, NAME_kept().last);
}
function NAME_want(wanted, path) {
  var value = NAME_kept().last;
  if (value && typeof value.then === 'function') return wanted;
  return NAME_put(wanted, path ? NAME_part(path) : value);
}
function NAME_property(args) {
  var path = [args[0]];
  if (Array.isArray(args[0])) path = args[0];
  else if (NAME_part(path) === undefined) path = String(args[0]).split('.');
  args[1] = NAME_put(args[1], NAME_part(path));
  return args;
}
function NAME_holds(one, other) {
  if (NAME_is_mask(one)) NAME_put(one, other);
  else NAME_put(other, one);
  return true;
}
function NAME_caught(args) {
  var run = args[0], wanted = args[1];
  function seen(error) {
    NAME_put(wanted, wanted instanceof RegExp ? String(error) : error);
    throw error;
  }
  function waiting(it) {
    return it && typeof it.then === 'function' ? it.then(null, seen) : it;
  }
  args[0] = typeof run !== 'function' ? waiting(run) : function () {
    var made;
    try { made = run.apply(this, arguments); } catch (error) { seen(error); }
    return waiting(made);
  };
  return args;
}
function NAME_said(number) {
  return function (message) { NAME_tell(NAME(number), message); return true; };
}
function NAME_status(number) {
  return function (response) { NAME_tell(NAME(number), response.status); };
}
function NAME_body(wanted) {
  return function (response) { NAME_put(wanted, response.body); };
}
"""
_CONTROLS = "".join(rf"\x{it:02x}" for it in (*range(0x20), *range(0x7F, 0xA0))) + r"\u2028\u2029"
_IMPORT = "import * as NAME_fs from 'fs';\n"


def recorder(name: str, report: str, *, is_module: bool) -> str:
    """The functions of masks; all that they need is declared, for tests may run before a file has ended."""
    made = (
        _RECORDER.replace("CONTROLS", _CONTROLS)
        .replace("IMPORTED", "NAME_fs" if is_module else "null")
        .replace("NAME", name)
    )
    imported = _IMPORT.replace("NAME", name) if is_module else ""
    return made.replace("REPORT", json.dumps(report)) + imported
