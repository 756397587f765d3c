// Browsers that come and go in a crowd, with nothing but cometd.js and its ack extension.
import assert from "node:assert/strict";
import {AckExtension} from "cometd";
import {CometClient} from "./cometd_client.js";
import {Inbox, numbers, pause} from "./harness.js";

const PEOPLE = 8;
const LIVES = 10;
const LONGEST = 6;

const below = (limit) => Math.floor(Math.random() * limit);

/** Checks that nothing is missing, comes twice or out of order, from whomever it comes. */
class Reader {
    #last = new Map();

    put({data: {by, number}}) {
        const last = this.#last.get(by) ?? number - 1;
        assert.equal(number, last + 1, `of the news from ${by}`);
        this.#last.set(by, number);
    }
}

/** Takes jobs, of which some may come to several workers: those that one had not acked at its end. */
class Workshop {
    #open = new Set();
    #done = new Inbox("jobs");

    put({data: job}) {
        if (this.#open.delete(job)) {
            this.#done.put(job);
        }
    }

    add(job) {
        this.#open.add(job);
    }

    take(count) {
        return this.#done.take(count);
    }
}

const arrive = (context) =>
    new CometClient(context, {extensions: {ack: new AckExtension()}}).connect();

/** Resolves to the number of jobs that this one has given to the others, or to itself. */
async function live(context, workshop, name) {
    const client = await arrive(context);
    let failure;
    client.cometd.onListenerException = (error) => {
        failure ??= error;
    };
    await client.subscribe(`/news${context.root}`, new Reader());
    await client.subscribe(`/jobs${context.root}`, workshop);
    const rounds = numbers(1 + below(LONGEST));
    for (const number of rounds) {
        const job = `${name}/${number}`;
        workshop.add(job);
        const replies = await Promise.all([
            client.publish(`/news${context.root}`, {by: name, number}),
            client.publish(`/jobs${context.root}`, job),
        ]);
        assert.deepEqual(replies.map((reply) => reply.successful), [true, true]);
        await pause(below(15));
    }
    await client.disconnect();
    if (failure) {
        throw failure;
    }
    return rounds.length;
}

/** Nobody misses news or keeps a connection, and all jobs are done. */
export async function comesAndGoes(context) {
    const workshop = new Workshop();
    const jobs = await Promise.all(
        numbers(PEOPLE).map(async (person) => {
            let given = 0;
            for (const time of numbers(LIVES)) {
                given += await live(context, workshop, `${person}.${time}`);
            }
            return given;
        }),
    );
    const last = await arrive(context);
    await last.subscribe(`/jobs${context.root}`, workshop);
    await workshop.take(jobs.reduce((one, other) => one + other));
    await last.disconnect();
}
