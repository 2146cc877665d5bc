"""What `codemode doctor` finds where a system lacks something."""

from __future__ import annotations

import json

import anyio
import pytest

from broker.cli.configured import LISTING_SECONDS
from broker.cli.doctor import DoctorRequest, examine, what_confines
from broker.cli.exit_codes import ExitCode
from sandbox import Confinement
from sandbox import image_loading as images


@pytest.mark.anyio
async def test_an_image_that_cannot_be_kept_is_compiled_once(image, tmp_path, monkeypatch, capsys):
    code = image.compiled.read_bytes()
    compiled = []

    def compile_(_component, digest):
        compiled.append(digest)
        return code

    monkeypatch.setattr(images, "_compile", compile_)
    (tmp_path / "file").write_text("in the way")
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "file" / "folder"))
    assert await examine(DoctorRequest(None)) == ExitCode.USAGE
    said = capsys.readouterr().out
    assert "cache: each command compiles the image anew: " in said
    assert "workers: confined by " in said
    assert compiled == [image.digest]


@pytest.mark.anyio
@pytest.mark.parametrize("is_lazy", [False, True])
async def test_a_server_that_is_silent_is_waited_for_as_long_as_is_said(tmp_path, monkeypatch, capsys, is_lazy):
    monkeypatch.setattr("broker.cli.doctor.LISTING_SECONDS", 2)
    silent = {"command": "sleep", "args": ["3600"], "connect_timeout_seconds": 3600, "lazy": is_lazy}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"silent": silent}}))
    with anyio.fail_after(LISTING_SECONDS):
        await examine(DoctorRequest(config))
    assert "server silent: still connecting after 2 seconds" in capsys.readouterr().out


@pytest.mark.anyio
async def test_each_problem_of_the_config_has_a_line_of_its_own_and_is_whole(tmp_path, capsys):
    config = tmp_path / "mcp.json"
    long, odd = "o" * 500, "no\x1b[31m\nname"
    config.write_text(json.dumps({"mcpServers": {"a": {"command": "x", long: 1}, odd: {"command": "x"}}}))
    assert await examine(DoctorRequest(config)) == ExitCode.USAGE
    said = capsys.readouterr().out
    lines = said[said.index("wrong  config: ") :].splitlines()
    assert lines[0] == f"wrong  config: {config}: 2 problems"
    assert [long in lines[1], "known are" in lines[1]] == [True, True]
    assert lines[2].startswith("  - server 'no")
    assert lines[2].endswith("scripts import it")
    assert "\x1b" not in said


ESCAPED = "a script that escapes from WebAssembly"


@pytest.mark.parametrize(
    ("active", "said"),
    [
        (
            {"resource_limits": True, "no_new_privileges": True, "seccomp": True, "landlock": 5},
            "confined by seccomp, Landlock, no_new_privs, resource limits",
        ),
        (
            {"resource_limits": True, "no_new_privileges": True},
            "confined by no_new_privs, resource limits; this system has no seccomp, no Landlock: only the rest holds "
            + ESCAPED,
        ),
        (
            {},
            "without secrets, and not confined; this system has no resource limits, no no_new_privs, no seccomp, "
            "no Landlock: nothing holds " + ESCAPED,
        ),
    ],
)
def test_what_confines_the_workers_and_what_does_not(active, said):
    assert what_confines(Confinement(**active)) == said
