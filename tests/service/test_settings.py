"""The curator's file: what it may contain, and where a fault is."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb.__main__ import main
from dpnb._request import DelegateBudget, LaunchMechanism
from dpnb._sources.source import DataSource
from dpnb.accounting.filters import FILTERS
from dpnb.accounting.losses import PureGDP
from dpnb.errors import InvalidValueError
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.configuration.ports import Certificate, PortAddress, SocketAddress
from dpnb.service.configuration.reading import keys_of
from dpnb.service.configuration.settings import (
    SERVICE_KEYS,
    TABLE_KEYS,
    HubSettings,
    Limits,
    TableSettings,
    read_settings,
)
from dpnb.service.opening import open_table
from dpnb.service.server import check_service
from dpnb.session import Session
from service.served import Served, open_people, run_served

ROOT = Path(__file__).parents[2]
GOOD = """\
socket = "run/dpnb.sock"

[tables.people]
declaration = "people.toml"
data = "people.csv"
"""
EPSILON = "{ epsilon = 1, delta = 1e-6 }"
UNSERVED = "filter: a service enforces one of 'gdp', 'zcdp', 'rdp'"
DECLARATION = 'name = "people"\nbudget = { mu = 1 }\n[schema]\nage = { type = "bounded", low = 0, high = 9 }\n'

HUB = '[jupyterhub]\napi_url = "http://127.0.0.1:8081/hub/api"\n'
TABLE = '[tables.first]\ndeclaration = "people.toml"\ndata = "people.csv"\n'
FAULTS = {
    "no TOML": ("socket =", "socket", 1, "must be TOML"),
    "an unknown key": ("socket =", "sokcet =", 1, "did you mean 'socket'"),
    "an unknown key of a table": ("data =", "dat =", 5, "did you mean 'data'"),
    "no data": ('data = "people.csv"', "", 3, "'data' is missing in tables.people"),
    "no such file": ("people.csv", "poeple.csv", 5, "tables.people.data: must be an existing file"),
    "a file that is a number": ('"people.csv"', "3", 5, "must be the path of a file"),
    "two addresses": ("socket", 'host = "127.0.0.1"\nsocket', 2, "socket: is only for a Unix socket"),
    "a port of a socket": ("socket", "port = 3\nsocket", 1, "port: is used only with host"),
    "plain HTTP": ('socket = "run/dpnb.sock"', 'host = "0.0.0.0"', 1, "host: without TLS must be an address of this"),
    "a name as plain HTTP": ('socket = "run/dpnb.sock"', 'host = "example.org"', 1, "host: without TLS"),
    "a port too large": ('socket = "run/dpnb.sock"', 'host = "::1"\nport = 70000', 2, "port: must be a whole"),
    "no key": ("[tables", '[tls]\ncertificate = "c"\n[tables', None, "is used only with host"),
    "a path too long": ("run/dpnb.sock", "x" * 110, 1, "socket: must have a path of at most"),
    "no such group": ("socket", 'group = "no such group"\nsocket', 1, "group: must be the name of a group"),
    "a number as group": ("socket", "group = 3\nsocket", 1, "group: must be the name of a group"),
    "a URL as name": ('socket = "run/dpnb.sock"', 'host = "::1"\nnames = ["https://a"]', 2, "names: must be a list"),
    "a format": ("people.csv", "people.xls", 5, "tables.people.data: must be a .csv"),
    "two tables, one ledger": ("[tables", f"{TABLE}[tables", 7, "must be a file of this table only"),
    "a table's name": ("tables.people", 'tables."a/b"', 3, "tables: name"),
    "two ways": ("data =", 'session = "a.py:f"\ndata =', 4, "cannot be given with session"),
    "a prefix of a socket": ("socket", 'prefix = "/a"\nsocket', 1, "prefix: is used only with host"),
    "a prefix without a slash": ('socket = "run/dpnb.sock"', 'host = "::1"\nprefix = "a"', 2, "prefix: must be"),
    "a prefix with dots": ('socket = "run/dpnb.sock"', 'host = "::1"\nprefix = "/a/../b"', 2, "prefix: must be"),
    "a prefix with a slash": ('socket = "run/dpnb.sock"', 'host = "::1"\nprefix = "/a/"', 2, "prefix: must be"),
    "a hub that is no table": ("socket", "jupyterhub = 3\nsocket", 1, "jupyterhub: must be a table"),
    "a hub without address": ("[tables", "[jupyterhub]\n[tables", 3, "'api_url' is missing in jupyterhub"),
    "a key of a hub": ("[tables", f"{HUB}api_token = 'a'\n[tables", 5, "'api_token' is not a key in jupyterhub"),
    "a hub elsewhere": ("[tables", HUB.replace("127.0.0.1", "hub.local") + "[tables", 4, "plain http to another"),
    "a hub with a secret": ("[tables", HUB.replace("127", "a:b@127") + "[tables", 4, "it has a user name"),
    "no address": ("[tables", HUB.replace("http:", "") + "[tables", 4, "api_url: must be the address"),
    "a name of a service": ("[tables", f"{HUB}service = 'a=b'\n[tables", 5, "service: must be the name of the service"),
    "no function": ('declaration = "people.toml"\ndata = "people.csv"', 'session = "a.py"', 4, "a function in it"),
    "a cockpit for all": ("[tables", '[cockpit]\nhost = "0.0.0.0"\n[tables', 4, "cockpit.host: without TLS must be"),
    "a port of the cockpit": ("[tables", '[cockpit]\nport = "x"\n[tables', 4, "cockpit.port: must be a whole number"),
    "a key of the cockpit": ("[tables", "[cockpit]\nprot = 3\n[tables", 4, "did you mean 'port'"),
    "no cockpit": ("socket", "cockpit = 3\nsocket", 1, "cockpit: must be a table"),
    "a file of the cockpit": (
        "[tables", '[cockpit.tls]\ncertificate = "c"\nkey = "k"\n[tables', 4, "cockpit.tls.certificate: must be"
    ),
    "one port": ('socket = "run/dpnb.sock"', 'host = "::1"\ncockpit = { port = 8443 }', 2, "cockpit.port: must not be"),
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "people.toml").write_text(DECLARATION, "utf-8")
    (tmp_path / "people.csv").write_text("age\n3\n", "utf-8")
    (tmp_path / "people.xls").touch()
    (tmp_path / "curator.toml").write_text(GOOD, "utf-8")
    return tmp_path / "curator.toml"


def test_paths_are_relative_to_the_file(file: Path) -> None:
    settings = read_settings(file)
    assert settings.address == SocketAddress(file.parent / "run" / "dpnb.sock")
    assert settings.tokens == file.parent / "tokens.json"
    assert settings.tables["people"].data.one == DataSource(str(file.parent / "people.csv"))


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_said_with_file_and_line(file: Path, case: str) -> None:
    old, new, line, text = FAULTS[case]
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1), "utf-8")
    with pytest.raises(InvalidValueError) as refused:
        read_settings(file)
    assert text in str(refused.value)
    if line is not None:
        assert str(refused.value).startswith(f"{file}, line {line}: ")


def test_an_address_on_the_loopback_or_with_tls(file: Path) -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        file.write_text(GOOD.replace('socket = "run/dpnb.sock"', f'host = "{host}"'), "utf-8")
        assert read_settings(file).address == PortAddress(host, 8443)
    tls = '[tls]\ncertificate = "people.csv"\nkey = "people.csv"\n[tables.people]'
    changed = GOOD.replace('socket = "run/dpnb.sock"', 'host = "0.0.0.0"').replace("[tables.people]", tls)
    file.write_text(changed, "utf-8")
    assert read_settings(file).address.url == "https://0.0.0.0:8443"


def test_a_hub_and_a_prefix(file: Path) -> None:
    assert read_settings(file).jupyterhub is None
    for host in ("https://hub.example.org", "http://127.0.0.1:8081", "http://localhost:8081"):
        given = f'prefix = "/services/dpnb"\n[jupyterhub]\napi_url = "{host}/hub/api/"\n[tables.people]'
        text = GOOD.replace('socket = "run/dpnb.sock"', 'host = "127.0.0.1"\nport = 9').replace(
            "[tables.people]", given
        )
        file.write_text(text, "utf-8")
        settings = read_settings(file)
        assert settings.address.url == "http://127.0.0.1:9/services/dpnb"
        assert settings.jupyterhub == HubSettings(f"{host}/hub/api")
    assert settings.jupyterhub.access_scope == "access:services!service=dpnb"


def test_the_example_for_jupyterhub_is_fine_and_its_configuration_names_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "jupyterhub"
    folder.mkdir()
    example = ROOT / "examples" / "jupyterhub"
    (tmp_path / "rand-hie.toml").write_bytes((ROOT / "examples" / "rand-hie.toml").read_bytes())
    (folder / "curator.toml").write_bytes((example / "curator.toml").read_bytes())
    (folder / "randhie.csv").write_text("mdvis\n", "utf-8")
    assert main(["serve", str(folder / "curator.toml"), "--check"]) == 0
    settings = read_settings(folder / "curator.toml")
    text = (example / "jupyterhub_config.py").read_text("utf-8")
    assert isinstance(settings.address, PortAddress)
    assert settings.jupyterhub is not None
    for named in (
        f'"name": "{settings.jupyterhub.service}", "url": "http://127.0.0.1:{settings.address.port}"',
        f"hub_port = {settings.jupyterhub.api_url.split(':')[2].split('/')[0]}",
        f'"DPNB_SERVICE": "http://127.0.0.1:8000{settings.address.prefix}"',
        settings.jupyterhub.access_scope,
        settings.jupyterhub.curator_scope,
        *settings.tables["rand-hie"].division.analysts,
    ):
        assert named in text


def test_a_check_reads_settings_and_declarations_and_writes_nothing(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(file.parent.iterdir())
    assert main(["serve", str(file), "--check"]) == 0
    assert "would serve people" in capsys.readouterr().out
    assert sorted(file.parent.iterdir()) == before
    for old, new, text in (
        ("low = 0", "low = 20", "people.toml, line 4: schema.age: Bounded: low must be below high"),
        ("name =", 'ledger = ":memory:"\nname =', "people.toml, line 1: ledger: must be a file"),
        *(("{ mu = 1 }", f"{EPSILON}\nfilter = '{name}'", f"people.toml, line 3: {UNSERVED}; got {name!r}")
          for name in ("rogers", "basic", "approx-dp")),
    ):  # fmt: skip
        (file.parent / "people.toml").write_text(DECLARATION.replace(old, new), "utf-8")
        assert main(["serve", str(file), "--check"]) == 2
        assert text in capsys.readouterr().err
    assert sorted(file.parent.iterdir()) == before


@pytest.mark.parametrize("name", FILTERS)
def test_a_service_enforces_the_filters_that_are_served(file: Path, name: str) -> None:
    declaration, table = file.parent / "people.toml", read_settings(file).tables["people"]
    declaration.write_text(DECLARATION.replace("{ mu = 1 }", f"{EPSILON}\nfilter = '{name}'"), "utf-8")
    if name in ("rogers", "basic", "approx-dp"):
        with pytest.raises(InvalidValueError, match=UNSERVED):
            open_table(table)
        assert not (file.parent / "people.dpnb").exists()  # refused before the ledger is made
        Session.from_toml(declaration, rehearse=True).frame.count().release(share=0.1)  # a session enforces each
    else:
        open_table(table).close()


def test_the_session_of_a_python_file_has_a_filter_that_is_served(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "import dpnb, pandas as pd\n"
        f"def f(): return dpnb.Session(pd.DataFrame({{'a': [1]}}), name='x', ledger={str(tmp_path / 'x.dpnb')!r},\n"
        "    filter='basic', schema={'a': dpnb.Bounded(0, 1)}, budget=dpnb.Budget(1, 1e-6))\n",
        "utf-8",
    )
    settings = TableSettings("people", "here", session=(tmp_path / "x.py", "f"))
    for _ in range(2):  # the ledger of a refused session is closed
        with pytest.raises(InvalidValueError, match=f"here: {UNSERVED}; got 'basic'"):
            open_table(settings)


def test_a_sub_session_has_a_filter_that_is_served(tmp_path: Path) -> None:
    kind: dict[str, Any] = {"budget": dpnb.Budget(1, 1e-6), "filter": "zcdp"}
    part = dpnb.Budget("1/10", 1e-8)
    assert open_people(":memory:", **kind).delegate(part, name="local", filter="approx-dp").filter.name == "approx-dp"

    async def scenario(ana: Served) -> None:
        for name, status in (("approx-dp", 422), ("zcdp", 200)):
            launch = LaunchMechanism(name, DelegateBudget(name, part.to_json()))
            reply = await ana.post(ana.body(name, launch))
            assert reply.status_code == status, reply.text
            assert ("does not enforce filter='approx-dp'" in reply.text) == (status == 422)
        assert ana.charges == 1

    run_served(tmp_path, scenario, open_people(tmp_path / "people.dpnb", **kind))


def test_a_check_refuses_what_is_no_certificate(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tls = 'host = "0.0.0.0"\n[tls]\ncertificate = "people.csv"\nkey = "people.csv"\n'
    file.write_text(tls + GOOD.split("\n", 2)[2], "utf-8")
    for options in (["--check"], []):
        assert main(["serve", *options, str(file)]) == 2
        assert f"{file}, line 2: tls: must be the PEM files" in capsys.readouterr().err


def test_the_example_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "curator"
    folder.mkdir()
    (tmp_path / "rand-hie.toml").write_bytes((ROOT / "examples" / "rand-hie.toml").read_bytes())
    (folder / "curator.toml").write_bytes((ROOT / "examples" / "curator" / "curator.toml").read_bytes())
    assert main(["serve", str(folder / "curator.toml"), "--check"]) == 2
    assert "tables.rand-hie.data: must be an existing file" in capsys.readouterr().err
    (folder / "randhie.csv").write_text("mdvis\n", "utf-8")
    assert main(["serve", str(folder / "curator.toml"), "--check"]) == 0


def test_the_cockpit_is_on_the_loopback_by_default(file: Path) -> None:
    assert read_settings(file).cockpit is None
    file.write_text(GOOD.replace("[tables", "[cockpit]\n[tables"), "utf-8")
    assert read_settings(file).cockpit == PortAddress("127.0.0.1", 8444)
    assert "the curator's page at http://127.0.0.1:8444" in check_service(file)


# --- every key ------------------------------------------------------------------------------------------------------

PART = 'mode = "{mode}"\n[tables.people.analysts.ana]\nceiling = {{ share = 0.5 }}\n'
SECTIONS: dict[str, tuple[str, type | None]] = {
    "tls": ('host = "127.0.0.1"\n[tls]\n{0}\n', Certificate),
    "limits": ("[limits]\n{0}\n", Limits),
    "jupyterhub": ("[jupyterhub]\n{0}\n", HubSettings),
    "cockpit": ("[cockpit]\n{0}\n", PortAddress),
}
"""Sections of the file before that of the table, with the struct that is read from each."""


def refused(file: Path, text: str, key: str) -> str:
    """The error about the first line with a key, which states file, line, key, rule, value and remedy."""
    file.write_text(text, "utf-8")
    with pytest.raises(InvalidValueError) as refused:
        read_settings(file)
    message = str(refused.value)
    name = key.rpartition(".")[2]
    line = next(number for number, one in enumerate(text.split("\n"), 1) if one.startswith(name))
    start = f"{file}, line {line}: {key}: "
    assert message.startswith(start), message
    rule, got, remedy = message.removeprefix(start).split("; ", 2)
    assert got.startswith("got "), message
    assert all(len(one) > 5 for one in (rule, remedy)), message
    return message


@pytest.mark.parametrize("wrong", ["1979-05-27", "[[]]", "nan"])
def test_every_key_refuses_a_value_of_another_type(file: Path, wrong: str) -> None:
    on_port = keys_of(PortAddress)
    for key in SERVICE_KEYS.keys() - {"tables"}:
        text = f"{key} = {wrong}\n" + ('host = "127.0.0.1"\n' if key in on_port and key != "host" else "")
        refused(file, text + GOOD.partition("\n")[2], key)
    for section, (text, struct) in SECTIONS.items():
        assert struct is not None
        for key in keys_of(struct).keys() - ({"prefix"} if section == "cockpit" else set()):
            others = {"certificate": 'key = "people.csv"', "key": 'certificate = "people.csv"'}.get(key, "")
            others = 'api_url = "https://hub/api"' if key == "service" else others
            before = text.format(f"{others}\n{key} = {wrong}")
            refused(file, before + GOOD.partition("\n")[2], f"{section}.{key}")
    for key in TABLE_KEYS:
        text = "\n".join(line for line in GOOD.split("\n") if not line.startswith(("socket", key)))
        if key == "session":
            text = "[tables.people]\n"
        refused(file, f"{text}{key} = {wrong}\n", f"tables.people.{key}")
    for key in ("ceiling", "cap", "project"):
        part = PART.format(mode="reserved").replace("ceiling", "cap" if key == "ceiling" else "ceiling")
        refused(file, f"{GOOD}{part}{key} = {wrong}\n", f"tables.people.analysts.ana.{key}")
    for key in keys_of(AmountSettings):
        part = f'mode = "pooled"\n[tables.people.analysts.ana.cap]\n{key} = {wrong}\n'
        refused(file, GOOD + part, f"tables.people.analysts.ana.cap.{key}")


OUT_OF_RANGE = {
    "port": ('host = "::1"\nport = -1', "port"),
    "a large limit": ("[limits]\nrunning = 1000001", "limits.running"),
    "no limit": ("[limits]\nstreams = 0", "limits.streams"),
    "a limit that is no integer": ("[limits]\nstreams = 2.0", "limits.streams"),
    "a long prefix": (f'host = "::1"\nprefix = "/{"a" * 200}"', "prefix"),
    "no host": ('host = ""', "host"),
    "no path": ('tokens = ""', "tokens"),
    "a long name of a service": (
        f'[jupyterhub]\napi_url = "https://hub/api"\nservice = "{"a" * 65}"', "jupyterhub.service"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OUT_OF_RANGE)
def test_a_value_out_of_range_is_refused(file: Path, case: str) -> None:
    before, key = OUT_OF_RANGE[case]
    assert "must" in refused(file, before + "\n" + GOOD.partition("\n")[2], key)


CONTRADICTIONS = {
    "a ceiling in pooled mode": (PART.format(mode="pooled"), "ana.ceiling", "is only for mode = 'reserved'"),
    "no ceiling in reserved mode": (
        'mode = "reserved"\n[tables.people.analysts]\nana = { cap = { share = 0.5 } }', "ana", "must have a ceiling"
    ),
    "a cap of a project": (
        PART.format(mode="reserved")
        + "[tables.people.projects.flu]\nceiling = { share = 1 }\ncap = { share = 0.5 }",
        "projects.flu.cap", "is not for a project"
    ),
    "a project without analysts": (
        "[tables.people.projects.flu]\ncap = { share = 0.5 }", "analysts", "must be given where a budget"
    ),
    "an unknown project": (
        PART.format(mode="reserved") + 'project = "fly"', "ana.project", "must be one of the table's projects"
    ),
    "a share and a component": (
        "[tables.people.analysts.ana]\ncap = { share = 0.5, mu = 0.1 }", "ana.cap", "must be a share, or components"
    ),
    "nothing": ("[tables.people.analysts.ana]\ncap = {}", "ana.cap", "must be a share, or components"),
    "more than all": ("[tables.people.analysts.ana]\ncap = { share = 1.5 }", "ana.cap", "must have a share above 0"),
    "less than nothing": ("[tables.people.analysts.ana]\ncap = { mu = -1 }", "ana.cap.mu", "must be a number of at"),
    "a name": ('[tables.people.analysts."a b"]\ncap = { mu = 1 }', "a b", "must have a name of"),
    "an unknown key of an amount": (
        "[tables.people.analysts.ana]\ncap = { sahre = 0.5 }", "sahre", "did you mean 'share'"
    ),
    "an unknown key of a part": ("[tables.people.analysts.ana]\ncop = { share = 1 }", "cop", "did you mean 'cap'"),
    "a project in a project": (
        "[tables.people.projects.flu]\nproject = 'flu'", "project", "is not a key in tables.people.projects.flu"
    ),
    "an unknown mode": ('mode = "shared"', "mode", "must be 'reserved' or 'pooled'"),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_division_that_contradicts_itself_is_refused(file: Path, case: str) -> None:
    more, key, rule = CONTRADICTIONS[case]
    file.write_text(GOOD + more, "utf-8")
    with pytest.raises(InvalidValueError) as refused:
        read_settings(file)
    message = str(refused.value)
    place, _, told = message.partition(": ")
    assert place.startswith(f"{file}, line ")
    assert key in told
    assert rule in told
    assert int(place.rpartition(" ")[2]) > GOOD.count("\n")


def test_the_password_in_an_address_is_not_repeated(file: Path) -> None:
    file.write_text(GOOD + '[jupyterhub]\napi_url = "https://a:secret@hub/api"\n', "utf-8")
    with pytest.raises(InvalidValueError, match="it has a user name") as refused:
        read_settings(file)
    assert "secret" not in str(refused.value)


def test_every_limit_and_part_is_read(file: Path) -> None:
    more = (
        'mode = "reserved"\n[tables.people.projects.flu]\nceiling = { share = 0.5 }\n[tables.people.analysts.ana]\n'
        'project = "flu"\nceiling = { mu = 0.1, pure_epsilon = "1/3" }\ncap = { share = 1 }\n[limits]\n'
    )
    given = {name: number for number, name in enumerate(keys_of(Limits), 1)}
    file.write_text(GOOD + more + "".join(f"{name} = {value}\n" for name, value in given.items()), "utf-8")
    settings = read_settings(file)
    assert settings.limits == Limits(**given)
    ceiling = AmountSettings(mu=Fraction(1, 10), pure_epsilon=Fraction(1, 3))
    assert settings.tables["people"].division == DivisionSettings(
        "reserved",
        (
            PartSettings("project", "flu", ceiling=AmountSettings(Fraction(1, 2))),
            PartSettings("analyst", "ana", "flu", ceiling, AmountSettings(Fraction(1))),
        ),
    )
    assert ceiling.of(PureGDP(0, 1)) == PureGDP(Fraction(1, 3), Fraction(1, 10))
    assert settings.tables["people"].division.parts[1].place == f"{file}, line 9"
