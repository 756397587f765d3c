"""Objects of Kubernetes, as Helm and Kustomize make them of the chart."""

import functools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.settings import Settings
from tests.container import ROOT

CHART = ROOT / "deploy/chart"
PREFIX = "HOLDFAST_"
# The values of each kind of deployment.
VALUES = {
    kind: ("--values", f"deploy/kustomize/{kind}/values.yaml") for kind in ("one", "pair", "many")
}
Objects = dict[tuple[str, str], Any]


def tool(name: str) -> str:
    found = shutil.which(name, path=Path(sys.executable).parent)
    if found is None:
        pytest.skip(f"{name} is not installed: make setup-cluster-tools")
    return found


def run(*words: str, code: int = 0) -> str:
    """What a tool prints: its output or, if it is to fail, its errors."""
    program, *rest = words
    # Kustomize looks for Helm itself.
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        [tool(program), *rest],
        cwd=ROOT,
        env={"PATH": path, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def objects_of(text: str) -> Objects:
    """The objects of a stream by their kinds and names."""
    found = [each for each in yaml.safe_load_all(text) if each]
    named = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(named) == len(found)
    return named


@functools.cache
def chart(servers: str, *more: str) -> Objects:
    """What `helm install holdfast` makes."""
    return objects_of(run("helm", "template", "holdfast", str(CHART), *VALUES[servers], *more))


def stateful(objects: Objects, name: str = "holdfast") -> Any:
    return objects["StatefulSet", name]["spec"]


def container(objects: Objects, name: str = "holdfast") -> Any:
    [found] = stateful(objects, name)["template"]["spec"]["containers"]
    return found


def settings_of_pod(objects: Objects, number: int) -> Settings:
    """The settings that its variables give a pod, with a store's URL instead of a secret."""
    known = {"POD_NAME": f"holdfast-{number}"}
    for each in container(objects)["env"]:
        value = each.get("value", "redis://valkey" if each["name"].endswith("REDIS") else None)
        if value is not None:
            known[each["name"]] = re.sub(r"\$\((\w+)\)", lambda found: known[found[1]], value)
    given: dict[str, Any] = {
        name.removeprefix(PREFIX).lower(): json.loads(value) if value[0] in "[{" else value
        for name, value in known.items()
        if name.startswith(PREFIX)
    }
    return Settings(**given)
