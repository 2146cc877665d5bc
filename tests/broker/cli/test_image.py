"""`codemode image` at the command line; what it builds is tested with the sandbox."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from sandbox.image_loading import COMPONENT


@pytest.fixture
def placed(data_home):
    """An image that lies there as if it had been built: the installed component under another name."""
    place = Path(data_home) / "codemode-broker" / "images" / "mine"
    place.mkdir(parents=True)
    for path in (COMPONENT, COMPONENT.with_suffix(".json")):
        (place / path.name).symlink_to(path)
    (place / "packages.lock").write_text(f"tabulate==0.9.0 --hash=sha256:{'0' * 64}\n")
    return place


@pytest.mark.parametrize("given", [(), ("--with", "pyyaml", "--lock", "packages.lock")])
def test_packages_or_a_lock_are_needed(codemode, given):
    result = codemode("image", "build", "--name", "data", *given)
    assert result.returncode == 2
    assert result.stderr == (
        "error: an image is built either with packages or from a lock\n"
        "       Give --with PACKAGE, once for each, or --lock FILE.\n"
    )


def test_what_is_no_package_is_refused_before_anything_is_fetched(codemode):
    result = codemode("image", "build", "--with", "--extra-index-url=x")
    assert result.returncode == 2
    assert "'--extra-index-url=x' is not a package" in result.stderr


def test_images_are_listed_and_removed(codemode, placed):
    assert "tabulate 0.9.0" in codemode("image", "list").stdout
    (listed,) = json.loads(codemode("image", "list", "--json").stdout)
    assert (listed["name"], listed["packages"][0]["name"]) == ("mine", "tabulate")
    assert codemode("image", "rm", "mine").stderr == "removed mine\n"
    assert not placed.exists()
    assert "no images except" in codemode("image", "list").stderr
    assert codemode("image", "rm", "mine").returncode == 2


@pytest.mark.usefixtures("placed")
def test_the_config_names_the_image_that_scripts_run_on(codemode, tmp_path):
    config = tmp_path / "mcp.json"
    for name, code in (("mine", 0), ("other", 2)):
        config.write_text(json.dumps({"mcpServers": {}, "image": name}))
        result = codemode("run", "-", "--config", str(config), stdin="print(1 + 1)")
        assert result.returncode == code
        assert ("there is no image 'other'" in result.stderr) is (name == "other")
    config.write_text(json.dumps({"mcpServers": {}, "image": "../x"}))
    assert codemode("run", "-", "--config", str(config), stdin="1").returncode == 2


def test_the_last_use_of_a_compiled_image_is_shown_as_it_is_on_the_clock_here(codemode):
    def used():
        return json.loads(codemode("image", "list", "--compiled", "--json").stdout)[0]["used"]

    codemode("run", "-", stdin="1")
    before = used()
    _, _, shown, _ = codemode("image", "list", "--compiled", TZ="XYZ-9").stdout.splitlines()[0].split("\t")
    after = used()  # other tests use it meanwhile
    assert int(before) <= datetime.fromisoformat(f"{shown}+09:00").timestamp() <= after


def test_help_names_the_extra(codemode):
    assert "codemode-broker[images]" in codemode("image", "build", "--help").stdout
