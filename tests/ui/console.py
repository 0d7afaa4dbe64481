"""What a page complains of and shows; a few errors of JupyterLab's own, each by its source, are only recorded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import ConsoleMessage, Error, Page, Request

from waiting import LIMIT_MS

SCREENSHOTS = Path(__file__).parent / "screenshots"
FAILED = SCREENSHOTS / "failed"


def keep_picture(page: Page, name: str, *, full_page: bool = False) -> None:
    """Keep a picture for people to look at; a busy machine's Chromium may be unable to paint a long page.

    What a test holds of the page is asserted beside it, so a picture that could not be taken fails nothing.
    """
    SCREENSHOTS.mkdir(exist_ok=True)
    try:
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=full_page)
    except Error as error:
        if "Unable to capture screenshot" not in error.message:
            raise
        print(f"no picture of {name}: {error.message}")


class LetOff(NamedTuple):
    """An error of JupyterLab's or Notebook 7's own, which they report without dpnb as well."""

    words: re.Pattern[str]
    """The whole message."""

    source: re.Pattern[str]
    """The script that reported it, or for an uncaught error every script in its stack; empty if it has no stack."""

    why: str


LAB = re.compile(r"/static/lab/[\w.-]+\.js")
NOWHERE = re.compile("")
NOTEBOOK = re.compile(r"/static/notebook/notebook_core\.\w+\.js")

LET_OFF = (
    LetOff(
        re.compile(r"Could not restore the debugger state: Canceled future for \w+ message before replies were done"),
        LAB,
        "the debugger asks a kernel that goes away",
    ),
    LetOff(
        re.compile(r"Canceled future for create_subshell_request message before replies were done"),
        NOWHERE,
        "JupyterLab opens a subshell for the comm of a widget while the kernel or the page goes away",
    ),
    LetOff(
        re.compile(r"Comm not found for comm id [0-9a-f-]+"),
        LAB,
        "a widget is closed that was opened before this page, or for another one",
    ),
    LetOff(
        re.compile(r"Cannot read properties of undefined \(reading 'schema'\)"),
        NOTEBOOK,
        "Notebook 7 looks for settings of plugins that it does not have",
    ),
    LetOff(
        re.compile(r"Command '(?!dpnb)[\w:-]+' not registered\."),
        NOTEBOOK,
        "Notebook 7 asks for commands before they are there",
    ),
)
SCRIPT = re.compile(r"https?://[^/\s]+(/[^\s:?)]*)")


def let_off(words: str, scripts: list[str]) -> LetOff | None:
    """Which of `LET_OFF` a message is; None if it is to be held against the page."""
    for known in LET_OFF:
        if known.words.fullmatch(words) and all(known.source.fullmatch(script) for script in scripts or [""]):
            return known
    return None


class Console:
    """Listens to one page from its beginning."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._here = (url, url.replace("http", "ws", 1), "data:", "blob:")
        self.troubles: list[str] = []
        """Errors, and requests that left this machine."""
        self.let_off: list[str] = []
        """Errors that are not the product's, with the reason."""
        self._heard = {"console": self._on_console, "pageerror": self._on_page_error, "request": self._on_request}
        for event, hear in self._heard.items():
            page.on(event, hear)  # type: ignore[call-overload]

    def close(self) -> None:
        """Stop listening: the next page in this tab is another test's."""
        for event, hear in self._heard.items():
            self._page.remove_listener(event, hear)

    def _take(self, kind: str, words: str, where: str) -> None:
        known = let_off(words, SCRIPT.findall(where))
        if known is None:
            self.troubles.append(f"{kind}: {words}\n{where}")
        else:
            self.let_off.append(f"{known.why}: {words}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._take("console error", message.text, message.location.get("url", ""))

    def _on_page_error(self, error: Error) -> None:
        # Of an error without a stack, Chromium may tell the name in front of its message.
        self._take("page error", error.message.removeprefix("Error: "), error.stack or "")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(self._here):
            self.troubles.append(f"outside request: {request.url}")

    def on_the_screen(self, name: str) -> str:
        """Keep a picture of a test that failed; returns where it is, the errors, and what could be read."""
        FAILED.mkdir(parents=True, exist_ok=True)
        picture = FAILED / f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')}.png"
        lines = [f"picture: {picture}", *self.troubles]
        try:
            self._page.screenshot(path=picture, timeout=LIMIT_MS)
            lines.append(self._page.locator("body").inner_text(timeout=LIMIT_MS))
        except Error as error:
            lines.append(f"The page could not be looked at: {error.message}")
        return "\n".join(lines)
