// What every scenario needs: collecting messages, and a word with the test that started this process.
import {get} from "node:http";
import {createInterface} from "node:readline";
import {text} from "node:stream/consumers";
import {within} from "./inbox.js";

export {Inbox, numbers, pause, within} from "./inbox.js";

const lines = createInterface({input: process.stdin})[Symbol.asyncIterator]();

/** The next line that the test writes, or undefined when it has nothing more to say. */
export const hear = async () => (await lines.next()).value;

/** Asks the test outside for something only it can do ("kill the server") and waits until done. */
export async function ask(request) {
    console.log(`@${request}`);
    await within(hear(), `the test to ${request}`);
}

/** A metric of the server, with its labels as they are written. */
export async function figure(context, name) {
    const response = await new Promise((resolve, reject) => {
        // A connection that is kept would be open after the end.
        get(new URL("/metrics", context.url), {agent: false}, resolve).on("error", reject);
    });
    const line = (await text(response)).split("\n").find((each) => each.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1) ?? 0);
}
