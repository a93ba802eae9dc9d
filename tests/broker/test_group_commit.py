"""Changes of the catalogue that are made together."""

import asyncio

import pytest

from tamis.broker.catalogue import Catalogue
from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.group_commit import GroupCommit
from tamis.broker.workers import Workers
from tamis.errors import Busy


def test_a_change_that_cannot_be_made_is_told_and_others_go_on(tmp_path):
    statement = "INSERT INTO counts VALUES (?, 'guest', 1)"

    async def run():
        catalogue, workers = Catalogue(tmp_path / "catalogue.sqlite"), Workers()
        commits = GroupCommit(catalogue, workers)
        with pytest.raises(Busy, match="too large"):
            await commits.commit(CatalogueChange(statement, (1 << 64,)))
        await commits.commit(CatalogueChange(statement, (7,)))
        assert catalogue.counts() == [(7, "guest", 1)]
        await commits.close()
        catalogue.close()
        workers.close()

    asyncio.run(run())
