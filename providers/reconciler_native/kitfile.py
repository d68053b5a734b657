"""A planning kit's file: YAML whose comments and unknown fields stay, and which goes when the kit does."""

from __future__ import annotations

from .yamltext import YamlFile

_MARK = b"\xef\xbb\xbf"


class KitFile(YamlFile):
    """Like every YAML file of a home; `Folder.save` removes one that has nothing left in it."""

    @property
    def there(self) -> bool:
        """Whether there is a kit: something stands in the file, or is to."""
        return bool(self.encode("").removeprefix(_MARK).strip())

    def clear(self) -> None:
        """Takes the kit away, at the next save."""
        self.restore(("", {}))
