"""The command line. `app.py` is what it accepts, the module of a command what the command does."""

from __future__ import annotations

import gc
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run `codemode`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until `start` has something to end in order, Ctrl-C ends us as it does any program: loading takes a while.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from broker.cli.app import app  # noqa: PLC0415  # as above
    from broker.cli.exit_codes import ExitCode  # noqa: PLC0415
    from broker.cli.streams import lost_output, open_standard_streams  # noqa: PLC0415
    from broker.cli.terminal import report_problem  # noqa: PLC0415

    open_standard_streams()
    # Loading the SDK makes hundreds of thousands of objects that stay; looking through them again and again is a sixth
    # of the time that starting takes.
    gc.set_threshold(100_000)
    try:
        app()
    except SystemExit as ended:
        if not ended.code and (fault := lost_output()):  # help and the like; commands say more in `start`
            report_problem(f"stdout cannot be written: {fault}")
            sys.exit(ExitCode.FAULT)
        raise
