"""The facade: servers, catalog, sandbox and sessions of one process.

Above: the command line and embedding programs. Below: everything else in this package.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.lowlevel

from broker.api_arguments import (
    SERVERS_BY_NAME,
    check_answerer,
    check_asked,
    check_parks,
    check_recording,
    check_seconds,
    check_servers,
    check_store,
    check_texts,
    grants_of,
    names_of,
)
from broker.audit.log import AuditLog
from broker.authorization.desk import ConsentDesk
from broker.authorization.kept_grants import KeptGrants, server_identity
from broker.authorization.policy import Policy
from broker.authorization.quotas import Quotas
from broker.config.config import Config
from broker.config.problems import name_problems
from broker.disclosure.disclosure import Disclosure
from broker.errors import ConfigError
from broker.recorded_runs import RecordedRuns, seen
from broker.recordings.journal.recorder import Recorder
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.replay.replay import replay
from broker.recordings.replay.rerun import rerun
from broker.recordings.settings import RecordingSettings
from broker.redaction import Redactor
from broker.runs.crashed_runs import resume_crashed
from broker.runs.shared_sandbox import SharedSandbox
from broker.search.vectors import check_embedder
from broker.serving import Serving
from broker.sessions import Session
from broker.store import Store
from broker.tools.tool_shelf import ToolShelf
from broker.upstreams.upstreams import Upstreams, all_needed
from codegen import TypeChecker
from sandbox.perform import check_script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from anyio.abc import TaskGroup
    from anyio.lowlevel import EventLoopToken

    from broker.authorization.grants import Grant
    from broker.authorization.questions import Answerer
    from broker.calls.extraction import Extractor
    from broker.recordings.recording import Recording
    from broker.recordings.replay.replay import Replayed
    from broker.search import Embedder, Ranker
    from broker.tiers import CallStatistics, Tiers
    from broker.tools.catalog import Catalog, CatalogEntry
    from broker.tools.categories import Categories
    from broker.upstreams.connecting import InProcessServer
    from broker.upstreams.server_status import ServerStatus
    from broker.upstreams.upstream_requests import Sampler
    from sandbox import Sandbox

STARTUP_SECONDS = 10.0

_OFF = RecordingSettings(mode="off")


class Broker:
    """Holds the connections to all servers. Use as an async context manager, on asyncio or trio.

    Entering starts every server at once and waits until each is ready or has failed, at most
    `startup_seconds`; slower ones keep connecting, and a call that needs one waits for it. Leaving ends the
    servers' processes.

    Example:
        async with Broker.from_config("mcp.json") as broker:
            session = broker.session(grants=[Grant("git.*")])
            result = await session.execute_code(script, describe_references=True)

    Attributes:
        serving: What a server needs that passes the tools on to clients.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        servers: Mapping[str, InProcessServer | Sequence[Callable[..., Any]]] | None = None,
        sandbox: Sandbox | None = None,
        startup_seconds: float = STARTUP_SECONDS,
        opens_sandbox: bool = True,
        store: Store | None = None,
        embedder: Embedder | None = None,
        ranker: Ranker | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        """Take the servers; nothing is started before entering.

        Args:
            config: The configured servers.
            servers: Servers of the MCP SDK that run in this process, by name, beside those of the config; or lists
                of plain functions, which become the tools of a server of that name.
            sandbox: Where scripts run, entered when needed; several brokers may share one. If None, one is made as the
                config says.
            startup_seconds: How long entering waits for slow servers; 0 for not at all.
            opens_sandbox: Whether entering starts to open the sandbox in the background, and a process that checks
                scripts, so that the first script finds them ready; otherwise the first script opens and starts them.
            store: Keeps statistics, vectors, recordings and the audit; the caller closes it. If None, statistics and
                vectors are kept in memory, and there are no recordings and no audit.
            embedder: Makes searches by meaning possible; the config's if None.
            ranker: A subagent or other judge that reorders the first candidates of a search, within ten seconds. If it
                takes longer, raises or returns no names, the search has its own order and a note says so.
            sampler: Answers a server's requests to a model (`sampling/createMessage`) during a call, or raises to
                refuse one. Without it, all are refused.

        Raises:
            ConfigError: The embedder of the config cannot be loaded, or a server's name is not allowed.
            StoreError: The store cannot be used.
            TypeError: `config` is not a `Config`, `sandbox` not a `Sandbox`, `store` not a `Store`, a value in
                `servers` is not a server, a function cannot be a tool, `embedder` is none, `ranker` or `sampler` is no
                function, or `startup_seconds` no number.
            ValueError: `startup_seconds` is negative.
        """
        config = Config() if config is None else config
        if not isinstance(config, Config):
            raise TypeError("Broker takes a Config; Broker.from_config takes a file or its data")
        check_seconds(startup_seconds=startup_seconds)
        if store is not None:
            check_store(store)
        if embedder is not None:
            check_embedder(embedder)
        check_asked(ranker=ranker, sampler=sampler)
        check_servers(servers or {})
        # A server object wins over a config entry of its name: the embedding program asked for it.
        targets = {**config.servers, **(servers or {})}
        if problems := name_problems(targets):
            raise ConfigError("servers", problems)
        self._redact = Redactor(config.secrets)
        self._upstreams = Upstreams(targets, redact=self._redact, sampler=sampler)
        self._shelf = ToolShelf(
            config,
            targets,
            self._upstreams.by_name,
            disabled=self._upstreams.disabled,
            redact=self._redact,
            store=store,
            embedder=embedder,
            ranker=ranker,
        )
        self._policy = Policy(config.policy)
        self._quotas = Quotas(self._policy)
        self._audit = None if store is None else AuditLog(store, self._redact, config.audit)
        identities = {name: server_identity(server) for name, server in config.servers.items()}
        self._kept = None if store is None else KeptGrants(store, identities)
        self._recordings = Recordings(Store(), _OFF) if store is None else Recordings(store, config.recordings)
        self._recorder = Recorder(self._recordings, config.secrets)
        self.serving = Serving(shelf=self._shelf, upstreams=self._upstreams, recorder=self._recorder)
        self._sandbox = SharedSandbox(
            config.sandbox.open(config.image) if sandbox is None else sandbox, self._task_group
        )
        self._checker = TypeChecker()
        self._startup_seconds = startup_seconds
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup | None = None
        self._loop: EventLoopToken | None = None
        self._opens_sandbox = opens_sandbox

    @classmethod
    def from_config(
        cls,
        config: Config | Mapping[str, Any] | Path | str,
        *,
        servers: Mapping[str, InProcessServer | Sequence[Callable[..., Any]]] | None = None,
        sandbox: Sandbox | None = None,
        startup_seconds: float = STARTUP_SECONDS,
        opens_sandbox: bool = True,
        store: Store | None = None,
        embedder: Embedder | None = None,
        ranker: Ranker | None = None,
        sampler: Sampler | None = None,
    ) -> Broker:
        """Return a broker for a config: a path to the file, its data as a mapping, or a `Config`.

        The other arguments are those of the constructor.

        Raises:
            ConfigError: The file cannot be read, or the config is wrong; the text lists every problem.
            TypeError: `config` is something else.
        """
        if isinstance(config, Mapping):
            config = Config.of_data(config)
        elif isinstance(config, str | Path):
            config = Config.load(Path(config))
        elif not isinstance(config, Config):
            raise TypeError(f"a config is a path, data of the form of a file, or a Config, not {type(config).__name__}")
        return cls(
            config,
            servers=servers,
            sandbox=sandbox,
            startup_seconds=startup_seconds,
            opens_sandbox=opens_sandbox,
            store=store,
            embedder=embedder,
            ranker=ranker,
            sampler=sampler,
        )

    @property
    def catalog(self) -> Catalog:
        """All tools that are known now."""
        return self._shelf.catalog

    @property
    def categories(self) -> Categories:
        """What the tools are grouped by."""
        return self._shelf.categories

    @property
    def tiers(self) -> Tiers:
        """The tools in four levels of detail: hot list, categories, summaries, full definitions."""
        return self._shelf.tiers

    @property
    def statistics(self) -> CallStatistics:
        """How often each tool was called, and how that went."""
        return self._shelf.statistics

    async def __aenter__(self) -> Self:
        """Start the servers.

        Raises:
            RuntimeError: The broker is open already, or was open on asyncio before and this is trio, or the reverse.
            TypeError: A function that is given as a tool cannot be one.
        """
        if self._tasks is not None:
            raise RuntimeError("the broker is open already: one `async with` holds it for all sessions")
        loop = anyio.lowlevel.current_token()
        if self._loop is not None and loop.backend_class is not self._loop.backend_class:
            raise RuntimeError(
                "the broker was open before on the other event loop of asyncio and trio, to which its locks belong: "
                "make a new Broker"
            )
        self._stack, self._loop = AsyncExitStack(), loop
        tasks = self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(tasks.cancel_scope.cancel)
        # Left before the task group, which waits for the thread that prepares it.
        self._stack.enter_context(self._checker)
        try:
            if self._opens_sandbox:
                tasks.start_soon(self._sandbox.open_early, tasks)
                tasks.start_soon(anyio.to_thread.run_sync, self._checker.prepare)
            await self._upstreams.start(tasks, on_listing=self._shelf.take_listing, on_call=self._shelf.note_call)
            tasks.start_soon(self._shelf.keep_scores)
            await self.wait_until_settled(self._startup_seconds)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """End the servers and the sandbox. Runs must have ended before."""
        self._tasks = None
        # Not told of the body's exception: the task group would wrap it in a group.
        await self._stack.aclose()
        self._recordings.close()

    @property
    def describes_all(self) -> bool:
        """Whether all tools are described from the start: the config says `auto`, and they fit now."""
        shelf = self._shelf
        return shelf.from_the_start is not None and shelf.from_the_start.holds

    def server_statuses(self) -> list[ServerStatus]:
        """Return the state of each server now, in the order of the config."""
        return self._upstreams.statuses()

    async def need_servers(self, names: Iterable[str] | None = None, timeout_seconds: float | None = None) -> bool:
        """Connect the lazy servers too and wait until each is ready or has failed; return whether all were in time.

        Args:
            names: Those that are needed, or one of them; all if None. A name that no server has is passed over.
            timeout_seconds: How long to wait; without an end if None.

        Raises:
            TypeError: `timeout_seconds` is no number, or a name no text.
            ValueError: `timeout_seconds` is negative or NaN.
            RuntimeError: The broker is not open, or is open on another event loop.
        """
        self._task_group()
        if timeout_seconds is not None:
            check_seconds(timeout_seconds=timeout_seconds)
        by_name = self._upstreams.by_name
        needed = by_name if names is None else names_of(names, SERVERS_BY_NAME)
        return await all_needed([by_name[name] for name in needed if name in by_name], timeout_seconds)

    async def read_tool(self, name: str) -> CatalogEntry:
        """Return a tool with its full definition; describes it to no session.

        Connects a lazy server whose tools are not known, and asks a server that listed no more than a line.

        Args:
            name: Its qualified name, as `git.git_log`, or its name in scripts.

        Raises:
            UnknownToolError: No tool has this name.
            UnavailableError: Its server cannot be used and the tool is not known, or it does not describe the tool now.
            RuntimeError: The broker is not open, or is open on another event loop.
            TypeError: The name is no text.
        """
        self._task_group()
        check_texts(name=name)
        of_no_session = Disclosure(
            self.catalog,
            self._upstreams.by_name,
            fetches_per_minute=self._shelf.fetches_per_minute,
            redact=self._redact,
        )
        return await of_no_session.whole(name)

    async def wake_category(self, name: str) -> None:
        """Connect the lazy servers that may have tools of a category and were never connected, as a search in it does.

        Raises:
            UnavailableError: No tool of the category is known, and a server that may have some cannot be used now.
            RuntimeError: The broker is not open, or is open on another event loop.
            TypeError: The name is no text.
        """
        self._task_group()
        check_texts(name=name)
        await self._shelf.finder.look_into(name)

    def rest_lazy_servers(self, names: Iterable[str] | None = None) -> list[str]:
        """Disconnect the lazy servers that have no open call, as at the end of a conversation; return their names.

        Args:
            names: Those to disconnect, or one of them; all if None.

        Raises:
            TypeError: A name is no text.
        """
        return self._upstreams.rest(None if names is None else names_of(names, SERVERS_BY_NAME))

    async def wait_until_settled(self, timeout_seconds: float | None = None) -> bool:
        """Wait until each server is ready or has failed; return whether all were in time.

        Raises:
            TypeError: `timeout_seconds` is no number.
            ValueError: It is negative or NaN.
            RuntimeError: The broker is not open, or is open on another event loop.
        """
        self._task_group()
        if timeout_seconds is not None:
            check_seconds(timeout_seconds=timeout_seconds)
        return await self._upstreams.settled(timeout_seconds)

    def session(
        self,
        *,
        grants: Iterable[Grant | str] = (),
        answerer: Answerer | None = None,
        extractor: Extractor | None = None,
        name: str = "",
        principal: str = "",
        parks: bool = False,
    ) -> Session:
        """Return a new session.

        Args:
            grants: What may be called beyond what the policy allows; a text is read as by `codemode run --allow`.
            answerer: Who is asked about all other calls; without one, they are refused.
            extractor: The model behind `extract` in scripts; gets an `Extraction`, returns JSON data.
            name: The name of the session in policy rules and the audit; drawn if empty.
            principal: The authenticated user, for policy rules and the audit.
            parks: Whether a run with a question is parked if there is no answerer, to be resumed when somebody is
                there. Needs a store, and recordings with their content.

        Raises:
            RuntimeError: The broker is not open.
            PatternError: A text is not a grant.
            TypeError: `grants` holds something else, `answerer` has no `answer`, `extractor` is no function, or `name`
                or `principal` no text.
            StoreError: The permanent grants cannot be read.
            ValueError: `parks` is set, and runs are not recorded with their content.
        """
        self._open_tasks()
        check_answerer(answerer)
        check_asked(extractor=extractor)
        check_texts(name=name, principal=principal)
        check_parks(parks, keeps_content=self._recorder.keeps_content)
        desk = ConsentDesk(
            grants_of(grants),
            answerer,
            policy=self._policy,
            quotas=self._quotas,
            session=name or f"session_{secrets.token_hex(8)}",
            principal=principal,
            audit=self._audit,
            kept=self._kept,
        )
        desk.parks = parks
        return Session(
            shelf=self._shelf,
            upstreams=self._upstreams.by_name,
            sandbox=self._sandbox,
            checker=self._checker,
            extractor=extractor,
            desk=desk,
            tasks=self._task_group,
            redact=self._redact,
            recorder=self._recorder,
        )

    def recordings(self, *, principal: str = "", any_principal: bool = False) -> RecordedRuns:
        """Return the recorded runs of a principal: to list, read, export, import and remove them.

        Without a store nothing is recorded, and there are none.

        Args:
            principal: Whose runs; what `session` was given.
            any_principal: Return the runs of all principals, and imported ones; for the operator.

        Raises:
            ValueError: Both are given.
            TypeError: `principal` is no text.
        """
        return RecordedRuns(self._recordings, seen(principal, any_principal=any_principal))

    async def replay(self, recording: Recording) -> Replayed:
        """Run a recorded script again on the recorded answers, up to the first step that differs; calls no server.

        Raises:
            RecordingError: The recording lacks what a replay needs.
            SandboxError: The sandbox cannot be opened.
            RuntimeError: The broker is not open.
            TypeError: `recording` is not a `Recording`.
        """
        check_recording(recording)
        return await replay(await self._sandbox.opened(), recording)

    async def rerun(self, recording: Recording, script: str) -> Recording:
        """Run another script on the recorded answers, for `compare_recordings`; calls no server and records nothing.

        Calls are matched by function and arguments, the first equal call with the first answer. A call without an
        answer raises `ToolUnavailableError` in the script. Answers and sleeping take no time.

        Raises:
            RecordingError: The recording lacks what this needs.
            SandboxError: The sandbox cannot be opened.
            RuntimeError: The broker is not open.
            TypeError: `recording` is not a `Recording`, or the script no text.
            ValueError: The script is too long.
        """
        check_recording(recording)
        check_script(script)
        return await rerun(await self._sandbox.opened(), recording, script)

    def resume_interrupted(self) -> int:
        """Resume, in the background, the runs of this store that a crash interrupted; return how many.

        Each is resumed for the principal and under the session's name that it began with; one that was stopped on
        purpose is left alone, and one whose script may call a server that is not in the config or is down. Nobody is
        asked: a run with a question, or with a call of unknown outcome that the config would ask about, is parked.

        Raises:
            RuntimeError: The broker is not open.
            StoreError: The recordings cannot be read.
        """
        found = self._recorder.unfinished.crashed()
        for run_id in found:
            self._task_group().start_soon(resume_crashed, run_id, self._recorder, self._session_of_crashed)
        return len(found)

    def _session_of_crashed(self, name: str, principal: str) -> Session:
        return self.session(name=name, principal=principal, parks=self._recorder.keeps_content)

    def _task_group(self) -> TaskGroup:
        """Return where the tasks of the broker run, for a caller on its event loop."""
        tasks = self._open_tasks()
        if anyio.lowlevel.current_token() != self._loop:
            raise RuntimeError(
                "the broker is open on another event loop: run this there, as with asyncio.run_coroutine_threadsafe"
            )
        return tasks

    def _open_tasks(self) -> TaskGroup:
        if self._tasks is None:
            raise RuntimeError("the broker is not open: use it inside `async with Broker(…) as broker:`")
        return self._tasks
