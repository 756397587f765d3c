// What the components of both frameworks show: a session with cometd.js, and /events.
import {AckExtension, CometD} from "cometd";
import {DeliveryExtension} from "/static/js/delivery.js";
import {EventChannels} from "/static/js/event_channels.js";
import {RequestExtension} from "/static/js/request.js";
import {SessionChannels} from "/static/js/session_channels.js";

export const cometd = new CometD();
/** The channels of meta messages that left the page, with their subscriptions. */
window.asked = [];
const delivery = new DeliveryExtension({session: location.hash.slice(1)});
cometd.registerExtension("ack", new AckExtension());
cometd.registerExtension("delivery", delivery);
cometd.registerExtension("request", new RequestExtension());
cometd.registerExtension("asked", {
    outgoing(message) {
        if (message.subscription) {
            window.asked.push([message.channel, message.subscription]);
        }
        return message;
    },
});
cometd.configure({url: new URL("/cometd", location.href).href, backoffIncrement: 50});

window.cometd = cometd;
export const sources = {
    session: new SessionChannels(cometd, delivery),
    events: new EventChannels(),
};
window.sources = sources;

/** A name for a message that stays the same. */
export const keyOf = ({ext, id}) => `${ext?.delivery?.id ?? id}`;

/** What a component says of its channel. */
export const textOf = ({messages, ...state}) => JSON.stringify(state);

export const refuse = (message) => sources.session.refuse(message, "user.paper.empty", "no paper");
export const holdBack = (message) => sources.session.refuse(message, "user.update.holdback", "wait");
