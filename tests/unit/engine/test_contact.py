"""`moved` where a home says of a thing that it is elsewhere than it was."""

from __future__ import annotations

import pytest

from reconciler.contact import Contact, moved
from reconciler.observe import Observation, Observed
from reconciler.testing.memory import MemoryProvider
from reconciler_specs.address import Address, Kind
from reconciler_state.record import HomeState, Owned

OLD, NEW = Address.parse("main/default/jobs/brief"), Address.parse("main/coder/jobs/brief")


@pytest.mark.parametrize(
    ("there", "strays", "held"),
    [
        ((), False, False),  # gone from where it was: made again at the new address, as its new setup says
        (("coder",), True, False),
        (("coder",), False, False),
        ((), True, True),  # somewhere, and not where it is said to be
        (("default",), False, True),
        (("default", "coder"), False, True),  # two of one id (a copied profile): the first would be nobody's
    ],
)
def test_a_job_has_its_new_profile_once_it_is_there(there: tuple[str, ...], strays: bool, held: bool) -> None:
    job = {p: Observed(Kind.JOB, p, "j1", name="brief") for p in there}
    profiles = {name: Observed(Kind.PROFILE, "", name) for name in ("default", "coder")}
    seen = Observation(
        things={
            ("", Kind.PROFILE): profiles,
            ("default", Kind.JOB): {"j1": job["default"]} if "default" in job else {},
            ("coder", Kind.JOB): {"j1": job["coder"]} if "coder" in job else {},
        },
        strays={(Kind.JOB, "j1"): "the job is another profile's now"} if strays else {},
    )
    state = HomeState("local", "native", "/h").with_owned("solo", OLD.path, Owned("j1", "created"))
    done = moved(Contact(state), "main", "solo", [(OLD, NEW)], seen, MemoryProvider().traits)
    assert (done.hold is not None) == held
    assert list(done.state.owned("solo")) == [OLD.path if held else NEW.path]
