// Acknowledges batches, as the `AckExtension` of cometd.js does.

export class Acks {
    // The last batch that arrived; undefined if the server numbers none.
    #batch;

    outgoing(message) {
        if (message.channel === "/meta/handshake") {
            message.ext = {...message.ext, ack: true};
        } else if (message.channel === "/meta/connect" && this.#batch !== undefined) {
            message.ext = {...message.ext, ack: this.#batch};
        }
        return message;
    }

    incoming(message) {
        const {channel, successful, ext} = message;
        const ack = ext?.ack;
        if (channel === "/meta/handshake" && successful) {
            this.#batch = ack === true || ack?.enabled === true ? (ack.batch ?? 0) : undefined;
        } else if (channel === "/meta/connect" && successful && typeof ack === "number") {
            this.#batch = ack;
        }
        return message;
    }
}
