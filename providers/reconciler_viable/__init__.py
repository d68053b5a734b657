"""Projects on the viable platform: their settings and planning kits, over the connector API."""

from .provider import ViableProvider

PROVIDER = ViableProvider()
