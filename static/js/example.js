import {AckExtension, CometD} from "../cometd/cometd.js";
import {DeliveryExtension, Refuse} from "./delivery.js";
import {Outbox} from "./outbox.js";

const cometd = new CometD();
cometd.registerExtension("ack", new AckExtension());
cometd.registerExtension("delivery", new DeliveryExtension({session: "shop/1"}));
cometd.configure({url: new URL("/cometd", location.href).href});

async function onOrder({data}) {
    if (!(Number.isSafeInteger(data?.pieces) && data.pieces > 0)) {
        throw new Refuse("user.update.illegalArgument", "how many?");
    }
    const item = document.createElement("li");
    item.textContent = `${data.pieces} pieces`;
    document.getElementById("orders").append(item);
}

cometd.addListener("/meta/handshake", ({successful, error}) => {
    document.getElementById("error").value = error ?? "";
    if (successful) {
        cometd.subscribe("/orders", onOrder);
    }
});
// Another tab has the session now, until somebody works with this one again.
cometd.addListener("/meta/connect", ({error}) => {
    if (error?.endsWith(":session_taken")) {
        document.getElementById("error").value = "This page is open elsewhere. Click to go on here.";
    }
});
addEventListener("click", () => cometd.isDisconnected() && cometd.handshake());
cometd.handshake();

const outbox = new Outbox(cometd, {name: "shop"});
const order = (pieces) => outbox.publish("/orders", {pieces});
outbox.addEventListener("change", () => {
    document.getElementById("waiting").value = outbox.entries.length;
});
document.getElementById("order").addEventListener("click", () => order(3));
document.getElementById("odd").addEventListener("click", () => order("nonsense"));
