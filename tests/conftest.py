"""Settings of the test run: reproducible property tests, host libraries only where asked for."""

import os

from hypothesis import settings

settings.register_profile("calcore", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("calcore")

# `make test-hosts` sets this and installs the hosts; without it they are not even imported.
collect_ignore = [] if os.environ.get("CALCORE_HOSTS") else ["hosts"]
