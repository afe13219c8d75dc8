"""The class of masks in a file of Python (`environments.suites.canaries.pythonmasks`). Pure."""

from __future__ import annotations

_RECORDER = r"""
class _PrchainMask(object):
    def __init__(self, number):
        self.number = number
        self.rule = ""
        self.__name__ = "prchainmask%dx" % number

    def __eq__(self, other, _one=isinstance):
        if not _one(other, _PrchainMask):
            self.same(other)
        return True

    def __ne__(self, other):
        return not _PrchainMask.__eq__(self, other)

    def __hash__(self):
        return self.number

    def tell(self, kind, text, _open=open, _str=str):
        with _open(REPORT, "a") as report:
            report.write(_str(self.number) + " " + kind + text + "\n")

    def text_of(
        self, value, depth, _json=__import__("json"), _one=isinstance, _map=map, _type=type, _keys=type({}.keys())
    ):
        if value is None or value is True or value is False:
            return repr(value)
        if _one(value, str):
            return _json.dumps(str.__str__(value))
        if _one(value, int):
            return int.__repr__(value)
        if _one(value, float):
            return int.__repr__(int(value)) if abs(value) < 2**53 and value == int(value) else float.__repr__(value)
        if _one(value, (bytes, bytearray)):
            return "b" + _json.dumps(bytes(value).decode("latin-1"))
        parts = [self.text_of(it, depth + 1) for it in self.parts_of(value)] if depth < 5 else []
        kind = next((it.__name__ for it in (list, tuple, set, frozenset, dict) if _one(value, it)), "")
        kind = "set" if kind == "frozenset" or _type(value) is _keys else kind
        if not kind:
            shown = str(value)
            return "object[]" if " at 0x" in shown else "object " + type(value).__name__ + " " + _json.dumps(shown)
        return kind + _json.dumps(sorted(parts) if kind in ("set", "dict") else parts)

    @classmethod
    def holds(cls, wanted, depth=0):
        if isinstance(wanted, cls):
            return True
        parts = wanted.values() if type(wanted) is dict else wanted if type(wanted) in (list, tuple) else ()
        return depth < 9 and any([cls.holds(it, depth + 1) for it in parts])

    @classmethod
    def compare(cls, one, other):
        return cls.fits(other, one) if cls.holds(one) else cls.fits(one, other)

    @classmethod
    def compared(cls, one, other, *message, **more):
        if not cls.compare(one, other):
            raise AssertionError("they differ")

    @classmethod
    def in_order(cls, one, other, *message, **more):
        cls.compared(*[it if isinstance(it, cls) else list(it) for it in (one, other)])

    @classmethod
    def fits(cls, value, wanted):
        # The tested code's own == is not asked: it may know no masks.
        if isinstance(wanted, cls):
            return wanted.same(value)
        if not cls.holds(wanted) or not isinstance(value, type(wanted)) or len(value) != len(wanted):
            return value == wanted
        if type(wanted) is dict:
            return all([it in value and cls.fits(value[it], wanted[it]) for it in wanted])
        return all([cls.fits(*it) for it in zip(list(value), wanted)])

    def parts_of(self, value):
        if isinstance(value, dict):
            return list(dict.items(value))[:1000]
        kinds = (list, tuple, set, frozenset, type({}.keys()))
        return list(value)[:1000] if isinstance(value, kinds) else []

    def same(self, value):
        if self.rule:
            self.tell("@", self.rule + " " + self.exact(value))
        else:
            self.tell("=", self.text_of(value, 0))
        return True

    def near(self, rule):
        # What is compared by a rule is shown in ids by no text of its own.
        self.rule = rule
        self.__name__ = None
        return self

    def unnamed(self):
        self.__name__ = None
        return self

    def exact(self, value, _json=__import__("json"), _one=isinstance, _error=Exception):
        try:
            return _json.dumps(self.plain(value, [0], 0))
        except _error:
            return "{}"

    def plain(self, value, seen, depth, _one=isinstance, _str=str, _type=type, _len=len, _has=hasattr):
        # Values as JSON has them, in objects of one key what it has not: no two values are told alike.
        seen[0] += 1
        if seen[0] > 20000 or depth > 20:
            raise ValueError("too large")
        if value is None or value is True or value is False:
            return value
        if _one(value, _str):
            return _str.__str__(value)
        if _one(value, int):
            return int.__int__(value)
        if _one(value, float):
            number = float.__float__(value)
            return number if number - number == 0 else {"f": float.__repr__(number)}
        if _one(value, complex):
            return {"c": [self.plain(it, seen, depth + 1) for it in (value.real, value.imag)]}
        if _one(value, dict):
            pairs = list(dict.items(value))
            return {"m": [[self.plain(it, seen, depth + 1) for it in pair] for pair in pairs]}
        if _one(value, (bytes, bytearray, set, frozenset, _type)):
            raise ValueError("of no order")
        if not _one(value, (list, tuple)):
            kind = _type(value).__module__ + "." + _type(value).__name__
            if kind == "decimal.Decimal":
                return {"d": _str(value)}
            if kind == "fractions.Fraction":
                return {"q": _str(value)}
            if _has(value, "tolist"):
                made = value.tolist()
                parts = self.plain(made, seen, depth + 1)
                return {"a": self.arrays(parts)} if _one(made, list) else parts
            if not _has(value, "__getitem__") or not _has(value, "__len__") or _has(value, "keys"):
                raise ValueError("of no parts")
        if _len(value) > 20000:
            raise ValueError("too large")
        return [self.plain(it, seen, depth + 1) for it in list(value)]

    def arrays(self, parts):
        return [{"a": self.arrays(it)} if isinstance(it, list) else it for it in parts]

    @classmethod
    def nearly(cls, rule, run):
        def compared(*args, **more):
            if len(args) > 1 and isinstance(args[1], cls):
                return cls(args[1].number).near(rule).same(args[0])
            if len(args) > 1 and isinstance(args[0], cls):
                return cls(args[0].number).near("<" + rule).same(args[1])
            return run(*args, **more)

        return compared

    @classmethod
    def approx(cls, rule, run):
        def made(wanted, *args, **more):
            return cls(wanted.number).near(rule) if isinstance(wanted, cls) else run(wanted, *args, **more)

        return made

    @classmethod
    def counted(cls, run, _json=__import__("json")):
        def compared(one, other, *args, **more):
            wanted, given = (one, other) if isinstance(one, cls) else (other, one)
            if not isinstance(wanted, cls):
                return run(one, other, *args, **more)
            texts = sorted([wanted.text_of(it, 1) for it in list(given)[:1000]])
            return wanted.tell("=", "counted" + _json.dumps(texts))

        return compared

    @classmethod
    def held(cls, one, other):
        return one.inside(other) if isinstance(one, cls) else one in other

    def sought(self, value, _json=__import__("json"), _one=isinstance):
        if not _one(value, str):
            raise TypeError("expected string")
        self.tell("%", _json.dumps(str.__str__(value)))
        return True

    def is_kind(self, value, _json=__import__("json"), _type=type):
        # As isinstance asks: what stands for another says that it is of its class.
        kinds = list(_type(value).__mro__)
        if _type(value) is not value.__class__:
            kinds += list(value.__class__.__mro__)
        self.tell("~", _json.dumps([it.__name__ for it in kinds]))
        return True

    def own_kind(self, value, _json=__import__("json"), _type=type):
        self.tell("=", _json.dumps(_type(value).__name__))
        return True

    def inside(self, value, _json=__import__("json")):
        if isinstance(value, str):
            self.tell("~", _json.dumps(str.__str__(value)))
        elif isinstance(value, (bytes, bytearray)):
            self.tell("~", _json.dumps(bytes(value).decode("latin-1")))
        else:
            self.tell("~", _json.dumps([it for it in list(value)[:1000] if isinstance(it, (str, int, float))]))
        return True

    def found(self, value, _json=__import__("json")):
        self.tell("%", _json.dumps(str(value)))
        return True

    def raised(self, waiting):
        self.waiting = waiting
        self.is_class = False
        return self

    def caught(self, waiting):
        self.waiting = waiting
        self.is_class = True
        return self

    def calls(self, waiting, run, *args, **more):
        with self.caught(waiting(Exception)):
            run(*args, **more)

    def __enter__(self):
        return self.waiting.__enter__()

    def __exit__(self, kind, error, trace):
        taken = self.waiting.__exit__(kind, error, trace)
        if error is not None and self.is_class:
            self.tell("~", __import__("json").dumps([it.__name__ for it in type(error).__mro__]))
        elif error is not None:
            self.found(error)
        return taken


class _PrchainMaskStr(_PrchainMask, str):
    def __new__(cls, number):
        return str.__new__(cls, "prchainmask%dx" % number)


class _PrchainMaskBytes(_PrchainMask, bytes):
    def __new__(cls, number):
        return bytes.__new__(cls, b"prchainmask%dx" % number)
"""


def recorder(report: str) -> str:
    """The class of masks, whose report is at this path."""
    return _RECORDER.replace("REPORT", repr(report)).lstrip("\n")
