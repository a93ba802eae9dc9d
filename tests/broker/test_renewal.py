"""Accounts, grants, limits and certificates that change while a broker runs."""

import asyncio
import signal
import socket
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from broker_process import BrokerProcess
from brokers import open_broker
from certificates import make_certificate
from linked_brokers import LOCAL, line, until
from tamis.broker.accounts import Account, free_account, new_token, token_hash
from tamis.broker.grants import Grants
from tamis.broker.limits import AccountLimits
from tamis.broker.records import NewEvent
from tamis.broker.renewal import Renewal
from tamis.broker.settings import TlsFiles
from tamis.broker.tls import peer_context
from tamis.errors import FileError, LimitReached, OptionError, Unauthenticated
from tamis.routing.kinds import FilterKind

BOSS = free_account("boss")


def account(publish="TRUE", subscribe="TRUE", token="x", **more):  # noqa: S107 - of tests
    grants = {"publish": Grants({"*": publish}), "subscribe": Grants({"*": subscribe})}
    return Account("ann", frozenset({token_hash(token)}), **grants, **more)


def event(price):
    return NewEvent(b'{"price": %d}' % price)


def with_accounts(folder, use, *accounts):
    async def main():
        broker = await open_broker(folder, accounts=accounts)
        try:
            await broker.create_topic(BOSS, "t", "price int")
            await use(broker)
        finally:
            await broker.close()

    asyncio.run(main())


def test_grants_change_for_what_comes_and_whoever_listens_connects_again(tmp_path):
    async def use(broker):
        ann = broker.accounts.of_token("x")
        await broker.put_subscription(ann, "t", "all")
        listening = await broker.attach(ann, "t", "all")
        other = await broker.attach_filter(BOSS, "t")
        refused = await broker.publish(ann, "t", [event(50)])
        assert (refused.accepted, len(refused.refused)) == (0, 1)

        new = account(
            publish="price < 100", subscribe="price < 5", limits=AccountLimits(subscriptions=1)
        )
        changed = await broker.change_accounts(replace(broker.settings, accounts=(BOSS, new)))
        assert changed == {"ann"}
        assert listening.closed_because == "its account has changed: connect again"
        assert other.closed_because is None
        ann = broker.accounts.of_token("x")
        assert ann.usage.subscriptions == 1
        with pytest.raises(LimitReached):
            await broker.put_subscription(ann, "t", "more")
        assert (await broker.publish(ann, "t", [event(50), event(3)])).accepted == 2
        listening = await broker.attach(ann, "t", "all")
        assert [one.record.body for one in await listening.take(9)] == [event(3).body]

    with_accounts(tmp_path, use, BOSS, account(publish="price < 10"))


def test_accounts_come_and_go(tmp_path):
    async def use(broker):
        ann = broker.accounts.of_token("x")
        await broker.put_subscription(ann, "t", "kept")
        assert await broker.change_accounts(replace(broker.settings, accounts=(BOSS,))) == {"ann"}
        with pytest.raises(Unauthenticated):
            broker.accounts.of_token("x")
        back = account(token="y")  # noqa: S106 - of tests
        assert not await broker.change_accounts(replace(broker.settings, accounts=(BOSS, back)))
        ann = broker.accounts.of_token("y")
        assert ann.usage.subscriptions == 1
        assert broker.subscription(ann, "t", "kept").id == "kept"
        same = replace(broker.settings, accounts=(free_account("boss"), account(token="y")))  # noqa: S106 - of tests
        assert await broker.change_accounts(same) == set()

    with_accounts(tmp_path, use, BOSS, account())


def test_what_cannot_be_changes_nothing(tmp_path):
    async def use(broker):
        before = list(broker.accounts)
        for wrong in ((), (BOSS, BOSS), (account(), replace(account(), name="bob"))):
            with pytest.raises(OptionError, match=r"needs a restart|there twice|same token"):
                await broker.change_accounts(replace(broker.settings, accounts=wrong))
            assert list(broker.accounts) == before

    with_accounts(tmp_path, use, BOSS, account())


def test_what_may_be_published_is_known_in_the_network_before_it_is_published(tmp_path):
    async def main():
        async with line(tmp_path, "b1", "b2", "b3") as (first, middle, last):
            await first.stop()
            few = replace(free_account("site"), publish=Grants({"*": "number < 10"}))
            object.__setattr__(first.settings, "accounts", (few,))
            await first.start()
            await until(lambda: first.linked)
            await first.broker.create_topic(few, "t", {"number": "int"})
            await until(lambda: all("t" in one.broker.network._shared for one in (middle, last)))

            def ready(one, peer):
                return one.broker.network._shared["t"].routes.is_ready(peer)

            await until(lambda: ready(first, "b2") and ready(middle, "b1") and ready(last, "b2"))
            await last.subscribe("high", "number >= 10", "t")
            held, kind = (
                first.broker.network._shared["t"].routes.filters_of,
                FilterKind.SUBSCRIPTION,
            )
            assert not held("b2", kind)  # nobody may publish what it wants

            more = replace(free_account("site"), publish=Grants({"*": "number < 100"}))
            await first.broker.change_accounts(replace(first.settings, accounts=(more,)))
            assert held("b2", kind)
            site = next(iter(first.broker.accounts))
            await first.broker.publish(site, "t", [NewEvent(b'{"number": 50}')])
            assert await last.take("high", 1, "t") == [{"number": 50}]

            await first.broker.change_accounts(replace(first.settings, accounts=(few,)))
            await until(lambda: not held("b2", kind))

    asyncio.run(main())


def test_links_show_the_new_certificate_and_trust_the_new_authority(tmp_path):
    files = TlsFiles(*make_certificate(tmp_path))
    authority = tmp_path / "authority.pem"
    authority.write_bytes(files.certificate.read_bytes())

    def shown(port, context):
        with (
            socket.create_connection((LOCAL, port)) as plain,
            context.wrap_socket(plain, server_hostname=LOCAL) as one,
        ):
            return one.getpeercert(binary_form=True)

    async def main():
        trusted = {"tls": files, "authority": authority}
        async with line(tmp_path, "b1", "b2", **trusted) as (first, last):
            asking = peer_context(last.settings, is_caller=True)
            before = await asyncio.to_thread(shown, first.port, asking)
            make_certificate(tmp_path)  # another one, in the same files
            authority.write_bytes(authority.read_bytes() + files.certificate.read_bytes())
            for one in (first, last):
                renewal = Renewal(one.settings, lambda one=one: one.settings)
                renewal.renew_context(one.calling_tls, for_peers=True)
                renewal.renew_context(one.listening_tls, for_peers=True)
                await renewal.renew()
            asking = peer_context(last.settings, is_caller=True)
            assert await asyncio.to_thread(shown, first.port, asking) != before
            first.broker.network.linked("b2").close("a test")
            await until(lambda: not first.linked)
            await until(lambda: first.linked and last.linked)
            files.key.write_bytes(b"nothing")
            with pytest.raises(FileError, match="cannot be used"):
                await renewal.renew()

    asyncio.run(main())


@pytest.mark.long
def test_a_signal_lets_the_server_read_its_file_again(tmp_path, put):
    old, new = new_token(), new_token()

    def text(token, more=""):
        return f'{more}\n[accounts.boss]\ntokens = ["{token_hash(token)}"]\nadmin = true\n'

    def is_known(broker, token):
        request = urllib.request.Request(  # noqa: S310 - of this machine
            f"{broker.url}/topics", headers={"Authorization": f"Bearer {token}"}
        )
        try:
            urllib.request.urlopen(request).close()  # noqa: S310 - of this machine
        except urllib.error.HTTPError:
            return False
        return True

    config = put("tamis.toml", text(old))
    with BrokerProcess(tmp_path / "broker", "--config", str(config)) as broker:
        assert is_known(broker, old)
        put("tamis.toml", "what is this")
        broker.send(signal.SIGHUP)
        while "the settings stay as they are" not in broker.log:
            pass
        assert is_known(broker, old)
        put("tamis.toml", text(new, 'durability = "written"'))
        stomp = socket.create_connection((LOCAL, broker.stomp))
        stomp.sendall(f"CONNECT\naccept-version:1.2\nhost:x\npasscode:{old}\n\n\0".encode())
        assert stomp.recv(1000).startswith(b"CONNECTED\n")
        broker.send(signal.SIGHUP)
        while not is_known(broker, new):
            pass
        assert not is_known(broker, old)
        with stomp:
            assert b"the account has changed: connect again" in stomp.recv(1000)
        while "these settings count after a restart: durability" not in broker.log:
            pass
