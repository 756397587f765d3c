"""An ingest to be killed: `python -m tests.pipeline.mortal_ingest URL LAKE EVENTS`.

It begins again if it has lost a process of Python.
"""

import sys
from pathlib import Path

from holdfast.pipeline.ingest import IngestProgress, Source, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.session import Engine, open_session
from tests.pipeline.small import SMALL

_OPTIONS = "spark.driver.extraJavaOptions"


def tell(taken: IngestProgress) -> None:
    sys.stdout.write(f"{taken}\n")
    sys.stdout.flush()


def main() -> None:
    url, lake, most = sys.argv[1:]
    # Its temporary files are removed with its tables.
    settings = {**SMALL, _OPTIONS: f"{SMALL[_OPTIONS]} -Djava.io.tmpdir={Path(lake).parent}"}
    spark = open_session(Engine("local[2]", quick=True, settings=settings))
    source = Source(url, most=int(most))
    try:
        take_what_is_there(spark, source, Lake(Path(lake)), tell)
    except Exception:
        # Without its Java, this fails, too.
        take_what_is_there(spark, source, Lake(Path(lake)), tell)
    spark.stop()


if __name__ == "__main__":
    main()
