"""The settings of a Spark that works with a few rows."""

# Spark's classes, which nobody has changed, are not verified: there are thousands of them.
UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
# For a few rows it is not worth optimising plans, compiling them or describing them at length, nor
# using two tasks or large buffers.
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
    # Memory that Java has from the start, so that it does not collect garbage to get it. By
    # default, the code of quickly compiled methods would have a fifth of this.
    "spark.driver.extraJavaOptions": (
        f"{UNVERIFIED} -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=300m -Xms1g -Xmn700m "
        "-XX:+UseSerialGC"
    ),
}
