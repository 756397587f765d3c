// Serve this folder at http://localhost:8000, which the server allows: --allow-origin http://localhost:8000
import {AckExtension, CometD} from "cometd";
import {DeliveryExtension, Outbox, Refuse} from "holdfast-bayeux";

const status = document.querySelector("[role=status]");
const cometd = new CometD();
cometd.registerExtension("ack", new AckExtension());
cometd.registerExtension("delivery", new DeliveryExtension({session: "shop/1"}));
cometd.configure({url: "http://localhost:8080/cometd"});

function onOrder({data}) {
    if (!(data?.pieces > 0)) {
        throw new Refuse("user.update.illegalArgument", "how many?");
    }
    const item = document.createElement("li");
    item.textContent = `${data.pieces} pieces`;
    document.getElementById("orders").append(item);
}

cometd.addListener("/meta/handshake", ({successful, error}) => {
    status.textContent = successful ? "Connected" : error ?? "Not connected: trying again";
    if (successful) {
        cometd.subscribe("/orders", onOrder);
    }
});
cometd.handshake();

const outbox = new Outbox(cometd, {name: "shop"});
for (const [id, pieces] of [["order", 3], ["odd", "nonsense"]]) {
    document.getElementById(id).addEventListener("click", () => outbox.publish("/orders", {pieces}));
}
