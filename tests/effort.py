"""How long tests search for examples that fail.

`make test` searches for a short time, because it runs for each change. With
`HOLDFAST_TEST_TIMES=20`, each search takes 20 times as many examples.
"""

import os

TIMES = int(os.environ.get("HOLDFAST_TEST_TIMES", "1"))
