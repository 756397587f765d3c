// Channels that components read by /events, over the connection that all tabs share.
import {Channels} from "./channels.js";
import {listen} from "./events.js";

export class EventChannels extends Channels {
    #options;

    /** The options are those of `listen`. */
    constructor(options = {}) {
        super();
        this.#options = options;
    }

    begin(name, channel) {
        const notice = (what, said) => {
            channel.change({notice: what, error: said.error});
            this.#options.notice?.(what, said);
        };
        const hear = (message, id) => channel.add({...message, id});
        return listen(name, hear, {...this.#options, notice});
    }
}
