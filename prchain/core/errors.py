"""Every failure has a name, and all names are in one tree.

    PrchainError
    |-- UsageError            what the user wrote is wrong (exit code 2)
    |   |-- SettingsError     prchain.toml, the environment or a flag
    |   |-- RecipeError       a recipe, ours or the user's
    |   |-- RepositoryListError
    |   |-- BenchmarkListError
    |   |-- BadInstance       a row of a data set of others holds no task
    |   |   `-- NoQuery
    |   `-- BadDocument       a document of others holds no trajectory
    |-- StoreError            the database
    |   |-- StoreUnavailable  cannot be opened, read or written
    |   |-- StoreCorrupt      is not a database, or a damaged one
    |   |-- StoreTooOld       written before the first migration that this prchain knows
    |   |-- StoreTooNew       written by a newer prchain
    |   |-- StoreInUse        another process does what only one may do at a time
    |   `-- DiskFull
    |-- RowUnreadable         a row holds what its column cannot: what needs the row fails, and nothing else
    |-- WorkerLost            a process that shared the work was ended by something else
    |-- GitError              a git repository
    |   |-- GitMissing        no git, or one that is too old
    |   |-- GitKilled         somebody ended git: the system for want of memory, say
    |   |-- NotARepository
    |   |-- CloneFailed
    |   |-- ShallowRepository
    |   |-- OtherObjectFormat
    |   |-- IncompleteRepository   commits or trees are missing
    |   `-- NoPullRefs
    |-- ForgeError            the API of the forge that holds the pull requests
    |   |-- RepositoryNotFound     unknown, or private for this token
    |   |-- BadToken
    |   |-- NetworkUnreachable
    |   |-- RateLimitExceeded      the wait would be longer than allowed
    |   |-- BadAnswer              retried in vain: 5xx, broken or foreign bodies
    |   `-- QueryRefused           GitHub refused the query itself
    |-- LlmError              a model, or the endpoint it is behind
    |   |-- EndpointUnreachable      no connection, or one that broke; 5xx in vain
    |   |   `-- EndpointTimeout
    |   |-- EndpointRefused          a bad key, an unknown model, a request it does not take
    |   |-- EndpointIncompatible     answers what is no chat completion: a web page, broken JSON
    |   |-- RateLimited              the wait would be longer than allowed
    |   |-- ContextTooLong           the prompt does not fit the model
    |   |-- BadReply                 asked again in vain: broken, empty, or not what was asked for
    |   |   `-- ModelRefused
    |   |-- BudgetExceeded           the run's budget does not cover another call
    |   |-- ScriptUnknown            the scripted model was asked what its script does not hold
    |   `-- ScriptExhausted          ... or has answered as often as its script allows
    |-- ImageError            an image of a repository's dependencies
    |   |-- NoRecipe                 nothing in the tree tells how to build it
    |   |-- BuildFailed              a step failed, or took too long; carries the log's decisive lines
    |   `-- IndexUnreachable         the packages that every build needs cannot be had, whatever the repository
    |-- SandboxError          where commands run
    |   |-- EngineUnavailable        no Docker daemon, no bubblewrap, or one that stopped answering
    |   |-- ImageMissing
    |   |-- RunnerMissing            a backend uses this machine's programs, and the tests' runner is none of them
    |   |-- SandboxLost              the container, or the channel into it, is gone
    |   |-- SandboxLimit             the sandbox was ended, because it used more than it may
    |   |   |-- DiskLimit
    |   |   `-- OutOfMemory
    |   |-- SandboxFileError         a path in the sandbox cannot be read or written
    |   `-- SnapshotUnknown
    |-- StateError            the tree that a stage starts from, or the one that an agent left
    |   |-- MergeUnsupported         a submodule, or a file where the other side has a folder, is in conflict
    |   |-- NoneUnavailable          an earlier reference patch cannot be taken back
    |   |-- PlacementFailed          the sandbox does not hold the tree that was put there
    |   |-- RefreshFailed            the recipe's refresh does not work on the tree; carries its last lines
    |   `-- ExtractionFailed         what the sandbox holds cannot be read, or is more than we take
    |-- TaskError             a task that cannot be written as it was begun
    |   |-- ChainGone                its chain is no longer chosen
    |   |-- NoRepository             it was imported, and no repository holds what it begins on
    |   `-- TaskSuperseded           another run has ended it meanwhile
    |-- RolloutError          a rollout that cannot begin
    |   |-- NoTask                   its chain has no task that is ready
    |   |-- NotValidated             its gate needs tests, and the chain was not validated
    |   |-- TestsUnproved            its gate needs tests, and a stage has none that show its work
    |   |-- ProofOutdated            its gate needs tests, and they were proved in another image
    |   |-- TextsChanged             its task was written anew while it waited to begin
    |   |-- StepUnknown              it is to begin at a step that its parent has not, or has no tree of
    |   `-- CandidateCut             changes of the agent's patch that decide have no room before the judge
    |-- RecordingError        a program that cannot be recorded
    |   `-- RequestUnfit             it asked what is no chat completion, or one of a kind that is not answered
    |-- CurationError         a process graph that cannot be made, or used
    |   |-- GraphUnusable            no trajectory can be grown along the stage's graph: there is none, or no node in it
    |   |-- ReferenceConflicts       its stage's reference does not apply to the tree that the stage starts on
    |   |-- Inexpressible            the reference changes modes, links or binary files, which no edit can
    |   |-- AlreadyDone              the tree that the stage starts on holds the reference already
    |   `-- NoNextStage              the trajectory to go on from has no stage left, or accepted none
    |-- ObserverFailed        an observer raised what has no name
    |-- PromptError           a prompt's template, or what it was given
    `-- DemoStopped           a command of the demo did not end well

An error's text is one line that says what happened and what to do. `name` is what reports and database rows carry.
`infrastructure` names the machine, network or service that failed, where neither the agent, nor the task, nor the user
is at fault: the same work can be resumed later.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import ClassVar


class PrchainError(Exception):
    """Base of all failures that prchain names. Prints as one line, without a traceback."""

    exit_code = 1

    infrastructure: ClassVar[str | None] = None
    """The kind of infrastructure that failed, e.g. ``endpoint``; None where none did."""

    @property
    def name(self) -> str:
        """The failure's name in snake case, e.g. ``no_pull_refs``; stored as an outcome."""
        return _snake_case(type(self).__name__)


def _snake_case(word: str) -> str:
    out: list[str] = []
    for i, char in enumerate(word):
        starts = char.isupper() and i > 0 and (word[i - 1].islower() or (i + 1 < len(word) and word[i + 1].islower()))
        out.append(("_" if starts else "") + char.lower())
    return "".join(out)


@cache
def infrastructure_failures() -> Mapping[str, str]:
    """The name of every error that is a failure of infrastructure, with its kind (`PrchainError.infrastructure`)."""
    return {name: class_.infrastructure for name, class_ in errors_by_name().items() if class_.infrastructure}


def errors_by_name() -> Mapping[str, type[PrchainError]]:
    """Every error of this module by the name that it has in rows and reports (`PrchainError.name`)."""
    return {_snake_case(error.__name__): error for error in _errors(PrchainError)}


def _errors(base: type[PrchainError]) -> Iterator[type[PrchainError]]:
    for subclass in base.__subclasses__():
        if subclass.__module__ == __name__:  # a class of a user's own has a name that may be one of ours
            yield subclass
            yield from _errors(subclass)


class UsageError(PrchainError):
    """What the user wrote is wrong."""

    exit_code = 2


class SettingsError(UsageError, ValueError):
    """A setting is unknown or has a value that cannot be used."""


class RepositoryListError(UsageError, ValueError):
    """The list of repositories cannot be read; names file and line."""


class BenchmarkListError(UsageError, ValueError):
    """The list of benchmark instances cannot be read; names file and line."""


class BadInstance(UsageError, ValueError):
    """A row of a data set of others holds no task; says which column is wrong, and how."""


class NoQuery(BadInstance):
    """The row of a data set asks nothing: its publisher wrote no query for it."""


class BadDocument(UsageError, ValueError):
    """A document of others holds no trajectory; says where it is wrong, and how."""


class RecipeError(UsageError, ValueError):
    """A recipe cannot be read or says what no recipe may say; names file and key."""


class StoreError(PrchainError):
    """The database failed."""


class RowUnreadable(PrchainError):
    """A row of the database holds what its column cannot hold."""


class StoreUnavailable(StoreError, OSError):
    """The database cannot be opened, read or written."""


class StoreCorrupt(StoreError):
    """The file is not a database, or a damaged one."""


class StoreTooOld(StoreError):
    """The database was written before the first migration that this prchain knows."""


class StoreTooNew(StoreError):
    """The database was written by a newer prchain."""


class StoreInUse(StoreError):
    """Another process does on the database what only one may do at a time."""


class DiskFull(StoreError, OSError):
    """No room is left where the database or a mirror lies."""

    infrastructure: ClassVar[str | None] = "disk"


def no_room(error: BaseException, where: object = None) -> DiskFull | None:
    """The name of a failure of the system for want of room on a disk; None for any other.

    `where` is what was to be written, else what the failure itself names, else a temporary file.
    """
    if isinstance(error, PrchainError) or not isinstance(error, OSError):
        return None
    if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
        return None
    place = where or error.filename or "temporary files (TMPDIR)"
    return DiskFull(
        f"no room is left on the disk of {place}; make room and run the command again, it goes on from there"
    )


class WorkerLost(PrchainError):
    """A process that this one had started to share its work was ended by something else."""


class GitError(PrchainError):
    """A git repository failed."""


class GitMissing(GitError):
    """There is no git, or one that is too old."""

    infrastructure: ClassVar[str | None] = "git"


class GitKilled(GitError):
    """A git process was killed: by the system for want of memory, or by somebody."""

    infrastructure: ClassVar[str | None] = "git"


class NotARepository(GitError):
    """The path or URL is no git repository."""


class CloneFailed(GitError):
    """A clone or fetch failed; carries git's last line."""


class ShallowRepository(GitError):
    """The history is cut off."""


class OtherObjectFormat(GitError):
    """Two repositories that are to share objects name them by different hashes."""


class IncompleteRepository(GitError):
    """Commits or trees are missing."""


class NoPullRefs(GitError):
    """The mirror has no heads of pull requests."""


class ForgeError(PrchainError):
    """The API of the forge that holds the pull requests failed."""


class RepositoryNotFound(ForgeError, LookupError):
    """Unknown to the forge, or not visible for this token."""


class BadToken(ForgeError):
    """A token is wrong, expired or may not do this."""

    infrastructure: ClassVar[str | None] = "token"


class NetworkUnreachable(ForgeError, ConnectionError):
    """The API cannot be reached."""

    infrastructure: ClassVar[str | None] = "network"


class RateLimitExceeded(ForgeError):
    """The limit is spent and the wait would be longer than allowed."""

    infrastructure: ClassVar[str | None] = "rate_limit"

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class BadAnswer(ForgeError):
    """The API kept answering with an error or with something that is no answer."""


class QueryRefused(ForgeError):
    """The API refused the query itself."""


class LlmError(PrchainError):
    """A model, or the endpoint it is behind, failed.

    `billed` says whether the call may have been paid for all the same; the ledger then keeps its reservation as spent.
    """

    def __init__(self, message: str, *, billed: bool = False) -> None:
        super().__init__(message)
        self.billed = billed


class EndpointUnreachable(LlmError, ConnectionError):
    """The endpoint cannot be reached, cut the connection, or kept answering 5xx."""

    infrastructure: ClassVar[str | None] = "endpoint"


class EndpointTimeout(EndpointUnreachable, TimeoutError):
    """The endpoint did not answer in time."""


class EndpointRefused(LlmError):
    """The endpoint refused the request: a bad key, an unknown model, no credit, a parameter it does not take.

    `unexplained` says that it called the request bad (400, 422) in words that name no cause.
    """

    infrastructure: ClassVar[str | None] = "endpoint"

    def __init__(self, message: str, *, billed: bool = False, unexplained: bool = False) -> None:
        super().__init__(message, billed=billed)
        self.unexplained = unexplained


class EndpointIncompatible(LlmError):
    """The endpoint answered with success and with what is no chat completion: a web page, broken JSON, an error.

    No model said that: nothing is stored of it as a reply, and another endpoint may answer well.
    """

    infrastructure: ClassVar[str | None] = "endpoint"


class RateLimited(LlmError):
    """The endpoint's limit is spent and the wait would be longer than allowed."""

    infrastructure: ClassVar[str | None] = "endpoint"

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


class ContextTooLong(LlmError):
    """The prompt, with the room for its reply, does not fit the model's context."""


class BadReply(LlmError):
    """The reply is broken, empty or not what was asked for, and asking again did not help."""

    infrastructure: ClassVar[str | None] = "reply"


class ModelRefused(BadReply):
    """The model, or a filter of its endpoint, refused to answer."""

    infrastructure: ClassVar[str | None] = "refusal"


class BudgetExceeded(LlmError):
    """The run's budget does not cover another call."""

    infrastructure: ClassVar[str | None] = "budget"


class ScriptUnknown(LlmError, LookupError):
    """The scripted model was asked something that its script does not hold."""


class ScriptExhausted(LlmError, LookupError):
    """The script holds answers to this question, and all have been given."""


class PromptError(PrchainError):
    """A prompt's template is missing or broken, or a variable of it was not given."""


class ImageError(PrchainError):
    """An image of a repository's dependencies cannot be had."""


class NoRecipe(ImageError, LookupError):
    """No recipe fits what the tree contains."""


class BuildFailed(ImageError):
    """A step of a build failed or took too long.

    `step` is the step's name, `lines` are those of its log that tell why, the most telling last; `log` is its end;
    `seconds` is what the whole build had taken, 0 where that is not known; `image` the name that the image would have
    had, where a row of the failure is stored under it.
    """

    def __init__(self, message: str, *, step: str = "", lines: Sequence[str] = (), log: str = "") -> None:
        super().__init__(message)
        self.step = step
        self.lines = tuple(lines)
        self.log = log
        self.seconds = 0.0
        self.image: str | None = None

    @property
    def words(self) -> str:
        """The message, and those of the decisive lines that it does not hold, as one line."""
        message = str(self)
        return " | ".join((message, *dict.fromkeys(line for line in self.lines if line not in message)))


class IndexUnreachable(ImageError, ConnectionError):
    """The index of packages does not answer, or refuses, before anything of a repository has been asked for; `log` is
    the end of the build's log."""

    infrastructure: ClassVar[str | None] = "index"

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class SandboxError(PrchainError):
    """A sandbox, or the engine behind it, failed; never what a command in it did."""

    infrastructure: ClassVar[str | None] = "engine"


class EngineUnavailable(SandboxError, ConnectionError):
    """The engine (Docker daemon, bubblewrap) is missing, does not answer, or refuses."""


class ImageMissing(SandboxError, LookupError):
    """The engine has no such image."""


class RunnerMissing(SandboxError, LookupError):
    """The backend has no images but this machine's programs, and the runner of the tests is missing among them."""


class SandboxLost(SandboxError, ConnectionError):
    """The container, or the channel into it, is gone; says how, as far as it is known."""


class SandboxLimit(SandboxError):
    """The sandbox was ended, because it used more than its limits allow."""

    infrastructure: ClassVar[str | None] = None


class DiskLimit(SandboxLimit):
    """The sandbox wrote more than it may."""


class OutOfMemory(SandboxLimit):
    """The kernel ended the sandbox, because it used more memory than it may."""


class SandboxFileError(SandboxError, OSError):
    """A path in the sandbox cannot be read or written."""


class SnapshotUnknown(SandboxError, LookupError):
    """The sandbox's family has no such snapshot."""


class StateError(PrchainError):
    """The tree that a stage starts from cannot be made or put in place, or the one an agent left cannot be read."""


class MergeUnsupported(StateError):
    """A conflict that has no agent's side to take: in a submodule, or between a file and a folder."""


class NoneUnavailable(StateError):
    """An earlier reference patch cannot be taken back from the base: later work stands on it."""


class PlacementFailed(StateError):
    """The sandbox does not hold the tree that was put there; it may have no git."""


class RefreshFailed(StateError):
    """A script of the recipe's refresh fails on the tree, or takes too long; `lines` are those that tell why."""

    def __init__(self, message: str, lines: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.lines = tuple(lines)


class ExtractionFailed(StateError):
    """What the sandbox holds cannot be read, or is more than we take."""


class TaskError(PrchainError):
    """A task cannot be written as it was begun."""


class ChainGone(TaskError):
    """The chain was chosen when the work began, and is not any more."""


class NoRepository(TaskError, LookupError):
    """The task was imported, and no repository that is known holds the commit that it begins on."""


class TaskSuperseded(TaskError):
    """Another run has ended the task meanwhile."""


class RolloutError(PrchainError):
    """A rollout cannot begin."""


class RecordingError(PrchainError):
    """A program cannot be recorded."""


class RequestUnfit(RecordingError, ValueError):
    """A program asked what is no chat completion, or one of a kind that is not answered; it is told so."""


class CurationError(PrchainError):
    """A process graph cannot be made."""


class GraphUnusable(CurationError):
    """A stage's process graph cannot be made, or has no node: no trajectory can be grown along it."""


class ReferenceConflicts(CurationError):
    """The reference of the stage does not apply to the tree that the stage starts on."""


class Inexpressible(CurationError):
    """The reference changes modes, links, submodules or binary files: actions that write text cannot make it."""


class AlreadyDone(CurationError):
    """The tree that the stage starts on holds the reference already."""


class NoNextStage(CurationError, LookupError):
    """The trajectory to go on from has no stage left, or accepted none."""


class ObserverFailed(PrchainError):
    """An observer raised an error without a name: a defect of the observer, which anybody may have written."""


class NoTask(RolloutError, LookupError):
    """The chain has no task that is ready."""


class NotValidated(RolloutError, LookupError):
    """The gate needs tests, and nobody has looked yet which tests the chain has."""


class TestsUnproved(RolloutError, LookupError):
    """The gate needs tests, and a stage of the chain has none that show its work."""

    __test__ = False


class ProofOutdated(RolloutError):
    """The gate needs tests, and those of a stage were proved in another image than there is now."""


class TextsChanged(RolloutError):
    """The task was written anew between the choice of a rollout and its beginning."""


class StepUnknown(RolloutError, LookupError):
    """A rollout is to begin at a step that its parent does not have, or whose tree was not kept."""


class CandidateCut(RolloutError):
    """An agent's patch cannot be judged: changes in a file that the reference touches would not be shown, because the
    patch is too large, or because they are binary."""


class DemoStopped(PrchainError):
    """A command of the demo did not end well; it has said why itself."""
