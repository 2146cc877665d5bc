"""Build hook: puts the guest component into the package before hatchling collects the files.

Runs for wheels and for editable installs. It loads `sandbox/componentize.py` by path: the `sandbox` package imports
anyio, which a build environment does not have.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from types import ModuleType


class GuestBuildHook(BuildHookInterface[Any]):
    """Compiles `sandbox/guest` into `sandbox/guest.wasm` and ships it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatchling's signature
        """Build the component unless the one at hand was made from these very sources."""
        if self.target_name != "wheel":
            return
        component = Path(self.root, "sandbox", "guest.wasm")
        _load(Path(self.root, "sandbox", "componentize.py")).build_component(component)
        build_data["artifacts"] += ["sandbox/guest.wasm", "sandbox/guest.json"]


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("componentize", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
