// cometd.js with promises instead of callbacks; nothing of it is replaced.
import {Page} from "./page.js";
import {CometD} from "cometd";
import {Inbox, figure, pause, within} from "./harness.js";

const HELD = "holdfast_connects_held";
const TRANSPORTS = ["websocket", "long-polling", "callback-polling"];

export class CometClient {
    cometd = new CometD();
    /** Every handshake reply, every connect reply and everything with data, as it came in. */
    handshakes = new Inbox("handshake replies");
    connects = new Inbox("connect replies");
    wire = [];
    page;
    #context;
    #isAsking = false;

    constructor(context, {transport = context.transport, extensions = {}, page, url, config} = {}) {
        this.#context = context;
        (context.clients ??= []).push(this);
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
            outgoing: (message) => {
                this.#isAsking ||= message.channel === "/meta/connect";
                return message;
            },
        });
        this.cometd.addListener("/meta/handshake", (reply) => this.handshakes.put(reply));
        this.cometd.addListener("/meta/connect", (reply) => {
            this.#isAsking = false;
            this.connects.put(reply);
        });
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

    /**
     * Waits until the server has the acknowledgement of everything so far, and holds a connect: that
     * of this client, as it holds one of everybody who is there.
     */
    settle() {
        const isHeld = async () => {
            const there = this.#context.clients.filter(({cometd}) => !cometd.isDisconnected());
            const isAsking = () => there.every((client) => client.#isAsking);
            return isAsking() && (await figure(this.#context, HELD)) >= there.length && isAsking();
        };
        const settled = async () => {
            while (!(await isHeld())) {
                await pause(5);
            }
        };
        return within(settled(), "held connects");
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

    call(target, data, timeout = 20_000) {
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
