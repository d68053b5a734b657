"""The platform's refusals as sentences: by its codes and statuses, never by prose. The rules are only stated here, for
the reader; the platform is the one that checks them (S4-12)."""

from __future__ import annotations

import re

from .shapes import Failure

RULES = {
    "copyright": "a text that is not empty, up to 200 characters",
    "organizationName": "a text that is not empty, up to 120 characters",
    "termsUrl": "an https:// address without credentials, or a path of the application such as /terms",
    "privacyUrl": "an https:// address without credentials, or a path of the application such as /privacy",
    "googleTag": "an id that begins with GTM-, G-, GT-, AW- or DC-, up to 32 characters",
}
_PERSON = "needs a person: {}; nothing was changed, and nothing is tried again by itself"
_BALANCE = "the account's balance does not cover it; top it up{}, then apply again"
_CONSENT = "somebody has to agree to the spending{}, then apply again"
_LINK = re.compile(r"https://[^\s\"'<>|]+")
_CODES = (
    ("viable-connect:consent-required", _PERSON.format(_CONSENT)),
    ("performance-consent-required", _PERSON.format(_CONSENT)),
    ("viable-connect:out-of-credits", _PERSON.format(_BALANCE)),
    ("capability-required:", _PERSON.format("the account does not have this capability{}")),
    ("limit-exhausted:", _PERSON.format("a limit of the account is used up{}")),
    (
        "viable-connect:local-unsupported",
        "it is built locally: use the stdio connector (@owlmeans/viable-mcp){}",
    ),
    ("viable-connect:op-timeout", "the platform gave up waiting for the project's slot{}"),
    ("viable-connect:op-refused", "the project's slot refused it{}"),
)
_STATUSES = {402: _PERSON.format(_BALANCE), 428: _PERSON.format(_CONSENT)}
_FIELD = "authen:payload:"


def words(status: int, failure: Failure | None) -> str:
    """What a refusal says, for a person."""
    code = failure.message if failure is not None else ""
    if code.startswith(_FIELD):
        field = re.split(r"[^A-Za-z]", code[len(_FIELD) :], maxsplit=1)[0]
        rule = RULES.get(field)
        return f"{field} is refused: {rule}. Nothing was changed" if rule else "a value is refused. Nothing was changed"
    link = _LINK.search(code)
    at = f" at {link[0]}" if link else ""
    for mark, sentence in _CODES:
        if mark in code:
            return sentence.format(at)
    if status in _STATUSES:
        return _STATUSES[status].format(at)
    said = f": {failure.type}: {failure.message[:200]}" if failure is not None else ""
    return f"the platform refused ({status}){said}"


def known(failure: Failure | None) -> bool:
    """Whether the platform says by its code that it refused, whatever the status."""
    return failure is not None and (
        failure.message.startswith(_FIELD) or any(mark in failure.message for mark, _ in _CODES)
    )
