"""A skill's folder that is written, and cut off at any moment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from reconciler_shape import skillfolder

FILES = {"SKILL.md": "---\nname: weather\n---\n", "a.md": "a", "references/b.md": "b", "scripts/c.py": "c"}


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", range(len(FILES)))
def test_one_that_was_cut_off_while_it_was_made_is_none_yet(
    tmp_path: Path, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, replace, turns = tmp_path / "skills" / "weather", os.replace, iter(range(99))

    def killed(*words: Any, **more: Any) -> None:
        if next(turns) == moment:
            raise Killed
        replace(*words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(Killed):
            skillfolder.sync(tmp_path, folder, FILES, ())
    assert skillfolder.seen(tmp_path, ["skills"], "weather") == (None, None)
    skillfolder.sync(tmp_path, folder, FILES, ())
    assert skillfolder.seen(tmp_path, ["skills"], "weather") == (folder, FILES)
