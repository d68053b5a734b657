"""Rule 5: finds credentials in a document and takes them out of the tree, so that no later message can show one."""

from __future__ import annotations

import re

from .document import Document, Node
from .reading import Reasons
from .secrets import is_address, looks_secret, may_hold_secret, secret_key

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_NEVER = "a secret is only named here, never written"
_USE = "write {secret: NAME}, the name under which the home keeps it"
_ADDRESS = "name the secret where its kind has a place for one; git keeps its own: git help credentials"


def screen(document: Document, reasons: Reasons) -> None:
    """Adds a reason for every credential in `document`, and replaces each in its tree. Never shows a value."""
    # Searching the whole text once is far cheaper than every value; only an escape could hide one from that.
    values = "\\" in document.text or may_hold_secret(document.text)
    _map_or_list(document.root, values, reasons, top=True)


def _map_or_list(
    node: Node, values: bool, reasons: Reasons, *, top: bool = False, under: str = "", names: bool = False
) -> None:
    """`names`: in a map `secrets:` a credential's key is followed by the name that the home keeps it under, or by a
    map that says where its value comes from."""
    if node.kind == "seq":
        for child in node.value:
            if child.kind == "scalar":
                _scalar(child, under, values, reasons)
            else:
                _map_or_list(child, values, reasons, under=under)
        return
    if node.kind != "map":
        _scalar(node, under, values, reasons)
        return
    hidden = []
    for key, child in node.value.items():
        if names and child.kind == "map" and not looks_secret(key):
            _source(child, values, reasons)
            continue
        if values and looks_secret(key):
            reasons.add(node.where_key(key), f"a key that looks like a credential: {_NEVER}", _USE)
            hidden.append(key)
            continue
        # `{secret: NAME}` is the way to name one; x-… is not ours, but a token in it is still one in the file.
        named = key == "secret" or (top and key.startswith("x-")) or (names and _is_name(child))
        shaped = "" if named or not secret_key(key) else key
        if child.kind == "scalar":
            _scalar(child, shaped, values, reasons)
        else:
            _map_or_list(child, values, reasons, under=shaped, names=key == "secrets")
    for key in hidden:
        del node.value[key]
    if node.value.keys() >= {"type", "default"} and under:
        # parameters: {api_token: {type: string, default: …}}
        _scalar(node.value["default"], under, values, reasons)


def _source(node: Node, values: bool, reasons: Reasons) -> None:
    """Where a secret's value comes from: no word of it is under a credential's key, whatever the key is called."""
    for child in node.value if node.kind == "seq" else node.value.values():
        if child.kind == "scalar":
            _scalar(child, "", values, reasons)
        else:
            _source(child, values, reasons)


def _scalar(node: Node, under: str, values: bool, reasons: Reasons) -> None:
    if not isinstance(node.value, str):
        return
    if under and node.value:
        variable = _VARIABLE.match(node.value)
        hint = f"write {{secret: {variable[1]}}}" if variable else _USE
        reasons.hide(node.where, f"{under}: {_NEVER}", hint)
        _replace(node)
    elif values and looks_secret(node.value):
        if is_address(node.value):
            reasons.hide(node.where, "a credential stands in it: an address is written without a password", _ADDRESS)
        else:
            reasons.hide(node.where, f"this looks like a credential: {_NEVER}", _USE)
        _replace(node)


def _is_name(node: Node) -> bool:
    return (
        node.kind == "scalar"
        and isinstance(node.value, str)
        and (node.value == "keep" or bool(_NAME.match(node.value)))
    )


def _replace(node: Node) -> None:
    """A secret reference in its place: right where one may stand, and nothing to see where none may."""
    name = Node("scalar", "HIDDEN", node.mark, node.file, "HIDDEN")
    node.kind, node.value, node.text, node.style = "map", {"secret": name}, "", ""
