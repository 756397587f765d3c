// Faye's client with promises; nothing of it is replaced.
import faye from "faye";
import {FayeExtension} from "../../../static/js/faye.js";
import {Inbox, pause, within} from "./harness.js";

const settled = (deferrable, what) =>
    within(new Promise((resolve, reject) => deferrable.then(resolve, reject)), what);

export class FayeClient {
    wire = [];
    ups = new Inbox("signs that the transport is up");
    downs = new Inbox("signs that the transport is down");
    handshakes = new Inbox("handshake replies");
    subscriptions = new Inbox("subscribe replies");
    connects = new Inbox("connect replies");
    extension;
    #isAsking = false;

    /** The extension is that of Holdfast, if there is one. */
    constructor(context, {url, extension = context.isExtended && new FayeExtension()} = {}) {
        this.client = new faye.Client(url ?? context.url, {timeout: 30, retry: 0.1});
        if (context.transport !== "websocket") {
            this.client.disable("websocket");
        }
        this.client.addExtension({
            incoming: (message, forward) => {
                this.wire.push(structuredClone(message));
                if (message.channel === "/meta/handshake") {
                    this.handshakes.put(message);
                } else if (message.channel === "/meta/subscribe") {
                    this.subscriptions.put(message);
                } else if (message.channel === "/meta/connect") {
                    this.#isAsking = false;
                    this.connects.put(message);
                }
                forward(message);
            },
            outgoing: (message, forward) => {
                this.#isAsking ||= message.channel === "/meta/connect";
                forward(message);
            },
        });
        this.extension = extension;
        if (extension) {
            this.client.addExtension(extension);
        }
        this.client.on("transport:up", () => this.ups.put("up"));
        this.client.on("transport:down", () => this.downs.put("down"));
    }

    get transport() {
        return this.client._dispatcher.connectionType;
    }

    /** It changes to its socket when that is open, however much it has said before over HTTP. */
    speaks(transport) {
        const changed = async () => {
            while (this.transport !== transport) {
                await pause(5);
            }
        };
        return within(changed(), `${transport} instead of ${this.transport}`);
    }

    /** It has sent a connect, with the acknowledgement of everything so far, that the server holds. */
    asks() {
        const asked = async () => {
            // What it has sent arrives, and what comes back at once has come.
            for (let quiet = 0; quiet < 5; quiet = this.#isAsking ? quiet + 1 : 0) {
                await pause(5);
            }
        };
        return within(asked(), "a connect");
    }

    /** The server has told it to connect no more. */
    async isOver() {
        while (this.client._advice.reconnect !== "none") {
            await pause(5);
        }
    }

    /** Faye keeps its socket when it is told to connect no more. */
    hangUp() {
        this.client._dispatcher.close();
    }

    get id() {
        return this.client._dispatcher.clientId;
    }

    async subscribe(channel) {
        const inbox = new Inbox(`messages on ${channel}`);
        inbox.subscription = this.client.subscribe(channel);
        inbox.subscription.withChannel((from, data) => inbox.put({channel: from, data}));
        await settled(inbox.subscription, `a subscribe reply for ${channel}`);
        return inbox;
    }

    publish(channel, data) {
        return settled(this.client.publish(channel, data), `a publish reply for ${channel}`);
    }

    disconnect() {
        return settled(this.client.disconnect(), "a disconnect reply");
    }

    received(channel) {
        return this.wire.filter((m) => m.channel === channel && m.data !== undefined);
    }
}
