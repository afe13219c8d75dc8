"""Which tests of a stage can be held in duels (`environments.suites.canaries.duels`): what a proof tries on M_t."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from random import Random

from environments.duel_runs import DuelRuns, RanSide, SideTexts, Test, Told, changed_tests, file_of, ids_of
from environments.edited_trees import EditedTrees
from environments.masked_suites import MaskedSuite
from environments.suites.canaries.duels import (
    KEPT,
    MASKED,
    MOST,
    OF_ONE_NAME,
    Falsifier,
    HeldTest,
    Side,
    fitting,
    function_of,
    lies,
    place_of,
    sides,
)
from environments.suites.canaries.jsmasks import mask_javascript
from environments.suites.canaries.jstokens import TESTS
from environments.suites.canaries.masks import (
    COMPUTED,
    ENOUGH,
    EQUAL,
    MATCHES,
    UNWRITTEN,
    agrees,
    class_told,
    is_given_away,
    is_rough,
    is_unlikely,
    to_tell,
    weight,
)
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.workplace import StageSuite
from prchain.core.runs import Tell
from prchain.core.safeguards import SURE_RULES

_ODD_TITLE = re.compile(rf"\b(?:{'|'.join(sorted(TESTS))})\b[\w.]*\(\s*([\"'])(?:(?!\1)[^\n])*?(?:\\| > )")
"""A title that is written out and is no name of a test."""
_LOOKED_AT = 40
"""Tests of which a proof looks whether B_t has them: that takes a syntax tree or two each."""
_MOST_TRIALS = 3
"""Runs in which a proof looks where tests can be masked."""
_OF_MASKS, _OF_SEED = 2, 3
"""Sandboxes that begin ahead, of those that masks take, and that a seed takes: both sides, and one on B_t."""
_FEW_DIGITS, _ENOUGH_DIGITS = 2, 4
"""Of what a number has to be near to: one of which a value has fewer may be met by chance, and others lead to it."""
_PLACES = 200
"""Places of a test of which a proof keeps what they tell."""


def held_tests(
    suite: StageSuite, f2p: Collection[str], after: Mapping[str, Status], tell: Tell
) -> tuple[HeldTest, ...]:
    """Those functions of F2P tests that can be held in duels: on M_t, in fresh processes, all their tests pass as they
    are. Masked they pass, too, and their masks tell other things than on B_t; where fewer than `MOST` do, others are
    made false, and fail by at least one seed. Where nothing else is held, masks tell enough however little that is.
    They are sure to tell only where at least half of the F2P tests do: of fewer the rest could be forged.
    `after` are the statuses of a run on M_t. Raises as `StageSuite.run`."""
    runner = RUNNERS[suite.workplace.runner]
    if (runner.falsify is None and runner.mask is None) or not f2p:
        return ()
    texts, wanted = SideTexts(suite), {*f2p}
    files = sorted({file_of(suite, it) for it in f2p})
    ids = ids_of(suite, {(file, name) for file in files for name in texts.names(file)}, after)
    known = sorted(test for test, found in ids.items() if not wanted.isdisjoint(found))
    if not known:
        return ()
    order = Random(suite.landed)
    changed = changed_tests(suite)
    old = cache(lambda it: changed(ids[it][0]) is False)
    landed = suite.with_overlay(suite.landed)
    known_of_runner = suite.baseline.with_canaries(())
    with EditedTrees(suite.workplace, landed, suite.files, known_of_runner, secret=True, beside=_OF_MASKS) as bench:
        duel = DuelRuns(suite, bench, landed, landed)
        before = DuelRuns(suite, bench, landed, suite.with_overlay(suite.base))
        most = [*order.sample(known, min(MASKED, len(known)))]
        beside = [texts.text(file) for file in suite.files if file not in files]
        asked = {it: ids[it] for it in sorted(most)}
        masked, weak, places = _masked(duel, before, asked, beside, old, texts, tell)
        # Of tests whose titles are made of rows nobody knows which row a place is of: each place is one test.
        own = {test: len(wanted.intersection(ids[test])) for test in places}
        sure = {test: min(own[test], found) if test[1] == COMPUTED else own[test] for test, found in places.items()}
        fits: dict[Test, list[int]] = {}
        if sum(it.tells for it in masked.values()) < MOST and runner.falsify is not None:
            others = [it for it in known if it not in masked or not masked[it].tells]
            tried = {test: ids[test] for test in sorted(_some(others, order, old))}
            fits = _by_seeds(bench, duel, before, tried, runner.falsify, order, tell)
    held = {(file, name): HeldTest(file, name, tuple(seeds)) for (file, name), seeds in fits.items() if seeds}
    if not held and not any(it.tells for it in masked.values()):
        masked = {test: it._replace(tells=test in weak) for test, it in masked.items()}
    is_most = 2 * sum(sure.values()) >= len(wanted)
    for test, it in masked.items():
        seeds = held[test].seeds if test in held else ()
        held[test] = it._replace(seeds=seeds, sure_by=it.sure_by if is_most else 0)
    is_any = any(it.seeds or it.tells for it in held.values())
    return tuple(held.values()) if is_any else ()


def _by_seeds(
    bench: EditedTrees,
    duel: DuelRuns,
    before: DuelRuns,
    tried: Mapping[Test, Sequence[str]],
    falsifier: Falsifier,
    order: Random,
    tell: Tell,
) -> dict[Test, list[int]]:
    """The seeds by which tests fail on M_t, and `before`, on B_t, too: work that was not begun is no lie. Where `MOST`
    tests have one already, no other place of them is tried; a test that fails by a first seed is asked by no other."""
    fits: dict[Test, list[int]] = {test: [] for test in tried}
    first, seeds = falsifier.first_seeds, falsifier.seeds
    usual = (*seeds, *falsifier.last_seeds)
    only = set[Test]()
    for seed in falsifier.all_seeds:
        is_first = seed in first or place_of(seed) == place_of(usual[0])
        if not is_first and sum(map(bool, fits.values())) >= MOST:
            break
        if seed == usual[0]:
            only = {test for test, found in fits.items() if found}
        asked = {
            test: found
            for test, found in tried.items()
            if seed in first or (test not in only and (seed in seeds or not fits[test]))
        }
        if not asked:
            break
        can = duel.can_be_false(asked.keys(), seed)
        asked = {test: found for test, found in asked.items() if test in can}
        if not asked:
            continue
        bench.ahead(_OF_SEED)
        fit = sorted(_fit(bench, duel, asked, seed, order, tell))
        side = Side(dict.fromkeys(fit, seed))
        old = before.run(side, [file for file, _ in fit]).run if fit else None
        believed = lies(tried, side, old.statuses) if old is not None and old.usable else ()
        for test in fit:
            if test not in believed:
                fits[test].append(seed)
    return fits


def _masked(
    duel: DuelRuns,
    before: DuelRuns,
    asked: Mapping[Test, Sequence[str]],
    others: Sequence[str],
    is_old: Callable[[Test], bool],
    texts: SideTexts,
    tell: Tell,
) -> tuple[dict[Test, HeldTest], set[Test], dict[Test, int]]:
    """Of these tests, each with its ids, those that can be masked, and what they tell on M_t, by the duel on it. Only
    what is told in another way `before`, on B_t, says that a test tells; nor does an old one beside new ones, for
    everybody knows what it asks for. And those that tell something else there, however little. `others` are the texts
    of the stage's test files that hold none of these tests. Of those that tell they say, too, which are sure, and at
    how many places."""
    trial, ran = _with_masks(duel, asked, tell)
    beside = "\n".join([*ran.texts.values(), *others])
    words, heavy = dict[Test, dict[int, str]](), dict[Test, set[int]]()
    for test in trial:
        literals, said = ran.literals.get(test, ()), ran.told.get(test, {})
        found = {place: text for place in sorted(said) if (text := to_tell(literals[place], said[place]))}
        words[test] = dict([*found.items()][:_PLACES])
    trial = _among_all(duel.suite, trial, asked, words, tell)
    for test in trial:
        literals, said = ran.literals.get(test, ()), ran.told.get(test, {})
        values = {place: _value_of(literals[place], said[place]) for place in words[test]}
        # What a line of B_t asks for is known, and says nothing of what was to be done.
        news = {it for it in words[test] if literals[it] == UNWRITTEN or texts.is_new(test[0], literals[it])}
        news = {it for it in news if not is_rough(words[test][it], _FEW_DIGITS)}
        weights = {place: weight(value, beside) if place in news else 0 for place, value in values.items()}
        of_values = {values[place]: it for place, it in weights.items()}
        heavy[test] = {place for place, it in weights.items() if it} if sum(of_values.values()) >= ENOUGH else set()
    other = dict[Test, set[int]]()
    if any(words[test] for test in trial):
        tell("masks, on what was before")
        old = _run_masked(before, trial, asked)
        for test in trial:
            wanted = words[test]
            told = old.told.get(test, {}) if old.run.usable else {}
            # Of a class that B_t has, a value says the same of itself whoever makes it.
            known = {place: class_told(ran.told[test][place]) for place in wanted}
            for place in [it for it, name in known.items() if name and name != class_told(told.get(it, ()))]:
                del wanted[place]
            other[test] = {place for place, text in wanted.items() if not agrees(text, told.get(place, ()))}
    telling = {test for test, places in heavy.items() if places & other.get(test, set())}
    if not all(map(is_old, asked)):
        telling = {it for it in telling if not is_old(it)}
    masked = {test: it._replace(masks=tuple(words[test].items()), tells=test in telling) for test, it in trial.items()}
    sure = dict[Test, int]()
    if telling:
        places = {test: heavy[test] & other[test] for test in telling}
        sure = _sure(duel.suite, masked, places, words, (ran, old.told if old.run.usable else {}), texts)
        masked |= {it: masked[it]._replace(sure_by=SURE_RULES) for it in sure}
    return masked, {test for test, places in other.items() if places}, sure


def _among_all(
    suite: StageSuite,
    trial: Mapping[Test, HeldTest],
    asked: Mapping[Test, Sequence[str]],
    words: Mapping[Test, Mapping[int, str]],
    tell: Tell,
) -> dict[Test, HeldTest]:
    """Those of the tests that pass masked among all tests, too, and tell the same there, as they do in a grade."""
    masked = [it._replace(masks=tuple(words[test].items())) for test, it in trial.items()]
    whole = MaskedSuite.of(suite, suite.with_overlay(suite.landed), masked)
    if not whole.report:
        return {**trial}
    tell("masks, among all tests")
    ran = whole.read(whole.run(suite))
    fine = _passed(asked, ran.run) if ran.run.usable and not ran.run.cheats else set()
    untold = {
        test
        for test in trial
        for place, text in words[test].items()
        if test not in fine or not agrees(text, ran.told.get(test, {}).get(place, ()))
    }
    return {test: it for test, it in trial.items() if test not in untold}


def _sure(
    suite: StageSuite,
    masked: Mapping[Test, HeldTest],
    places: Mapping[Test, Collection[int]],
    words: Mapping[Test, Mapping[int, str]],
    after_and_before: tuple[RanSide, Told],
    texts: SideTexts,
) -> dict[Test, int]:
    """At how many of their `places` the tests ask for what neither the run of all tests shows nor B_t's text, nor B_t
    tells there, and the test itself does not give away, nor its title, and not several times; without those that do so
    nowhere. What a test asks for that tells nothing is shown there. A title that is made of rows shows what these show:
    with a masked value in it the test would have another name."""
    ran, before = after_and_before
    whole = MaskedSuite.of(suite, suite.with_overlay(suite.landed), [*masked.values()])
    shown, with_snapshots = whole.shown(suite)
    shown = f"{shown}\n{texts.known}"
    has_titles = RUNNERS[suite.workplace.runner].mask is mask_javascript
    titled = {
        (file, name)
        for file, name in places
        if has_titles and name not in whole.made[file].shown.values() and not _is_made_of_rows(name, texts.text(file))
    }

    def is_sure(test: Test, place: int) -> bool:
        literal = ran.literals[test][place]
        if (literal == UNWRITTEN and with_snapshots) or test in titled or place not in ran.once[test]:
            return False
        old = " ".join(before.get(test, {}).get(place, ()))
        likely = not is_unlikely(_value_of(literal, ran.told[test][place]), shown, old)
        wanted = words[test][place]
        likely = likely or wanted.startswith(MATCHES) or is_rough(wanted, _ENOUGH_DIGITS)
        return not (likely or is_given_away(literal, texts.of_test(test)))

    counted = {test: sum(is_sure(test, place) for place in found) for test, found in places.items()}
    return {test: count for test, count in counted.items() if count}


def _is_made_of_rows(name: str, text: str) -> bool:
    """Whether the titles of what is called so are computed; some have no name for what they are written with."""
    return name == COMPUTED and _ODD_TITLE.search(text) is None


def _value_of(literal: str, texts: Collection[str]) -> str:
    """What stands at a place: its literal, or what was told where none is written."""
    return " ".join(it[1:] for it in sorted(texts)) if literal == UNWRITTEN else literal


def _with_masks(
    duel: DuelRuns, asked: Mapping[Test, Sequence[str]], tell: Tell
) -> tuple[dict[Test, HeldTest], RanSide]:
    """Those of the tests that pass with masks, and how they ran. One that does not pass is masked where it told
    something, and tried again."""
    trial = {it: HeldTest(*it, (), ()) for it in asked}
    ran, fine, mute = RanSide.of(TestRun({}, "", 0.0, 0), {}), set[Test](), dict[Test, set[int]]()
    for turn in range(1, _MOST_TRIALS + 1 if RUNNERS[duel.runner].mask is not None else 1):
        for test in {*trial} - fine if turn > 1 else ():
            told = ran.told.get(test, {})
            plain = {place for place in range(len(ran.literals.get(test, ()))) if place not in told}
            plain |= mute.get(test, set())
            if told and plain.difference(trial[test].plain):
                trial[test] = trial[test]._replace(plain=tuple(sorted(plain.union(trial[test].plain))))
            else:
                del trial[test]
        if not trial:
            break
        ran = _run_masked(duel, trial, asked)
        tell(f"masks, run {turn}")
        fine = _passed(asked, ran.run) if ran.run.usable else set()
        mute = {test: _mute(ran, test) for test in fine} if turn < _MOST_TRIALS else {}
        fine -= {test for test, places in mute.items() if places}
        if fine == {*trial}:
            break
    return {test: it for test, it in trial.items() if test in fine}, ran


def _mute(ran: RanSide, test: Test) -> set[int]:
    """The places of a test that told what nothing can be held against by the literal there: what they ask for would not
    be asked any more."""
    literals = ran.literals.get(test, ())
    return {
        place
        for place, said in ran.told.get(test, {}).items()
        if any(it[0] != EQUAL for it in said) and to_tell(literals[place], said) is None
    }


def _run_masked(duel: DuelRuns, held: Mapping[Test, HeldTest], asked: Mapping[Test, Sequence[str]]) -> RanSide:
    files = list(dict.fromkeys(file for file, _ in held))
    return duel.run(Side({}, tuple(held.values())), files, duel.named(held.values(), asked))


def _passed(asked: Mapping[Test, Sequence[str]], run: TestRun) -> set[Test]:
    return {test for test, found in asked.items() if all(run.statuses.get(it) is Status.passed for it in found)}


def _fit(
    bench: EditedTrees, duel: DuelRuns, asked: Mapping[Test, Sequence[str]], seed: int, order: Random, tell: Tell
) -> set[Test]:
    """Those of the tests, each with its ids, that pass as they are and fail by this seed."""
    tell(f"duel {seed}")
    forms = sides([(*test, seed) for test in asked], order)
    ran = [it.run for it in duel.run_all(forms, [file for file, _ in asked], (), at_once=True)]
    bench.close_lent()
    if any(run.usable and not run.statuses for run in ran) and len(asked) > 1:
        # Where one does not compile, none is run.
        tests = sorted(asked)
        parts = (tests[: len(tests) // 2], tests[len(tests) // 2 :])
        return set().union(*(_fit(bench, duel, {it: asked[it] for it in part}, seed, order, tell) for part in parts))
    if len(ran) < len(forms) or not all(run.usable for run in ran):
        return set()
    return set.intersection(*(fitting(asked, side, run.statuses) for side, run in zip(forms, ran, strict=True)))


def _some(known: Sequence[Test], order: Random, is_old: Callable[[Test], bool]) -> list[Test]:
    """At most `KEPT` of the tests, and of those whose functions have one name `OF_ONE_NAME`; old ones last, as far as
    that was looked at."""
    named = Counter[str]()
    chosen: list[Test] = []
    shuffled = order.sample(known, len(known))
    old = {it for it in shuffled[:_LOOKED_AT] if is_old(it)} if len(known) > MOST else set[Test]()
    for file, name in sorted(shuffled, key=lambda it: it in old):
        if len(chosen) < KEPT and named[function_of(name)] < OF_ONE_NAME:
            named[function_of(name)] += 1
            chosen.append((file, name))
    return chosen
