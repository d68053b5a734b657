"""Models as Hermes takes them: the keys that it finds by itself, and its names for providers."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler_shape import models
from reconciler_shape.hiding import Hider
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


def canonical(model: Mapping[str, Json]) -> dict[str, Json]:
    """One form for what means the same; no key where Hermes takes that very one anyway."""
    found = models.canonical(model)
    if models.key_name(found) in STANDARD_KEYS.get(str(found.get("provider", "")).lower(), ()):
        del found["key"]
    return found


def usual_key(provider: str) -> str:
    """The variable that Hermes takes a provider's key from first, "" if it knows of none."""
    return next(iter(STANDARD_KEYS.get(provider.lower(), ())), "")


def from_entry(entry: Mapping[str, Json], hider: Hider) -> dict[str, Json] | None:
    """As the shape's, canonical for Hermes."""
    found = models.from_entry(entry, hider)
    return None if found is None else canonical(found)


def resolved_provider(provider: str) -> str:
    """What Hermes calls a provider once it has resolved it: `custom:lab` runs as `custom`."""
    name = provider.strip().lower()
    return "custom" if name.startswith("custom:") else name
