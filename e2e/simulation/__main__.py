"""``python -m e2e.simulation``: play seeds, replay one, reduce what breaks an invariant."""

from __future__ import annotations

import sys

from e2e.simulation import runner

if __name__ == "__main__":
    sys.exit(runner.main(sys.argv[1:]))
