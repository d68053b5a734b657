"""The JSON Schema is what the field tables say, and accepts and refuses what the loader does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from reconciler_specs import file, home, inference, job, policy, profile, schema

CASES = Path(__file__).parents[2] / "cases" / "specs"
VALIDATOR = Draft202012Validator(schema.generate())


def test_the_file_is_up_to_date() -> None:
    assert schema.PATH.read_text() == schema.text(), "run: python -m reconciler_specs.schema > (that file)"


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema.generate())


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (job.Job, job.FIELDS), (file.File, file.FIELDS), (inference.Inference, inference.FIELDS),
        (profile.Profile, profile.FIELDS), (policy.PolicyModel, policy.FIELDS),
    ],
)  # fmt: skip
def test_tables_and_models_name_the_same_fields(model: type[BaseModel], fields: Any) -> None:
    assert {f.alias or name for name, f in model.model_fields.items()} == set(fields)
    assert all(f.doc.endswith((".", '"')) for f in fields.values())


def test_the_homes_table_covers_its_model() -> None:
    assert set(home.HomeModel.model_fields) <= set(home.FIELDS)


def _cases(key: str) -> list[Path]:
    return [c for c in sorted(CASES.glob("*.yaml")) if key in yaml.safe_load(c.read_text())]


def _read(text: str) -> Any:
    return json.loads(json.dumps(yaml.load(text, yaml.SafeLoader), default=str))


@pytest.mark.parametrize("case", _cases("desired"), ids=lambda c: c.stem)
def test_accepts_what_loads(case: Path) -> None:
    setup = yaml.safe_load(case.read_text())["setup"]
    from reconciler_specs.document import Document

    errors = [e.message for e in VALIDATOR.iter_errors(Document.parse(setup).root.plain(nulls=True))]
    assert errors == []


REFUSED = [
    "unknown_key_suggests", "unknown_key_in_home", "unknown_key_at_top",
    "version_missing", "version_newer", "version_text", "no_homes", "harness_unknown", "schedule_string_30m",
    "schedule_missing", "schedule_two_forms", "deliver_string", "deliver_origin", "deliver_thread_alone",
    "deliver_unknown_key", "job_prompt_and_run", "job_neither", "job_unset_unknown", "job_fields_unknown", "job_repeat",
    "trap_mode", "trap_list", "trap_nested_map", "trap_every_number", "trap_yes", "file_none", "file_text_short",
    "inference_no_default", "inference_model_key", "policy_wrong", "place_wrong", "profile_name", "job_key",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_what_does_not_load(name: str) -> None:
    from reconciler_specs.document import Document

    setup = yaml.safe_load((CASES / f"{name}.yaml").read_text())["setup"]
    assert not VALIDATOR.is_valid(Document.parse(setup).root.plain(nulls=True))


def test_an_included_file() -> None:
    assert VALIDATOR.is_valid({"homes": {"bolt": {"extends": ["t"], "path": "/x", "profiles": {"default": None}}}})
    assert not VALIDATOR.is_valid({"policy": {}})
