"""What Hermes's loader knows of each messaging platform: which variables of `.env` hold its credentials, turn it on,
say who may talk to it, and which chat is its home (`gateway/config.py`, `gateway/authz_mixin.py` of 0.19)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Platform:
    """One platform. `credentials`: the channel's own key → the variable. `enables`: groups of variables of which one,
    when all of it is filled, turns the platform on; with `forced` whatever config.yaml says. `flag` is a variable that
    does so by its value. `lists` is False where Hermes asks for no user at all: who calls is proven in another way."""

    prefix: str
    credentials: Mapping[str, str] = field(default_factory=dict)
    enables: tuple[tuple[str, ...], ...] = ()
    forced: bool = False
    flag: str = ""
    home: str = ""
    lists: bool = True
    known: bool = True

    @property
    def allow(self) -> str:
        return f"{self.prefix}_ALLOWED_USERS"

    @property
    def everybody(self) -> str:
        return f"{self.prefix}_ALLOW_ALL_USERS"

    @property
    def thread(self) -> str:
        return f"{self.home}_THREAD_ID"

    @property
    def own(self) -> tuple[str, ...]:
        """The variables that say something of the channel, beside its credentials."""
        return tuple(name for name in (self.allow, self.everybody, self.home, self.thread, self.flag) if name)

    def enabling(self, filled: Mapping[str, str]) -> tuple[str, ...]:
        """The filled variables that turn it on by themselves, () if none do."""
        return next((group for group in self.enables if all(filled.get(name) for name in group)), ())


def _one(prefix: str, token: str, **more: str) -> Platform:
    """A platform that one token turns on, unless config.yaml says no."""
    return Platform(prefix, {"token": token, **more}, ((token,),), home=f"{prefix}_HOME_CHANNEL")


def _forced(prefix: str, credentials: Mapping[str, str], *enables: tuple[str, ...], home: str = "") -> Platform:
    return Platform(prefix, credentials, enables, forced=True, home=home or f"{prefix}_HOME_CHANNEL")


KNOWN: Mapping[str, Platform] = {
    "telegram": _one("TELEGRAM", "TELEGRAM_BOT_TOKEN"),
    "discord": _one("DISCORD", "DISCORD_BOT_TOKEN"),
    "slack": _one("SLACK", "SLACK_BOT_TOKEN", app_token="SLACK_APP_TOKEN"),
    "mattermost": _one("MATTERMOST", "MATTERMOST_TOKEN"),
    "matrix": Platform(
        "MATRIX",
        {"token": "MATRIX_ACCESS_TOKEN", "password": "MATRIX_PASSWORD"},
        (("MATRIX_ACCESS_TOKEN",), ("MATRIX_PASSWORD",)),
        home="MATRIX_HOME_ROOM",
    ),
    "signal": Platform("SIGNAL", {}, (("SIGNAL_HTTP_URL", "SIGNAL_ACCOUNT"),), home="SIGNAL_HOME_CHANNEL"),
    "whatsapp": Platform("WHATSAPP", flag="WHATSAPP_ENABLED", home="WHATSAPP_HOME_CHANNEL"),
    "whatsapp_cloud": _forced(
        "WHATSAPP_CLOUD",
        {
            "access_token": "WHATSAPP_CLOUD_ACCESS_TOKEN",
            "app_secret": "WHATSAPP_CLOUD_APP_SECRET",
            "verify_token": "WHATSAPP_CLOUD_VERIFY_TOKEN",
        },
        ("WHATSAPP_CLOUD_PHONE_NUMBER_ID", "WHATSAPP_CLOUD_ACCESS_TOKEN"),
    ),
    "email": _forced(
        "EMAIL",
        {"password": "EMAIL_PASSWORD"},
        ("EMAIL_ADDRESS", "EMAIL_PASSWORD", "EMAIL_IMAP_HOST", "EMAIL_SMTP_HOST"),
        home="EMAIL_HOME_ADDRESS",
    ),
    "sms": _forced("SMS", {"api_key": "TWILIO_AUTH_TOKEN"}, ("TWILIO_ACCOUNT_SID",)),
    "dingtalk": _forced(
        "DINGTALK", {"client_secret": "DINGTALK_CLIENT_SECRET"}, ("DINGTALK_CLIENT_ID", "DINGTALK_CLIENT_SECRET")
    ),
    "feishu": _forced("FEISHU", {"app_secret": "FEISHU_APP_SECRET"}, ("FEISHU_APP_ID", "FEISHU_APP_SECRET")),
    "wecom": _forced("WECOM", {"secret": "WECOM_SECRET"}, ("WECOM_BOT_ID", "WECOM_SECRET")),
    "wecom_callback": _forced(
        "WECOM_CALLBACK",
        {"corp_secret": "WECOM_CALLBACK_CORP_SECRET", "token": "WECOM_CALLBACK_TOKEN"},
        ("WECOM_CALLBACK_CORP_ID", "WECOM_CALLBACK_CORP_SECRET"),
    ),
    "weixin": _forced("WEIXIN", {"token": "WEIXIN_TOKEN"}, ("WEIXIN_TOKEN",), ("WEIXIN_ACCOUNT_ID",)),
    "bluebubbles": _forced(
        "BLUEBUBBLES", {"password": "BLUEBUBBLES_PASSWORD"}, ("BLUEBUBBLES_SERVER_URL", "BLUEBUBBLES_PASSWORD")
    ),
    "qqbot": _forced(
        "QQ", {"client_secret": "QQ_CLIENT_SECRET"}, ("QQ_APP_ID",), ("QQ_CLIENT_SECRET",), home="QQBOT_HOME_CHANNEL"
    ),
    "yuanbao": _forced(
        "YUANBAO",
        {"app_secret": "YUANBAO_APP_SECRET"},
        ("YUANBAO_APP_ID", "YUANBAO_APP_SECRET"),
        ("YUANBAO_APP_KEY", "YUANBAO_APP_SECRET"),
    ),
    "homeassistant": Platform("HASS", {"token": "HASS_TOKEN"}, (("HASS_TOKEN",),), forced=True, lists=False),
    "webhook": Platform("WEBHOOK", {"secret": "WEBHOOK_SECRET"}, flag="WEBHOOK_ENABLED", lists=False),
    "api_server": Platform(
        "API_SERVER", {"key": "API_SERVER_KEY"}, (("API_SERVER_KEY",),), True, "API_SERVER_ENABLED", lists=False
    ),
    "msgraph_webhook": Platform(
        "MSGRAPH_WEBHOOK",
        {"client_state": "MSGRAPH_WEBHOOK_CLIENT_STATE"},
        flag="MSGRAPH_WEBHOOK_ENABLED",
        lists=False,
    ),
}


def of(name: str) -> Platform:
    """A platform by its name; one of a plugin by the form that their variables have."""
    if name in KNOWN:
        return KNOWN[name]
    prefix = name.upper().replace("-", "_").replace(".", "_")
    return Platform(prefix, {"token": f"{prefix}_BOT_TOKEN"}, home=f"{prefix}_HOME_CHANNEL", known=False)
