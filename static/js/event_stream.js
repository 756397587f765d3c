// How /events is asked, what it sends, and how its places compare.

/** The address at which channels are read from a place on. */
export function addressOf(url, channels, after) {
    const address = new URL(url);
    channels.forEach((each) => address.searchParams.append("channel", each));
    address.searchParams.set("after", after);
    return address.href;
}

/** Yields the fields of each event of a response. */
export async function* eventsOf(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
        const blocks = (rest + read.value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
            yield Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
        }
    }
}

/** Whether a channel, or a pattern, is or has this channel. */
export function matches(asked, channel) {
    const [, root, stars] = asked.match(/^(.*?)(\**)$/);
    const name = channel.slice(root.length);
    if (!channel.startsWith(root) || !stars) {
        return asked === channel;
    }
    return name !== "" && (stars === "**" || !name.includes("/"));
}

// An id has the place at each of the server's workers, `WORKER-STORE_CURSOR`, and behind `d-`, how these divide channels.
export const placesOf = (id) => new Map(id.split("~").filter(Boolean).map((each) => each.split("-")));
export const idOf = (places) => [...places].map((each) => each.join("-")).join("~");

/** Whether a place is not before another. Those of other stores are not comparable. */
export function reaches(place, other) {
    return place?.split("_")[0] === other.split("_")[0] && place >= other;
}

/** Waits before the next attempt, not all pages for the same time. */
export const pause = () => new Promise((resolve) => setTimeout(resolve, 1000 + 1000 * Math.random()));
