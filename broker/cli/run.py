"""`codemode run`: one script to its outcome."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from broker.cli.call_table import call_table
from broker.cli.compile_progress import prepare_image
from broker.cli.configured import load_config, open_broker
from broker.cli.consent import TerminalAnswerer
from broker.cli.exit_codes import ExitCode
from broker.cli.terminal import Problem, can_ask, note, report_problem, write_result, write_to
from sandbox import Limits
