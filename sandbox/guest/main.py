"""The component: what the host enters. Importing this module is what the image's snapshot is taken of."""

import asyncio
import functools
import gc
import warnings

import wit_world

from . import packages, packing, standard_library, time_zones

standard_library.load()
time_zones.load()
packages.load()
gc.collect()
packing.fill_holes()  # what follows is what every run uses: it lies together, behind the libraries

from . import (  # noqa: E402
    absent,
    entropy,
    failures,
    help_texts,
    hot_code,
    immortals,
    output,
    practice,
    protocol,
    references,
    stubs,
)
from .run import Run, give_up_reserve, keep_reserve  # noqa: E402

output.install(wit_world.write)
entropy.install()
absent.install()
help_texts.install()
failures.install()
stubs.prepare()

COLLECT_AFTER = 10_000
"""New objects before the collector looks for cycles; most scripts end earlier."""

PRINTING = practice.start_of("print('', end='')", {})


class WitWorld(wit_world.WitWorld):
    """The component's exports. None of them lets an exception through: it would be a trap."""

    def warm(self, _nothing: str) -> str:
        """Run a trivial script as a real one is run, so that the first of these finds its pages in place."""
        global _run
        step = self.start(PRINTING)
        _run = None
        return step

    def references(self, message: str) -> str:
        """Return the tools a script names, or how it fails to parse."""
        try:
            asked = protocol.decode(message)
            return protocol.encode({"references": references.find(asked["script"], "script.py", asked["unimported"])})
        except BaseException as error:
            return protocol.encode({"raised": failures.describe(error, {"script.py"})})

    def start(self, message: str) -> str:
        """Begin a run; in a kernel, with what the run before has left."""
        global _run
        try:
            keep_reserve()
            decoded, rest = protocol.decode_start(message)
            _run = Run(decoded, rest, _run.kept if _run is not None and decoded["kernel"] else None)
            return _run.step([])
        except BaseException as error:
            return _last_resort(error)

    def resume(self, message: str) -> str:
        """Continue the run."""
        try:
            return _run.step(protocol.decode(message), len(message))
        except BaseException as error:
            return _last_resort(error)


_STOPPED = '{"outcome":{"stopped":"memory_bytes"}}'
_RAISED = """{"outcome":{"raised":{"type":"RuntimeError","message":"the script changed or used up something that the \
interpreter needs, so it is not known how it ended","traceback":""}}}"""


def _last_resort(error):
    """Answer for a run that could not even tell how it ended, with a text that is ready made."""
    give_up_reserve()
    return _STOPPED if isinstance(error, MemoryError) else _RAISED


def _refuse_asyncio_run(*_, **__):
    raise RuntimeError(
        "the script already runs in an event loop: write `await ...` instead, in functions that are `async def` and "
        "are awaited themselves"
    )


asyncio.run = asyncio.Runner = _refuse_asyncio_run
asyncio.get_event_loop = asyncio.new_event_loop = asyncio.get_running_loop
asyncio.set_event_loop = lambda _loop: None
warnings.simplefilter("default")
warnings.simplefilter("ignore", ResourceWarning)  # what is not closed is gone with its script
# The bridge says it itself, with the function's name.
warnings.filterwarnings("ignore", r"coroutine 'tools\..*' was never awaited", RuntimeWarning)
output.install(lambda _number, _text: None)  # the host cannot be called while the snapshot is taken
_run = None
_world = WitWorld()
_warm = functools.partial(_world.warm, "")
_PRACTICE = [functools.partial(practice.practise, _world, script) for script in practice.SCRIPTS]
immortals.make_immortal()  # practised code counts references to constants that were not immortal when it first ran
packing.fill_holes()
hot_code.gather([_warm, *_PRACTICE])
for _practise in [*_PRACTICE * practice.ROUNDS, _warm]:
    _practise()
practice.forget()
output.install(wit_world.write)
entropy.seed(None)
_run = None
keep_reserve()
# A collection visits, and so copies, every object that a script has touched: rarely, then, and late.
gc.set_threshold(COLLECT_AFTER)
gc.collect()
immortals.make_immortal()
gc.collect()
packing.fill_holes()
gc.freeze()
