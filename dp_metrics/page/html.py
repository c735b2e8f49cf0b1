"""A page as HTML: one file without network and scripts, in which all text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dp_metrics._packages import __version__, import_extra
from dp_metrics.page.contents import Section
from dp_metrics.page.numbers import PageFacts
from dp_metrics.page.pictures import as_data


def document(page: PageFacts, sections: Sequence[Section]) -> str:
    """Return the page as a whole file."""
    return _rendered(page, sections, is_whole=True)


def fragment(page: PageFacts, sections: Sequence[Section]) -> str:
    """Return the page to stand in another one."""
    return _rendered(page, sections, is_whole=False)


def _rendered(page: PageFacts, sections: Sequence[Section], *, is_whole: bool) -> str:
    shown = [
        (section, [(one, as_data(page.evaluated, one.name)) for one in section.pictures])
        for section in sections
    ]
    text: str = _template().render(
        page=page, sections=shown, is_whole=is_whole, version=__version__,
        records="a private number of" if page.n is None else f"{page.n:,}",
    )  # fmt: skip
    return text


@lru_cache(maxsize=256)
def _template() -> Any:
    jinja2 = import_extra("jinja2", "report")
    loader = jinja2.PackageLoader("dp_metrics.page", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined,
                                     trim_blocks=True, lstrip_blocks=True)  # fmt: skip
    return environment.get_template("page.html")
