"""What Spark is told that works with a few rows."""

# Plans for a few rows are not worth the time to better them, to make classes of them or to tell of
# them at length; nor are the rows worth two tasks, or room for many.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.buffer.pageSize": "256k",
    "spark.broadcast.blockSize": "64k",
    "spark.broadcast.compress": "false",
    "spark.shuffle.compress": "false",
    "spark.driver.memory": "1g",
    # What Java is to have room for from the beginning, so that it need not clean up to get it: the
    # code of quick work would have a fifth of this.
    "spark.driver.extraJavaOptions": (
        "-XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=300m -Xms1g -Xmn700m -XX:+UseSerialGC"
    ),
}
