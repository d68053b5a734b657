"""Stands in front of Hermes's interpreter (`door: {python: …}`) and lets the worker fail at a chosen point.

Run by Hermes's own python with `-I`, so that it needs nothing of ours. A point is armed by a file in `hooks/` beside
it, whose words are carried out once; that a point was passed is told by a file `at-POINT` there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

_HOOKS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hooks")  # noqa: PTH100, PTH118, PTH120
_MAIN = "m.main()"


def hit(point: str) -> list[str]:
    """Does what is armed at the point, and returns the words that concern the answer."""
    path = os.path.join(_HOOKS, point)  # noqa: PTH118
    try:
        with open(path) as file:
            words = file.read().split()
        os.unlink(path)  # noqa: PTH108
    except FileNotFoundError:
        return []
    with open(os.path.join(_HOOKS, f".{point}"), "w") as file:  # noqa: PTH118
        file.write(str(os.getpid()))
    os.rename(os.path.join(_HOOKS, f".{point}"), os.path.join(_HOOKS, f"at-{point}"))  # noqa: PTH104, PTH118
    for word in words:
        if word == "wait":
            with open(os.path.join(_HOOKS, "go")):  # noqa: PTH118 - a pipe: opens when the test opens it to write
                pass
        elif word == "kill-us":
            os.kill(os.getppid(), signal.SIGKILL)
        elif word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif word.startswith("limit="):
            import resource

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(word[6:]), int(word[6:])))
    return words


def serve(boot: Any, requests: Any, answers: Any) -> None:
    """The worker's loop with points before and after each request, and with answers that are not as they should be."""
    for line in requests:
        request = json.loads(line)
        name = "hello" if request["verb"] == "hello" else request["module"]
        hit(f"before-{name}")
        answer = (json.dumps(boot._answer(request)) + "\n").encode()
        for word in hit(f"after-{name}"):
            if word == "close":
                answers.close()
                os.close(1)
                return
            if word == "leak":
                with open(os.path.join(_HOOKS, "leak")) as file:  # noqa: PTH118
                    print(file.read(), file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            if word == "flood":
                while True:
                    answers.write(b"x" * (1 << 20))
            answer = _WRONG.get(word, lambda right: right)(answer)
        answers.write(answer)
        answers.flush()
        hit(f"answered-{name}")


_WRONG: dict[str, Any] = {
    "garbage": lambda right: b"\xff\xfe not json sk-1234567890abcdefghijklmn\n",
    "huge": lambda right: b'{"ok": "' + b"x" * (24 << 20) + b'"}\n',
    "deep": lambda right: b"[" * 200_000 + b"]" * 200_000 + b"\n",
    "other": lambda right: b'{"ok": {"a": 1}}\n',
    "codeless": lambda right: b'{"ok": [{"ref": "default/jobs/plants"}]}\n',
    "unknown-code": lambda right: right.replace(b'"code": "ok"', b'"code": "splendid"'),
    "none": lambda right: b'{"ok": []}\n',
    "half": lambda right: right[: len(right) // 2],
}


def _main() -> None:
    code = sys.argv[sys.argv.index("-c") + 1]
    hit("start")
    if "ModuleType" in code:  # the worker's program, and not the reader's
        assert _MAIN in code, "the worker begins in another way than this hook knows"
        code = code.replace(_MAIN, "import functools; m.serve = functools.partial(_serve, m); m.main()")
    exec(compile(code, "<hooked>", "exec"), {"__name__": "__main__", "_serve": serve})


if __name__ == "__main__":
    _main()
