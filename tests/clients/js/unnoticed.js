// Clients that notice nothing while servers follow one another: what each heard, and when.
import {writeFileSync} from "node:fs";
import {AckExtension} from "cometd";
import {FayeExtension} from "../../../static/js/faye.js";
import {CometClient} from "./cometd_client.js";
import {FayeClient} from "./faye_client.js";
import {hear, within} from "./harness.js";

/** What a client heard, which is done when all publishers have said that they are. */
class Account {
    handshakes = 0;
    faults = [];
    heard = [];
    isComplete;
    #complete;
    #open;

    constructor(name, publishers) {
        this.name = name;
        this.#open = publishers;
        this.isComplete = new Promise((resolve) => (this.#complete = resolve));
    }

    hear({by, number, last}) {
        this.heard.push([by, number, Date.now()]);
        if (last && (this.#open -= 1) === 0) {
            this.#complete();
        }
    }

    fault(what) {
        this.faults.push([what, Date.now()]);
    }
}

const CLIENTS = {
    async "cometd.js"(context, {transport, session}, account) {
        const client = new CometClient(context, {
            transport,
            extensions: session ? {ack: new AckExtension()} : {},
        });
        const {cometd} = client;
        const inbox = {put: ({data}) => account.hear(data)};
        cometd.addListener("/meta/handshake", ({successful}) => {
            account.handshakes += 1;
            // The subscriptions of a new session are the application's.
            if (successful && inbox.subscription) {
                inbox.subscription = cometd.resubscribe(inbox.subscription);
            }
        });
        // What failed on the way leads to the whole transport.
        const told = ({failure, ...reply}) => JSON.stringify({...reply, reason: failure?.reason});
        cometd.addListener("/meta/unsuccessful", (reply) => account.fault(told(reply)));
        await client.connect(session ? {ext: {delivery: {session}}} : {});
        await client.subscribe(context.channel, inbox);
        return client;
    },

    async faye(context, {transport, session}, account) {
        const extension = session && new FayeExtension({session});
        const client = new FayeClient({...context, transport}, {extension});
        client.client.on("transport:down", () => account.fault("transport:down"));
        const inbox = await client.subscribe(context.channel).catch((error) => {
            // The error alone does not say which request over which transport it answers.
            const wire = JSON.stringify(client.wire);
            throw new Error(`${client.transport}: no subscription after ${wire}`, {cause: error});
        });
        inbox.put = ({data}) => account.hear(data);
        await client.speaks(transport);
        client.handshakes.put = () => (account.handshakes += 1);
        account.handshakes = client.handshakes.rest.length;
        return client;
    },
};

export async function hearsAll(context) {
    const {publishers, patience, witnesses} = context;
    // Certificates of tests are signed by nobody.
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = context.url.startsWith("https:") ? "0" : "1";
    const accounts = witnesses.map(({name}) => new Account(name, publishers));
    const clients = await Promise.all(
        witnesses.map((each, index) => CLIENTS[each.client](context, each, accounts[index])),
    );
    console.log("@everybody is there");
    await hear();
    const complete = Promise.all(accounts.map(({isComplete}) => isComplete));
    // What is missing then, the test will see.
    await within(complete, "the last messages", patience).catch(console.error);
    writeFileSync(context.report, JSON.stringify(accounts));
    // The session of one whose server has just died may be unknown by now.
    await Promise.allSettled(clients.map((client) => client.disconnect()));
}
