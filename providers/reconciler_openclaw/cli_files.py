"""Files below the home or a workspace, written at the home's place by the Node that OpenClaw itself runs on.

For what no door of OpenClaw takes: files that are not its bootstrap files, a new home's config, and the copy of a
config whose comments are about to go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.errors import DoorLost
from reconciler.provider import HomeRef

from . import cli

SECONDS = 60.0
_PROGRAM = r"""
const fs = require('fs'), path = require('path'), crypto = require('crypto');
const sha = (data) => crypto.createHash('sha256').update(data).digest('hex');
const read = (file) => {
  try { return fs.readFileSync(file); } catch (e) { if (e.code === 'ENOENT') return null; throw e; }
};
const sync = (dir) => { const fd = fs.openSync(dir, 'r'); try { fs.fsyncSync(fd); } finally { fs.closeSync(fd); } };
function inside(op) {
  const file = path.join(op.root, op.path), dir = path.dirname(file);
  fs.mkdirSync(dir, { recursive: true, mode: op.folder });
  const wanted = path.dirname(path.join(fs.realpathSync(op.root), op.path));
  if (fs.realpathSync(dir) !== wanted) throw new Error(`${dir} is reached through a link`);
  const stat = fs.lstatSync(file, { throwIfNoEntry: false });
  if (stat && !stat.isFile()) throw new Error(`${file} is no regular file`);
  return [file, dir, stat];
}
function one(op) {
  fs.mkdirSync(op.root, { recursive: true, mode: 0o700 });
  const [file, dir, stat] = inside(op), old = read(file);
  if ((old === null ? '' : sha(old)) !== op.expected) return { code: 'stale' };
  if (op.delete) { fs.unlinkSync(file); sync(dir); return { code: 'ok' }; }
  const temporary = path.join(dir, `.reconciler-${crypto.randomUUID()}`);
  const mode = op.mode ?? (stat ? stat.mode & 0o777 : op.made);
  const fd = fs.openSync(temporary, 'wx', mode);
  try {
    fs.writeSync(fd, op.copy ? read(op.copy) : Buffer.from(op.text));
    fs.fchmodSync(fd, mode); fs.fsyncSync(fd); fs.closeSync(fd);
    const now = read(file);
    if ((now === null ? '' : sha(now)) !== op.expected) { fs.unlinkSync(temporary); return { code: 'stale' }; }
    if (old === null) { fs.linkSync(temporary, file); fs.unlinkSync(temporary); } else fs.renameSync(temporary, file);
    sync(dir);
  } catch (e) { fs.rmSync(temporary, { force: true }); throw e; }
  return { code: 'ok' };
}
const answers = JSON.parse(fs.readFileSync(0)).map((op) => {
  try { return one(op); } catch (e) { return { code: 'refused', words: String(e.message) }; }
});
process.stdout.write(JSON.stringify(answers));
"""

Op = dict[str, Any]


def write(root: str, path: str, expected: str, *, folder: int = 0o755, made: int = 0o644, **what: Any) -> Op:
    """An operation on `path` below `root`: `text=` or `copy=` (another file's bytes), `mode=`, or `delete=True`.

    `expected` is the SHA-256 of what is there, "" for nothing; another content answers `stale`. `folder` and `made`
    are the modes of folders and of a file that are made.
    """
    return {"root": root, "path": path, "expected": expected, "folder": folder, "made": made, **what}


def perform(ref: HomeRef, ops: Sequence[Op], lock_fd: int | None) -> list[Mapping[str, str]]:
    """One answer `{code: ok | stale | refused, words?}` per operation, in order. Raises DoorLost, ProviderError."""
    node = cli.program(ref).node
    argv, env = [node, "-e", _PROGRAM], cli.environment(ref, node)
    done = cli.run(ref, argv, env, json.dumps(list(ops)), lock_fd, SECONDS)
    try:
        answers = json.loads(done.out)
    except ValueError:
        answers = None
    if done.code or not isinstance(answers, list) or len(answers) != len(ops):
        raise DoorLost(f"writing files with Node: {done.words}")
    return answers
