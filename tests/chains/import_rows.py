"""Rows in the columns of each publisher; the words and patches are ours."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

BASE = "4f5e6d7c8b9a0f1e2d3c4b5a69788776655443a1"
QUERY = "Empty carts have no total.\r\n\r\n    till.total([])  # raises\n"
PATCH = """diff --git a/till/cart.py b/till/cart.py
index 1111111..2222222 100644
--- a/till/cart.py
+++ b/till/cart.py
@@ -1 +1 @@
-LIMIT = 1
+LIMIT = 0
"""
TEST_PATCH = PATCH.replace("till/cart.py", "tests/test_cart.py")
F2P = ["tests/test_cart.py::test_empty"]
P2P = ["tests/test_cart.py::test_full", "tests/test_cart.py::test_[a b]"]
SCRIPT = """#!/bin/bash
set -uxo pipefail
cd /testbed
: '>>>>> Start Test Output'
pytest -rA tests/test_cart.py
: '>>>>> End Test Output'
"""

_SHARED: dict[str, Any] = {
    "repo": "shop/till",
    "instance_id": "shop__till-12",
    "base_commit": BASE,
    "patch": PATCH,
    "test_patch": TEST_PATCH,
    "problem_statement": QUERY,
    "hints_text": "",
    "version": "1.2",
}


def swe_bench(**changes: Any) -> dict[str, Any]:
    """SWE-bench as the hub has it: lists as JSON texts."""
    row = {
        **_SHARED,
        "created_at": "2024-05-01T12:30:00Z",
        "FAIL_TO_PASS": json.dumps(F2P),
        "PASS_TO_PASS": json.dumps(P2P),
        "environment_setup_commit": BASE,
    }
    return row | changes


def verified(**changes: Any) -> dict[str, Any]:
    """SWE-bench Verified."""
    return swe_bench(difficulty="15 min - 1 hour", **changes)


def harness_5(**changes: Any) -> dict[str, Any]:
    """What the harness 5 reads."""
    row = swe_bench(
        image="registry.example:5000/sweb/till@sha256:" + "a" * 64,
        log_parser="parse_log_pytest",
        eval_type="pass_and_fail",
        eval_script=SCRIPT,
    )
    return row | changes


def swe_gym(**changes: Any) -> dict[str, Any]:
    """SWE-Gym: lists as lists, no commit of the environment."""
    return {**_SHARED, "created_at": "2024-05-01 12:30:00", "FAIL_TO_PASS": F2P, "PASS_TO_PASS": P2P} | changes


def swe_rebench(**changes: Any) -> dict[str, Any]:
    """SWE-rebench 1."""
    row = {
        **_SHARED,
        "created_at": datetime(2024, 5, 1, 12, 30),
        "environment_setup_commit": BASE,
        "FAIL_TO_PASS": F2P,
        "FAIL_TO_FAIL": [],
        "PASS_TO_PASS": P2P,
        "PASS_TO_FAIL": [],
        "license_name": "MIT License",
        "environment": "name: testbed",
        "requirements": "pytest==8.0",
        "install_config": {"log_parser": "parse_log_pytest", "test_cmd": "pytest -rA", "python": "3.9"},
        "meta": {"llm_score": {"difficulty_score": 1, "issue_text_score": 0}, "num_modified_files": 1},
        "docker_image": "swerebench/sweb.eval.x86_64.shop_1776_till-12",
    }
    return row | changes


def swe_rebench_v2(**changes: Any) -> dict[str, Any]:
    """SWE-rebench V2: milliseconds, a command of several lines, an image of its own."""
    row = {
        **{name: value for name, value in _SHARED.items() if name not in {"hints_text", "version"}},
        "created_at": "1714566600000",
        "pr_description": "Takes empty carts.",
        "language": "python",
        "interface": "",
        "FAIL_TO_PASS": F2P,
        "PASS_TO_PASS": P2P,
        "meta": {"llm_metadata": [{"difficulty": "easy"}], "num_modified_files": 1},
        "install_config": {
            "base_image_name": "python:3.11",
            "log_parser": "parse_log_pytest",
            "test_cmd": ["rm -rf .pytest_cache", "pytest -rA"],
        },
        "image_name": "docker.io/swerebenchv2/shop-till:12-4f5e6d7",
        "license": "MIT",
    }
    return row | changes


def swe_smith(**changes: Any) -> dict[str, Any]:
    """SWE-smith: the patch brings the fault in."""
    row = {
        "instance_id": "shop__till.4f5e6d7c.func_basic__ab12cd34",
        "repo": "swesmith/shop__till.4f5e6d7c",
        "patch": PATCH,
        "FAIL_TO_PASS": F2P,
        "PASS_TO_PASS": P2P,
        "created_at": "2024-05-01T12:30:00.123456",
        "image_name": "jyangballin/swesmith.x86_64.shop_1776_till.4f5e6d7c",
        "base_commit": "f" * 40,
        "problem_statement": QUERY,
    }
    return row | changes


def multi_swe_bench(**changes: Any) -> dict[str, Any]:
    """Multi-SWE-bench: tests as objects, the issues that the pull request resolves."""
    outcome = {"run": "FAIL", "test": "FAIL", "fix": "PASS"}
    row = {
        "org": "Shop",
        "repo": "Till",
        "number": 12,
        "state": "closed",
        "title": "Take empty carts",
        "body": None,
        "base": {"label": "shop:main", "ref": "main", "sha": BASE},
        "resolved_issues": [{"number": 11, "title": "Empty carts have no total.", "body": "till.total([])"}],
        "fix_patch": PATCH,
        "test_patch": TEST_PATCH,
        "fixed_tests": {F2P[0]: outcome},
        "p2p_tests": dict.fromkeys(P2P, outcome),
        "f2p_tests": {},
        "s2p_tests": {},
        "n2p_tests": {F2P[0]: outcome},
        "run_result": {"passed_count": 2, "failed_count": 0, "skipped_count": 0},
        "test_patch_result": {},
        "fix_patch_result": {},
        "lang": "rust",
    }
    return row | changes


def nemo_gym(**changes: Any) -> dict[str, Any]:
    """NeMo Gym: the row of another form as JSON text."""
    row = {
        "responses_create_params": {
            "input": [],
            "metadata": {
                "instance_id": "shop__till-12",
                "base_commit": BASE,
                "dataset_name": "SWE-Gym/SWE-Gym",
                "split": "train",
                "problem_statement": QUERY,
                "instance_dict": json.dumps(swe_gym()),
            },
        },
        "agent_ref": {"type": "responses_api_agents", "name": "swe_agents"},
    }
    return row | changes


def nemo_small(**changes: Any) -> dict[str, Any]:
    """NeMo Gym's ``nv-internal-1``: small letters, lists as JSON texts with a selection beside them."""
    inside = {
        **{name: _SHARED[name] for name in ("instance_id", "base_commit", "repo", "test_patch", "problem_statement")},
        "dataset_name": "nv-internal-1",
        "split": "train",
        "golden_patch": PATCH,
        "before_repo_set_cmd": "git checkout 0123abc -- tests/test_cart.py",
        "selected_test_files_to_run": '["tests/test_cart.py"]',
        "fail_to_pass": json.dumps([*F2P, "tests/test_cart.py::test_slow"]),
        "pass_to_pass": json.dumps(P2P),
        "fail_to_pass_select": F2P,
        "run_script.sh": "pytest -rA $1",
        "parsing_script.py": "import json",
    }
    said = ("instance_id", "base_commit", "dataset_name", "split", "problem_statement", "golden_patch")
    metadata = {name: inside[name] for name in said} | {"instance_dict": json.dumps(inside)}
    row = {
        "responses_create_params": {"input": [], "metadata": metadata},
        "container_formatter": "docker://lab/{instance_id}:1",
    }
    return row | changes


def nemo_skills(**changes: Any) -> dict[str, Any]:
    """NeMo Skills: the columns of another form, and a container beside them."""
    row = {
        **verified(),
        "container_formatter": "docker://swebench/sweb.eval.x86_64.{instance_id}",
        "container_id": 0,
        "dataset_name": "princeton-nlp/SWE-bench_Verified",
        "split": "test",
    }
    return row | changes


ROWS = {
    "swe_bench": ("swe-bench", swe_bench),
    "verified": ("swe-bench", verified),
    "harness_5": ("swe-bench", harness_5),
    "swe_gym": ("swe-gym", swe_gym),
    "swe_rebench": ("swe-rebench", swe_rebench),
    "swe_rebench_v2": ("swe-rebench-v2", swe_rebench_v2),
    "swe_smith": ("swe-smith", swe_smith),
    "multi_swe_bench": ("multi-swe-bench", multi_swe_bench),
    "nemo_gym": ("nemotron", nemo_gym),
    "nemo_small": ("nemotron", nemo_small),
    "nemo_skills": ("nemotron", nemo_skills),
}
"""The name of the form, and what makes a row of it."""


def in_form(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row of SWE-Gym in the columns of another form, whose lists are not those of a fault that is brought in."""
    owner, _, repository = row["repo"].partition("/")
    number = int(row["instance_id"].rpartition("-")[2])
    title, _, body = row["problem_statement"].partition("\n")
    lists = {column: row[column] for column in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    match name:
        case "multi_swe_bench":
            issues = [{"title": title, "body": body}, {"title": "Another one", "body": None}]
            tests = [{test: {"run": "FAIL"} for test in tests} for tests in lists.values()]
            return multi_swe_bench(
                org=owner,
                repo=repository,
                number=number,
                base={"sha": row["base_commit"]},
                resolved_issues=issues,
                fix_patch=row["patch"],
                test_patch=row["test_patch"],
                n2p_tests=tests[0],
                p2p_tests=tests[1],
            )
        case "nemo_gym":
            made = nemo_gym()
            said = {name: row[name] for name in ("instance_id", "base_commit", "problem_statement")}
            made["responses_create_params"]["metadata"] |= {**said, "instance_dict": json.dumps(row)}
            return made
        case "nemo_small":
            made = nemo_small()
            said = {name: row[name] for name in ("instance_id", "base_commit", "problem_statement")}
            inside = {**said, "repo": row["repo"], "test_patch": row["test_patch"]}
            inside |= {"fail_to_pass": json.dumps(lists["FAIL_TO_PASS"]), "pass_to_pass": lists["PASS_TO_PASS"]}
            metadata = {**said, "golden_patch": row["patch"], "instance_dict": json.dumps(inside)}
            return made | {"responses_create_params": {"metadata": metadata}}
    form, make = ROWS[name]
    if form == "swe-bench" or name == "nemo_skills":
        lists = {column: json.dumps(tests) for column, tests in lists.items()}
    shared = {column: row[column] for column in _SHARED if column in make()}
    return make() | shared | lists
