// Browsers that share the messages of a work queue, with nothing but cometd.js and its ack extension.
import assert from "node:assert/strict";
import {AckExtension} from "cometd";
import {CometClient} from "./cometd_client.js";
import {Inbox, ask, numbers} from "./harness.js";

const JOBS = 12;

const visit = (context) =>
    new CometClient(context, {extensions: {ack: new AckExtension()}}).connect();

async function publish(context, channel, jobs) {
    const sender = await new CometClient(context).connect();
    for (const job of jobs) {
        assert.equal((await sender.publish(channel, job)).successful, true);
    }
    await sender.disconnect();
}

const jobsOf = (client, channel) => client.received(channel).map((message) => message.data);

const sorted = (jobs) => jobs.toSorted((one, other) => one - other);

/** Two take all of it together, and nobody takes what another has. */
export async function sharesWork(context) {
    const channel = `${context.root}/jobs`;
    const [ann, joe] = [await visit(context), await visit(context)];
    const work = new Inbox("work");
    for (const client of [ann, joe]) {
        await client.subscribe(channel, work);
    }
    await publish(context, channel, numbers(JOBS));
    const jobs = (await work.take(JOBS)).map((message) => message.data);
    assert.deepEqual(sorted(jobs), numbers(JOBS));
    // What one has not acked when it leaves goes to the other.
    await Promise.all([ann.settle(), joe.settle()]);
    await Promise.all([ann.disconnect(), joe.disconnect()]);
    const shares = [ann, joe].map((client) => client.received(channel).length);
    assert.equal(shares[0] + shares[1], JOBS);
    // How much each takes depends on whose acks are faster.
    assert.ok(Math.min(...shares) > 0);
}

/** Work waits for somebody, also when the server is killed meanwhile; then it is done once. */
export async function takesWorkThatWaited(context) {
    const channel = `${context.root}/jobs`;
    await publish(context, channel, numbers(JOBS));
    await ask("kill and start the server");
    const ann = await visit(context);
    const inbox = await ann.subscribe(channel);
    await inbox.take(JOBS);
    assert.deepEqual(jobsOf(ann, channel), numbers(JOBS));
    await ann.settle();
    await ann.disconnect();
}
