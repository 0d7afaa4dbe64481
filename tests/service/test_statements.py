"""The disclosure statement of an analyst's session on a real service, verified by the curator against the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from dpnb.curator.verification import verify
from dpnb.remote.connect import connect
from dpnb.service.access.tokens import new_token
from dpnb.session.disclosure.building import report_of
from service.test_process import Curator

pytestmark = [pytest.mark.slow, pytest.mark.waits]

DIVISIONS = {
    "reserved": 'mode = "reserved"\nanalysts.ana.ceiling = { share = 0.5 }\nanalysts.bob.ceiling = { share = 0.5 }\n',
    "pooled": 'mode = "pooled"\nanalysts.ana.cap = { share = 0.9 }\nanalysts.bob.cap = { share = 0.9 }\n',
    "not divided": "",
}


@pytest.mark.parametrize("mode", DIVISIONS)
def test_the_curator_verifies_the_statement_that_an_analyst_hands_over(
    mode: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    curator = Curator(tmp_path_factory.mktemp("s"))
    curator.settings.write_text(curator.settings.read_text("utf-8") + DIVISIONS[mode], "utf-8")
    declaration = curator.folder / "people.toml"
    declaration.write_text(
        f'unit_label = "patient"\nstatement.title = "Stays"\n{declaration.read_text("utf-8")}', "utf-8"
    )
    tokens = {"ana": curator.token, "bob": new_token(curator.folder / "tokens.json", "bob")}
    given: Path = curator.folder / "statement.html"
    with curator.served():
        sessions = {name: connect(f"unix://{curator.socket}", "people", token=tokens[name]) for name in tokens}
        sessions["ana"].frame["age"].mean().release(mu=0.1)
        sessions["bob"].frame["age"].sum().release(mu=0.2)
        sessions["ana"].frame.count().release(mu=0.1)
        statement = sessions["ana"].report()
        assert "one patient" in sessions["ana"].guarantee
        assert statement.stated is not None
        assert statement.stated.text.title == "Stays"
        statement.save(given)
        sessions["bob"].frame.count().release(mu=0.15)
        for session in sessions.values():
            session.close()
    (ledger,) = curator.folder.glob("*.dpnb")
    result = verify(str(given), str(ledger))
    assert result.is_fine, result.differences
    assert statement.division.mode == mode
    assert statement.source.rows_of == "copy"
    assert "All requests were made through a service" in str(statement.sections)
    losses = [one.loss for one in statement.releases]
    whole = report_of(str(ledger))
    assert [one.analyst for one in whole.releases] == ["ana", "bob", "ana", "bob"]
    if mode == "reserved":
        assert losses == ["mu 0.1", "mu 0.1"]
        assert "bob" not in statement.to_json()
        assert replace(report_of(str(ledger), "ana"), written=statement.written) == statement
    else:
        assert losses == ["mu 0.1", "mu 0.2", "mu 0.1"]
        assert any("later row" in note for note in result.notes)
