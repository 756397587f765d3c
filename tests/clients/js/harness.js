// What every scenario needs: collecting messages without sleeping, and a word with the test that
// started this process.
import {get} from "node:http";
import {createInterface} from "node:readline";
import {text} from "node:stream/consumers";

const TIMEOUT_MS = 60_000;

/** Fails with a sentence instead of hanging until somebody kills the process. */
export function within(promise, what, timeout = TIMEOUT_MS) {
    let timer;
    const tooLate = new Promise((_, reject) => {
        const error = new Error(`waited in vain for ${what}`);
        timer = setTimeout(() => reject(error), timeout);
    });
    return Promise.race([promise, tooLate]).finally(() => clearTimeout(timer));
}

/** Collects what callbacks bring until somebody awaits it; only one at a time may wait. */
export class Inbox {
    #items = [];
    #wake = () => {};
    #name;

    constructor(name) {
        this.#name = name;
    }

    put(item) {
        this.#items.push(item);
        this.#wake();
    }

    /** Removes and returns exactly `count` items, in order of arrival, as soon as they are there. */
    async take(count) {
        const enough = (async () => {
            while (this.#items.length < count) {
                await new Promise((resolve) => {
                    this.#wake = resolve;
                });
            }
        })();
        try {
            await within(enough, `${count} of ${this.#name}`);
        } catch (error) {
            error.message += `, got ${JSON.stringify(this.#items).slice(0, 1000)}`;
            throw error;
        }
        return this.#items.splice(0, count);
    }

    async next() {
        return (await this.take(1))[0];
    }

    /** Removes items until one satisfies the condition and returns that one. */
    async until(condition) {
        for (;;) {
            const item = await this.next();
            if (condition(item)) {
                return item;
            }
        }
    }

    /** What arrived and nobody has taken yet. */
    get rest() {
        return [...this.#items];
    }
}

const lines = createInterface({input: process.stdin})[Symbol.asyncIterator]();

/** The next line that the test writes, or undefined when it has nothing more to say. */
export const hear = async () => (await lines.next()).value;

/** Asks the test outside for something only it can do ("kill the server") and waits until done. */
export async function ask(request) {
    console.log(`@${request}`);
    await within(hear(), `the test to ${request}`);
}

export const numbers = (count, from = 0) => Array.from({length: count}, (_, index) => from + index);

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A metric of the server, with its labels as they are written. */
export async function figure(context, name) {
    const response = await new Promise((resolve, reject) => {
        // A connection that is kept would be open after the end.
        get(new URL("/metrics", context.url), {agent: false}, resolve).on("error", reject);
    });
    const line = (await text(response)).split("\n").find((each) => each.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1) ?? 0);
}
