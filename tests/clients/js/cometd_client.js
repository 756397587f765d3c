// cometd.js with promises instead of callbacks; nothing of it is replaced.
import {Page} from "./page.js";
import {CometD} from "cometd";
import {Inbox, pause, within} from "./harness.js";

const TRANSPORTS = ["websocket", "long-polling", "callback-polling"];

export class CometClient {
    cometd = new CometD();
    /** Every handshake reply, every connect reply and everything with data, as it came in. */
    handshakes = new Inbox("handshake replies");
    connects = new Inbox("connect replies");
    wire = [];
    page;

    constructor(context, {transport = context.transport, extensions = {}, page, url, config} = {}) {
        this.page = page ?? new Page();
        this.page.adopt(this.cometd);
        for (const other of TRANSPORTS.filter((name) => transport && name !== transport)) {
            this.cometd.unregisterTransport(other);
        }
        this.cometd.configure({
            url: url ?? context.url,
            logLevel: "warn",
            backoffIncrement: 50,
            maxNetworkDelay: 5000,
            ...config,
        });
        for (const [name, extension] of Object.entries(extensions)) {
            this.cometd.registerExtension(name, extension);
        }
        this.cometd.registerExtension("wire", {
            incoming: (message) => {
                this.wire.push(structuredClone(message));
                return message;
            },
        });
        this.cometd.addListener("/meta/handshake", (reply) => this.handshakes.put(reply));
        this.cometd.addListener("/meta/connect", (reply) => this.connects.put(reply));
        this.cometd.onListenerException = (error) => console.error("listener failed:", error);
    }

    get id() {
        return this.cometd.getClientId();
    }

    /** Handshakes and waits until the first connect came back: from now on connects are held. */
    async connect(props = {}) {
        this.cometd.handshake(props);
        await this.connects.until((reply) => reply.successful);
        return this;
    }

    /** Waits until the server has the acknowledgement of everything so far, and holds a connect. */
    async settle() {
        while (this.cometd.getStatus() !== "connected") {
            await pause(5);
        }
        await pause(30);
    }

    /** Subscribes and returns the inbox with the messages; fails if the server refuses. */
    async subscribe(channel, inbox = new Inbox(`messages on ${channel}`)) {
        const reply = new Promise((resolve) => {
            inbox.subscription = this.cometd.subscribe(channel, (m) => inbox.put(m), resolve);
        });
        const {successful, error} = await within(reply, `a subscribe reply for ${channel}`);
        if (!successful) {
            throw new Error(`subscription to ${channel} refused: ${error}`);
        }
        return inbox;
    }

    unsubscribe(inbox) {
        const reply = new Promise((resolve) => {
            this.cometd.unsubscribe(inbox.subscription, resolve);
        });
        return within(reply, "an unsubscribe reply");
    }

    publish(channel, data, props = {}) {
        const reply = new Promise((resolve) => this.cometd.publish(channel, data, props, resolve));
        return within(reply, `a publish reply for ${channel}`);
    }

    call(target, data, timeout = 4000) {
        const answer = new Promise((resolve) => {
            this.cometd.remoteCall(target, data, timeout, resolve);
        });
        return within(answer, `the answer of ${target}`);
    }

    disconnect() {
        const reply = new Promise((resolve) => this.cometd.disconnect(resolve));
        return within(reply, "a disconnect reply");
    }

    /** Data messages as they came over the wire, before the client shares them out. */
    received(channel) {
        return this.wire.filter((m) => m.channel === channel && m.data !== undefined);
    }
}
