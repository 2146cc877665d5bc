"""Tab completion in zsh from the first Tab on: typer's script spends that on loading itself.

Above: app.py. Below: typer, whose scripts are no public part of it; a version that keeps them elsewhere is left alone.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

_ZSH_AT_ONCE = '\n\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  %(complete_func)s "$@"\nfi\n'


def complete_at_once() -> None:
    """Let the script for zsh complete when it is loaded for that, not only afterwards."""
    with suppress(ImportError):
        scripts = getattr(import_module("typer._completion_shared"), "_completion_scripts", {})
        if "zsh" in scripts and not scripts["zsh"].endswith(_ZSH_AT_ONCE):
            scripts["zsh"] += _ZSH_AT_ONCE
