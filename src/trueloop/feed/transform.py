"""Changes to whole batches: the user's `transform`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueloop.errors import ConfigError, DataError, UserError
from trueloop.feed.ahead import remedy, users_code
from trueloop.feed.collate import reason_of
from trueloop.feed.draws import Draws

Transform = Callable[[Any, Draws], Any]


def checked(transform: Transform) -> Transform:
    """`transform`, whose errors name the samples, and which is called once at a time."""

    def changed_by(batch: Any, draws: Draws) -> Any:
        try:
            with users_code:
                changed = transform(batch, draws)
        except UserError:
            raise
        except Exception as error:
            raise DataError(
                f"transform cannot change the batch of sample {draws.indices[0]} to "
                f"sample {draws.indices[-1]}, {reason_of(error)}: fix it; it is called with "
                f"(batch, draws){remedy()}"
            ) from error
        if changed is None:
            raise ConfigError("transform returned None: end it with `return batch`")
        return changed

    return changed_by
