"""Images with packages, from wheels made here: nothing is fetched from a network."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import zipfile

import anyio
import anyio.to_thread
import pytest
from filelock import FileLock
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

from sandbox import Completed, ImageError, Raised, Sandbox
from sandbox.image_builds import build_image
from sandbox.images import find_image, list_images, remove_image
from sandbox.locks import read_lock
from tests.http_apps import bound_socket, serving, url_of

pytestmark = pytest.mark.anyio

PURE = "py3-none-any"
COMPILED = "cp314-cp314-manylinux_2_17_x86_64"


def make_wheel(
    folder,
    name: str,
    files: dict[str, str],
    *,
    tag: str = PURE,
    needs: tuple[str, ...] = (),
    compression=zipfile.ZIP_STORED,
) -> None:
    module = name.replace("-", "_")
    info = f"{module}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + "".join(f"Requires-Dist: {n}\n" for n in needs)
    contents = files | {
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    contents[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{module}-1.0-{tag}.whl", "w") as wheel:
        for path, text in contents.items():
            wheel.writestr(zipfile.ZipInfo(path), text, compression, compresslevel=1)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """A small index of every kind of package."""
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(
        folder,
        "greeting",
        {
            "greeting/__init__.py": "from importlib import resources\nfrom shouting import shout\n"
            "def greet(who):\n    return resources.files('greeting').joinpath('hello.txt').read_text() + shout(who)\n",
            "greeting/hello.txt": "hello ",
            "greeting/later.py": "LATER = 'imported later'",
            "greeting/needs_more.py": "import something_that_is_not_there",
            "_greeting_private.py": "raise ImportError('stands for a compiled part')",
        },
        needs=("shouting",),
    )
    make_wheel(
        folder,
        "shouting",
        {
            "shouting/__init__.py": "try:\n    from shouting._fast import shout\n"
            "except ImportError:\n    shout = str.upper\n",
            "shouting/_fast.cpython-314-x86_64-linux-gnu.so": "\x7fELF",
        },
        tag=COMPILED,
    )
    make_wheel(
        folder,
        "compiled-only",
        {
            "compiled_only/__init__.py": "from compiled_only import core",
            "compiled_only/core.cpython-314-x86_64-linux-gnu.so": "\x7fELF",
        },
        tag=COMPILED,
    )
    make_wheel(folder, "unfit", {"unfit.py": "import socket\nsocket.create_connection(('127.0.0.1', 1))"})
    make_wheel(folder, "taking", {"tools/__init__.py": ""})
    make_wheel(
        folder, "shadowing", {"encodings/__init__.py": "raise SystemExit('stands for the first thing imported')"}
    )
    with tarfile.open(folder / "source-only-1.0.tar.gz", "w:gz") as archive:
        for path, text in {
            "PKG-INFO": "Metadata-Version: 2.1\nName: source-only\nVersion: 1.0\n",
            "setup.py": "raise SystemExit('ran on the host')",
        }.items():
            member = tarfile.TarInfo(f"source-only-1.0/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return folder


@pytest.fixture(autouse=True)
def only_these(monkeypatch, wheels):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all processes of pytest: building takes half a minute, and what is there is not built again."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "images"


@pytest.fixture(scope="module")
def built(folder, wheels):
    with pytest.MonkeyPatch.context() as environment, FileLock(folder.with_suffix(".lock")):
        environment.setenv("PIP_NO_INDEX", "1")
        environment.setenv("PIP_FIND_LINKS", str(wheels))
        environment.setenv("PIP_CONFIG_FILE", "/dev/null")
        told: list[str] = []
        image = build_image("polite", ["greeting"], folder=folder, on_progress=told.append)
        assert told == ["Choosing packages", "Fetching 2 packages", "Building the image"]
        return image


@pytest.fixture(scope="module")
def large_wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    make_wheel(folder, "bomb", {"bomb.py": "#" * (513 << 20)}, compression=zipfile.ZIP_DEFLATED)
    make_wheel(folder, "needing", {"needing.py": ""}, needs=("bomb",))
    with (folder / "huge-1.0-py3-none-any.whl").open("wb") as huge:
        huge.truncate(513 << 20)
    links = "".join(f"<a href='{path.name}'>{path.name}</a>" for path in folder.iterdir())
    (folder / "index.html").write_text(links)
    return folder


@pytest.mark.parametrize(
    ("requirement", "found"),
    [
        ("bomb", "bomb-1.0-py3-none-any.whl has 513 MiB when unpacked"),
        ("needing", "bomb-1.0-py3-none-any.whl has 513 MiB when unpacked, and 513 MiB with the others"),
        ("huge", "huge-1.0-py3-none-any.whl has 537.9 MB"),
    ],
)
async def test_packages_that_are_too_large_are_not_unpacked(tmp_path, monkeypatch, large_wheels, requirement, found):
    monkeypatch.setattr(FileResponse, "chunk_size", 1 << 20)  # as half a gigabyte is sent
    with bound_socket() as sock, anyio.fail_after(120):
        async with serving(StaticFiles(directory=large_wheels, html=True), sock):
            monkeypatch.setenv("PIP_FIND_LINKS", url_of(sock))
            with pytest.raises(ImageError) as caught:
                await anyio.to_thread.run_sync(lambda: build_image("large", [requirement], folder=tmp_path / "images"))
    assert str(caught.value) == f"{found}: all packages of an image together may have 512 MiB"


async def test_a_script_imports_what_was_built_in(built):
    script = """
        from greeting import greet, later
        print(greet("you"), later.LATER)
        import nothing
    """
    with anyio.fail_after(120):
        async with Sandbox(component=built.component, isolation="thread") as sandbox:
            result = await sandbox.run(script.replace("\n        ", "\n"))
    assert result.stdout == "hello YOU imported later\n"
    assert isinstance(result.outcome, Raised)
    assert "can import only Python's standard library, greeting, shouting and `tools`" in result.outcome.message


async def test_the_files_of_packages_are_all_that_can_be_opened(built):
    script = """
        path = "/1/packages/greeting/hello.txt"
        found = [open(path).read(), open(path, "rb").read()]
        for refused in (lambda: open(path, "w"), lambda: open("/1/packages/greeting/other.txt"), lambda: open(0)):
            try:
                refused()
            except PermissionError as error:
                found.append(str(error)[:21])
        found
    """
    with anyio.fail_after(120):
        async with Sandbox(component=built.component, isolation="thread") as sandbox:
            result = await sandbox.run(script.replace("\n        ", "\n"))
    assert result.outcome == Completed(["hello ", "aGVsbG8g", *["a script has no files"] * 3])


async def test_the_files_of_packages_are_there_for_who_asks(built):
    script = """
        import importlib.resources, os
        file = importlib.resources.files("greeting") / "hello.txt"
        [file.is_file(), file.exists(), os.path.isfile(str(file)), file.is_dir()]
    """
    with anyio.fail_after(120):
        async with Sandbox(component=built.component, isolation="thread") as sandbox:
            result = await sandbox.run(script.replace("\n        ", "\n"))
    assert (result.outcome, result.stderr) == (Completed([True, True, True, False]), "")


def test_compiled_parts_are_left_out_and_named(built):
    assert built.left_out == ("shouting/_fast.cpython-314-x86_64-linux-gnu.so",)


def test_the_lock_names_every_wheel_with_its_digest(built):
    assert [(wheel.name, wheel.version, len(wheel.sha256)) for wheel in read_lock(built.lock.read_text())] == [
        ("greeting", "1.0", 64),
        ("shouting", "1.0", 64),
    ]


def test_the_same_lock_gives_the_same_image(built, folder, tmp_path, can_repeat):
    # Another process of pytest may be putting the same lock in place of the one there.
    own = shutil.copytree(folder, tmp_path / "images", ignore=shutil.ignore_patterns("*.partial"))
    again = build_image("again", lock=built.lock, folder=own)
    assert again.wheels == built.wheels
    if can_repeat:
        assert again.component.read_bytes() == built.component.read_bytes()
    assert [image.name for image in list_images(own)] == ["again", "polite"]
    remove_image("again", own)
    assert [image.name for image in list_images(own)] == ["polite"]


def test_an_image_is_found_by_name_and_not_by_another(built, folder):
    assert find_image("polite", folder) == built.component
    with pytest.raises(ImageError) as caught:
        find_image("rude", folder)
    remedy = "build it with `codemode image build --name rude --with PACKAGE`"
    assert str(caught.value) == f"there is no image 'rude': {remedy}; there are: polite"
    with pytest.raises(ImageError, match="is not a name for an image"):
        find_image("../polite", folder)


@pytest.mark.usefixtures("built")
def test_an_image_of_another_version_says_how_to_build_it_again(folder, monkeypatch):
    monkeypatch.setattr("sandbox.images.guest_digest", lambda: "another")
    with pytest.raises(ImageError, match=r"by another version .* `codemode image build --name polite --lock .*lock`$"):
        find_image("polite", folder)


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        ("compiled-only", "compiled_only has compiled parts and does not work without them in WebAssembly"),
        ("unfit", "unfit cannot be imported in the guest (gaierror: "),
        ("taking", "a package brings a module 'tools', which every image has already"),
        (
            "shadowing",
            "encodings cannot be imported in the guest (a module of Python's standard library has this name)",
        ),
        ("source-only", "'source-only' has no wheel for CPython 3.14, only sources: those would run their own build"),
        ("not-there", "there is no package 'not-there': look for its name on PyPI"),
        ("greeting>=2", "'greeting>=2' has no wheel for CPython 3.14"),
        ("-e .", "'-e .' is not a package: give a name as on PyPI"),
        ("--index-url=https://example.org", "is not a package"),
        ("./greeting", "is not a package"),
        ("greeting @ https://example.org/a.whl", "is not a package"),
        ("git+https://example.org/a", "is not a package"),
        ("", "'' is not a package"),
    ],
)
def test_what_can_not_be_built_in_says_why(tmp_path, requirement, said):
    with pytest.raises(ImageError) as caught:
        build_image("bad", [requirement], folder=tmp_path)
    assert said in str(caught.value)
    assert list_images(tmp_path) == ()


def test_a_wheel_that_is_not_the_locked_one_is_refused(built, tmp_path):
    lock = tmp_path / "changed.lock"
    lock.write_text(built.lock.read_text().replace("sha256:", "sha256:0"))
    with pytest.raises(ImageError, match="not of the form NAME==VERSION"):
        build_image("changed", lock=lock, folder=tmp_path)
    digests = [wheel.sha256 for wheel in built.wheels]
    lock.write_text(built.lock.read_text().replace(digests[0], "0" * 64))
    with pytest.raises(ImageError, match="has changed since it was locked"):
        build_image("changed", lock=lock, folder=tmp_path)


def test_packages_or_a_lock_but_not_both(tmp_path):
    for arguments in ({}, {"requirements": ["greeting"], "lock": tmp_path / "lock"}):
        with pytest.raises(ImageError, match="either with packages or from a lock"):
            build_image("image", folder=tmp_path, **arguments)


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("sandbox.image_builds.importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ImageError, match=r"needs componentize-py: pip install 'codemode-broker\[images\]'"):
        build_image("image", ["greeting"], folder=tmp_path)
