// The suite that servers of Durable Streams are tested with.
import {runConformanceTests} from "@durable-streams/server-conformance-tests";

runConformanceTests({baseUrl: process.env.STREAMS_URL});
