"""Models: the pair of provider and model in the words of the setup, of `config.yaml` and of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler_specs.shape import Json

STANDARD_KEYS: Mapping[str, tuple[str, ...]] = {
    "alibaba": ("DASHSCOPE_API_KEY",),
    "alibaba-coding-plan": ("ALIBABA_CODING_PLAN_API_KEY", "DASHSCOPE_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "arcee": ("ARCEEAI_API_KEY",),
    "azure-foundry": ("AZURE_FOUNDRY_API_KEY",),
    "copilot": ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    "deepinfra": ("DEEPINFRA_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "gmi": ("GMI_API_KEY",),
    "huggingface": ("HF_TOKEN",),
    "kilocode": ("KILOCODE_API_KEY",),
    "kimi-coding": ("KIMI_API_KEY", "KIMI_CODING_API_KEY"),
    "kimi-coding-cn": ("KIMI_CN_API_KEY",),
    "lmstudio": ("LM_API_KEY",),
    "minimax": ("MINIMAX_API_KEY",),
    "minimax-cn": ("MINIMAX_CN_API_KEY",),
    "novita": ("NOVITA_API_KEY",),
    "nvidia": ("NVIDIA_API_KEY",),
    "ollama-cloud": ("OLLAMA_API_KEY",),
    "openai-api": ("OPENAI_API_KEY",),
    "opencode-go": ("OPENCODE_GO_API_KEY",),
    "opencode-zen": ("OPENCODE_ZEN_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "stepfun": ("STEPFUN_API_KEY",),
    "tencent-tokenhub": ("TOKENHUB_API_KEY",),
    "upstage": ("UPSTAGE_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "xiaomi": ("XIAOMI_API_KEY",),
    "zai": ("GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY"),
}
"""Provider → the variables that Hermes takes its key from by itself (`hermes_cli.auth.PROVIDER_REGISTRY`, 0.19)."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MODEL_KEYS = ("provider", "model", "base_url", "key", "api_mode")


def canonical(model: Mapping[str, Json]) -> dict[str, Json]:
    """One form for what means the same: no trailing slash, and no key where Hermes takes that very one anyway."""
    found = {k: model[k] for k in MODEL_KEYS if model.get(k) not in (None, "", {})}
    if isinstance(found.get("base_url"), str):
        found["base_url"] = found["base_url"].rstrip("/")
    if key_name(found) in STANDARD_KEYS.get(str(found.get("provider", "")).lower(), ()):
        del found["key"]
    return found


def key_name(model: Mapping[str, Json]) -> str:
    """The name of the secret that a Model declares, "" if it declares none."""
    key = model.get("key")
    return str(key["secret"]) if isinstance(key, dict) and isinstance(key.get("secret"), str) else ""


def from_entry(entry: Mapping[str, Json], hidden: Json = None) -> dict[str, Json] | None:
    """A `model`, `fallback_providers[]` or `auxiliary.<task>` entry of config.yaml as a canonical Model.

    `hidden` stands for a key that is written there in the clear. None iff the entry names no model at all.
    """
    model = next((entry[k] for k in ("default", "model", "name") if entry.get(k)), None)
    provider = entry.get("provider")
    if not model and not provider:
        return None
    found: dict[str, Json] = {"provider": str(provider or "auto").strip(), "model": str(model or "").strip()}
    base = entry.get("base_url") or entry.get("api_base")
    if base:
        found["base_url"] = str(base).strip()
    if entry.get("api_mode"):
        found["api_mode"] = entry["api_mode"]
    key = entry.get("api_key")
    if isinstance(key, str) and key.strip():
        match = _VARIABLE.fullmatch(key.strip())
        found["key"] = {"secret": match[1]} if match else hidden
    elif entry.get("key_env") or entry.get("api_key_env"):
        found["key"] = {"secret": str(entry.get("key_env") or entry.get("api_key_env"))}
    return canonical(found)


def resolved_provider(provider: str) -> str:
    """What Hermes calls a provider once it has resolved it: `custom:lab` runs as `custom`."""
    name = provider.strip().lower()
    return "custom" if name.startswith("custom:") else name


def entry_of(model: Mapping[str, Json], name: str = "model") -> dict[str, Json]:
    """A canonical Model as a config entry; `name` is the entry's word for the model (`default` in `model:`)."""
    found: dict[str, Json] = {"provider": model["provider"], name: model.get("model", "")}
    if model.get("base_url"):
        found["base_url"] = model["base_url"]
    if key_name(model):
        found["api_key"] = f"${{{key_name(model)}}}"
    if model.get("api_mode"):
        found["api_mode"] = model["api_mode"]
    return found
