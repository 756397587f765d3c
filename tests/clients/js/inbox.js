// Collecting messages without sleeping, in Node and in pages.
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

export const numbers = (count, from = 0) => Array.from({length: count}, (_, index) => from + index);

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
