"""`codemode doctor` where the image cannot be kept."""

from __future__ import annotations

import pytest

from broker.cli.doctor import DoctorRequest, examine
from broker.cli.exit_codes import ExitCode
from sandbox import image as images


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
