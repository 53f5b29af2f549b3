# conformance/torch_conformance/report/shards.py: puts the parts of a run that was spread over several jobs together.
"""Parts belong together when label and number of parts agree and each part occurs once."""

from __future__ import annotations

from typing import Any


def joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs in `parts`, in the order of their starts. A run that lacks a part is not complete."""
    groups: list[list[dict[str, Any]]] = []
    latest: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for part in sorted(parts, key=lambda p: str(p["started"])):
        number, count = part["shard"]
        identity = part["device"]["label"], count
        group = latest.get(identity, [])
        if not group or any(other["shard"][0] == number for other in group):
            latest[identity] = group = []
            groups.append(group)
        group.append(part)
    return [_run(group) for group in groups]


def _run(parts: list[dict[str, Any]]) -> dict[str, Any]:
    whole = len(parts) == parts[0]["shard"][1]
    return parts[0] | {
        "cells": [cell for part in parts for cell in part["cells"]],
        "seconds": sum(part["seconds"] for part in parts),
        "complete": whole and all(part["complete"] for part in parts),
        "shard": [1, 1],
    }
