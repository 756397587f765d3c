// A bad network: a TCP proxy in front of the server that can lose, withhold or refuse things.
import {connect, createServer} from "node:net";
import {once} from "node:events";

class BadNetwork {
    #target;
    #listener;
    #links = new Set();
    #onReply = null;
    #isDown = false;
    #delayMs;
    #socketDelayMs;
    /** How many connections it has taken. */
    accepted = 0;

    constructor(url, delayMs, socketDelayMs) {
        this.#target = new URL(url);
        this.#delayMs = delayMs;
        this.#socketDelayMs = socketDelayMs;
        this.#listener = createServer((client) => this.#link(client));
    }

    async open() {
        this.#listener.listen(0, this.#target.hostname);
        await once(this.#listener, "listening");
        const url = new URL(this.#target);
        url.port = this.#listener.address().port;
        this.url = url.href;
        return this;
    }

    close() {
        this.goDown();
        this.#listener.close();
    }

    /** The next bytes that the server sends get lost, with the connection that carries them. */
    loseNextReply() {
        return this.#withNextReply((link) => this.#cut(link));
    }

    /** The next bytes that the server sends never arrive, though the connection looks alive. */
    swallowNextReply() {
        return this.#withNextReply(() => {});
    }

    goDown() {
        this.#isDown = true;
        this.cut();
    }

    /** Ends all connections; new ones are possible at once. */
    cut() {
        [...this.#links].forEach((link) => this.#cut(link));
    }

    /** Nothing passes over the present connections any more, though they look alive. */
    freeze() {
        this.#links.forEach((link) => {
            link.isLost = true;
        });
    }

    comeUp() {
        this.#isDown = false;
    }

    #withNextReply(fate) {
        return new Promise((resolve) => {
            this.#onReply = (link) => {
                this.#onReply = null;
                link.isLost = true;
                fate(link);
                resolve();
            };
        });
    }

    #link(client) {
        if (this.#isDown) {
            client.destroy();
            return;
        }
        const server = connect({host: this.#target.hostname, port: this.#target.port});
        const link = {client, server, isLost: false};
        this.#links.add(link);
        this.accepted += 1;
        client.on("data", (bytes) => {
            if (!link.isLost) {
                this.#later(() => server.write(bytes), this.#delayMs);
            }
        });
        server.on("data", (bytes) => {
            const isUpgrade = bytes.includes("101 Switching Protocols");
            if (this.#onReply !== null) {
                this.#onReply(link);
            } else if (!link.isLost) {
                const delayMs = isUpgrade ? this.#socketDelayMs : this.#delayMs;
                this.#later(() => client.write(bytes), delayMs);
            }
        });
        for (const end of [client, server]) {
            end.on("close", () => this.#cut(link));
            end.on("error", () => this.#cut(link));
        }
    }

    #later(action, delayMs) {
        if (delayMs > 0) {
            setTimeout(action, delayMs);
        } else {
            action();
        }
    }

    #cut(link) {
        this.#links.delete(link);
        link.client.destroy();
        link.server.destroy();
    }
}

/**
 * With a delay, all bytes are under way for that long, in both directions. That a socket is open may
 * be told later.
 */
export function badNetwork(url, {delayMs = 0, socketDelayMs = delayMs} = {}) {
    return new BadNetwork(url, delayMs, socketDelayMs).open();
}
