// Publishes with what Faye's `publish` does not take: properties, and a callback for the reply.
import {newKey} from "./key.js";

export class Parcels {
    // Those that Faye has not sent yet, and the callbacks of those that it has sent.
    #unsent = [];
    #callbacks = new Map();

    /** Adds to the next publish of these data on this channel. */
    add(channel, data, props, callback) {
        this.#unsent.push({channel, data, props, callback});
    }

    /** Completes a message before it is sent for the first time. */
    complete(message) {
        const {channel, data} = message;
        const place = this.#unsent.findIndex((each) => each.channel === channel && Object.is(each.data, data));
        if (place >= 0) {
            const [{props, callback}] = this.#unsent.splice(place, 1);
            Object.assign(message, props);
            this.#callbacks.set(message.id, callback);
        }
        if (!channel.startsWith("/service/")) {
            // Faye repeats a publish whose reply was lost.
            message.ext = {...message.ext, delivery: {key: newKey(), ...message.ext?.delivery}};
        }
    }

    answer(reply) {
        this.#callbacks.get(reply.id)?.(reply);
        this.#callbacks.delete(reply.id);
    }
}
