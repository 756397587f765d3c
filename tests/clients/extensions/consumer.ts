// A page in TypeScript: what it may write compiles, and what it may not is found before it runs.
import {AckExtension, CometD, type Message} from "cometd";
import {DeliveryExtension, Refuse, type DeliveryOptions} from "../../../static/js/delivery.js";
import {FayeExtension, type FayeMessage} from "../../../static/js/faye.js";
import {EventChannels} from "../../../static/js/event_channels.js";
import {listen} from "../../../static/js/events.js";
import {Outbox, PublishRefused, type Entry, type Reply} from "../../../static/js/outbox.js";
import {useChannel} from "../../../static/js/react.js";
import {RequestError, RequestExtension, type Asks} from "../../../static/js/request.js";
import {SessionChannels} from "../../../static/js/session_channels.js";
import {keep, recall, storageOf} from "../../../static/js/storage.js";
import type {ConnectReply, EventMessage, Verdict} from "../../../static/js/wire.js";

const cometd = new CometD();
const options: DeliveryOptions = {session: {name: "shop/1", timeout: 60_000}, retries: -1};
const delivery = new DeliveryExtension(options, {storage: storageOf("sessionStorage")});
cometd.registerExtension("ack", new AckExtension());
cometd.registerExtension("delivery", delivery);

cometd.subscribe("/orders", async ({data}: Message) => {
    if (!(data.pieces > 0)) {
        throw new Refuse("user.update.illegalArgument", "how many?", {delay: 1000});
    }
});
delivery.nextActive = false;
delivery.addEventListener("change", () => {
    const told: [string | undefined, boolean, number] = [
        delivery.session,
        delivery.isHeldBack || delivery.isResumed,
        delivery.waiting + delivery.pending,
    ];
    keep(storageOf("localStorage"), "told", told);
});

cometd.registerExtension("request", new RequestExtension());
const asking = cometd as CometD & Asks;
cometd.subscribe("/power", (request: Message) => asking.reply(request, 230, {ext: {mime: "text/plain"}}));
const watts: Promise<number> = asking.ask<number>("/power", {of: "motor"}, {timeout: 5000});
watts.catch((error: RequestError) => error.code === 404);

const holdfast = new FayeExtension(options, {storage: storageOf("sessionStorage")});
holdfast.delivery.addEventListener("change", () => keep(storageOf("localStorage"), "told", holdfast.delivery.session));
export const answer = (watts: number, request: FayeMessage) => holdfast.reply(request, 2 * watts);
const doubled: Promise<number> = holdfast.ask<number>("/power", 21, {mode: "one"});
doubled.catch((error: RequestError) => error.code === 404);

new Outbox(holdfast, {name: "shop"}).close();
const outbox = new Outbox(cometd, {name: "shop"});
outbox.addEventListener("refused", ({detail}) => {
    const {channel, data, reply}: Entry & {reply: Reply} = detail;
    console.log(channel, data, reply.error?.slice(0, 3));
});

export async function order(pieces: number): Promise<boolean> {
    try {
        const {successful} = await outbox.publish("/orders", {pieces}, {ext: {delivery: {priority: 9}}});
        return successful && outbox.isKept && outbox.entries.length === 0;
    } catch (error) {
        return error instanceof PublishRefused && error.reply.successful;
    }
}

const session = new SessionChannels<{pieces: number}>(cometd, delivery);
const prices = new EventChannels({after: "-1"});

/** What a component of React does. */
export function Orders(): string[] {
    const {messages, isConnected, error} = useChannel(session, "/orders", {confirm: true});
    messages.filter(({data}) => data.pieces > 9).forEach((each) => session.refuse(each, "user.stock.empty"));
    return isConnected ? messages.map(({ext}) => `${ext?.delivery?.id}`) : [error ?? "not connected"];
}

export function misuse(): unknown {
    // @ts-expect-error: an option that there is not
    new DeliveryExtension({sesion: "shop/1"});
    // @ts-expect-error: what the server says is not the page's to set
    delivery.isHeldBack = true;
    // @ts-expect-error: a session has a name
    new FayeExtension({session: {timeout: 1}});
    // @ts-expect-error: a name is text
    new Outbox(cometd, {name: 7});
    // @ts-expect-error: nothing is known of what was kept
    recall(storageOf("localStorage"), "told").length;
    // @ts-expect-error: nothing that came by /events is refused
    prices.refuse(useChannel(prices, "/prices/1").messages[0]);
    // @ts-expect-error: only the composable for Vue takes a getter
    useChannel(session, () => "/orders");
    // @ts-expect-error: a code has a family
    new Refuse("no stock");
    // @ts-expect-error: an option of a publish that there is not
    outbox.publish("/orders", 1, {ext: {delivery: {priorty: 9}}});
    // @ts-expect-error: there is no such storage
    return storageOf("indexedDB");
}

/** Refuses a batch on the wire, without any extension. */
export function refuse(batch: (EventMessage<{pieces: number}> | ConnectReply)[]): Verdict[] {
    const events = batch.filter((each) => "data" in each);
    return events
        .filter(({data, ext}) => ext?.delivery?.state === "OK" && !(data.pieces > 0))
        .map(({ext}) => ({seq: ext?.delivery?.seq ?? 0, errorCode: "user.update.illegalArgument"}));
}

const notice = (name: string, {error}: {error: string}) => console.log(name, error);
const end: () => void = listen("/rooms/**", ({channel, data}, id) => console.log(channel, data, id.length), {notice});
end();
