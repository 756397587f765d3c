// Faye's client with promises; nothing of it is replaced.
import faye from "faye";
import {Inbox, pause, within} from "./harness.js";

const settled = (deferrable, what) =>
    within(new Promise((resolve, reject) => deferrable.then(resolve, reject)), what);

export class FayeClient {
    wire = [];
    ups = new Inbox("signs that the transport is up");
    downs = new Inbox("signs that the transport is down");
    handshakes = new Inbox("handshake replies");
    subscriptions = new Inbox("subscribe replies");

    constructor(context, {url} = {}) {
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
                }
                forward(message);
            },
        });
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
