"""The kinds of sources that a feed has, and which of them are fetched on a thread."""

from __future__ import annotations

import torch

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.feed.ahead import FetchAhead
from trueloop.feed.batched import Batched
from trueloop.feed.external_loader import ExternalLoader
from trueloop.feed.loader import IterableSource, MapSource
from trueloop.feed.tensors import Arrays

Source = Arrays | Batched | MapSource | IterableSource | ExternalLoader


def fetch_ahead_of(
    source: Source,
    wanted: bool | None,
    batch_size: int | None,
    has_transform: bool,
    device: torch.device | None,
) -> FetchAhead:
    """Whether batches are fetched on a thread, as far as the kind of data says that.

    Raises `ConfigError` where it is `wanted` of data that workers fetch.
    """
    if wanted is not None:
        _options.flag("fetch_ahead", wanted)
    if not isinstance(source, (Arrays, Batched)):
        if wanted:
            raise ConfigError(
                "fetch_ahead=True is for arrays and BatchDatasets, and this data is fetched "
                "sample by sample: write workers=1 or more"
            )
        return FetchAhead(False)
    assert batch_size is not None
    is_plain = not has_transform and stays_on_cpu(source, device)
    if wanted is None and is_plain and isinstance(source, Arrays) and source.is_cheap(batch_size):
        wanted = False
    return FetchAhead(wanted, runs_users_code=has_transform or isinstance(source, Batched))


def stays_on_cpu(source: Arrays | Batched | MapSource, device: torch.device | None) -> bool:
    """Whether batches are made on the CPU and stay there. (To an accelerator they are copied from
    the loop's own thread, and the batches that a second thread fetches are the source.)"""
    return all(at is None or at.type == "cpu" for at in (device, source.device))
