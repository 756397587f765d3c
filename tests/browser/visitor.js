// A person with this page open, as far as Bayeux is concerned. Everything returns what a test can
// look at from outside: plain values, or promises of them.
const TRANSPORTS = ["websocket", "long-polling", "callback-polling"];

export class Visitor {
    #cometd;
    #inbox = [];
    #wake = () => {};

    /** `delivery` is an extension that gives verdicts. */
    constructor(library, {url, transport, channel, delivery, withAck = false, withReload = false}) {
        this.#cometd = new library.CometD();
        TRANSPORTS.filter((name) => name !== transport).forEach((name) => {
            this.#cometd.unregisterTransport(name);
        });
        if (withAck) {
            this.#cometd.registerExtension("ack", new library.AckExtension());
        }
        if (delivery) {
            this.#cometd.registerExtension("delivery", delivery);
        }
        if (withReload) {
            this.#cometd.registerExtension("reload", new library.ReloadExtension());
            window.addEventListener("pagehide", () => this.#cometd.reload());
        }
        if (channel !== undefined) {
            this.#cometd.addListener("/meta/handshake", () => this.listen(channel));
        }
        const waits = {backoffIncrement: 50, maxNetworkDelay: 2000};
        this.#cometd.configure({url, logLevel: "warn", ...waits});
    }

    /** Handshakes and connects, or gives up at the first failure. */
    async arrive() {
        const connected = new Promise((resolve) => {
            this.#cometd.addListener("/meta/connect", (reply) => reply.successful && resolve());
        });
        const reply = await new Promise((resolve) => this.#cometd.handshake(resolve));
        if (!reply.successful) {
            this.#cometd.disconnect();
            return {isWelcome: false};
        }
        await connected;
        return {
            isWelcome: true,
            isReload: reply.ext?.reload === true,
            acknowledges: reply.ext?.ack === true,
            transport: this.#cometd.getTransport().type,
            id: this.#cometd.getClientId(),
        };
    }

    listen(channel) {
        return new Promise((resolve) => {
            const onMessage = (message) => {
                this.#inbox.push(message.data);
                this.#wake();
            };
            this.#cometd.subscribe(channel, onMessage, (reply) => resolve(reply.successful));
        });
    }

    say(channel, data) {
        return new Promise((resolve) => {
            this.#cometd.publish(channel, data, (reply) => resolve(reply.successful));
        });
    }

    sayAll(channel, all) {
        let replies = [];
        this.#cometd.batch(() => {
            replies = all.map((data) => this.say(channel, data));
        });
        return Promise.all(replies);
    }

    /** The next `count` messages, however long they take. */
    async hear(count) {
        while (this.#inbox.length < count) {
            await new Promise((resolve) => {
                this.#wake = resolve;
            });
        }
        return this.#inbox.splice(0, count);
    }

    /** Everything up to this message, which must come some time. */
    async hearUntil(last) {
        const heard = [];
        while (heard.at(-1) !== last) {
            heard.push(...(await this.hear(1)));
        }
        return heard;
    }

    leave() {
        return new Promise((resolve) => {
            this.#cometd.disconnect((reply) => resolve(reply.successful));
        });
    }
}
