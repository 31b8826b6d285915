"""What the commands do: certify, report, curve, compare, plan, drift, monitor, simulate, table, semantic ....

To add one, write a module here for it and import that below. A module decorates its function with
``@app.command()``, of `calcore.cli.commands.root`, and ``@exit_codes``, of `calcore.cli.process`, in this
order. Types of options that commands share are in `calcore.cli.commands.options`; what they do alike is in
`calcore.cli.commands.shared`.

Only the command line itself is imported at once; numpy, numba and pyarrow wait until a command runs, so that
``calcore --version`` and ``--help`` answer quickly: import them in functions.
"""

from __future__ import annotations

from calcore.cli.commands.root import app

# Help lists commands in the order of these imports, then families such as table.
# isort: off
from calcore.cli.commands import certify, report, curve, compare, plan, drift  # noqa: F401
from calcore.cli.commands import monitor, simulate, table, semantic  # noqa: F401
# isort: on

__all__ = ["app"]
