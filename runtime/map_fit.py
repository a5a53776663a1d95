"""Whether a map that was given is this run's: made for its command, and from its source."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from sgl_graph.analyzer.errors import CommandInvalid, ConfigError
from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.serving_command import ServingCommand, options, parse
from sgl_graph.runtime.checkout import Location
from sgl_graph.runtime.identity import release_of
from sgl_graph.runtime.options import RunOptions

#: Where a server listens decides no graph, and `run` may choose the port itself.
_ELSEWHERE = ("--host", "--port")
_WANTED = re.compile(r"--(?:device|model-config|assume) [A-Z][A-Z_=]*")
_SHOWN = 4


def check_fit(
    view: MapView, run: RunOptions, location: Location, source_digest: str, index: Mapping[str, str]
) -> list[str]:
    """Refuse a map of another command or of another release; what may be meant is told.

    A map of the same release whose source differs somewhere is used: the plan keeps its digest, and coverage derived from it
    is INCONCLUSIVE where the workers import other source.

    Args:
        view: The map.
        run: What the user asked.
        location: The checkout.
        source_digest: Digest over the modules that serve.
        index: Digest of each module of the checkout, by dotted name.

    Returns:
        Sentences for the plan's notes, and for the user before the launch.

    Raises:
        ConfigError: The map is another command's, or another release's.
    """
    name = str(run.map_file or "the path map")
    differing = command_differences(view, run.command)
    if differing:
        more = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        raise ConfigError(
            f"{name} was made for another command: {'; '.join(differing[:_SHOWN])}{more}", hint=map_anew(run)
        )
    doubts = _variables(view, run, name)
    mapped = view.checkout_digest
    # Only a real digest can contradict: a map written by hand need not have one.
    if mapped is None or len(mapped) != 64 or mapped == source_digest:
        return doubts
    theirs, ours = view.release, release_of(location.base)
    if theirs and ours and _released(theirs) != _released(ours):
        raise ConfigError(f"{name} was made from SGLang {theirs}, and this checkout is {ours}", hint=map_anew(run))
    gone = sorted({file for file in view.reachable_files if _module(file) not in index})
    if gone:
        raise ConfigError(
            f"{name} was made from another checkout: {gone[0]}, where it found captures, is not in this one",
            hint=map_anew(run),
        )
    return [
        *doubts,
        f"{name} was made from other source than this checkout's: coverage derived from it is INCONCLUSIVE",
    ]


def command_differences(view: MapView, command: ServingCommand) -> list[str]:
    """How a map's command differs from this one in meaning; a map that states none differs in nothing."""
    stated = view.body.get("command")
    tokens = [str(token) for token in stated] if isinstance(stated, list | tuple) else []
    if not tokens:
        return []
    try:
        theirs = parse(tokens)
    except CommandInvalid as error:
        return [error.message]
    found = [] if theirs.entry == command.entry else [f"map: {theirs.entry}, this run: {command.entry}"]
    before, now = _meaning(theirs), _meaning(command)
    for flag in (*before, *(flag for flag in now if flag not in before)):
        if not _equal(before.get(flag), now.get(flag)):
            found.append(f"map: {_option(flag, before.get(flag))}, this run: {_option(flag, now.get(flag))}")
    return found


def map_anew(run: RunOptions, wanted: Sequence[str] = ()) -> str:
    """The lines that make a map of this run's command, and use it.

    Args:
        run: What the user asked.
        wanted: Options of preflight with placeholders, as `--device NAME`.
    """
    words = ["sgl-graph", "preflight"]
    if run.checkout is not None:
        words += ["--checkout", str(run.checkout)]
    for key, value in run.env.items():
        words += ["--env", f"{key}={value}"]
    line = " ".join([shlex.join(words), *wanted, "--format json -o map.json --", run.command.text()])
    return f"make a map of this command:\n  {line}\nand give it: sgl-graph run --map map.json ..."


def wanted_options(gaps: Sequence[str]) -> list[str]:
    """Options of preflight that texts of gaps ask for, as `--device NAME`."""
    return list(dict.fromkeys(option for gap in gaps for option in _WANTED.findall(gap)))


def for_run(gap: str) -> str:
    """The text of a gap as `run` tells it: the options that would settle it are preflight's."""
    return re.sub(r"\bgive (?=--)", "give preflight ", gap)


def _variables(view: MapView, run: RunOptions, name: str) -> list[str]:
    stated = view.body.get("env")
    theirs = {str(k): str(v) for k, v in stated.items()} if isinstance(stated, Mapping) else {}
    ours = {**run.env, **run.command.env}
    names = sorted(key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key))
    if (not stated and not ours) or not names:
        return []
    return [f"{name} was made under other variables than this run's: {', '.join(names)}"]


def _meaning(command: ServingCommand) -> dict[str, tuple[str, ...]]:
    """The last values of each option, which are those that the server's parser takes."""
    return {flag: values for flag, values in options(command.without(*_ELSEWHERE).arguments)}


def _equal(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> bool:
    if a is None or b is None or len(a) != len(b):
        return a == b
    return all(x == y or _same_file(x, y) for x, y in zip(a, b, strict=True))


def _same_file(a: str, b: str) -> bool:
    try:
        return os.path.samefile(a, b)
    except (OSError, ValueError):
        return False


def _option(flag: str, values: tuple[str, ...] | None) -> str:
    return f"no {flag}" if values is None else shlex.join([flag, *values])


def _released(version: str) -> str:
    """A version without what tells one build of a release that is still being made from another."""
    return re.split(r"\.dev\d", version)[0]


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
