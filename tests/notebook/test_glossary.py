"""The sentences on the screen are those of the documentation, one for each term."""

from __future__ import annotations

import re
from pathlib import Path

from dpnb._browser.glossary import TERMS

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_screen_and_documentation_explain_the_same_terms_with_the_same_sentences() -> None:
    section = GLOSSARY.read_text(encoding="utf-8").partition("## On the screen")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
    assert dict(rows[1:]) == TERMS
    assert rows[0] == ("Term", "Sentence")


def test_each_term_is_explained_in_one_sentence_and_defined_in_the_glossary() -> None:
    defined = GLOSSARY.read_text(encoding="utf-8").partition("## On the screen")[0]
    for term, sentence in TERMS.items():
        assert sentence.endswith(".")
        assert ". " not in sentence, term
        assert re.search(rf"^\| [^|]*\b{re.escape(term)}\b", defined, re.MULTILINE), term
