// Faye's client with promises; nothing of it is replaced.
import faye from "faye";
import {Inbox, within} from "./harness.js";

const settled = (deferrable, what) =>
    within(new Promise((resolve, reject) => deferrable.then(resolve, reject)), what);

export class FayeClient {
    wire = [];
    ups = new Inbox("signs that the transport is up");
    downs = new Inbox("signs that the transport is down");
    handshakes = new Inbox("handshake replies");

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
