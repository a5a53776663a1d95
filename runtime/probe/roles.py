"""What a process is in the server: told by the functions its main thread is running."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from .recorder import Recorder

_RANKS = ("tp_rank", "pp_rank", "dp_rank", "moe_ep_rank", "attn_tp_rank", "gpu_id")


class RoleFinder:
    """Looks at the main thread's stack until one of the known functions is on it."""

    def __init__(self, recorder: Recorder, functions: dict[str, str]) -> None:
        """Args: recorder: told the role. functions: function name to role, as the run's configuration gives them."""
        self._recorder = recorder
        self._functions = functions
        self._found: str | None = None

    def look(self) -> str | None:
        """Tell the recorder the role once it shows; returns it."""
        if self._found is not None or not self._functions:
            return self._found
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        while frame is not None:
            role = self._functions.get(frame.f_code.co_name)
            if role is not None:
                self._found = role
                self._recorder.role(role, _ranks(frame))
                return role
            frame = frame.f_back
        return None


def _ranks(frame: FrameType) -> dict[str, int | None]:
    """The ranks among the function's own variables."""
    values = frame.f_locals
    return {
        name.removesuffix("_rank"): values[name]
        for name in _RANKS
        if isinstance(values.get(name), int) and not isinstance(values.get(name), bool)
    }
