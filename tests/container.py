"""The Dockerfile and the compose file, read by tests because there is no container engine."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[1]


class Instruction(NamedTuple):
    keyword: str
    text: str


def read_dockerfile() -> list[Instruction]:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    joined = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", " ")
    pairs = (line.split(maxsplit=1) for line in joined.splitlines() if line.strip())
    return [Instruction(keyword, text) for keyword, text in pairs]


def read_final_stage() -> dict[str, str]:
    """The last word of each instruction behind the last FROM."""
    instructions = read_dockerfile()
    start = max(n for n, each in enumerate(instructions) if each.keyword == "FROM")
    return dict(instructions[start:])


def command_of_the_image() -> list[str]:
    words: list[str] = json.loads(read_final_stage()["CMD"])
    return words


def variables_of_the_image() -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", read_final_stage()["ENV"]))


def flag(name: str) -> str:
    words = command_of_the_image()
    return words[words.index(f"--{name}") + 1]


def read_compose() -> dict[str, Any]:
    compose: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return compose
