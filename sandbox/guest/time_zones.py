"""Time zone data for `zoneinfo`, read from the `tzdata` package while the image is made."""

import importlib.resources
import io
import zoneinfo
import zoneinfo._common


def load() -> None:
    """Keep the data of every zone in memory and make `zoneinfo` read it from there."""
    root = importlib.resources.files("tzdata")
    names = root.joinpath("zones").read_text("utf-8").split()
    data = {name: root.joinpath("zoneinfo", *name.split("/")).read_bytes() for name in names}

    def load_tzdata(key):
        if key not in data:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(data[key])

    zoneinfo._common.load_tzdata = load_tzdata
    zoneinfo.available_timezones = lambda: set(data)
