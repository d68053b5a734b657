// A stand-in for the harness SDK that the orchestrator's package needs and no registry has: enough to load and save a
// home, so that its real daemon, socket, reducer and cold verbs run in tests. Written by us; nothing of theirs is here.
//
// A profile's jobs are kept as Hermes keeps them (cron/jobs.json), and so is access: approved pairings, the lists in .env,
// and admins and worker in config.yaml (its `platforms:` and `worker:` as one line of JSON each, which is all of YAML that is
// spoken here). What else the package holds of a profile lies in orchestration.json beside it, and only if there is something. A file whose content did
// not change is not written.
//
// SUPERCODE_STUB, for tests of what goes wrong: `hang-before` or `hang-after` a save, `fail-save`.

import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const WORDS = ['origin', 'local', 'home'];
const FIELDS = ['id', 'name', 'prompt', 'skills', 'model', 'context_from', 'schedule', 'repeat', 'enabled', 'state',
  'created_at', 'next_run_at', 'last_run_at', 'last_status', 'deliver', 'failure_deliver', 'origin', 'workdir',
  'attach_to_session'];
const EMPTY = {
  worker: null, persona: null, channels: {}, routes: [],
  expiry: { idle_minutes: 1440, daily_reset_hour: null, scope: 'per_chat' }, home: null, subscriptions: {},
  access: { allowlist: {}, admins: {}, pending_pairings: {}, policy: {}, pairing_ttl_minutes: null },
  bindings: {}, fires: [], obligations: [], residue: { config: {}, files: [] },
};

const clone = (value) => JSON.parse(JSON.stringify(value));
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function forever() {
  process.stdout.write(`${JSON.stringify({ event: 'hanging' })}\n`);
  return new Promise((resolve) => { setTimeout(resolve, 1 << 30); });
}

function toTarget(word) {
  if (!word) return null;
  if (WORDS.includes(word)) return { kind: word };
  const [platform, chat, thread] = word.split(':');
  return { kind: 'explicit', platform, ...(chat ? { chat_id: chat } : {}), ...(thread ? { thread_id: thread } : {}) };
}

function toWord(target) {
  if (!target) return null;
  if (target.kind !== 'explicit') return target.kind;
  return [target.platform, target.chat_id, target.thread_id].filter(Boolean).join(':');
}

function toJob(record) {
  const residue = Object.fromEntries(Object.entries(record).filter(([key]) => !FIELDS.includes(key)));
  if (record.name) residue.name = record.name;
  const { display, ...schedule } = record.schedule;
  if (schedule.kind === 'cron') schedule.tz ??= 'UTC';
  return {
    id: record.id, schedule, prompt: record.prompt ?? null, workdir: record.workdir ?? null,
    model: record.model ?? null, skills: record.skills ?? [], context_from: record.context_from ?? null,
    deliver: toTarget(record.deliver) ?? { kind: 'local' }, failure_deliver: toTarget(record.failure_deliver),
    origin: record.origin ?? null, attach_to_session: record.attach_to_session ?? null,
    repeat: record.repeat ?? null, enabled: record.enabled !== false, next_run_at: record.next_run_at ?? null,
    last_run_at: record.last_run_at ?? null, last_status: record.last_status ?? null,
    created_at: record.created_at ?? null, residue,
  };
}

function toRecord(job) {
  const { name, ...residue } = job.residue ?? {};
  return {
    id: job.id, ...(name ? { name } : {}), prompt: job.prompt, skills: job.skills, model: job.model,
    context_from: job.context_from, schedule: job.schedule, repeat: job.repeat, enabled: job.enabled,
    state: job.enabled ? 'scheduled' : job.last_run_at && job.next_run_at === null ? 'completed' : 'paused',
    created_at: job.created_at, next_run_at: job.next_run_at, last_run_at: job.last_run_at,
    last_status: job.last_status, deliver: toWord(job.deliver), failure_deliver: toWord(job.failure_deliver),
    origin: job.origin, workdir: job.workdir, attach_to_session: job.attach_to_session, ...residue,
  };
}

function readJson(path, otherwise) {
  if (!existsSync(path)) return otherwise;
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: ${error.message}`);
  }
}

function writeJson(path, value) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.tmp`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

const PLATFORMS = /^platforms: (\{.*\})$/m;
const USERS = /^([A-Z_]+)_ALLOWED_USERS=(.*)$/gm;
const readText = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : '');

function platformsOf(dir) {
  const found = PLATFORMS.exec(readText(join(dir, 'config.yaml')));
  return found ? JSON.parse(found[1]) : {};
}

function pairings(dir) {
  const below = join(dir, 'platforms', 'pairing');
  const names = existsSync(below) ? readdirSync(below).filter((file) => file.endsWith('-approved.json')) : [];
  return Object.fromEntries(names.map((file) => [file.slice(0, -14), readJson(join(below, file), {})]));
}

/** Who may talk, and who are the admins, out of Hermes's own stores. */
function loadAccess(dir) {
  const allowlist = {}; const admins = {};
  const add = (platform, users) => {
    if (users.length) allowlist[platform] = [...new Set([...(allowlist[platform] ?? []), ...users])].sort();
  };
  for (const [, platform, users] of readText(join(dir, '.env')).matchAll(USERS)) {
    add(platform.toLowerCase(), users.split(',').map((one) => one.trim()).filter(Boolean));
  }
  for (const [platform, users] of Object.entries(pairings(dir))) add(platform, Object.keys(users));
  for (const [platform, block] of Object.entries(platformsOf(dir))) {
    if (block.allow_admin_from?.length) admins[platform] = block.allow_admin_from.map(String);
  }
  return { allowlist, admins };
}

function saveAccess(dir, wanted) {
  const there = loadAccess(dir);
  if (!same(there.allowlist, wanted.allowlist)) {
    const env = readText(join(dir, '.env'));
    const kept = env.replace(USERS, (line, platform, users) => {
      const left = users.split(',').filter((one) => wanted.allowlist[platform.toLowerCase()]?.includes(one.trim()));
      return left.length ? `${platform}_ALLOWED_USERS=${left.join(',')}` : '';
    });
    if (kept !== env) writeFileSync(join(dir, '.env'), kept, { mode: 0o600 });
    for (const platform of new Set([...Object.keys(wanted.allowlist), ...Object.keys(pairings(dir))])) {
      const approved = pairings(dir)[platform] ?? {};
      const listed = loadAccess(dir).allowlist[platform] ?? [];
      const users = wanted.allowlist[platform] ?? [];
      const after = Object.fromEntries(Object.entries(approved).filter(([one]) => users.includes(one)));
      for (const one of users) if (!listed.includes(one)) after[one] = { user_name: '', approved_at: 0 };
      if (!same(approved, after)) writeJson(join(dir, 'platforms', 'pairing', `${platform}-approved.json`), after);
    }
  }
  if (!same(there.admins, wanted.admins)) {
    const platforms = platformsOf(dir);
    for (const platform of new Set([...Object.keys(wanted.admins), ...Object.keys(there.admins)])) {
      platforms[platform] = { ...platforms[platform], allow_admin_from: wanted.admins[platform] ?? [] };
    }
    const text = readText(join(dir, 'config.yaml')); const line = `platforms: ${JSON.stringify(platforms)}`;
    writeFileSync(join(dir, 'config.yaml'), PLATFORMS.test(text) ? text.replace(PLATFORMS, line) : `${text}${line}\n`);
  }
}

const WORKER = /^worker: (\{.*\})$/m;

function workerOf(dir) {
  const [, block] = readText(join(dir, 'config.yaml')).match(WORKER) ?? [];
  const own = { model: null, preset: null, cwd: '.', env: {}, permission: { timeout_seconds: 300, default: 'deny' } };
  return block ? { ...own, ...JSON.parse(block) } : null;
}

function saveWorker(dir, worker) {
  if (same(workerOf(dir), worker) || !worker) return;
  const { harness, model, preset, cwd } = worker;
  const said = Object.entries({ harness, model, preset, cwd: cwd === '.' ? null : cwd }).filter(([, value]) => value != null);
  const line = `worker: ${JSON.stringify(Object.fromEntries(said))}`;
  const text = existsSync(join(dir, 'config.yaml')) ? readText(join(dir, 'config.yaml')) : '';
  writeFileSync(join(dir, 'config.yaml'), WORKER.test(text) ? text.replace(WORKER, line) : `${text}${line}\n`);
}

function loadProfile(name, dir) {
  const { jobs } = readJson(join(dir, 'cron', 'jobs.json'), { jobs: [] });
  if (!Array.isArray(jobs)) throw new Error(`${dir}/cron/jobs.json [jobs]: expected a list`);
  const rest = readJson(join(dir, 'orchestration.json'), {});
  const access = { ...clone(EMPTY.access), ...rest.access, ...loadAccess(dir) };
  return { name, dir, ...clone(EMPTY), ...rest, worker: workerOf(dir), access, jobs: Object.fromEntries(jobs.map((record) => [record.id, toJob(record)])) };
}

function saveProfile(profile) {
  const { name, dir, jobs, worker, access: { allowlist, admins, ...pending }, ...more } = profile;
  const rest = { ...more, access: { ...EMPTY.access, ...pending } };
  mkdirSync(dir, { recursive: true });
  saveAccess(dir, { allowlist, admins });
  saveWorker(dir, worker);
  const file = join(dir, 'cron', 'jobs.json');
  const wanted = Object.values(jobs);
  const there = existsSync(file) ? loadProfile(name, dir) : null;
  if (!there || !same(Object.values(there.jobs), wanted)) {
    writeJson(file, { jobs: wanted.map(toRecord), updated_at: new Date().toISOString() });
  }
  const changed = Object.fromEntries(Object.entries(rest).filter(([key, value]) => !same(value, EMPTY[key])));
  const other = join(dir, 'orchestration.json');
  if (!same(readJson(other, {}), changed)) writeJson(other, changed);
}

export class SupercodeHarnessClient {
  async orchestrationLoad({ root }) {
    if (!existsSync(root)) throw new Error('there is no such home');
    const profiles = { default: loadProfile('default', root) };
    const below = join(root, 'profiles');
    for (const entry of existsSync(below) ? readdirSync(below, { withFileTypes: true }) : []) {
      if (entry.isDirectory() && !entry.name.startsWith('.')) {
        profiles[entry.name] = loadProfile(entry.name, join(below, entry.name));
      }
    }
    return { orchestration: { root, profiles }, vault_keys: [] };
  }

  async orchestrationSave({ orchestration }) {
    if (process.env.SUPERCODE_STUB === 'fail-save') throw new Error('the folder could not be written');
    if (process.env.SUPERCODE_STUB === 'hang-before') await forever();
    for (const profile of Object.values(orchestration.profiles)) saveProfile(profile);
    if (process.env.SUPERCODE_STUB === 'hang-after') await forever();
  }

  async supportReport() {
    return { harnesses: [] };
  }

  async startManagedRuntime() {
    throw new Error('no worker runs in tests');
  }

  async close() {}
}
