// Faye's client with a named session, while connections break, servers die and pages are reloaded.
import {writeFileSync} from "node:fs";
import {FayeExtension} from "../../../static/js/faye.js";
import {FakeStorage} from "../extensions/scripted.js";
import {FayeClient} from "./faye_client.js";
import {ask, pause, within} from "./harness.js";
import {badNetwork} from "./proxy.js";

const LONGEST_PAUSE_MS = 300;
// What came twice would have come by then.
const QUIET_MS = 200;

/** A page and what it may keep, until it is not there any more. */
class Page {
    isThere = true;
    #storage;

    constructor(storage, number) {
        this.#storage = storage;
        this.number = number;
    }

    getItem(name) {
        return this.#storage.getItem(name);
    }

    setItem(name, value) {
        if (this.isThere) {
            this.#storage.setItem(name, value);
        }
    }
}

/** Hears everything, on one page after the other. */
class Reader {
    /** Each number as it came, with the page, and how often the server had handed it over before. */
    heard = [];
    /** The numbers that a page had finished before its end. */
    done = [];
    isComplete;
    #complete;
    #context;
    #session;
    #storage = new FakeStorage();
    #page = new Page(this.#storage, 0);
    #network;
    #client;

    constructor(context, transport) {
        this.#context = {...context, transport};
        this.#session = `${transport}/1`;
        this.isComplete = new Promise((resolve) => (this.#complete = resolve));
    }

    async load() {
        this.#network = await badNetwork(this.#context.url);
        const page = new Page(this.#storage, this.#page.number + 1);
        const extension = new FayeExtension({session: this.#session}, {storage: page});
        this.#client = new FayeClient(this.#context, {url: this.#network.url, extension});
        this.#page = page;
        await this.#client.client.subscribe(this.#context.channel, async ({number, last}, {ext}) => {
            this.heard.push([number, page.number, ext.delivery.redelivered ?? 0]);
            // Some are still being processed when Faye sends the next connect.
            await pause((number % 2) * 3);
            if (page.isThere) {
                this.done.push(number);
                if (last) {
                    this.#complete();
                }
            }
        });
    }

    cut() {
        this.#network.cut();
    }

    loseReply() {
        this.#network.loseNextReply();
    }

    /** As Faye does before a page is unloaded. */
    async reload() {
        await this.leave();
        await this.load();
    }

    /** The page says nothing more. */
    async crash() {
        const [network, client] = [this.#network, this.#client];
        this.#page.isThere = false;
        network.goDown();
        await this.load();
        // Here Faye lives on, and learns that another one has the session.
        network.comeUp();
        await within(client.isOver(), "the end of the former page");
        client.hangUp();
        network.close();
    }

    async leave() {
        await this.#client.disconnect().catch((error) => {
            // A server that was killed does not know the cookie that a socket got beside the handshake.
            if (error.code !== 402) {
                throw error;
            }
        });
        this.#page.isThere = false;
        this.#network.close();
    }
}

/** The test does the deeds that are not those of a reader. */
export async function losesNothing(context) {
    const readers = context.transports.map((transport) => new Reader(context, transport));
    const all = (method) => Promise.all(readers.map((reader) => reader[method]()));
    await all("load");
    await ask("publish");
    for (const deed of context.deeds) {
        await pause(Math.random() * LONGEST_PAUSE_MS);
        await (deed in Reader.prototype ? all(deed) : ask(deed));
    }
    await ask("publish the last one");
    await within(Promise.all(readers.map(({isComplete}) => isComplete)), "the last message");
    await pause(QUIET_MS);
    writeFileSync(context.report, JSON.stringify(readers.map(({heard, done}) => ({heard, done}))));
    await all("leave");
}
