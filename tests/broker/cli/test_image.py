"""`codemode image` at the command line; what it builds is tested with the sandbox."""

from __future__ import annotations

import json

import pytest

from sandbox.image import COMPONENT


@pytest.fixture
def data(tmp_path):
    return {"XDG_DATA_HOME": str(tmp_path / "data")}


@pytest.fixture
def placed(tmp_path):
    """An image that lies there as if it had been built: the installed component under another name."""
    place = tmp_path / "data" / "codemode-broker" / "images" / "mine"
    place.mkdir(parents=True)
    for path in (COMPONENT, COMPONENT.with_suffix(".json")):
        (place / path.name).symlink_to(path)
    (place / "packages.lock").write_text(f"tabulate==0.9.0 --hash=sha256:{'0' * 64}\n")
    return place


def test_packages_are_needed(codemode, data):
    result = codemode("image", "build", **data)
    assert result.returncode == 2
    assert result.stderr == (
        "error: an image needs packages\n       Give --with PACKAGE, once for each, or --lock FILE.\n"
    )


def test_what_is_no_package_is_refused_before_anything_is_fetched(codemode, data):
    result = codemode("image", "build", "--with", "--extra-index-url=x", **data)
    assert result.returncode == 2
    assert "'--extra-index-url=x' is no package" in result.stderr


def test_images_are_listed_and_removed(codemode, data, placed):
    assert "tabulate 0.9.0" in codemode("image", "list", **data).stdout
    (listed,) = json.loads(codemode("image", "list", "--json", **data).stdout)
    assert (listed["name"], listed["packages"][0]["name"]) == ("mine", "tabulate")
    assert codemode("image", "rm", "mine", **data).stderr == "removed mine\n"
    assert not placed.exists()
    assert "no images beside" in codemode("image", "list", **data).stderr
    assert codemode("image", "rm", "mine", **data).returncode == 2


@pytest.mark.usefixtures("placed")
def test_the_config_names_the_image_that_scripts_run_on(codemode, data, tmp_path):
    config = tmp_path / "mcp.json"
    for name, code in (("mine", 0), ("other", 2)):
        config.write_text(json.dumps({"mcpServers": {}, "image": name}))
        result = codemode("run", "-", "--config", str(config), stdin="print(1 + 1)", **data)
        assert result.returncode == code
        assert ("there is no image 'other'" in result.stderr) is (name == "other")
    config.write_text(json.dumps({"mcpServers": {}, "image": "../x"}))
    assert codemode("run", "-", "--config", str(config), stdin="1", **data).returncode == 2


def test_help_names_the_extra(codemode):
    assert "codemode-broker[images]" in codemode("image", "build", "--help").stdout
