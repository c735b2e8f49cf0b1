"""A page as HTML: one file without network and scripts, in which all text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dp_metrics._packages import __version__, import_extra
from dp_metrics.page.contents import Section, sections_of
from dp_metrics.page.pictures import as_data

if TYPE_CHECKING:
    from dp_metrics.page.page import PrivateEvaluation

__all__ = ["document", "fragment"]


def document(page: PrivateEvaluation, exact: Mapping[str, float] | None = None) -> str:
    """Return the page as a whole file; for studies of public data with exact values beside."""
    return _rendered(page, page.sections if exact is None else sections_of(page, exact), is_whole=True)


def fragment(page: PrivateEvaluation) -> str:
    """Return the page to stand in another one."""
    return _rendered(page, page.sections, is_whole=False)


def _rendered(page: PrivateEvaluation, sections: Sequence[Section], *, is_whole: bool) -> str:
    shown = [
        (section, [(one, as_data(page.evaluated, one.name)) for one in section.pictures])
        for section in sections
    ]
    text: str = _template().render(
        page=page, sections=shown, is_whole=is_whole, version=__version__,
        records="a private number of" if page.n is None else f"{page.n:,}",
    )  # fmt: skip
    return text


@lru_cache(maxsize=1)
def _template() -> Any:
    jinja2 = import_extra("jinja2", "report")
    loader = jinja2.PackageLoader("dp_metrics.page", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined,
                                     trim_blocks=True, lstrip_blocks=True)  # fmt: skip
    return environment.get_template("page.html")
