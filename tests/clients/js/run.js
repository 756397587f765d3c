// node run.js SUITE: says which scenarios there are, then plays each that it is told of, one a line.
import {hear, pause} from "./harness.js";

const RELEASE_MS = 60_000;

const scenarios = await import(`./${process.argv[2]}.js`);
let isAbandoned = false;
process.on("unhandledRejection", (reason) => {
    console.error("nobody handled", reason);
    isAbandoned = true;
});
console.log(Object.keys(scenarios).join(" "));

for (let told = await hear(); told !== undefined; told = await hear()) {
    const {scenario, context} = JSON.parse(told);
    try {
        await scenarios[scenario](context);
        await everythingIsReleased();
    } catch (error) {
        console.error(error);
        process.exit(1);
    }
    if (isAbandoned) {
        process.exit(1);
    }
    console.log("@end");
}

/** Whoever said goodbye must be let go: no request may be left hanging, no socket open. */
async function everythingIsReleased() {
    const limit = Date.now() + RELEASE_MS;
    do {
        if (Date.now() > limit) {
            throw new Error(`still open after the end: ${stillOpen().join(", ")}`);
        }
        // Rejections that nobody handled are told of after a turn.
        await pause(5);
    } while (stillOpen().length > 0);
}

/** What would keep this process from ending, apart from its pipes to the test. */
function stillOpen() {
    return process.getActiveResourcesInfo().filter((name) => name !== "PipeWrap");
}
