// Faults for demonstration: an unavailable network, and withheld acks.

import {idOf} from "./said.js";

/** Wraps the transports of cometd.js, to cut the connection like a pulled cable. */
export class Cable {
    isPulled = false;
    #cometd;

    constructor(cometd) {
        this.#cometd = cometd;
        for (const type of cometd.getTransportTypes()) {
            const transport = cometd.findTransport(type);
            const send = transport.send.bind(transport);
            transport.send = (envelope, isConnect) => {
                if (this.isPulled) {
                    const fail = () => envelope.onFailure({}, envelope.messages, {reason: "offline"});
                    setTimeout(fail, 0);
                } else {
                    send(envelope, isConnect);
                }
            };
        }
    }

    pull(isPulled) {
        this.isPulled = isPulled;
        if (isPulled) {
            this.cut();
        }
    }

    /** Breaks the connection; it may be restored at once. */
    cut() {
        this.#cometd.getTransport()?.abort();
    }
}

/** An extension before the one for acks: it can withhold acks, so that messages are redelivered. */
export class Acks {
    areGiven = true;
    #last = 0;
    #onRepeat;

    constructor(onRepeat) {
        this.#onRepeat = onRepeat;
    }

    outgoing(message) {
        if (message.channel === "/meta/handshake") {
            this.#last = 0;
        } else if (message.channel === "/meta/connect" && message.ext?.ack !== undefined) {
            this.#last = this.areGiven ? message.ext.ack : this.#last;
            message.ext.ack = this.#last;
        }
        return message;
    }

    incoming(message) {
        const {id: ownId, redelivered} = message.ext?.delivery ?? {};
        if (redelivered > 0) {
            this.#onRepeat(idOf(message.data) ?? ownId, redelivered);
        }
        return message;
    }
}
